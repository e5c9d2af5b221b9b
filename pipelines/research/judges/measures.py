"""Balanced accuracy as in LLM-AggreFact, and F1 of texts and spans as in RAGTruth, with intervals.

A text is flagged when its doubt is above a threshold. Thresholds are 0.5, or the best one of the
even half. Intervals are percentile intervals of the bootstrap over groups.
Sources: Tang, Laban and Durrett 2024 (LLM-AggreFact); Niu and others 2024 (RAGTruth).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pipelines.evaluation.metrics.spans import count_spans
from pipelines.evaluation.statistics.resampling import (
    Estimate,
    Floats,
    Sampling,
    group_numbers,
    group_sums,
    interval,
    ratio_draws,
)
from pipelines.research.judges.scoring import ScoredText

USUAL = 0.5
"""The threshold of a judge that says nothing of its own about one."""

_CANDIDATES = 200


class Counted(NamedTuple):
    """What a measure is made of, for each text: shape [parts, texts] both.

    The measure is the mean over parts of sum(numerators) / sum(denominators).
    """

    numerators: Floats
    denominators: Floats


Count = Callable[[Sequence[ScoredText], float], Counted]
"""What a measure counts of texts at a threshold."""


def balanced_accuracy(texts: Sequence[ScoredText], threshold: float) -> Counted:
    """Return the mean of the shares of wrong and of right statements that are judged so.

    Statements are labelled sentences where there are any, else whole texts.
    """
    numerators, denominators = np.zeros((2, len(texts))), np.zeros((2, len(texts)))
    for place, text in enumerate(texts):
        for doubt, wrong in _statements(text):
            part = 0 if wrong else 1
            numerators[part, place] += (doubt > threshold) == wrong
            denominators[part, place] += 1
    return Counted(numerators, denominators)


def _statements(text: ScoredText) -> list[tuple[float, bool]]:
    if text.sentences:
        return [(piece.doubt, wrong) for piece, wrong in text.sentences]
    return [(text.doubt, text.hallucinated)]


def example_f1(texts: Sequence[ScoredText], threshold: float) -> Counted:
    """Return F1 of finding the texts with a hallucination: 2 TP / (2 TP + FP + FN)."""
    wrong = np.array([text.hallucinated for text in texts], dtype=float)
    flagged = np.array([text.doubt > threshold for text in texts], dtype=float)
    return Counted((2 * wrong * flagged)[None], (wrong + flagged)[None])


def span_f1(texts: Sequence[ScoredText], threshold: float) -> Counted:
    """Return F1 of finding the characters of wrong pieces, summed over the texts whose pieces
    have labels.

    Twice the characters found, by those flagged and those labelled together.
    """
    numerators, denominators = np.zeros((1, len(texts))), np.zeros((1, len(texts)))
    for place, text in enumerate(texts):
        if text.wrong is not None:
            flagged = [(one.start, one.end) for one in text.pieces if one.doubt > threshold]
            counts = count_spans(flagged, text.wrong, "characters")
            numerators[0, place] = 2 * counts.found
            denominators[0, place] = counts.predicted + counts.labelled
    return Counted(numerators, denominators)


def value_of(counted: Counted) -> float:
    """Return the measure; NaN where a part has nothing to count."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.mean(counted.numerators.sum(1) / counted.denominators.sum(1)))


def best_threshold(count: Count, texts: Sequence[ScoredText]) -> float:
    """Return the threshold at which the measure of `texts` is highest; of equal ones that
    nearest to 0.5.

    Candidates lie half-way between neighbouring doubts, at most 200 of them, and 0.5.
    """
    doubts = {piece.doubt for text in texts for piece in text.pieces}
    doubts |= {doubt for text in texts for doubt, _ in _statements(text)}
    values = np.array(sorted(doubts))
    if len(values) > _CANDIDATES:
        values = np.unique(np.quantile(values, np.linspace(0, 1, _CANDIDATES)))
    candidates = [USUAL, *((values[1:] + values[:-1]) / 2).tolist()]

    def worth(threshold: float) -> tuple[float, float]:
        value = value_of(count(texts, threshold))
        return (-1.0 if np.isnan(value) else value), -abs(threshold - USUAL)

    return max(candidates, key=worth)


class BootstrapMeasure(NamedTuple):
    """A measure with its interval, and its bootstrap distribution [resamples]."""

    estimate: Estimate
    draws: Floats


def measured(
    count: Count, texts: Sequence[ScoredText], threshold: float, sampling: Sampling
) -> BootstrapMeasure:
    """Return the measure of `texts` at `threshold`; without a value where it counts nothing."""
    counted = count(texts, threshold)
    numbers = group_numbers([text.group for text in texts])
    size = int(numbers.max(initial=-1)) + 1
    value = value_of(counted)
    base = Estimate(value=None, n=len(texts), groups=size, reason="no_items")
    if not np.isfinite(value):
        return BootstrapMeasure(base, np.empty(0))
    sums = group_sums(counted.numerators, numbers, size)
    totals = group_sums(counted.denominators, numbers, size)
    draws = ratio_draws(sums, totals, sampling).mean(axis=1)
    return BootstrapMeasure(_estimate(value, draws, len(texts), size, sampling), draws)


def mean_of(found: Sequence[BootstrapMeasure], sampling: Sampling) -> Estimate | None:
    """Return the mean over data sets, which are independent; None where none of them has
    a value.
    """
    known = [one for one in found if one.estimate.value is not None]
    if not known:
        return None
    values = [one.estimate.value for one in known if one.estimate.value is not None]
    value = sum(values) / len(values)
    # Each set was drawn with the same seed: other orders keep the draws independent.
    source = np.random.default_rng(sampling.seed)
    draws = np.mean([source.permutation(one.draws) for one in known], axis=0)
    texts = sum(one.estimate.n for one in known)
    groups = sum(one.estimate.groups for one in known)
    return _estimate(value, draws, texts, groups, sampling)


def _estimate(value: float, draws: Floats, n: int, groups: int, sampling: Sampling) -> Estimate:
    base = Estimate(value=value, n=n, groups=groups)
    if groups < 2:
        return base.model_copy(update={"reason": "too_few_groups"})
    low, high, method = interval(value, draws, None, sampling.level)
    return base.model_copy(update={"low": low, "high": high, "method": method})
