"""How well scores tell hallucinated items from others: AUROC and AUC-PR with intervals, curves.

Scores are higher where a hallucination is more likely; labels are 1 for hallucinated and 0 for
accurate items. Only the order of the scores counts, except for the reliability diagram, whose
scores are probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from pipelines.evaluation.metrics.reliability import Binning, reliability_bins
from pipelines.evaluation.statistics.paired import PairedDifference, adjusted
from pipelines.evaluation.statistics.qualities import QUALITIES, Quality
from pipelines.evaluation.statistics.ranking import AT_ONCE, RANKINGS, Ranking, rankings_under
from pipelines.evaluation.statistics.resampling import (
    BATCH,
    Counts,
    Estimate,
    Floats,
    Sampling,
    draw_counts,
    group_numbers,
    interval,
    wilson,
)
from pipelines.types import Frozen


class _Ranked(NamedTuple):
    """The rankings [RANKINGS] of one detector, and their bootstrap distribution.

    `draws` is [resamples, RANKINGS], or None with fewer than two groups.
    """

    value: Floats
    draws: Floats | None


class _Subset(NamedTuple):
    """Some of the items: the number of each one's group, and how many groups there are."""

    numbers: NDArray[np.intp]
    groups: int


class DetectorRankings(Frozen):
    """Rankings of several detectors on the same items, and every pair of detectors compared.

    `rankings` holds, for each detector in order, name to estimate; `qualities` likewise the other
    measures that it has, and is empty where they were not asked for. `base_rate` is the share of
    hallucinated items, which is the AUC-PR of a detector without any skill.
    """

    detectors: tuple[str, ...]
    rankings: tuple[dict[Ranking, Estimate], ...]
    qualities: tuple[dict[Quality, Estimate], ...] = ()
    differences: dict[Ranking, tuple[PairedDifference, ...]]
    base_rate: float | None
    n: int

    def estimates(self, detector: str) -> dict[str, Estimate]:
        """Return every ranking and measure that the detector called `detector` has, in order."""
        if detector not in self.detectors:
            return {}
        place = self.detectors.index(detector)
        others = self.qualities[place] if self.qualities else {}
        return {**self.rankings[place], **others}

    @property
    def measures(self) -> tuple[str, ...]:
        """The rankings, and what else at least one detector has a value of."""
        held = {name for each in self.qualities for name in each}
        return (*RANKINGS, *(name for name in QUALITIES if name in held))


def detection(
    scores: Floats,
    labels: Floats,
    detectors: Sequence[str],
    groups: Sequence[str],
    sampling: Sampling,
    *,
    compared: bool = True,
) -> DetectorRankings:
    """Return rankings of `detectors` from `scores` [detectors, items] and `labels`.

    `labels` is [items], or [detectors, items] where each detector checks answers of its own. NaN is
    a missing score or label. Each detector is ranked on the items that it scored; a pair is
    compared on the items that both scored. Intervals are percentile intervals of the bootstrap
    over groups; p is twice the smaller share of draws on either side of 0, with Holm's correction
    over the pairs of a ranking. Without `compared` there are no `differences`: where detectors
    scored different items, both of each pair are ranked once more for them.
    """
    labels = np.broadcast_to(labels, scores.shape)
    labelled = np.isfinite(labels)
    scored = np.isfinite(scores) & labelled
    pairs = list(combinations(range(len(detectors)), 2)) if compared else []
    ranker = _Ranker(scores, labels, groups, sampling)
    single = [ranker.ranked(k, scored[k]) for k in range(len(detectors))]
    rankings: list[dict[Ranking, Estimate]] = [{} for _ in detectors]
    differences: dict[Ranking, tuple[PairedDifference, ...]] = {}
    known = labels[labelled]
    for place, name in enumerate(RANKINGS):
        for k, ranked in enumerate(single):
            rankings[k][name] = ranker.estimate(scored[k], place, ranked)[0]
        if not compared:
            continue
        tested: list[PairedDifference] = []
        for a, b in pairs:
            both = scored[a] & scored[b]
            first, second = ranker.ranked(a, both), ranker.ranked(b, both)
            estimate, p = ranker.estimate(both, place, first, second)
            tested.append(
                PairedDifference(
                    first=detectors[a],
                    second=detectors[b],
                    difference=estimate,
                    p=p,
                    test="none" if p is None else "bootstrap",
                    left_out=int((scored[a] ^ scored[b]).sum()),
                )
            )
        differences[name] = tuple(adjusted(tested))
    return DetectorRankings(
        detectors=tuple(detectors),
        rankings=tuple(rankings),
        differences=differences,
        base_rate=float(known.mean()) if known.size else None,
        n=int(labelled.any(axis=0).sum()),
    )


class _Ranker:
    """Ranks detectors on subsets of the items; what was computed for a subset is kept.

    The draws depend only on the groups of the subset, so that two detectors on the same items are
    paired.
    """

    def __init__(
        self, scores: Floats, labels: Floats, groups: Sequence[str], sampling: Sampling
    ) -> None:
        self._scores, self._labels, self._groups = scores, labels, groups
        self._sampling = sampling
        self._known: dict[tuple[int, bytes], _Ranked | None] = {}
        self._subsets: dict[bytes, _Subset] = {}
        self._drawn: tuple[bytes, list[Counts]] = b"", []

    def ranked(self, detector: int, items: NDArray[np.bool_]) -> _Ranked | None:
        """Return the rankings of `detector` on `items`; None without items of both classes."""
        key = detector, items.tobytes()
        if key not in self._known:
            self._known[key] = self._rank(detector, items)
        return self._known[key]

    def _rank(self, detector: int, items: NDArray[np.bool_]) -> _Ranked | None:
        labels = self._labels[detector, items]
        if not len(labels) or np.ptp(labels) == 0:
            return None
        under = rankings_under(self._scores[detector, items], labels)
        value = under(np.ones((1, len(labels)), dtype=np.uint8))[0]
        if self._subset(items).groups < 2:
            return _Ranked(value, None)
        return _Ranked(value, np.concatenate([under(part) for part in self._draws(items)]))

    def _subset(self, items: NDArray[np.bool_]) -> _Subset:
        key = items.tobytes()
        if key not in self._subsets:
            numbers = group_numbers(
                [group for group, there in zip(self._groups, items, strict=True) if there]
            )
            self._subsets[key] = _Subset(numbers, int(numbers.max(initial=-1)) + 1)
        return self._subsets[key]

    def _draws(self, items: NDArray[np.bool_]) -> list[Counts]:
        """Return how often each of `items` counts, in parts [draws, items]."""
        key, (numbers, groups) = items.tobytes(), self._subset(items)
        # Those of one subset are kept: a pair of detectors mostly has the same items.
        if self._drawn[0] != key:
            parts = -(-len(numbers) * BATCH // AT_ONCE)
            alone = groups == len(numbers)
            drawn = draw_counts(groups, self._sampling.resamples, self._sampling.seed)
            found = [
                part if alone else part[:, numbers]
                for batch in drawn
                for part in np.array_split(batch, min(parts, len(batch)))
            ]
            self._drawn = key, found
        return self._drawn[1]

    def estimate(
        self,
        items: NDArray[np.bool_],
        place: int,
        first: _Ranked | None,
        second: _Ranked | None = None,
    ) -> tuple[Estimate, float | None]:
        """Estimate one ranking of one detector on `items`, or the first minus the second,
        with its p.
        """
        numbers, groups = self._subset(items)
        base = Estimate(value=None, n=len(numbers), groups=groups)
        if first is None:
            reason = "one_class" if len(numbers) else "no_items"
            return base.model_copy(update={"reason": reason}), None
        value = float(first.value[place] - (second.value[place] if second else 0.0))
        base = base.model_copy(update={"value": value})
        if first.draws is None:
            return base.model_copy(update={"reason": "too_few_groups"}), None
        drawn = first.draws[:, place]
        if second is not None and second.draws is not None:
            drawn = drawn - second.draws[:, place]
        # A draw of one class only has no ranking. The others alone would mislead if these are many:
        # with a single item of a class they are more than a third.
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn) < 0.8 * self._sampling.resamples:
            return base.model_copy(update={"reason": "no_resamples"}), None
        low, high, method = interval(value, drawn, None, self._sampling.level)
        found = base.model_copy(update={"low": low, "high": high, "method": method})
        if second is None:
            return found, None
        fewer = min((drawn <= 0).sum(), (drawn >= 0).sum())
        return found, min(1.0, 2 * (fewer + 1) / (len(drawn) + 1))


class Curve(Frozen):
    """Points of a curve in order, and the threshold at each: an item is flagged from there up.

    ROC: x is the false positive rate, y the true positive rate. PR: x is recall, y precision. The
    end at which nothing is flagged has the threshold None.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    thresholds: tuple[float | None, ...]


def curves(scores: Floats, labels: Floats) -> tuple[Curve, Curve] | None:
    """Return the ROC and the precision-recall curve of one detector; None with one class only.

    Both arguments are [items]; items without a score or a label are left out.
    """
    known = np.isfinite(scores) & np.isfinite(labels)
    scores, labels = scores[known], labels[known]
    if not len(labels) or np.ptp(labels) == 0:
        return None
    false_rate, true_rate, cuts = roc_curve(labels, scores)
    precision, recall, steps = precision_recall_curve(labels, scores)
    return (
        _curve(false_rate, true_rate, cuts),
        _curve(recall, precision, np.append(steps, np.inf)),
    )


def _curve(x: Floats, y: Floats, thresholds: Floats) -> Curve:
    return Curve(
        x=tuple(map(float, x)),
        y=tuple(map(float, y)),
        thresholds=tuple(float(one) if np.isfinite(one) else None for one in thresholds),
    )


class ReliabilityPoint(Frozen):
    """Items whose predicted probability lies in one bin: how often the event happened.

    `predicted` is their mean prediction, `observed` the share of events with its Wilson interval
    [low, high]; all lie in [0, 1]. `n` counts the items.
    """

    n: int
    predicted: float
    observed: float
    low: float
    high: float


def reliability(
    probabilities: Floats,
    labels: Floats,
    bins: int = 10,
    binning: Binning = "width",
    level: float = 0.95,
) -> list[ReliabilityPoint]:
    """Return the reliability diagram of predictions in [0, 1] with intervals, lowest
    predictions first.

    Items without a prediction or a label are left out. Raises ValueError for predictions outside
    [0, 1].
    """
    known = np.isfinite(probabilities) & np.isfinite(labels)
    if not known.any():
        return []
    predicted, events = probabilities[known].tolist(), (labels[known] == 1).tolist()
    found: list[ReliabilityPoint] = []
    for one in reliability_bins(predicted, events, bins, binning):
        low, high = wilson(round(one.share * one.items), one.items, level)
        found.append(
            ReliabilityPoint(
                n=one.items, predicted=one.mean_score, observed=one.share, low=low, high=high
            )
        )
    return found
