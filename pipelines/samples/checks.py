"""Short texts to check, written by hand: it is known which of their sentences are wrong."""

from __future__ import annotations

import json
from functools import cache

from pipelines.engine.checking import TextToCheck
from pipelines.paths import SAMPLE_DATA
from pipelines.types import Frozen, Language


class SampleText(Frozen):
    """A text of `sample_data`; `wrong` are the numbers of its wrong sentences, from 1.

    `about` says who wrote it, and what is wrong with it.
    """

    id: str
    language: Language
    title: str
    about: str
    wrong: tuple[int, ...]
    question: str
    text: str
    sources: tuple[str, ...]

    @property
    def given(self) -> TextToCheck:
        """What is to be checked."""
        return TextToCheck(text=self.text, question=self.question, sources=self.sources)


@cache
def sample_texts() -> tuple[SampleText, ...]:
    """Return the examples of the page, in the order of their file."""
    return _read("checks.json")


@cache
def measured_texts() -> tuple[SampleText, ...]:
    """Return those on which detectors are measured, checked against the sample library."""
    return _read("measured_checks.json")


def _read(name: str) -> tuple[SampleText, ...]:
    rows = json.loads((SAMPLE_DATA / name).read_text(encoding="utf-8"))
    return tuple(SampleText.model_validate(row) for row in rows)
