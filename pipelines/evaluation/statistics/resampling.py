"""The bootstrap over groups of items, for all columns of a table at once.

Items of one group (questions on one document) are not independent, so whole groups are drawn with
replacement. A draw is a vector of weights: how often each group was drawn. A mean is a ratio of two
sums over groups, so the means of all systems under all draws are two matrix products. All columns
share the draws, which keeps differences between systems paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtr, ndtri
from statsmodels.stats.proportion import proportion_confint

from pipelines.types import Frozen

Floats = NDArray[np.float64]
IntervalMethod = Literal["bca", "percentile", "wilson", "none"]
Reason = Literal["no_items", "too_few_groups", "all_equal", "one_class", "no_resamples"]
"""Why a number or its interval is not defined; the texts are `evaluate.reason.<reason>`."""

Counts = NDArray[np.unsignedinteger]
"""How often each group or item is drawn: [draws, groups or items]."""

BATCH = 250
"""Draws of a batch."""

_KEPT_WEIGHTS = 50_000_000
"""Draws of at most so many weights are kept, each a byte."""


@cache
def _library_versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, version(name)) for name in ("numpy", "scipy", "statsmodels"))


class Sampling(Frozen):
    """How intervals and tests were computed, so that they can be computed again.

    `level` is the coverage of the intervals in (0, 1), `resamples` the number of bootstrap draws,
    `permutations` that of random permutations. `versions` are those of the libraries.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    resamples: Annotated[int, Field(ge=100, le=100_000)] = 2000
    permutations: Annotated[int, Field(ge=99, le=1_000_000)] = 9999
    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    versions: dict[str, str] = Field(default_factory=lambda: dict(_library_versions()))


class Estimate(Frozen):
    """A number with its interval [low, high], which is None where it is not defined.

    `n` counts items, `groups` the independent groups they form. `reason` says why the value or the
    interval is missing. `method` is how the interval was computed: "bca" is the bias-corrected and
    accelerated bootstrap (Efron 1987), "percentile" the plain one, "wilson" the score interval of a
    proportion (Wilson 1927).
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    groups: int = 0
    method: IntervalMethod = "none"
    reason: Reason | None = None


def group_numbers(groups: Sequence[str]) -> NDArray[np.intp]:
    """Return the number of each item's group, counted from 0. An item without a group is
    its own.
    """
    known: dict[tuple[str, int], int] = {}
    found = [
        known.setdefault((group, -1) if group else ("", place), len(known))
        for place, group in enumerate(groups)
    ]
    return np.asarray(found, dtype=np.intp)


def group_sums(values: Floats, numbers: NDArray[np.intp], groups: int) -> Floats:
    """Return sums of `values` [columns, items] over the items of each group: [groups, columns]."""
    if groups == values.shape[1] and np.array_equal(numbers, np.arange(groups)):
        return np.ascontiguousarray(values.T)
    sums = np.zeros((groups, values.shape[0]))
    np.add.at(sums, numbers, values.T)
    return sums


def draws(groups: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield bootstrap weights in batches [draws, groups]; each row sums to `groups`."""
    for batch in draw_counts(groups, resamples, seed):
        yield batch.astype(np.float64)


def draw_counts(groups: int, resamples: int, seed: int) -> Iterable[Counts]:
    """Return what `draws` yields, in the smallest unsigned type that holds them; not to be
    written to.
    """
    # A table is computed anew for each filter, mostly from the same draws.
    kept = groups * resamples <= _KEPT_WEIGHTS
    return (_kept_counts if kept else _counts)(groups, resamples, seed)


@lru_cache(maxsize=2)
def _kept_counts(groups: int, resamples: int, seed: int) -> list[Counts]:
    return list(_counts(groups, resamples, seed))


def _counts(groups: int, resamples: int, seed: int) -> Iterator[Counts]:
    source = np.random.default_rng(seed)
    for start in range(0, resamples, BATCH):
        size = min(BATCH, resamples - start)
        drawn = source.integers(0, groups, (size, groups))
        drawn += np.arange(size)[:, None] * groups
        counts = np.bincount(drawn.ravel(), minlength=size * groups)
        yield counts.reshape(size, groups).astype(np.min_scalar_type(counts.max()))


def draw_sums(sums: Floats, sampling: Sampling) -> Floats:
    """Return the sums of every column under every draw, [resamples, columns], of sums
    over groups.
    """
    weights = draws(len(sums), sampling.resamples, sampling.seed)
    return np.concatenate([batch @ sums for batch in weights])


def ratio_draws(numerators: Floats, denominators: Floats, sampling: Sampling) -> Floats:
    """Return the ratio of sums of every column under every draw: [resamples, columns].

    Both arguments are sums over groups, [groups, columns]. NaN where a draw holds nothing.
    """
    totals = draw_sums(np.hstack([numerators, denominators]), sampling)
    columns = numerators.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals[:, :columns] / totals[:, columns:]


def interval(
    value: float, distribution: Floats, left_out: Floats | None, level: float
) -> tuple[float, float, IntervalMethod]:
    """Return the bootstrap interval of `value` from its `distribution` [resamples].

    `left_out` are the values without each group in turn (the jackknife), from which the BCa
    interval takes its acceleration (Efron and Tibshirani 1993, chapter 14). Where BCa is not
    defined, or without `left_out`, it is the percentile interval. Draws that are NaN do not count.
    """
    distribution = distribution[np.isfinite(distribution)]
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    method: IntervalMethod = "percentile"
    if left_out is not None:
        corrected = _corrected(value, distribution, left_out[np.isfinite(left_out)], tails)
        if np.isfinite(corrected).all():
            tails, method = corrected, "bca"
    low, high = np.quantile(distribution, tails)
    return float(low), float(high), method


def _corrected(value: float, distribution: Floats, left_out: Floats, tails: Floats) -> Floats:
    """Return the tail probabilities of the BCa interval; NaN or infinite where they are not
    defined.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        # Values equal to the estimate, but for rounding, count half: proportions have many.
        near = 1e-10 * max(1.0, abs(value))
        below = np.mean(distribution < value - near) + np.mean(distribution <= value + near)
        bias = ndtri(below / 2)
        centred = left_out.mean() - left_out
        acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
        shifted = bias + ndtri(tails)
        return ndtr(bias + shifted / (1 - acceleration * shifted))


def wilson(hits: int, n: int, level: float) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion of `hits` among `n` (1 or more) items."""
    low, high = proportion_confint(hits, n, alpha=1 - level, method="wilson")
    return float(np.asarray(low)), float(np.asarray(high))


def within_unit(share: float) -> float:
    """Return the nearest share in [0, 1]."""
    return max(0.0, min(1.0, share))
