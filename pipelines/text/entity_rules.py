"""What the entity rules of both languages share: types, and overlaps resolved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from pipelines.text.alignment import Span

Label = Literal[
    "PERSON",
    "NORP",
    "FAC",
    "ORG",
    "GPE",
    "LOC",
    "PRODUCT",
    "EVENT",
    "WORK_OF_ART",
    "LAW",
    "LANGUAGE",
    "DATE",
    "TIME",
    "PERCENT",
    "MONEY",
    "QUANTITY",
    "ORDINAL",
    "CARDINAL",
    "MISC",
    "ANSWER",
]


class Entity(Span):
    """A named entity: `source[start:end] == text`.

    `label` is one of the eighteen of OntoNotes 5.0, "MISC" for a name whose kind the rules
    cannot tell, or "ANSWER" for what an answer says beyond its question, which is no name.
    """

    label: Label


class Candidate(NamedTuple):
    """A stretch that one rule takes for an entity, before overlaps are resolved."""

    start: int
    end: int
    label: Label


def longest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates without overlaps, in text order; the longer one stays, then the
    earlier.

    Of two that cover the same characters the one given first stays, so order means priority.
    """
    kept: list[Candidate] = []
    taken: set[int] = set()
    for new in sorted(candidates, key=lambda c: (c.start - c.end, c.start)):
        # Nothing taken is shorter, so an overlap always reaches one of the two ends.
        if new.start not in taken and new.end - 1 not in taken:
            kept.append(new)
            taken.update(range(new.start, new.end))
    return sorted(kept)
