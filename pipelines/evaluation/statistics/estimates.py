"""Means, proportions and corrections with their intervals, for many systems at once.

Values are arrays [columns, items] with NaN where a value is missing. The repeats of an item are
averaged first: they say nothing new about other items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    draw_sums,
    group_numbers,
    group_sums,
    interval,
    wilson,
)
from pipelines.types import Frozen


class CorrectionRates(Frozen):
    """What a method's rewriting did to the original answers, in shares of [0, 1].

    `corrected`: of the originals that were wrong, those whose final answer is right.
    `spoiled`: of the originals that were right, those whose final answer is wrong.
    `change`: final minus original share of right answers, in [-1, 1].
    """

    corrected: Estimate
    spoiled: Estimate
    change: Estimate


class Estimator:
    """Estimates of many columns of the same items, for which groups are drawn once.

    `ratios` and `means` give functions that return the estimates. The first one that is called
    computes all that was asked for until then. Example:

        estimator = Estimator(groups, sampling)
        quality, cost = estimator.means(f1), estimator.means(seconds)
        print(quality(), cost())
    """

    def __init__(self, groups: Sequence[str], sampling: Sampling) -> None:
        self.groups = group_numbers(groups)
        self.size = int(self.groups.max(initial=-1)) + 1
        self.sampling = sampling
        self._waiting: list[_Columns] = []

    def means(self, values: Floats) -> Callable[[], list[Estimate]]:
        """Return a function that gives `mean_estimates` of `values` [columns, items]."""
        present = np.isfinite(values)
        return self.ratios(np.where(present, values, 0.0), present.astype(float))

    def ratios(
        self, numerators: Floats, denominators: Floats, *, proportions: bool = True
    ) -> Callable[[], list[Estimate]]:
        """Return a function that gives `ratio_estimates` of both [columns, items]."""
        asked = _Columns(
            group_sums(numerators, self.groups, self.size),
            group_sums(denominators, self.groups, self.size),
            (denominators > 0).sum(axis=1),
        )
        if proportions:
            held = (asked.counts > 0).sum(axis=0)
            for k in range(len(numerators)):
                asked.found[k] = _proportion(
                    numerators[k], denominators[k], int(held[k]), self.sampling
                )
        self._waiting.append(asked)

        def estimates() -> list[Estimate]:
            if asked in self._waiting:
                waiting, self._waiting = self._waiting, []
                _bootstrap(waiting, self.sampling)
            return [one for one in asked.found if one is not None]

        return estimates


@dataclass(eq=False)
class _Columns:
    """Sums over groups, [groups, columns]; the items of each column; what was estimated of it."""

    sums: Floats
    counts: Floats
    items: NDArray[np.intp]
    found: list[Estimate | None] = field(init=False)
    all_sums: Floats = field(init=False)
    all_counts: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.found = [None] * self.sums.shape[1]
        # Numbers that lie side by side are added pairwise, which rounds less.
        self.all_sums = np.ascontiguousarray(self.sums.T).sum(axis=1)
        self.all_counts = np.ascontiguousarray(self.counts.T).sum(axis=1)


def mean_estimates(values: Floats, groups: Sequence[str], sampling: Sampling) -> list[Estimate]:
    """Return the mean of each column of `values` [columns, items] with its interval.

    A column of zeros and ones whose items are all independent has the Wilson interval, any other
    the bootstrap over groups.
    """
    return Estimator(groups, sampling).means(values)()


def ratio_estimates(
    numerators: Floats,
    denominators: Floats,
    groups: Sequence[str],
    sampling: Sampling,
    *,
    proportions: bool = True,
) -> list[Estimate]:
    """Return the ratio of the sums of each column with its interval, as `mean_estimates`.

    Both arguments are [columns, items]; a denominator of 0 leaves the item out. Without
    `proportions` no column is taken for a proportion.
    """
    estimator = Estimator(groups, sampling)
    return estimator.ratios(numerators, denominators, proportions=proportions)()


def _bootstrap(waiting: Sequence[_Columns], sampling: Sampling) -> None:
    """Estimate by the bootstrap over groups what no other way has estimated."""
    drawn: list[tuple[_Columns, int]] = []
    for one in waiting:
        for k in [k for k, known in enumerate(one.found) if known is None]:
            one.found[k] = base = _without_interval(one, k)
            if base.reason is None:
                drawn.append((one, k))
    for (one, k), distribution in zip(drawn, _distributions(drawn, sampling), strict=True):
        base = one.found[k]
        assert base is not None
        assert base.value is not None
        sums, counts = one.sums[:, k], one.counts[:, k]
        with np.errstate(invalid="ignore", divide="ignore"):
            left_out = (one.all_sums[k] - sums) / (one.all_counts[k] - counts)
        # Groups that hold nothing of this column do not inform its acceleration.
        jackknife = left_out[counts > 0]
        low, high, method = interval(base.value, distribution, jackknife, sampling.level)
        one.found[k] = base.model_copy(update={"low": low, "high": high, "method": method})


def _without_interval(one: _Columns, k: int) -> Estimate:
    """Return the value of a column, with the reason if it can have no interval."""
    among = one.counts[:, k] > 0
    held = int(among.sum())
    base = Estimate(value=None, n=int(one.items[k]), groups=held)
    if not held:
        return base.model_copy(update={"reason": "no_items"})
    base = base.model_copy(update={"value": float(one.all_sums[k] / one.all_counts[k])})
    if held < 2:
        return base.model_copy(update={"reason": "too_few_groups"})
    if np.ptp(one.sums[among, k] / one.counts[among, k]) < 1e-12:
        return base.model_copy(update={"reason": "all_equal"})
    return base


def _distributions(places: Sequence[tuple[_Columns, int]], sampling: Sampling) -> list[Floats]:
    """Return the values of columns under every draw. What several columns share is summed once."""
    if not places:
        return []
    columns: dict[bytes, int] = {}
    kept: list[Floats] = []

    def number(column: Floats) -> int:
        key = column.tobytes()
        if key not in columns:
            columns[key] = len(kept)
            kept.append(column)
        return columns[key]

    pairs = [(number(one.sums[:, k]), number(one.counts[:, k])) for one, k in places]
    totals = draw_sums(np.stack(kept, axis=1), sampling)
    with np.errstate(invalid="ignore", divide="ignore"):
        return [totals[:, above] / totals[:, below] for above, below in pairs]


def _proportion(
    numerator: Floats, denominator: Floats, held: int, sampling: Sampling
) -> Estimate | None:
    """Return the Wilson estimate where the column is a count among independent items, else None."""
    among = denominator > 0
    count = int(among.sum())
    if not count or held != count or not (denominator[among] == 1).all():
        return None
    hits = numerator[among]
    if not np.isin(hits, (0.0, 1.0)).all():
        return None
    successes = int(hits.sum())
    low, high = wilson(successes, count, sampling.level)
    return Estimate(
        value=successes / count,
        low=low,
        high=high,
        n=count,
        groups=count,
        method="wilson",
    )


def corrections(
    estimator: Estimator, original: Floats, final: Floats
) -> Callable[[], CorrectionRates]:
    """Return a function that gives what became of the original answers.

    Both are [repeats, items] of values in [0, 1]: 1 is right, 0 is wrong; a value between counts in
    part for both. A repeat without both values is left out. Repeats of an item are pooled, so an
    item's share of wrong originals counts once.
    """
    both = np.isfinite(original) & np.isfinite(final)
    before, after = np.where(both, original, 0.0), np.where(both, final, 0.0)
    repeats = np.maximum(both.sum(axis=0), 1)
    wrong = np.where(both, 1 - before, 0.0)

    def pooled(values: Floats) -> Floats:
        return values.sum(axis=0) / repeats

    numerators = np.stack([pooled(wrong * after), pooled(before * np.where(both, 1 - after, 0.0))])
    denominators = np.stack([pooled(wrong), pooled(before)])
    shares = estimator.ratios(numerators, denominators)
    differences = estimator.ratios(
        pooled(after - before)[None, :],
        both.any(axis=0).astype(float)[None, :],
        proportions=False,
    )

    def found() -> CorrectionRates:
        corrected, spoiled = shares()
        (change,) = differences()
        return CorrectionRates(corrected=corrected, spoiled=spoiled, change=change)

    return found
