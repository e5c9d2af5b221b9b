"""Measures under the bootstrap over groups: areas, balanced accuracy, F1, calibration.

Groups, records that share a text, are drawn with replacement. A draw weights every item by how
often its group was drawn, and each measure is computed anew with these weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.statistics.detection import RANKINGS, Ranking, rankings_under
from pipelines.evaluation.statistics.estimates import (
    Estimate,
    Floats,
    Reason,
    Sampling,
    draws,
    group_numbers,
    interval,
)

Truth = NDArray[np.bool_]

Measure = Callable[[Floats], Floats]
"""A measure for weights [draws, items]: shape [draws], NaN where it is not defined."""

_BINS = 10


class Sampled(NamedTuple):
    """A measure with its interval, and its bootstrap distribution [resamples]."""

    estimate: Estimate
    draws: Floats


def sampled(
    measure: Measure, groups: Sequence[str], sampling: Sampling, undefined: Reason = "one_class"
) -> Sampled:
    """Return the measure of items with its interval; without a value where it has none, for which
    `undefined` is the reason."""
    numbers = group_numbers(groups)
    size = int(numbers.max(initial=-1)) + 1
    base = Estimate(value=None, n=len(groups), groups=size)
    nothing = np.empty(0)
    if not len(groups):
        return Sampled(base.model_copy(update={"reason": "no_items"}), nothing)
    value = float(measure(np.ones((1, len(groups))))[0])
    if not np.isfinite(value):
        return Sampled(base.model_copy(update={"reason": undefined}), nothing)
    drawn = draws(size, sampling.resamples, sampling.seed)
    found = np.concatenate([measure(batch[:, numbers]) for batch in drawn])
    return Sampled(_with_interval(base.model_copy(update={"value": value}), found, sampling), found)


def estimated(measure: Measure, groups: Sequence[str], sampling: Sampling) -> Estimate:
    """Return the measure of items with its interval."""
    return sampled(measure, groups, sampling).estimate


def _with_interval(base: Estimate, found: Floats, sampling: Sampling) -> Estimate:
    if base.groups < 2:
        return base.model_copy(update={"reason": "too_few_groups"})
    low, high, method = interval(base.value or 0.0, found, None, sampling.level)
    return base.model_copy(update={"low": low, "high": high, "method": method})


def mean_of(found: Sequence[Sampled], sampling: Sampling) -> Estimate | None:
    """Return the mean over data sets, which are independent; None where none has a value."""
    known = [one for one in found if one.estimate.value is not None]
    if not known:
        return None
    # Each set was drawn with the same seed: other orders keep the draws independent.
    source = np.random.default_rng(sampling.seed)
    drawn = np.mean([source.permutation(one.draws) for one in known], axis=0)
    base = Estimate(
        value=sum(one.estimate.value or 0.0 for one in known) / len(known),
        n=sum(one.estimate.n for one in known),
        groups=sum(one.estimate.groups for one in known),
    )
    return _with_interval(base, drawn, sampling)


def ratio(numerators: Floats, denominators: Floats) -> Measure:
    """Return the mean over parts of a sum of `numerators` over one of `denominators`, both of the
    shape [parts, items]."""

    def measure(weights: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return ((weights @ numerators.T) / (weights @ denominators.T)).mean(1)

    return measure


def share(values: Truth, of: Truth | None = None) -> Measure:
    """Return the share of true values, among all items or those `of` a kind, in [0, 1]."""
    counted = np.ones(len(values)) if of is None else of.astype(float)
    return ratio((values * counted).astype(np.float64)[None], counted[None])


def ranking(said: Floats, truth: Truth, name: Ranking = "auroc") -> Measure:
    """Return an area of P(supported) for what is true, ties counting half: under the ROC curve, or
    under precision and recall of what is not supported."""
    if truth.all() or not truth.any():
        return lambda weights: np.full(len(weights), np.nan)
    under, column = rankings_under(-said, (~truth).astype(float)), RANKINGS.index(name)
    return lambda weights: under(weights)[:, column]  # type: ignore[arg-type]


def balanced_at(said: Floats, truth: Truth, threshold: float) -> Measure:
    """Return the balanced accuracy in [0, 1]: what has more than `threshold` is supported."""
    right = np.stack([truth & (said > threshold), ~truth & (said <= threshold)]).astype(float)
    return ratio(right, np.stack([truth, ~truth]).astype(float))


def best_balanced(said: Floats, truth: Truth) -> Measure:
    """Return the balanced accuracy in [0.5, 1] at the threshold that is best on these very
    items."""
    order = np.argsort(said, kind="stable")
    levels = np.concatenate([[0], np.flatnonzero(np.diff(said[order])) + 1]).astype(np.intp)

    def measure(weights: Floats) -> Floats:
        right, wrong = (
            np.cumsum(np.add.reduceat(weights[:, order] * kind[order], levels, axis=1), axis=1)
            for kind in (truth, ~truth)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (wrong / wrong[:, -1:] + 1 - right / right[:, -1:]) / 2
        return np.maximum(0.5, shares.max(1))

    return measure


def calibration(said: Floats, truth: Truth) -> Measure:
    """Return the expected calibration error over ten bins of equal width, in [0, 1]."""
    bins = np.minimum((said * _BINS).astype(int), _BINS - 1)
    gaps = np.stack([(bins == number) * (said - truth) for number in range(_BINS)])
    return lambda weights: np.abs(weights @ gaps.T).sum(1) / weights.sum(1)


def flagged_f1(said: Floats, truth: Truth, threshold: float) -> Measure:
    """Return F1 of finding what is not supported; what has `threshold` or less is flagged."""
    flagged = said <= threshold
    found, both = 2.0 * (~truth & flagged), (~truth).astype(float) + flagged
    return ratio(found.astype(np.float64)[None], both.astype(np.float64)[None])
