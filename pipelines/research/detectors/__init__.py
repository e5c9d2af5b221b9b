"""How well detectors find hallucinations: the tables of docs/detectors.md, from evaluations."""
