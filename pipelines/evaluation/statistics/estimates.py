"""Means, proportions and corrections with their intervals, for many systems at once.

Values are arrays [columns, items] with NaN where a value is missing. The repeats of an item are
averaged first: they say nothing new about other items.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    group_numbers,
    group_sums,
    interval,
    ratio_draws,
    wilson,
)
from pipelines.types import Frozen


class Correction(Frozen):
    """What a method's rewriting did to the original answers, in shares of [0, 1].

    `corrected`: of the originals that were wrong, those whose final answer is right.
    `spoiled`: of the originals that were right, those whose final answer is wrong.
    `change`: final minus original share of right answers, in [-1, 1].
    """

    corrected: Estimate
    spoiled: Estimate
    change: Estimate


def mean_estimates(values: Floats, groups: Sequence[str], sampling: Sampling) -> list[Estimate]:
    """The mean of each column of `values` [columns, items] with its interval.

    A column of zeros and ones whose items are all independent has the Wilson interval, any other
    the bootstrap over groups.
    """
    present = np.isfinite(values)
    return ratio_estimates(np.where(present, values, 0.0), present.astype(float), groups, sampling)


def ratio_estimates(
    numerators: Floats,
    denominators: Floats,
    groups: Sequence[str],
    sampling: Sampling,
    *,
    proportions: bool = True,
) -> list[Estimate]:
    """The ratio of the sums of each column with its interval, as `mean_estimates`.

    Both arguments are [columns, items]; a denominator of 0 leaves the item out. Without
    `proportions` no column is taken for a proportion.
    """
    columns = numerators.shape[0]
    if not columns:
        return []
    numbers = group_numbers(groups)
    size = int(numbers.max(initial=-1)) + 1
    sums = group_sums(numerators, numbers, size)
    counts = group_sums(denominators, numbers, size)
    items = (denominators > 0).sum(axis=1)
    held = (counts > 0).sum(axis=0)
    found = [
        _proportion(numerators[k], denominators[k], int(held[k]), sampling) if proportions else None
        for k in range(columns)
    ]
    rest = [k for k in range(columns) if found[k] is None]
    sampled = _bootstrapped(sums[:, rest], counts[:, rest], items[rest], held[rest], sampling)
    for k, estimate in zip(rest, sampled, strict=True):
        found[k] = estimate
    return [one for one in found if one is not None]


def _bootstrapped(
    sums: Floats,
    counts: Floats,
    items: NDArray[np.intp],
    held: NDArray[np.intp],
    sampling: Sampling,
) -> list[Estimate]:
    """Estimates by the bootstrap over groups; both sums are [groups, columns]."""
    if not sums.shape[1]:
        return []
    with np.errstate(invalid="ignore", divide="ignore"):
        values = sums.sum(axis=0) / counts.sum(axis=0)
        left_out = (sums.sum(axis=0) - sums) / (counts.sum(axis=0) - counts)
        within = np.where(counts > 0, sums / counts, np.nan)
    distribution = ratio_draws(sums, counts, sampling) if held.max(initial=0) > 1 else None
    found: list[Estimate] = []
    for k, value in enumerate(values):
        base = Estimate(value=None, n=int(items[k]), groups=int(held[k]))
        if not held[k]:
            found.append(base.model_copy(update={"reason": "no_items"}))
            continue
        base = base.model_copy(update={"value": float(value)})
        seen = within[counts[:, k] > 0, k]
        if held[k] < 2 or distribution is None:
            found.append(base.model_copy(update={"reason": "too_few_groups"}))
        elif np.ptp(seen) < 1e-12:
            found.append(base.model_copy(update={"reason": "all_equal"}))
        else:
            # Groups that hold nothing of this column do not inform its acceleration.
            jackknife = left_out[counts[:, k] > 0, k]
            low, high, method = interval(value, distribution[:, k], jackknife, sampling.level)
            found.append(base.model_copy(update={"low": low, "high": high, "method": method}))
    return found


def _proportion(
    numerator: Floats, denominator: Floats, held: int, sampling: Sampling
) -> Estimate | None:
    """The Wilson estimate where the column is a count among independent items, else None."""
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


def correction(
    original: Floats, final: Floats, groups: Sequence[str], sampling: Sampling
) -> Correction:
    """What became of the original answers: both are [repeats, items] of values in [0, 1].

    1 is right, 0 is wrong; a value between counts in part for both. A repeat without both values is
    left out. Repeats of an item are pooled, so an item's share of wrong originals counts once.
    """
    both = np.isfinite(original) & np.isfinite(final)
    before, after = np.where(both, original, 0.0), np.where(both, final, 0.0)
    repeats = np.maximum(both.sum(axis=0), 1)
    wrong = np.where(both, 1 - before, 0.0)

    def pooled(values: Floats) -> Floats:
        return values.sum(axis=0) / repeats

    numerators = np.stack([pooled(wrong * after), pooled(before * np.where(both, 1 - after, 0.0))])
    denominators = np.stack([pooled(wrong), pooled(before)])
    corrected, spoiled = ratio_estimates(numerators, denominators, groups, sampling)
    (difference,) = ratio_estimates(
        pooled(after - before)[None, :],
        both.any(axis=0).astype(float)[None, :],
        groups,
        sampling,
        proportions=False,
    )
    return Correction(corrected=corrected, spoiled=spoiled, change=difference)
