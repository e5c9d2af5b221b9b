"""Measure the entity recogniser on labelled sentences.

    python -m pipelines.text.evaluate_entities tests/data/entities/en.jsonl ...

Each line of a file is `{"text": ..., "entities": [[start, end, label], ...], "split": ...}`.
An entity counts as found when its span is exactly the labelled one; the second row of figures
also asks for the label. Counts are summed over sentences before precision and recall are taken.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import InvalidInput
from pipelines.text.entities import EntityRecognizer
from pipelines.text.languages import detect_language

__all__ = ["LabelledSentence", "Score", "evaluate", "main", "read_labelled"]

_Key = tuple[int, int] | tuple[int, int, str]


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence with its entities as `(start, end, label)`, and the half it belongs to."""

    text: str
    entities: tuple[tuple[int, int, str], ...]
    split: str


@dataclass(frozen=True)
class Score:
    """Counts of entities: right, found though not labelled, labelled though not found."""

    correct: int = 0
    spurious: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        """Share of the entities found that are right, in [0, 1]; 1 when none was found."""
        found = self.correct + self.spurious
        return self.correct / found if found else 1.0

    @property
    def recall(self) -> float:
        """Share of the labelled entities that were found, in [0, 1]; 1 when there are none."""
        labelled = self.correct + self.missed
        return self.correct / labelled if labelled else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]."""
        both = 2 * self.correct + self.spurious + self.missed
        return 2 * self.correct / both if both else 1.0

    def add(self, found: set[_Key], labelled: set[_Key]) -> Score:
        """This score with one more sentence counted in."""
        return Score(
            self.correct + len(found & labelled),
            self.spurious + len(found - labelled),
            self.missed + len(labelled - found),
        )
