"""How well scores in [0, 1] are probabilities of what they speak for.

Every function takes one score and one truth per item, and raises ValueError without items or for
a score outside of [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Binning = Literal["width", "mass"]
"""Bins of equal width in [0, 1], or bins that hold about equally many items."""


class ReliabilityBin(NamedTuple):
    """The items whose score lies in (low, high]; the first bin holds `low` too.

    `items` is their number, `mean_score` what the scores promise, `share` that of positives.
    """

    low: float
    high: float
    items: int
    mean_score: float
    share: float


def brier(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the mean squared distance of score and truth, in [0, 1]; 0 is best (Brier 1950)."""
    values, truth = _checked(scores, positive)
    return float(np.mean((values - truth) ** 2))


def reliability_bins(
    scores: Sequence[float],
    positive: Sequence[bool],
    bins: int = 10,
    binning: Binning = "width",
) -> list[ReliabilityBin]:
    """Return the bins of a reliability diagram that hold an item, lowest first.

    Equal scores are in the same bin, so bins of equal mass can be fewer and uneven.
    """
    values, truth = _checked(scores, positive)
    if binning == "width":
        edges = np.linspace(0, 1, bins + 1)
    else:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)))
    # With equal scores only, there is one edge, and one bin.
    places = np.searchsorted(edges[1:-1], values, side="left")
    found = []
    for place in np.unique(places).tolist():
        inside = places == place
        found.append(
            ReliabilityBin(
                float(edges[place]),
                float(edges[min(place + 1, len(edges) - 1)]),
                int(inside.sum()),
                float(values[inside].mean()),
                float(truth[inside].mean()),
            )
        )
    return found


def calibration_error(
    scores: Sequence[float],
    positive: Sequence[bool],
    bins: int = 10,
    binning: Binning = "width",
) -> float:
    """Return the expected calibration error in [0, 1]; 0 is best (Naeini and others 2015).

    The distance of mean score and share of positives, averaged over items. The number of bins
    decides with: compare values with the same number only.
    """
    diagram = reliability_bins(scores, positive, bins, binning)
    gaps = [each.items * abs(each.mean_score - each.share) for each in diagram]
    return sum(gaps) / len(scores)


def _checked(
    scores: Sequence[float], positive: Sequence[bool]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = np.asarray(scores, dtype=np.float64)
    truth = np.asarray(positive, dtype=np.float64)
    if values.shape != truth.shape or not values.size:
        raise ValueError(f"{values.size} scores and {truth.size} truths cannot be compared.")
    # Written so that NaN, which compares with nothing, is refused.
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("Scores outside of [0, 1] are no probabilities.")
    return values, truth
