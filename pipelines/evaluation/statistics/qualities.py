"""How good a detector's scores and spans are, beside how well they rank: one number a measure.

Its best threshold, whether its scores are probabilities, and whether it marks the right words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.metrics.reliability import Binning
from pipelines.evaluation.metrics.separation import best_accuracies
from pipelines.evaluation.metrics.spans import SpanMatch
from pipelines.evaluation.statistics.estimates import mean_estimates, ratio_estimates
from pipelines.evaluation.statistics.probabilities import calibration_columns, calibration_of
from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    draw_sums,
    group_numbers,
    group_sums,
)

Quality = Literal[
    "best_accuracy",
    "best_balanced_accuracy",
    "brier",
    "ece",
    "ece_equal_mass",
    "span_f1_exact",
    "span_f1_iou",
    "span_f1_characters",
]
"""Measures of one detector, each the metric of this name."""

QUALITIES: tuple[Quality, ...] = get_args(Quality)

_SPANS: dict[SpanMatch, Quality] = {
    "exact": "span_f1_exact",
    "iou": "span_f1_iou",
    "characters": "span_f1_characters",
}


def score_qualities(
    scores: Floats, labels: Floats, groups: Sequence[str], sampling: Sampling
) -> list[dict[Quality, Estimate]]:
    """Return the measures of each detector from its `scores` and the `labels` (0 or 1).

    Both are [detectors, items], NaN where something is missing. A best accuracy has no interval:
    its threshold was chosen on these items, so that it is an upper bound. Errors of probabilities
    are there where all scores of a detector lie in [0, 1].
    """
    known = np.isfinite(scores) & np.isfinite(labels)
    found = [
        _best(scores[k, there], labels[k, there] == 1, groups, there)
        for k, there in enumerate(known)
    ]
    told = [
        k
        for k, there in enumerate(known)
        if there.any() and scores[k, there].min() >= 0 and scores[k, there].max() <= 1
    ]
    if not told:
        return found
    brier = mean_estimates((scores[told] - labels[told]) ** 2, groups, sampling)
    binnings: list[tuple[Quality, Binning]] = [("ece", "width"), ("ece_equal_mass", "mass")]
    numbers = group_numbers(groups)
    parts = [
        calibration_columns(scores[k], labels[k], binning=binning)
        for k in told
        for _, binning in binnings
    ]
    # All of them share the draws, which is what takes time.
    sums = group_sums(np.concatenate(parts), numbers, int(numbers.max()) + 1)
    drawn = draw_sums(sums, sampling) if len(sums) > 1 else None
    wide = len(parts[0])
    for place, (k, mean) in enumerate(zip(told, brier, strict=True)):
        found[k]["brier"] = mean
        for which, (name, _) in enumerate(binnings):
            own = slice((2 * place + which) * wide, (2 * place + which + 1) * wide)
            of_draws = None if drawn is None else drawn[:, own]
            items = int(known[k].sum())
            found[k][name] = calibration_of(sums[:, own], of_draws, items, sampling)
    return found


def _best(
    scores: Floats, positive: NDArray[np.bool_], groups: Sequence[str], there: NDArray[np.bool_]
) -> dict[Quality, Estimate]:
    """Return the accuracies at the thresholds that are best; none where all items are of
    one kind.
    """
    if not len(positive) or positive.all() or not positive.any():
        return {}
    kept = [group for group, held in zip(groups, there, strict=True) if held]
    plain, balanced = best_accuracies(scores.tolist(), positive.tolist())
    base = Estimate(value=None, n=len(kept), groups=int(group_numbers(kept).max()) + 1)
    return {
        "best_accuracy": base.model_copy(update={"value": plain}),
        "best_balanced_accuracy": base.model_copy(update={"value": balanced}),
    }


def span_qualities(
    counts: Mapping[SpanMatch, Floats], groups: Sequence[str], sampling: Sampling
) -> dict[Quality, Estimate]:
    """Return F1 of marked spans from what was found, predicted and labelled: [3, items] for
    each match.

    NaN where nothing is known of an item. Counts are summed before F1 is taken, so that texts with
    more errors weigh more. A match of which nothing is known is left out.
    """
    found: dict[Quality, Estimate] = {}
    for match, each in counts.items():
        known = np.isfinite(each).all(axis=0)
        if not known.any():
            continue
        hits, predicted, labelled = np.where(known, each, 0.0)
        (found[_SPANS[match]],) = ratio_estimates(
            2 * hits[None], (predicted + labelled)[None], groups, sampling, proportions=False
        )
    return found
