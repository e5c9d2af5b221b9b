"""The data that judges are trained and measured on, as one folder of files.

All are public but `model_answers`, which `pipelines.research.long_training.model_answers` writes.
Files keep the names that their folder gives them. What is missing is left out, so that a part of
the data is enough to train and to measure on that part.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pipelines.errors import failure

_NAMES = {
    "qa": "halueval_qa.jsonl",
    "biographies": "wikibio_gpt3.jsonl",
    "stances": "claim_evidence_stance.jsonl",
    "articles": "xquad.en.json",
    "facts": "strategyqa_facts.jsonl",
    "truthful": "truthfulqa.jsonl",
    "hard": "fool_me_twice.jsonl",
    "symmetric": "fever_symmetric.jsonl",
    "cited": "wice_claims.jsonl",
    "climate": "climate_fever.jsonl",
    "consistency": "sac3_hotpotqa.json",
    "trivia": "triviaqa.jsonl",
    "model_answers": "model_answers.jsonl",
}
"""The data to the name of its file."""


class Sources(NamedTuple):
    """Data by path; None where the folder does not hold it."""

    qa: Path | None = None
    biographies: Path | None = None
    stances: Path | None = None
    articles: Path | None = None
    facts: Path | None = None
    truthful: Path | None = None
    hard: Path | None = None
    symmetric: Path | None = None
    cited: Path | None = None
    climate: Path | None = None
    consistency: Path | None = None
    trivia: Path | None = None
    model_answers: Path | None = None


def sources_in(folder: Path) -> Sources:
    """Return the files of `folder`; InvalidInputError when it holds none of them."""
    found = {name: folder / file for name, file in _NAMES.items() if (folder / file).is_file()}
    if not found:
        raise failure("research.no_data", folder=folder, known=sorted(_NAMES.values()))
    return Sources(**found)
