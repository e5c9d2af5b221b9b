"""How far predictions are probabilities, with intervals over groups of items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.evaluation.metrics.reliability import Binning
from pipelines.evaluation.statistics.estimates import mean_estimates
from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    draw_sums,
    group_numbers,
    group_sums,
    interval,
)
from pipelines.types import Frozen

BINS = 10
"""Bins of equal width in [0, 1] of the calibration error, as for `reliability`."""


class ProbabilityErrors(Frozen):
    """Errors of predictions in [0, 1], each in [0, 1] with 0 the best.

    `brier` is the mean squared distance of prediction and event (Brier 1950); `calibration` the
    expected calibration error (Naeini and others 2015). The latter is too large in small samples,
    and in draws of them more so: its interval is not around the truth, but shows how far the value
    would vary.
    """

    brier: Estimate
    calibration: Estimate


def probability_errors(
    predictions: Floats, events: Floats, groups: Sequence[str], sampling: Sampling
) -> ProbabilityErrors | None:
    """Return both errors of `predictions` [items] of `events` (0 or 1) [items], NaN where one is
    missing.

    None where nothing is predicted, or where a prediction lies outside of [0, 1].
    """
    known = np.isfinite(predictions) & np.isfinite(events)
    predicted, happened = predictions[known], events[known]
    if not predicted.size or predicted.min() < 0 or predicted.max() > 1:
        return None
    kept = [group for group, there in zip(groups, known, strict=True) if there]
    (brier,) = mean_estimates(((predicted - happened) ** 2)[None], kept, sampling)
    return ProbabilityErrors(
        brier=brier, calibration=calibration_estimate(predicted, happened, kept, sampling)
    )


def calibration_estimate(
    predicted: Floats, happened: Floats, groups: Sequence[str], sampling: Sampling
) -> Estimate:
    """Return the expected calibration error of predictions in [0, 1] of events (0 or 1):
    [items] each.

    There must be an item, and nothing missing.
    """
    numbers = group_numbers(groups)
    columns = calibration_columns(predicted, happened)
    sums = group_sums(columns, numbers, int(numbers.max(initial=-1)) + 1)
    drawn = draw_sums(sums, sampling) if len(sums) > 1 else None
    return calibration_of(sums, drawn, len(predicted), sampling)


def calibration_columns(
    predicted: Floats, happened: Floats, *, binning: Binning = "width"
) -> Floats:
    """Return what the calibration error is made of: [bins + 1, items], zero where something is
    missing.

    For each bin how far its predictions are from what happened, and in the last row which items
    count. The bins are those of all items in every draw.
    """
    known = np.isfinite(predicted) & np.isfinite(happened)
    edges = np.linspace(0, 1, BINS + 1)
    if binning == "mass":
        edges = np.unique(np.quantile(predicted[known], edges))
    # As `reliability_bins`: a bin holds its upper edge.
    places = np.searchsorted(edges[1:-1], predicted[known], side="left")
    columns = np.zeros((BINS + 1, len(predicted)))
    columns[places, np.flatnonzero(known)] = (predicted - happened)[known]
    columns[BINS] = known
    return columns


def calibration_of(sums: Floats, drawn: Floats | None, items: int, sampling: Sampling) -> Estimate:
    """Return the error from `calibration_columns` summed over groups, [groups, bins + 1], and
    over draws.

    `items` is how many count; without `drawn`, or with fewer than two groups, it has no interval.
    """

    def error(of: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.abs(of[:, :BINS]).sum(axis=1) / of[:, BINS]

    count = int((sums[:, BINS] > 0).sum())
    base = Estimate(value=float(error(sums.sum(axis=0)[None])[0]), n=items, groups=count)
    if count < 2 or drawn is None:
        return base.model_copy(update={"reason": "too_few_groups"})
    low, high, method = interval(base.value or 0.0, error(drawn), None, sampling.level)
    return base.model_copy(update={"low": low, "high": high, "method": method})
