"""How well a score separates two kinds of items, and how well it is a probability."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Cut(NamedTuple):
    """A threshold on a score, the middle of [low, high), within which `youden` is the same."""

    threshold: float
    low: float
    high: float
    youden: float


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the area under the ROC curve in [0, 1]: how often a positive scores above a negative.

    Equal scores count half. An item without a score has -inf.
    """
    from sklearn.metrics import roc_auc_score

    _count(positive)
    return float(roc_auc_score(positive, _finite(scores)))


def average_precision(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the area under the precision-recall curve in [0, 1].

    It is the sum of precision times recall gained; nothing is interpolated. A score that says
    nothing reaches the share of positives. An item without a score has -inf.
    """
    from sklearn.metrics import average_precision_score

    _count(positive)
    return float(average_precision_score(positive, _finite(scores)))


def youden(flagged: Sequence[bool], positive: Sequence[bool]) -> float:
    """Return Youden's J = sensitivity + specificity - 1 in [-1, 1]; 0 is what chance reaches."""
    from sklearn.metrics import balanced_accuracy_score

    _count(positive)
    return float(balanced_accuracy_score(positive, flagged, adjusted=True))


def best_cut(scores: Sequence[float], positive: Sequence[bool]) -> Cut | None:
    """Return the threshold for which "score > threshold" has the largest J; None when none
    beats chance.

    J is constant between neighbouring scores. Of several best intervals that do not touch, the
    widest is taken, of equally wide ones the lowest.
    """
    from sklearn.metrics import confusion_matrix_at_thresholds

    positives, negatives = _count(positive)
    _, false, _, true, levels = confusion_matrix_at_thresholds(positive, scores)
    # J times both counts: whole numbers, so that equal means equal.
    values = true * negatives - false * positives
    best, plateaus = 0.0, list[tuple[float, float]]()
    for value, (high, low) in zip(values[:-1].tolist(), pairwise(levels.tolist()), strict=True):
        if value > best:
            best, plateaus = value, []
        if value == best and best > 0:
            if plateaus and plateaus[-1][0] == high:
                high = plateaus.pop()[1]
            plateaus.append((low, high))
    if not plateaus:
        return None
    low, high = max(plateaus, key=lambda ends: (ends[1] - ends[0], -ends[0]))
    return Cut((low + high) / 2, low, high, best / (positives * negatives))


def accuracy(flagged: Sequence[bool], positive: Sequence[bool]) -> float:
    """Return the share of items that were flagged rightly or rightly not, in [0, 1]."""
    _count(positive)
    return float(np.mean(np.equal(flagged, positive)))


def balanced_accuracy(flagged: Sequence[bool], positive: Sequence[bool]) -> float:
    """Return the mean of sensitivity and specificity in [0, 1]; 0.5 is what chance reaches."""
    return (youden(flagged, positive) + 1) / 2


def best_accuracy(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the accuracy in [0, 1] at the threshold that is best on these very items.

    It is an upper bound: a threshold that was chosen elsewhere reaches at most this.
    """
    return best_of_cuts(scores, positive).accuracy


def best_balanced_accuracy(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the balanced accuracy in [0.5, 1] at the threshold that is best on these
    very items.
    """
    return best_of_cuts(scores, positive).balanced_accuracy


def best_f1_accurate(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return F1 of the accurate items, in [0, 1], at the threshold that is best on these very
    items.
    """
    return best_of_cuts(scores, positive).f1_accurate


def best_precision_accurate(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the precision of the accurate items, in [0, 1], at the threshold that is best on these
    very items among those at which their recall is at least `LEAST_RECALL`.
    """
    return best_of_cuts(scores, positive).precision_accurate


LEAST_RECALL = 0.5
"""The recall of accurate items that their best precision needs (SLM check, figure 4)."""


class BestOfCuts(NamedTuple):
    """What the best threshold of each reaches: of all items, and of the accurate ones."""

    accuracy: float
    balanced_accuracy: float
    f1_accurate: float
    precision_accurate: float


def best_of_cuts(scores: Sequence[float], positive: Sequence[bool]) -> BestOfCuts:
    """Return what the best threshold of each measure reaches, from one look at all thresholds."""
    from sklearn.metrics import confusion_matrix_at_thresholds

    positives, negatives = _count(positive)
    _, false, _, true, _ = confusion_matrix_at_thresholds(positive, _finite(scores))
    # A threshold above all scores flags nothing.
    true, false = np.append(0, true), np.append(0, false)
    youden = float(np.max(true * negatives - false * positives))
    clear = negatives - false
    passed = clear + positives - true
    reached = clear >= LEAST_RECALL * negatives
    return BestOfCuts(
        float(np.max(true + clear)) / (positives + negatives),
        (youden / (positives * negatives) + 1) / 2,
        float(np.max(2 * clear / (passed + negatives))),
        float(np.max(clear[reached] / passed[reached])),
    )


def precision_recall_f1(
    truth: Sequence[object], predicted: Sequence[object], labels: Sequence[object]
) -> NDArray[np.float64]:
    """Return precision, recall and F1 of each label in [0, 1], shape [labels, 3]; 0 where
    undefined.
    """
    from sklearn.metrics import precision_recall_fscore_support

    undefined: Any = 0
    rows = precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=undefined)
    return np.array(rows[:3], dtype=np.float64).T


def _count(positive: Sequence[bool]) -> tuple[int, int]:
    positives = sum(positive)
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise ValueError(f"{positives} positives and {negatives} negatives cannot be compared.")
    return positives, negatives


def _finite(scores: Sequence[float]) -> NDArray[np.float64]:
    """Return the values with -inf as the lowest finite number, because scikit-learn refuses
    infinity.
    """
    return np.maximum(scores, np.finfo(np.float64).min)


# How well scores in [0, 1] are probabilities of what they speak for.
#
# Every function takes one score and one truth per item, and raises ValueError without items or for
# a score outside of [0, 1].

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
