"""A handful of questions to begin with."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from pipelines.types import Language

__all__ = ["examples"]

_QUESTIONS = Path(__file__).parents[1] / "sample_data" / "questions.csv"
_EXAMPLES = {
    "en": ("en-001", "en-037", "en-016", "en-018", "en-027", "en-095"),
    "zh": ("zh-001", "zh-010", "zh-012", "zh-005", "zh-002", "zh-049"),
}


@cache
def examples(language: Language) -> tuple[str, ...]:
    """A handful of the sample questions in `language`."""
    with _QUESTIONS.open(encoding="utf-8", newline="") as file:
        questions = {row["id"]: row["question"] for row in csv.DictReader(file)}
    return tuple(questions[name] for name in _EXAMPLES[language])
