"""A statement, the evidence it is held against, and what the evidence says about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from pipelines.models.base import Claim, Relation
from pipelines.types import Frozen

__all__ = ["LABELS", "Example", "Label", "Span", "differing", "write_examples"]

Label = Literal["supported", "contradicted", "not_enough", "unsupported"]
"""What the evidence says of the statement; "unsupported" stands for either of the two before it."""

Span = tuple[int, int]
"""Start and end of some characters, the end not among them."""

LABELS: tuple[Label, ...] = ("supported", "contradicted", "not_enough")
"""In the order of the judge's outputs."""


_WORD = re.compile(r"\w+(?:[.,'’-]\w+)*|%")


class Example(Frozen):
    """A training pair.

    `question` is what the statement answers, empty where it stands for itself. `make` says how the
    pair was made, and `group` which text it comes from: pairs of a group are never parted.
    Under the relation "same" `evidence` is another answer to the question.
    `wrong` are the places in the statement, (start, end) in characters, of what the evidence does
    not bear out; None where nobody knows which they are.
    """

    evidence: str
    statement: str
    label: Label
    make: str
    group: str
    question: str = ""
    relation: Relation = "support"
    wrong: tuple[Span, ...] | None = None

    @property
    def claim(self) -> Claim:
        """What a judge is asked about this pair."""
        return Claim(
            statement=self.statement,
            evidence=(self.evidence,),
            question=self.question,
            relation=self.relation,
        )

    @property
    def wholly_wrong(self) -> Example:
        """This pair, nothing of whose statement the evidence bears out."""
        return self.model_copy(update={"wrong": ((0, len(self.statement)),)})

    @property
    def wholly_right(self) -> Example:
        """This pair, all of whose statement the evidence bears out."""
        return self.model_copy(update={"wrong": ()})


def differing(true: str, statement: str) -> tuple[Span, ...] | None:
    """The words of `statement` that `true` does not have in their place.

    What is missing from `statement` is felt at the words beside the gap. None where most words
    differ: then it is not one change that tells the two apart.
    """
    before = _WORD.findall(true.lower())
    places = list(_WORD.finditer(statement))
    after = [place[0].lower() for place in places]
    found: list[Span] = []
    words = 0
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for change, _, _, start, stop in changes:
        if change == "delete":
            start, stop = max(0, start - 1), min(len(after), start + 1)
        if change != "equal" and stop > start:
            words += stop - start
            found.append((places[start].start(), places[stop - 1].end()))
    return tuple(found) if found and words <= max(3, len(after) // 2) else None


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """One JSON object a line."""
    lines = (json.dumps(one.model_dump(), ensure_ascii=False) for one in examples)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
