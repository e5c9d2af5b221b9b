"""Paired comparisons of systems on the same items: differences, tests, Holm, bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.stats import binom

from pipelines.evaluation.statistics.estimates import Estimator
from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    group_sums,
)
from pipelines.types import Frozen

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
