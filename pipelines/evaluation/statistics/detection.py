"""How well scores tell hallucinated items from others: AUROC and AUC-PR with intervals, curves.

Scores are higher where a hallucination is more likely; labels are 1 for hallucinated and 0 for
accurate items. Only the order of the scores counts, except for the reliability diagram, whose
scores are probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pipelines.base import Frozen
from pipelines.evaluation.metrics.answers import SpanMatch
from pipelines.evaluation.metrics.detection import (
    BestOfCuts,
    Binning,
    best_of_cuts,
    reliability_bins,
)
from pipelines.evaluation.statistics.estimates import (
    BATCH,
    Counts,
    Estimate,
    Floats,
    PairedDifference,
    Sampling,
    adjusted,
    draw_counts,
    draw_sums,
    group_numbers,
    group_sums,
    interval,
    mean_estimates,
    ratio_estimates,
    wilson,
)

# How far predictions are probabilities, with intervals over groups of items.

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


# How good a detector's scores and spans are, beside how well they rank: one number a measure.
#
# Its best threshold, whether its scores are probabilities, and whether it marks the right words.

Quality = Literal[
    "best_accuracy",
    "best_balanced_accuracy",
    "best_f1_accurate",
    "best_precision_accurate",
    "brier",
    "ece",
    "ece_equal_mass",
    "span_f1_exact",
    "span_f1_iou",
    "span_f1_characters",
]
"""Measures of one detector, each the metric of this name."""

QUALITIES: tuple[Quality, ...] = get_args(Quality)

BEST: tuple[Quality, ...] = QUALITIES[: len(BestOfCuts._fields)]
"""Those at a threshold that was chosen on the same items, in the order of `BestOfCuts`."""

_SPANS: dict[SpanMatch, Quality] = {
    "exact": "span_f1_exact",
    "iou": "span_f1_iou",
    "characters": "span_f1_characters",
}


def score_qualities(
    scores: Floats, labels: Floats, groups: Sequence[str], sampling: Sampling
) -> list[dict[Quality, Estimate]]:
    """Return the measures of each detector from its `scores` and the `labels` (0 or 1).

    Both are [detectors, items], NaN where something is missing. What is best has no interval:
    its threshold was chosen on these items, so that it is an upper bound. Errors of probabilities
    are there where all scores of a detector lie in [0, 1].
    """
    known = np.isfinite(scores) & np.isfinite(labels)
    found = best_qualities(scores, labels, groups)
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


def best_qualities(
    scores: Floats, labels: Floats, groups: Sequence[str]
) -> list[dict[Quality, Estimate]]:
    """Return the measures of `BEST` of each detector; arguments as in `score_qualities`."""
    known = np.isfinite(scores) & np.isfinite(labels)
    return [
        _best(scores[k, there], labels[k, there] == 1, groups, there)
        for k, there in enumerate(known)
    ]


def _best(
    scores: Floats, positive: NDArray[np.bool_], groups: Sequence[str], there: NDArray[np.bool_]
) -> dict[Quality, Estimate]:
    """Return the measures at the thresholds that are best; none where all items are of one kind."""
    if not len(positive) or positive.all() or not positive.any():
        return {}
    kept = [group for group, held in zip(groups, there, strict=True) if held]
    best = best_of_cuts(scores.tolist(), positive.tolist())
    base = Estimate(value=None, n=len(kept), groups=int(group_numbers(kept).max()) + 1)
    return {
        quality: base.model_copy(update={"value": value})
        for quality, value in zip(BEST, best, strict=True)
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


# Areas under the curves of one detector, for many draws of its items at once.
#
# A draw says how often each item counts. Items are ordered once, by their scores; of every draw
# only running totals are taken, which are whole numbers, so that no order of additions changes
# them.

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
    from sklearn.metrics import precision_recall_curve, roc_curve

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
