"""Short texts to check, written by hand: it is known which of their sentences are wrong."""

from __future__ import annotations

import json
from functools import cache

from pipelines.engine.checking import TextToCheck
from pipelines.paths import SAMPLE_DATA
from pipelines.types import Frozen, Language


class SampleText(Frozen):
    """A text of `sample_data/checks.json`; `wrong` are the numbers of its wrong sentences, from 1.

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
    """All of them, in the order of the file."""
    rows = json.loads((SAMPLE_DATA / "checks.json").read_text(encoding="utf-8"))
    return tuple(SampleText.model_validate(row) for row in rows)
