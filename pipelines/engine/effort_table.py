"""What runs took where that was measured: the shipped table, `assets/effort.json`.

It is written by `python -m pipelines.research.default_report --effort FILE`, and the part about
given texts by `python -m pipelines.research.measure check-effort`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from pipelines.engine.text_size import TextSize
from pipelines.paths import ASSETS
from pipelines.types import Frozen

Amount = Annotated[float, Field(ge=0)]
Source = Literal["default", "walkthroughs"]
"""What was measured: the default models, or the strong ones of the English walkthroughs."""


class Effort(Frozen):
    """Calls, and the tokens they read and write; means, so they need not be whole numbers."""

    calls: Amount = 0.0
    read: Amount = 0.0
    written: Amount = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            calls=self.calls + other.calls,
            read=self.read + other.read,
            written=self.written + other.written,
        )

    def __mul__(self, factor: float) -> Effort:
        return Effort(
            calls=self.calls * factor, read=self.read * factor, written=self.written * factor
        )


class Pace(Frozen):
    """Seconds of a run on a machine of `cores`: `start`, for each token read and written, and for
    each call of a judge, 0 where those were not measured apart."""

    start: Amount
    read: Amount
    written: Amount
    cores: int
    judged: Amount = 0.0

    def seconds(self, effort: Effort, judge_calls: float = 0.0) -> float:
        """Return how long a run takes whose calls of language models are `effort`."""
        written = self.written * effort.written + self.judged * judge_calls
        return self.start + self.read * effort.read + written


class MeasuredEffort(Frozen):
    """What each method took, by role: means over `questions`, asked of the model called `model`.

    A call that several methods share counts for the one that made it (see `Method.starts_from`).
    `fewer` names the methods that were asked fewer questions, each in a run of its own, and how
    many. For checks, `shares` and `alone` are as in `MeasuredChecks`.
    """

    model: str
    questions: int
    methods: dict[str, dict[str, Effort]]
    fewer: dict[str, int] = Field(default_factory=dict)
    shares: dict[str, tuple[str, ...]] = Field(default_factory=dict, exclude=True)
    alone: dict[str, dict[str, Effort]] = Field(default_factory=dict, exclude=True)


class PerText(Frozen):
    """What a method takes to check a given text: for the `text`, for each `sentence` of it, and for
    each `fact` in it."""

    text: Effort = Effort()
    sentence: Effort = Effort()
    fact: Effort = Effort()

    def of(self, size: TextSize) -> Effort:
        """Return the effort for a text of this size."""
        return self.text + self.sentence * size.sentences + self.fact * size.facts


class MeasuredChecks(Frozen):
    """What each method took by role to check `texts` given texts of `sentences` in all.

    They were asked of the model called `model`, "" for the strong models of illustrations. Calls
    that several methods share count for the first of them; `shares` names for a method the earlier
    ones that it shares calls with, and `alone` what it takes where none of these is asked. `pace`
    None: it is that of questions.
    """

    model: str
    texts: int
    sentences: int
    methods: dict[str, dict[str, PerText]]
    shares: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    alone: dict[str, dict[str, PerText]] = Field(default_factory=dict)
    pace: Pace | None = None

    def of(self, size: TextSize) -> MeasuredEffort:
        """Return the same for a text of this size."""
        methods, alone = (
            {
                name: {role: one.of(size) for role, one in roles.items()}
                for name, roles in part.items()
            }
            for part in (self.methods, self.alone)
        )
        return MeasuredEffort(
            model=self.model,
            questions=self.texts,
            methods=methods,
            shares=self.shares,
            alone=alone,
        )


class EffortTable(Frozen):
    """The shipped measurements: the default models of an English question and of a Chinese one, and
    English walkthroughs (strong models, whose tokens are characters / 4); `pace` and `chinese_pace`
    are those of the default models.

    `checks` are the same for given texts.
    """

    default: MeasuredEffort
    walkthroughs: MeasuredEffort
    pace: Pace
    chinese: MeasuredEffort | None = None
    chinese_pace: Pace | None = None
    checks: dict[Source, MeasuredChecks] = Field(default_factory=dict)


@cache
def effort_table() -> EffortTable:
    """Return the table that ships with the code."""
    return EffortTable.model_validate_json((ASSETS / "effort.json").read_bytes())
