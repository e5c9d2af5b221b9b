"""The items of an evaluation as they are looked through: of one system, and filtered.

Example::

    items = system_items(evaluation, "rag", "accuracy")
    wrong = filtered(items, Wanted(text="capital", wrong_by="rag"), evaluation.metric("accuracy"))
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean

from pipelines.errors import failure
from pipelines.evaluation.results.arrays import value_reader
from pipelines.evaluation.results.compare import ComparedAnswer, ComparedItem
from pipelines.evaluation.results.scores import Evaluation, ItemScore, MetricInfo
from pipelines.types import Frozen, Language


class Wanted(Frozen):
    """Which items are looked at: those on which systems differ, that one has wrong, that hold a
    text in their question, their id or an answer. Letters may be small or capital."""

    text: str = ""
    different: bool = False
    wrong_by: str = ""


def system_items(
    evaluation: Evaluation,
    system: str,
    metric: str,
    *,
    tags: tuple[str, ...] = (),
    language: Language | None = None,
) -> tuple[ComparedItem, ...]:
    """Return what one system made of each item, the worst values first, then items without a value.

    The value is the mean over repeats, NaN where no repeat has one; answer and run are those of the
    first repeat that did not fail. Raises InvalidInputError for an unknown system.
    """
    if system not in evaluation.systems:
        raise failure("evaluation.no_system", system=system, known=[*evaluation.systems])
    part = evaluation.selected(tags=tags, language=language)
    scores: dict[str, list[ItemScore]] = {}
    for score in part.scores:
        if score.method == system:
            scores.setdefault(score.item, []).append(score)
    items = [
        ComparedItem(
            item=item,
            summary=part.items[item],
            spread=0.0,
            answers=(_answer(scores[item], metric),),
        )
        for item in part.items
        if item in scores
    ]
    lower = part.metric(metric).better == "lower"

    def rank(item: ComparedItem) -> tuple[bool, float]:
        value = item.answers[0].value
        return isnan(value), 0.0 if isnan(value) else -value if lower else value

    return tuple(sorted(items, key=rank))


def _answer(scores: Sequence[ItemScore], metric: str) -> ComparedAnswer:
    # An answer that failed counts as the table counts it, whatever was scored before it failed.
    known = [value for value in value_reader(metric)(scores) if value is not None]
    first = min(scores, key=lambda one: (bool(one.error), one.repeat))
    return ComparedAnswer(
        system=first.method,
        value=fmean(known) if known else nan,
        repeats=len(scores),
        run=first.run,
        answer=first.answer,
        original=first.original,
        error=first.error,
        flags=first.flags,
    )


def finds_right(items: Sequence[ComparedItem], info: MetricInfo) -> bool:
    """Return whether a metric finds every one of these answers right or wrong, and nothing
    between.
    """
    known = [one.value for item in items for one in item.answers if not isnan(one.value)]
    return info.better == "higher" and bool(known) and all(value in (0.0, 1.0) for value in known)


def filtered(
    items: Sequence[ComparedItem], wanted: Wanted, info: MetricInfo
) -> tuple[ComparedItem, ...]:
    """Return those of `items` that are wanted, in their order."""
    text = wanted.text.strip().casefold()
    wrong = info.high if info.better == "lower" else info.low

    def fits(item: ComparedItem) -> bool:
        if wanted.different and not item.spread > 0:
            return False
        if wanted.wrong_by and not any(
            one.system == wanted.wrong_by and one.value == wrong for one in item.answers
        ):
            return False
        held = (item.item, item.summary.text, *(one.answer for one in item.answers))
        return not text or any(text in one.casefold() for one in held)

    return tuple(item for item in items if fits(item))
