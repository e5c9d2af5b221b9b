"""Areas under the curves of one detector, for many draws of its items at once.

A draw says how often each item counts. Items are ordered once, by their scores; of every draw only
running totals are taken, which are whole numbers, so that no order of additions changes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.statistics.resampling import Counts, Floats

Ranking = Literal["auroc", "auc_pr_nonfactual", "auc_pr_factual"]
"""Area under the ROC curve; under precision and recall of hallucinated, and of accurate items."""

RANKINGS: tuple[Ranking, ...] = ("auroc", "auc_pr_nonfactual", "auc_pr_factual")

AT_ONCE = 100_000
"""Counts that are ranked together: parts that a processor's cache holds take half of the time."""


def rankings_under(scores: Floats, labels: Floats) -> Callable[[Counts], Floats]:
    """Return a function of counts [draws, items] that gives every ranking under each: [draws,
    RANKINGS].

    `scores` [items] are higher where a hallucination is more likely, `labels` [items] are 1 for
    hallucinated items and 0 for others. A pair of equal scores counts half, and equal scores are
    flagged together. NaN stands where a draw holds one class only.
    """
    # Lower is more suspicious, as `searchsorted` wants it.
    order = np.argsort(-scores, kind="stable")
    ordered, wanted = -scores[order], labels[order] == 1
    hits, misses = order[wanted], order[~wanted]
    levels = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    tied = len(levels) < len(ordered)
    find = _of_levels(ordered[wanted], ordered[~wanted], levels) if tied else _of_items(wanted)

    def under(counts: Counts) -> Floats:
        positive = counts.take(hits, axis=1).astype(np.float64)
        negative = counts.take(misses, axis=1).astype(np.float64)
        found, wrong = _so_far(positive), _so_far(negative)
        all_hits, all_misses = found[:, -1:], wrong[:, -1:]
        sums = find(positive, negative, found, wrong)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = sums / np.hstack([2 * all_hits * all_misses, all_hits, all_misses])
        one_class = (all_hits == 0) | (all_misses == 0)
        return np.where(one_class, np.nan, shares)

    return under


_Find = Callable[[Floats, Floats, Floats, Floats], Floats]
"""Sums of every ranking, [draws, RANKINGS], not yet divided by the numbers of items.

Its arguments are how often each hallucinated and each accurate item counts, in the order of the
scores, [draws, items], and their running totals, [draws, items + 1].
"""


def _of_items(wanted: NDArray[np.bool_]) -> _Find:
    """Return how to find, of scores that all differ; `wanted` tells which are hallucinated, in
    their order.
    """
    places = np.arange(len(wanted))
    # Of the accurate items how many hallucinated ones stand before each, and the other way round.
    hits_before = places[~wanted] - np.arange(int((~wanted).sum()))
    misses_before = places[wanted] - np.arange(int(wanted.sum()))

    def find(positive: Floats, negative: Floats, found: Floats, wrong: Floats) -> Floats:
        before = found.take(hits_before, axis=1)
        flagged = found[:, 1:]
        precision = _share(flagged, flagged + wrong.take(misses_before, axis=1))
        # From the other end: what is not flagged yet is taken for accurate.
        right = wrong[:, -1:] - wrong[:, :-1]
        accurate = _share(right, right + (found[:, -1:] - before))
        return np.stack(
            [2 * _sum(negative, before), _sum(positive, precision), _sum(negative, accurate)],
            axis=1,
        )

    return find


def _of_levels(of_hits: Floats, of_misses: Floats, levels: Floats) -> _Find:
    """Return how to find, of scores some of which are equal; `levels` are the different ones, all
    in their order.
    """
    hits_until = np.searchsorted(of_hits, levels, side="right")
    misses_until = np.searchsorted(of_misses, levels, side="right")

    def find(_positive: Floats, _negative: Floats, found: Floats, wrong: Floats) -> Floats:
        flagged, mistaken = found.take(hits_until, axis=1), wrong.take(misses_until, axis=1)
        positive, negative = _steps(flagged), _steps(mistaken)
        before = flagged - positive
        precision = _share(flagged, flagged + mistaken)
        right = wrong[:, -1:] - (mistaken - negative)
        accurate = _share(right, right + (found[:, -1:] - before))
        return np.stack(
            [
                _sum(negative, before + flagged),
                _sum(positive, precision),
                _sum(negative, accurate),
            ],
            axis=1,
        )

    return find


def _so_far(counts: Floats) -> Floats:
    """Return sums over the first items, from none of them to all: [draws, items + 1]."""
    sums = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    return sums


def _steps(totals: Floats) -> Floats:
    """Return what each level adds to the totals until it."""
    return np.diff(totals, axis=1, prepend=0.0)


def _share(part: Floats, whole: Floats) -> Floats:
    # Where nothing was drawn yet, the share of 0 has a weight of 0.
    return part / np.maximum(whole, 1.0)


def _sum(weights: Floats, values: Floats) -> Floats:
    """Return the weighted sum of `values` in each draw."""
    return np.einsum("ij,ij->i", weights, values)
