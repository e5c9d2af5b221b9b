"""Calibrations, and what they say of a score, in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.run.calibrated import CalibratedReading
from pipelines.run.calibrations import CalibratedTask, Calibration

_WRONG: dict[CalibratedTask, str] = {
    "answer": "of answers with such a score are wrong",
    "span": "of texts with such a score have a hallucinated span",
    "sentence": "of sentences with such a score are inaccurate",
    "concept": "of concepts with such a score are false",
}


def reading_lines(found: Iterable[CalibratedReading]) -> list[str]:
    """Return a line for each reading of a score."""
    lines: list[str] = []
    for one in found:
        calibration = one.calibration
        said = f"by labels, {one.probability:.2f} {_WRONG[calibration.task]}"
        others = ", ".join(f"{role} {calibration.models[role]}" for role in one.others)
        told = f"; fitted with other models: {others}" if others else ""
        lines.append(f"{said} ({_basis(calibration)}{told})")
    return lines


def calibration_words(one: Calibration) -> str:
    """Return which score a calibration is of, what it was fitted to, and how good it is on
    the rest.
    """
    said = f"{one.method} {one.score}, task {one.task}: {_basis(one)}"
    errors = {"Brier score": one.brier, "calibration error": one.calibration_error}
    told = [f"{name} {value:.3f}" for name, value in errors.items() if value is not None]
    return f"{said}; {', '.join(told)} on {one.tested} others" if told else said


def _basis(one: Calibration) -> str:
    labels = "1 label" if one.labels == 1 else f"{one.labels} labels"
    of = f" of {one.session!r}" if one.session else ""
    return f"{one.fit.kind}, fitted to {labels}{of}"
