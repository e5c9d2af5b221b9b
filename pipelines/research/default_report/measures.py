"""Counts over the records of a part: pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from pipelines.research.default_report.asking import MethodAnswer, QuestionRecord, ReportConcept
from pipelines.run.events import DOUBTS
from pipelines.samples.scoring import words_of

T = TypeVar("T")

FIRST = ("direct", "rag", "drad")
"""The methods whose answers a visitor sees first."""

ENOUGH, PARAPHRASES = 4, 6
"""Of six paraphrases that Rowen asks for, four are enough for its comparison to mean something."""


class Ratio(NamedTuple):
    """So many of so many."""

    part: int
    of: int

    def __str__(self) -> str:
        percentage = f"{100 * self.part / self.of:.0f} %" if self.of else "–"
        return f"{self.part} of {self.of} ({percentage})"


class Repairs(NamedTuple):
    """Of the wrong Direct answers those that a method has right, of the right ones those that it
    spoils."""

    mended: Ratio
    spoiled: Ratio


class DoubtRates(NamedTuple):
    """Of a method's own wrong originals, and of its right ones, those that it doubts."""

    wrong: Ratio
    right: Ratio


class Paraphrasing(NamedTuple):
    """Of the paraphrases written those taken, why the others were not, and the questions of which
    enough were taken."""

    taken: Ratio
    discarded: dict[str, int]
    enough: Ratio


class Checking(NamedTuple):
    """EVER's concepts: questions of the model that could be used, claims about one concept alone,
    claims about less than the whole sentence, verdicts."""

    written: Ratio
    alone: Ratio
    narrower: Ratio
    verdicts: dict[str, int]


class Duration(NamedTuple):
    """Seconds: median and 90th percentile over `runs` runs."""

    median: float
    high: float
    runs: int


class MeanCost(NamedTuple):
    """Means over runs: calls of language models and of judges, tokens read and written."""

    calls: float
    judge_calls: float
    prompt_tokens: float
    tokens: float


def outcomes(attempts: Iterable[MethodAnswer]) -> dict[str, Ratio]:
    """Return how many answers are right, wrong, abstained and failed."""
    counts = Counter(one.outcome for one in attempts)
    total = counts.total()
    return {name: Ratio(counts[name], total) for name in ("right", "wrong", "abstained", "failed")}


def originals_right(attempts: Sequence[MethodAnswer]) -> Ratio:
    """Return how many of a method's originals are right."""
    return _share(attempts, lambda one: one.original_outcome == "right")


def repairs(records: Iterable[QuestionRecord], method: str) -> Repairs:
    """Return what became of Direct's answers in the answers of `method`; abstaining spoils too."""
    pairs = [
        (record.methods["direct"].outcome, record.methods[method].outcome) for record in records
    ]
    return Repairs(
        mended=_share([b for a, b in pairs if a == "wrong"], lambda after: after == "right"),
        spoiled=_share([b for a, b in pairs if a == "right"], lambda after: after != "right"),
    )


def detection(attempts: Sequence[MethodAnswer]) -> DoubtRates:
    """Return what a method's own verdict doubts; a verdict that was not reached doubts nothing."""

    def doubted(outcome: str) -> Ratio:
        of = [one for one in attempts if one.original_outcome == outcome]
        return _share(of, lambda one: one.verdict in DOUBTS)

    return DoubtRates(doubted("wrong"), doubted("right"))


def paraphrasing(records: Sequence[QuestionRecord]) -> Paraphrasing:
    """Return what became of the paraphrases; those over the six that are wanted do not count."""
    written = [one for record in records for one in record.paraphrases]
    reasons = Counter(one.discarded for one in written if one.discarded)
    taken = [sum(not one.discarded for one in record.paraphrases) for record in records]
    return Paraphrasing(
        taken=_share(written, lambda one: not one.discarded),
        discarded=dict(reasons.most_common()),
        enough=_share(taken, lambda count: count >= ENOUGH),
    )


def checking(records: Iterable[QuestionRecord]) -> Checking:
    """Return what EVER's concepts were asked by, and what their verdicts are about.

    Where a claim says the same as the whole sentence, the verdict is one on the concept only if the
    sentence has no other.
    """
    found = [
        (one, len({other.text for other in record.concepts if other.sentence == one.sentence}))
        for record in records
        for one in record.concepts
    ]

    def narrow(one: ReportConcept) -> bool:
        return words_of(one.claim) != words_of(one.sentence)

    return Checking(
        written=_share(found, lambda pair: not pair[0].fallback),
        alone=_share(found, lambda pair: narrow(pair[0]) or pair[1] == 1),
        narrower=_share(found, lambda pair: narrow(pair[0])),
        verdicts=dict(Counter(one.verdict for one, _ in found).most_common()),
    )


def until(records: Iterable[QuestionRecord], methods: Iterable[str]) -> Duration | None:
    """Return seconds from the start of a run until all `methods` have answered; None without
    such a run.

    A run in which one of them fails is left out.
    """
    wanted = list(methods)
    ends = [[record.methods[name].seconds for name in wanted] for record in records]
    known = [[second for second in end if second is not None] for end in ends]
    return _duration([max(end) for end in known if len(end) == len(wanted)])


def whole(records: Iterable[QuestionRecord]) -> Duration | None:
    """Return seconds of whole runs; None without a run."""
    return _duration([record.seconds for record in records])


def cost(attempts: Sequence[MethodAnswer]) -> MeanCost | None:
    """Return means over the attempts; None without one."""
    if not attempts:
        return None
    rows = [(one.calls, one.judge_calls, one.prompt_tokens, one.tokens) for one in attempts]
    return MeanCost(*np.mean(rows, axis=0).tolist())


def _duration(seconds: Sequence[float]) -> Duration | None:
    if not seconds:
        return None
    median, high = np.percentile(seconds, (50, 90)).tolist()
    return Duration(median, high, len(seconds))


def _share(of: Sequence[T], holds: Callable[[T], bool]) -> Ratio:
    return Ratio(sum(map(holds, of)), len(of))
