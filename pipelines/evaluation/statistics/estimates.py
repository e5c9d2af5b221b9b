"""Means, proportions and corrections with their intervals, for many systems at once.

Values are arrays [columns, items] with NaN where a value is missing. The repeats of an item are
averaged first: they say nothing new about other items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtr, ndtri

from pipelines.base import Frozen

# The bootstrap over groups of items, for all columns of a table at once.
#
# Items of one group (questions on one document) are not independent, so whole groups are drawn
# with replacement. A draw is a vector of weights: how often each group was drawn. A mean is a
# ratio of two sums over groups, so the means of all systems under all draws are two matrix
# products. All columns share the draws, which keeps differences between systems paired.

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
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(hits, n, alpha=1 - level, method="wilson")
    return float(np.asarray(low)), float(np.asarray(high))


def within_unit(share: float) -> float:
    """Return the nearest share in [0, 1]."""
    return max(0.0, min(1.0, share))


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


# Paired comparisons of systems on the same items: differences, tests, Holm, bands.

Test = Literal["mcnemar", "permutation", "bootstrap", "none"]

_BATCH = 500
"""Permutations whose signs are drawn at once."""

_AT_ONCE = 125_000
"""Signs that are multiplied at once, column by column. A processor's cache holds them, and threads
of larger products mostly wait for each other."""

_EXACT_GROUPS = 13


class PairedDifference(Frozen):
    """First minus second system on the items that both have, with a test of "no difference".

    `p` is two-sided in [0, 1]; `adjusted` is p after Holm over all pairs of the same table.
    "mcnemar" is the mid-p test (Fagerland, Lydersen and Laake 2013) of two binary columns whose
    items are independent; "permutation" changes the signs of the groups' differences; "bootstrap"
    is by the share of draws on the other side of 0. `only_first` and `only_second` count the
    discordant items, where just one of two binary systems is right. `left_out` counts items that
    only one of the two has.
    """

    first: str
    second: str
    difference: Estimate
    p: float | None = None
    adjusted: float | None = None
    test: Test = "none"
    only_first: int | None = None
    only_second: int | None = None
    left_out: int = 0


def mcnemar_midp(only_first: int, only_second: int) -> float:
    """Return two-sided mid-p value of McNemar's test from the two discordant counts, in (0, 1].

    The exact binomial p value without half of the probability of what was observed (Fagerland,
    Lydersen and Laake 2013, equations 5 and 6). 1 where nothing is discordant.
    """
    from scipy.stats import binom

    if min(only_first, only_second) < 0:
        raise ValueError("Counts are 0 or more.")
    trials, fewer = only_first + only_second, min(only_first, only_second)
    observed = float(binom.pmf(fewer, trials, 0.5))
    if only_first == only_second:
        return 1.0 if trials == 0 else 1 - observed / 2
    return min(1.0, 2 * float(binom.cdf(fewer, trials, 0.5)) - observed)


def permutation_p(sums: Floats, sampling: Sampling) -> Floats:
    """Return two-sided p of each column of paired differences, summed over groups: [groups,
    columns].

    Under "no difference" the sign of each group's difference is arbitrary. With up to 13 groups
    all signs are tried; with more, `sampling.permutations` random ones, where the observed one
    counts as one of them (Phipson and Smyth 2010).
    """
    groups, columns = sums.shape
    observed = np.abs(sums.sum(axis=0))
    if not columns:
        return observed
    # Sums that differ only by rounding are equal.
    reached = observed - 1e-9 * np.maximum(1.0, np.abs(sums).sum(axis=0))
    if groups <= _EXACT_GROUPS:
        codes = np.arange(2**groups)[:, None] >> np.arange(groups)[None, :]
        signs = 1.0 - 2.0 * (codes & 1)
        return (np.abs(signs @ sums) >= reached).mean(axis=0)
    source = np.random.default_rng(sampling.seed)
    hits, total = np.zeros(columns), sums.sum(axis=0)
    each = [np.ascontiguousarray(column) for column in sums.T]
    rows = max(1, _AT_ONCE // groups)
    for start in range(0, sampling.permutations, _BATCH):
        size = min(_BATCH, sampling.permutations - start)
        bits = np.frombuffer(source.bytes(size * (-(-groups // 8))), np.uint8).reshape(size, -1)
        for first in range(0, size, rows):
            # A group whose bit is set changes its sign.
            part = np.unpackbits(bits[first : first + rows], axis=1, count=groups)
            changed = part.astype(np.float64)
            moved = np.stack([changed @ column for column in each], axis=1)
            hits += (np.abs(total - 2 * moved) >= reached).sum(axis=0)
    return (hits + 1) / (sampling.permutations + 1)


class Permutations:
    """Tests of many columns over the same groups, for which signs are drawn once.

    `p` gives a function that returns the p values; the first one that is called computes all that
    was asked for until then.
    """

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._waiting: list[tuple[Floats, list[Floats]]] = []

    def p(self, sums: Floats) -> Callable[[], Floats]:
        """Return a function that gives `permutation_p`."""
        found: list[Floats] = []
        self._waiting.append((sums, found))

        def values() -> Floats:
            if not found:
                waiting, self._waiting = self._waiting, []
                together = np.hstack([columns for columns, _ in waiting])
                ends = np.cumsum([columns.shape[1] for columns, _ in waiting])
                parts = np.split(permutation_p(together, self._sampling), ends[:-1])
                for (_, kept), part in zip(waiting, parts, strict=True):
                    kept.append(part)
            return found[0]

        return values


def paired_differences(
    values: Floats,
    systems: Sequence[str],
    groups: Sequence[str],
    sampling: Sampling,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> list[PairedDifference]:
    """Return every pair of `systems` compared on `values` [systems, items]; NaN is missing.

    `pairs` are the numbers of the systems to compare, all pairs without it; Holm's correction is
    over these pairs.
    """
    estimator, permutations = Estimator(groups, sampling), Permutations(sampling)
    return differences(estimator, permutations, values, systems, pairs)()


def differences(
    estimator: Estimator,
    permutations: Permutations,
    values: Floats,
    systems: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None = None,
) -> Callable[[], list[PairedDifference]]:
    """Return a function that gives `paired_differences`, with the draws of `estimator` and
    `permutations`.
    """
    pairs = list(combinations(range(len(systems)), 2)) if pairs is None else list(pairs)
    if not pairs:
        return lambda: []
    first, second = (values[[pair[side] for pair in pairs]] for side in (0, 1))
    both = np.isfinite(first) & np.isfinite(second)
    either = np.isfinite(first) | np.isfinite(second)
    apart = np.where(both, first, 0.0) - np.where(both, second, 0.0)
    # A difference that is only 0 or 1 is no proportion: its interval is the bootstrap's too.
    estimates = estimator.ratios(apart, both.astype(float), proportions=False)
    sums = group_sums(apart, estimator.groups, estimator.size)
    held = (group_sums(both.astype(float), estimator.groups, estimator.size) > 0).sum(axis=0)
    shared = both.sum(axis=1)
    binary = [_binary(a[m]) and _binary(b[m]) for a, b, m in zip(first, second, both, strict=True)]
    # McNemar's test takes independent items; others are tested by groups.
    exact = [binary[k] and shared[k] == held[k] for k in range(len(pairs))]
    permuted = [k for k in range(len(pairs)) if shared[k] and not exact[k]]
    tested = permutations.p(sums[:, permuted])
    more, fewer = (apart > 0).sum(axis=1), (apart < 0).sum(axis=1)
    left_out = (either & ~both).sum(axis=1)

    def found() -> list[PairedDifference]:
        values_of_p = dict(zip(permuted, tested(), strict=True))
        compared: list[PairedDifference] = []
        for k, ((a, b), estimate) in enumerate(zip(pairs, estimates(), strict=True)):
            p: float | None = None
            test: Test = "none"
            if k in values_of_p:
                p, test = float(values_of_p[k]), "permutation"
            elif shared[k]:
                p, test = mcnemar_midp(int(more[k]), int(fewer[k])), "mcnemar"
            compared.append(
                PairedDifference(
                    first=systems[a],
                    second=systems[b],
                    difference=estimate,
                    p=p,
                    test=test,
                    only_first=int(more[k]) if binary[k] else None,
                    only_second=int(fewer[k]) if binary[k] else None,
                    left_out=int(left_out[k]),
                )
            )
        return adjusted(compared)

    return found


def adjusted(found: Sequence[PairedDifference]) -> list[PairedDifference]:
    """Return the same comparisons with Holm's correction (1979) over those that have a p value."""
    known = [k for k, one in enumerate(found) if one.p is not None]
    if not known:
        return list(found)
    values = dict(zip(known, holm([found[k].p or 0.0 for k in known]), strict=True))
    return [one.model_copy(update={"adjusted": values.get(k)}) for k, one in enumerate(found)]


def holm(values: Sequence[float]) -> list[float]:
    """Return p values after Holm's correction (1979): the smallest of m times m, the next times
    m - 1 ...

    That of statsmodels collects garbage at every call, which holds up a process with models.
    """
    p = np.asarray(values, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected.tolist()


def bands(
    systems: Sequence[str], compared: Sequence[PairedDifference], alpha: float = 0.05
) -> list[tuple[str, ...]]:
    """Return groups of systems that cannot be told apart: no pair of a group differs at
    `alpha` (Holm).

    A system may stand in several. Each group is as large as it can be and in the order of
    `systems`; the groups are in the order of their first members. Pairs without a p value cannot
    be told apart.
    """
    order = {name: place for place, name in enumerate(systems)}
    apart = {
        frozenset((one.first, one.second))
        for one in compared
        if one.adjusted is not None and one.adjusted < alpha
    }
    alike = {
        name: {
            other for other in systems if other != name and frozenset((name, other)) not in apart
        }
        for name in systems
    }
    found: list[tuple[str, ...]] = []
    _extend(set(), set(systems), set(), alike, found)
    ordered = [tuple(sorted(band, key=order.__getitem__)) for band in found]
    return sorted(ordered, key=lambda band: [order[name] for name in band])


def _extend(
    band: set[str],
    candidates: set[str],
    done: set[str],
    alike: dict[str, set[str]],
    found: list[tuple[str, ...]],
) -> None:
    """Find all largest groups of mutually alike systems (Bron and Kerbosch 1973, with a pivot)."""
    if not candidates and not done:
        if band:
            found.append(tuple(band))
        return
    pivot = max(candidates | done, key=lambda name: len(candidates & alike[name]))
    for name in sorted(candidates - alike[pivot]):
        near = alike[name]
        _extend(band | {name}, candidates & near, done & near, alike, found)
        candidates = candidates - {name}
        done = done | {name}


def _binary(values: Floats) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())
