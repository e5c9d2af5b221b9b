"""Measures what ships: judges, detectors, the default model, estimates, the entity recogniser."""
