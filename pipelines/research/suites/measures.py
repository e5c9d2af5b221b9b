"""Areas, balanced accuracy and calibration with intervals of the bootstrap over groups.

Groups, records that share a text, are drawn with replacement. A draw weights every pair by how
often its group was drawn, and each measure is computed anew with these weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    draws,
    group_numbers,
    interval,
)

Truth = NDArray[np.bool_]
Weights = Floats
"""Shape [draws, pairs]."""

Measure = Callable[[Floats, Truth, Weights], Floats]
"""A measure of P(supported) and of what is true under every draw: shape [draws]; NaN where it is
not defined."""

_BINS = 10


def area(said: Floats, truth: Truth, weights: Weights) -> Floats:
    """Return the area under the ROC curve in [0, 1]; ties count half."""
    order = np.argsort(said, kind="stable")
    positive = weights[:, order] * truth[order]
    negative = weights[:, order] * ~truth[order]
    groups = _tied(said[order])
    positives, negatives = (np.add.reduceat(one, groups, axis=1) for one in (positive, negative))
    below = np.cumsum(negatives, axis=1) - negatives
    won = (positives * (below + negatives / 2)).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return won / (positive.sum(1) * negative.sum(1))


def precision_area(said: Floats, truth: Truth, weights: Weights) -> Floats:
    """Return the area under the precision-recall curve of finding what is not supported,
    in [0, 1].
    """
    order = np.argsort(said, kind="stable")
    wrong = weights[:, order] * ~truth[order]
    every = weights[:, order]
    groups = _tied(said[order])
    found, flagged = (
        np.cumsum(np.add.reduceat(one, groups, axis=1), axis=1) for one in (wrong, every)
    )
    gained = np.diff(found, axis=1, prepend=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(flagged > 0, found / flagged, 0.0)
        return (precision * gained).sum(1) / wrong.sum(1)


def balanced_at(threshold: float) -> Measure:
    """Return the balanced accuracy in [0, 1]: what has more than `threshold` is called
    supported.
    """

    def measure(said: Floats, truth: Truth, weights: Weights) -> Floats:
        yes = said > threshold
        with np.errstate(invalid="ignore", divide="ignore"):
            right = (weights * (truth & yes)).sum(1) / (weights * truth).sum(1)
            wrong = (weights * (~truth & ~yes)).sum(1) / (weights * ~truth).sum(1)
        return (right + wrong) / 2

    return measure


def best_balanced(said: Floats, truth: Truth, weights: Weights) -> Floats:
    """Return the balanced accuracy in [0.5, 1] at the threshold that is best on these
    very pairs.
    """
    order = np.argsort(said, kind="stable")
    groups = _tied(said[order])
    right = np.add.reduceat(weights[:, order] * truth[order], groups, axis=1)
    wrong = np.add.reduceat(weights[:, order] * ~truth[order], groups, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        below = np.cumsum(wrong, axis=1) / wrong.sum(1, keepdims=True)
        above = 1 - np.cumsum(right, axis=1) / right.sum(1, keepdims=True)
    return np.maximum(0.5, ((below + above) / 2).max(1))


def calibration_error(said: Floats, truth: Truth, weights: Weights) -> Floats:
    """Return the expected calibration error over ten bins of equal width, in [0, 1]."""
    bins = np.minimum((said * _BINS).astype(int), _BINS - 1)
    total = np.zeros(len(weights))
    for number in range(_BINS):
        inside = bins == number
        if inside.any():
            gap = weights[:, inside] @ (said[inside] - truth[inside])
            total += np.abs(gap)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / weights.sum(1)


def flagged_f1(threshold: float) -> Measure:
    """Return F1 of finding what is not supported; what has `threshold` or less is flagged."""

    def measure(said: Floats, truth: Truth, weights: Weights) -> Floats:
        flagged = said <= threshold
        hits = (weights * (~truth & flagged)).sum(1)
        both = (weights * ~truth).sum(1) + (weights * flagged).sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return 2 * hits / both

    return measure


def best_f1_threshold(said: Floats, truth: Truth) -> float:
    """Return the threshold for `flagged_f1` with the highest F1, half-way between
    neighbouring scores.
    """
    values = np.unique(said)
    middles = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    ones = np.ones((1, len(said)))
    return float(max(middles, key=lambda cut: flagged_f1(float(cut))(said, truth, ones)[0]))


def _tied(ordered: Floats) -> NDArray[np.intp]:
    """Return where runs of equal numbers begin."""
    starts = np.flatnonzero(np.diff(ordered)) + 1
    return np.concatenate([[0], starts]).astype(np.intp)


class SuitePredictions(NamedTuple):
    """P(supported) of every pair of a suite, what is true, and the groups."""

    said: Floats
    truth: Truth
    groups: tuple[str, ...]

    def chosen(self, which: Sequence[bool]) -> SuitePredictions:
        """Return some of the pairs."""
        mask = np.asarray(which, dtype=bool)
        kept = tuple(one for one, there in zip(self.groups, mask, strict=True) if there)
        return SuitePredictions(self.said[mask], self.truth[mask], kept)

    def weakest(self) -> SuitePredictions:
        """Return every group as one text: as supported as its weakest piece, and true when
        all are.
        """
        numbers = group_numbers(self.groups)
        size = int(numbers.max(initial=-1)) + 1
        said, truth = np.ones(size), np.ones(size, dtype=bool)
        np.minimum.at(said, numbers, self.said)
        np.logical_and.at(truth, numbers, self.truth)
        first = np.unique(numbers, return_index=True)[1]
        return SuitePredictions(said, truth, tuple(self.groups[at] for at in first))


def estimated(measure: Measure, judged: SuitePredictions, sampling: Sampling) -> Estimate:
    """Return the measure with its interval; without a value where there is only one kind
    of pair.
    """
    numbers = group_numbers(judged.groups)
    size = int(numbers.max(initial=-1)) + 1
    base = Estimate(value=None, n=len(judged.said), groups=size)
    if len(judged.said) == 0:
        return base.model_copy(update={"reason": "no_items"})
    value = float(measure(judged.said, judged.truth, np.ones((1, len(judged.said))))[0])
    if not np.isfinite(value):
        return base.model_copy(update={"reason": "one_class"})
    if size < 2:
        return base.model_copy(update={"value": value, "reason": "too_few_groups"})
    found = np.concatenate(
        [
            measure(judged.said, judged.truth, batch[:, numbers])
            for batch in draws(size, sampling.resamples, sampling.seed)
        ]
    )
    low, high, method = interval(value, found, None, sampling.level)
    return base.model_copy(update={"value": value, "low": low, "high": high, "method": method})
