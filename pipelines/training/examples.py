"""A statement, the evidence it is held against, and what the evidence says about it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pipelines.types import Frozen

__all__ = ["LABELS", "Example", "Label", "write_examples"]

Label = Literal["supported", "contradicted", "not_enough", "unsupported"]
"""What the evidence says of the statement; "unsupported" stands for either of the two before it."""

LABELS: tuple[Label, ...] = ("supported", "contradicted", "not_enough")
"""In the order of the judge's outputs."""


class Example(Frozen):
    """A training pair.

    `question` is what the statement answers, empty where it stands for itself. `make` says how the
    pair was made, and `group` which text it comes from: pairs of a group are never parted.
    """

    evidence: str
    statement: str
    label: Label
    make: str
    group: str
    question: str = ""


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """One JSON object a line."""
    lines = (json.dumps(one.model_dump(), ensure_ascii=False) for one in examples)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
