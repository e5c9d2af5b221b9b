"""Systems of one or two evaluations compared item by item, on the items that all of them have.

Example::

    found = comparison(evaluation, ["direct", "rowen"], "exact_match")
    found.pairs[0].difference.value  # direct minus rowen
    found.items[0].answers           # both answers where the two differ most
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isnan, nan
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.base import Frozen, Language
from pipelines.errors import failure
from pipelines.evaluation.results.packed import ItemScore, PackedScores
from pipelines.evaluation.results.scores import (
    Evaluation,
    ItemSummary,
    JudgeInfo,
    MetricInfo,
    ScoredSystem,
)
from pipelines.evaluation.results.table import Grid, failures, value_reader
from pipelines.evaluation.statistics.estimates import (
    Estimate,
    Estimator,
    Floats,
    PairedDifference,
    Permutations,
    Sampling,
    bands,
    differences,
)


class ComparedAnswer(Frozen):
    """What one system made of an item: the mean value over repeats, and the first repeat's answer.

    `run` is the id of the recorded run of that repeat. `error` and `flags` are its own.
    """

    system: str
    value: float
    repeats: int
    run: str
    answer: str
    original: str
    error: str = ""
    flags: tuple[str, ...] = ()


class ComparedItem(Frozen):
    """An item by every compared system, in their order; `spread` is the largest minus smallest."""

    item: str
    summary: ItemSummary
    spread: float
    answers: tuple[ComparedAnswer, ...]


class LeftOut(Frozen):
    """How many items one system alone lacks, and why, as far as that is known."""

    system: str
    missing: int
    failed: int
    inapplicable: int


class SystemComparison(Frozen):
    """Systems on the `n` items that all of them have; items on which they differ come first.

    `estimates` are the systems' means on these items. `table` counts items of two systems that a
    metric finds right or wrong: (both right, only the first, only the second, none). `left_out`
    counts the items of the evaluations that at least one system lacks, `lacking` says which.
    """

    metric: MetricInfo
    systems: tuple[str, ...]
    descriptions: dict[str, ScoredSystem]
    estimates: tuple[Estimate, ...]
    pairs: tuple[PairedDifference, ...]
    bands: tuple[tuple[str, ...], ...]
    table: tuple[int, int, int, int] | None
    items: tuple[ComparedItem, ...]
    n: int
    discordant: int
    left_out: int
    lacking: tuple[LeftOut, ...]
    sampling: Sampling


def comparison(
    evaluation: Evaluation,
    systems: Sequence[str],
    metric: str,
    *,
    tags: tuple[str, ...] = (),
    language: Language | None = None,
    sampling: Sampling | None = None,
) -> SystemComparison:
    """Compare two or more `systems` of `evaluation` on one metric.

    Raises InvalidInputError for fewer than two systems, for unknown ones, for a metric that none
    of them has, and where they have no item in common.
    """
    sampling = sampling or Sampling(seed=evaluation.seed)
    chosen = list(dict.fromkeys(systems))
    unknown = [name for name in chosen if name not in evaluation.systems]
    if unknown or len(chosen) < 2:
        known = [*evaluation.systems]
        if unknown:
            raise failure("evaluation.no_system_to_compare", system=unknown[0], known=known)
        raise failure("evaluation.one_system", known=known)
    if metric not in (known := evaluation.metric_names()):
        raise failure("evaluation.no_metric", metric=metric, known=[*known])
    part = evaluation.selected(tags=tags, language=language)
    grid = Grid.of(evaluation, chosen, tags=tags, language=language)
    values = grid.means(grid.read(value_reader(metric)))
    shared = np.asarray(np.isfinite(values).all(axis=0))
    if not shared.any():
        raise failure("evaluation.nothing_shared", metric=metric)
    kept = np.where(shared, values, np.nan)
    info = part.metric(metric)
    # Both are asked for before anything is computed, so that they share the draws.
    estimator = Estimator(grid.groups, sampling)
    estimates = estimator.means(kept)
    tested = differences(estimator, Permutations(sampling), kept, chosen)
    pairs = tested()
    means = np.nanmean(kept, axis=1)
    ranked = [chosen[k] for k in np.argsort(means if info.better == "lower" else -means)]
    items = _items(part, grid, values, shared)
    return SystemComparison(
        metric=info,
        systems=tuple(chosen),
        descriptions={name: part.systems[name] for name in chosen},
        estimates=tuple(estimates()),
        pairs=tuple(pairs),
        bands=tuple(bands(ranked, pairs)),
        # A 1 of a metric that counts what is wrong, or abstained, is not right.
        table=_two_by_two(values[:, shared]) if info.better == "higher" else None,
        items=items,
        n=len(items),
        discordant=sum(item.spread > 0 for item in items),
        left_out=len(grid.items) - len(items),
        lacking=_lacking(grid, values),
        sampling=sampling,
    )


def joined(
    evaluations: Mapping[str, Evaluation], data: Literal["same", "any"] = "same"
) -> Evaluation:
    """Return several evaluations as one, each system's name after the label of its evaluation.

    The result's items are those of all; a comparison takes the ones that its systems share. Raises
    InvalidInputError where the data sets differ, unless `data` is "any": items are then the same
    where their ids are. A judge's column is that of one judge: where another judge has the same
    column in another evaluation, it is left out of the result.
    """
    if len(evaluations) < 2:
        raise failure("evaluation.one_evaluation")
    all_of_them = list(evaluations.values())
    if data == "same" and len({one.data_hash for one in all_of_them}) > 1:
        names = ", ".join(f"{label} ({one.data_set})" for label, one in evaluations.items())
        raise failure("evaluation.other_data", names=names)

    def name(label: str, system: str) -> str:
        return f"{label}: {system}"

    judges, mixed = _judges(all_of_them)
    metrics = {info.name: info for one in reversed(all_of_them) for info in one.metrics}
    order = dict.fromkeys(info.name for one in all_of_them for info in one.metrics)
    items: dict[str, ItemSummary] = {}
    for one in all_of_them:
        items = {**one.items, **items}
    # A group known to one of them holds for the item in all.
    groups: dict[str, str] = {}
    for one in all_of_them:
        groups |= one.scores.group_of()
    scores = PackedScores.joined(
        [
            one.scores.joining(partial(name, label), groups, mixed)
            for label, one in evaluations.items()
        ]
    )
    first = all_of_them[0]
    return Evaluation(
        name=" / ".join(evaluations),
        data_set=first.data_set,
        data_hash=first.data_hash,
        systems={
            name(label, system): description
            for label, one in evaluations.items()
            for system, description in one.systems.items()
        },
        items=items,
        scores=scores,
        metrics=tuple(metrics[each] for each in order if each not in mixed),
        seed=first.seed,
        created=max(one.created for one in all_of_them),
        versions=first.versions,
        judges=judges,
    )


def _judges(evaluations: Sequence[Evaluation]) -> tuple[dict[str, JudgeInfo], set[str]]:
    """Return who judged by column, and the columns that are of different judges."""
    found: dict[str, list[JudgeInfo]] = {}
    for one in evaluations:
        for column, judge in one.judges.items():
            found.setdefault(column, []).append(judge)
    mixed = {column for column, them in found.items() if len({one.title for one in them}) > 1}
    return {column: _together(them) for column, them in found.items() if column not in mixed}, mixed


def _together(same: Sequence[JudgeInfo]) -> JudgeInfo:
    """Return one judge of several evaluations: counts are added, agreement with people is the
    first's.
    """
    return same[0].model_copy(
        update={
            "judged": sum(one.judged for one in same),
            "undecided": sum(one.undecided for one in same),
        }
    )


def _items(
    part: Evaluation, grid: Grid, values: Floats, shared: NDArray[np.bool_]
) -> tuple[ComparedItem, ...]:
    """Return the shared items, the largest differences first, else in the order of the
    evaluation.
    """
    answers = _answers(grid, values)
    spreads = np.where(shared, values.max(axis=0) - values.min(axis=0), 0.0)
    found: list[ComparedItem] = []
    for column in np.argsort(-spreads, kind="stable").tolist():
        if not shared[column]:
            continue
        item = grid.items[column]
        found.append(
            # All of it was checked before; of thousands that takes most of the time.
            ComparedItem.model_construct(
                item=item,
                summary=part.items[item],
                spread=float(spreads[column]),
                answers=tuple(answers[row, column] for row in range(len(grid.systems))),
            )
        )
    return tuple(found)


def _answers(grid: Grid, values: Floats) -> dict[tuple[int, int], ComparedAnswer]:
    """Return the first repeat's answer by the numbers of its system and item."""
    # An answer says more than a failure, an earlier repeat stands for all.
    order = np.lexsort((grid.repeats, grid.read(failures), grid.columns, grid.rows))
    keys = np.column_stack([grid.rows, grid.columns])[order]
    keys, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return {
        (row, column): _answer(score, float(values[row, column]), count)
        for (row, column), score, count in zip(
            keys.tolist(), grid.scores.taken(order[first]), counts.tolist(), strict=True
        )
    }


def _answer(score: ItemScore, value: float, repeats: int) -> ComparedAnswer:
    return ComparedAnswer.model_construct(
        system=score.method,
        value=value,
        repeats=repeats,
        run=score.run,
        answer=score.answer,
        original=score.original,
        error=score.error,
        flags=score.flags,
    )


def _two_by_two(values: Floats) -> tuple[int, int, int, int] | None:
    if len(values) != 2 or not np.isin(values, (0.0, 1.0)).all():
        return None
    first, second = values == 1
    return (
        int((first & second).sum()),
        int((first & ~second).sum()),
        int((~first & second).sum()),
        int((~first & ~second).sum()),
    )


def _lacking(grid: Grid, values: Floats) -> tuple[LeftOut, ...]:
    """Return, for each system that lacks items, why: never run, failed, or without this metric."""
    failed = grid.means(grid.read(failures))
    found: list[LeftOut] = []
    for row, system in enumerate(grid.systems):
        lacks = ~np.isfinite(values[row])
        never = lacks & ~np.isfinite(failed[row])
        # Where every repeat failed.
        broken = lacks & (failed[row] == 1)
        if lacks.any():
            found.append(
                LeftOut(
                    system=system,
                    missing=int(never.sum()),
                    failed=int(broken.sum()),
                    inapplicable=int((lacks & ~never & ~broken).sum()),
                )
            )
    return tuple(found)


# The items of an evaluation as they are looked through: of one system, and filtered.
#
# Example::
#
#     items = system_items(evaluation, "rag", "accuracy")
#     wrong = filtered(items, Wanted(text="capital", wrong_by="rag"), evaluation.metric("accuracy"))


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
    grid = Grid.of(evaluation, [system], tags=tags, language=language)
    # An answer that failed counts as the table counts it, whatever was scored before it failed.
    read = grid.read(value_reader(metric))
    known: dict[int, list[float]] = {}
    for column, value in zip(grid.columns.tolist(), read.tolist(), strict=True):
        known.setdefault(column, []).extend([] if isnan(value) else [value])
    values = np.full((1, len(grid.items)), nan)
    for column, found in known.items():
        values[0, column] = fmean(found) if found else nan
    answers = _answers(grid, values)
    items = [
        ComparedItem(
            item=grid.items[column],
            summary=evaluation.items[grid.items[column]],
            spread=0.0,
            answers=(answers[0, column],),
        )
        for column in sorted(known)
    ]
    lower = evaluation.metric(metric).better == "lower"

    def rank(item: ComparedItem) -> tuple[bool, float]:
        value = item.answers[0].value
        return isnan(value), 0.0 if isnan(value) else -value if lower else value

    return tuple(sorted(items, key=rank))


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
