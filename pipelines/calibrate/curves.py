"""How well a score tells two kinds of things apart, and where to cut it.

A higher score speaks for the positive kind. Every function takes one score and one truth per item
and raises ValueError unless both kinds occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["Cut", "auroc", "average_precision", "best_cut", "youden"]


class Cut(NamedTuple):
    """A threshold on a score, the middle of [low, high), within which `youden` is the same."""

    threshold: float
    low: float
    high: float
    youden: float


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Area under the ROC curve in [0, 1]: how often a positive scores above a negative.

    Equal scores count half (the Mann-Whitney statistic over the number of pairs).
    """
    positives, negatives = _both_kinds(positive)
    below, won = 0, 0.0
    for _, hits, misses in reversed(list(_levels(scores, positive))):
        won += hits * (below + misses / 2)
        below += misses
    return won / (positives * negatives)


def average_precision(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Area under the precision-recall curve in [0, 1], as the sum of precision times recall gained.

    Nothing is interpolated between the points of the curve, and equal scores make one point. A
    score that says nothing reaches the share of positives.
    """
    positives, _ = _both_kinds(positive)
    area, taken, found = 0.0, 0, 0
    for _, hits, misses in _levels(scores, positive):
        taken += hits + misses
        found += hits
        area += hits / positives * found / taken
    return area


def youden(flagged: Sequence[bool], positive: Sequence[bool]) -> float:
    """Youden's J = sensitivity + specificity - 1 in [-1, 1]; 0 is what chance reaches."""
    positives, negatives = _both_kinds(positive)
    pairs = list(zip(flagged, positive, strict=True))
    return pairs.count((True, True)) / positives - pairs.count((True, False)) / negatives


def best_cut(scores: Sequence[float], positive: Sequence[bool]) -> Cut | None:
    """The threshold for which "score > threshold" has the largest J; None when none beats chance.

    J is constant between neighbouring scores. Of several best intervals that do not touch, the
    widest is taken, of equally wide ones the lowest.
    """
    positives, negatives = _both_kinds(positive)
    levels = list(_levels(scores, positive))
    true, false = 0, 0
    best, plateaus = 0, list[tuple[float, float]]()
    for (high, hits, misses), (low, _, _) in pairwise(levels):
        true += hits
        false += misses
        # J times both counts: whole numbers, so that equal means equal.
        value = true * negatives - false * positives
        if value > best:
            best, plateaus = value, []
        if value == best and best > 0:
            if plateaus and plateaus[-1][0] == high:
                plateaus[-1] = (low, plateaus[-1][1])
            else:
                plateaus.append((low, high))
    if not plateaus:
        return None
    low, high = max(plateaus, key=lambda ends: (ends[1] - ends[0], -ends[0]))
    return Cut((low + high) / 2, low, high, best / (positives * negatives))


def _both_kinds(positive: Sequence[bool]) -> tuple[int, int]:
    positives = sum(positive)
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise ValueError(f"{positives} positives and {negatives} negatives cannot be compared.")
    return positives, negatives


def _levels(scores: Sequence[float], positive: Sequence[bool]) -> Iterator[tuple[float, int, int]]:
    """Every distinct score from the highest down, with its positives and negatives."""
    counts: dict[float, list[int]] = {}
    for score, truth in zip(scores, positive, strict=True):
        counts.setdefault(score, [0, 0])[not truth] += 1
    for score in sorted(counts, reverse=True):
        hits, misses = counts[score]
        yield score, hits, misses
