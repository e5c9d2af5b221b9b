"""Balanced accuracy and F1 of texts and spans against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score

from pipelines.evaluation.statistics.estimates import Sampling
from research.figures import Sampled, mean_of
from research.measure.judged import ScoredSpan, ScoredText
from research.measure.judges import (
    balanced_accuracy,
    best_threshold,
    example_f1,
    measured,
    span_f1,
    value_of,
)

SAMPLING = Sampling(resamples=400)


def text(doubt: float, wrong: bool, group: str = "") -> ScoredText:
    return ScoredText(wrong, doubt, group, (ScoredSpan(0, 10, doubt),))


# Of three wrong texts two are flagged at 0.5, of two right ones one is.
FIVE = [text(0.9, True), text(0.6, True), text(0.2, True), text(0.7, False), text(0.1, False)]


def test_balanced_accuracy_is_the_mean_of_both_shares():
    # Found 2 of 3 wrong ones, left 1 of 2 right ones: (2/3 + 1/2) / 2.
    assert value_of(balanced_accuracy(FIVE, 0.5)) == pytest.approx(7 / 12)
    # At 0.65: 1 of 3 and 1 of 2.
    assert value_of(balanced_accuracy(FIVE, 0.65)) == pytest.approx(5 / 12)
    # A doubt at the threshold is no flag.
    assert value_of(balanced_accuracy(FIVE, 0.6)) == pytest.approx(5 / 12)
    assert np.isnan(value_of(balanced_accuracy(FIVE[:3], 0.5)))


def test_example_f1_counts_flagged_texts():
    # Three are flagged, two of them wrong, of three wrong ones: 2 * 2 / (3 + 3).
    assert value_of(example_f1(FIVE, 0.5)) == pytest.approx(2 / 3)
    # All flagged: 2 * 3 / (5 + 3).
    assert value_of(example_f1(FIVE, 0.0)) == pytest.approx(6 / 8)


def test_labelled_sentences_are_the_statements_where_there_are_any():
    pieces = (ScoredSpan(0, 5, 0.8), ScoredSpan(6, 9, 0.3), ScoredSpan(10, 20, 0.4))
    one = ScoredText(
        True,
        0.8,
        "a",
        pieces,
        ((0, 5), (10, 20)),
        tuple(zip(pieces, (True, False, True), strict=True)),
    )
    # 1 of 2 wrong sentences is found, the right one is left: (1/2 + 1) / 2.
    assert value_of(balanced_accuracy([one], 0.5)) == pytest.approx(3 / 4)
    # 5 characters are flagged, all of them wrong, of 15: 2 * 5 / (5 + 15).
    assert value_of(span_f1([one], 0.5)) == pytest.approx(1 / 2)
    # A clean text with a flagged sentence adds 4 flagged characters: 2 * 5 / (9 + 15).
    clean = ScoredText(False, 0.9, "b", (ScoredSpan(0, 4, 0.9),), ())
    assert value_of(span_f1([one, clean], 0.5)) == pytest.approx(10 / 24)
    # One whose pieces nobody labelled does not count.
    assert value_of(span_f1([one, text(0.9, True)], 0.5)) == pytest.approx(1 / 2)
    assert np.isnan(value_of(span_f1(FIVE, 0.5)))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=2, max_size=30),
    st.integers(0, 10),
)
def test_measures_are_scikit_learns(items: list[tuple[int, bool]], cut: int):
    texts = [text(doubt / 10, wrong) for doubt, wrong in items]
    truth = [wrong for _, wrong in items]
    flagged = [doubt / 10 > cut / 10 for doubt, _ in items]
    if any(truth) and not all(truth):
        found = value_of(balanced_accuracy(texts, cut / 10))
        assert found == pytest.approx(balanced_accuracy_score(truth, flagged))
    if any(truth) or any(flagged):
        assert value_of(example_f1(texts, cut / 10)) == pytest.approx(f1_score(truth, flagged))


def test_the_best_threshold_separates_as_well_as_can_be():
    # Between 0.3 and 0.6 everything is right; the middle is 0.45.
    apart = [text(0.9, True), text(0.6, True), text(0.3, False), text(0.1, False)]
    best = best_threshold(balanced_accuracy, apart)
    assert value_of(balanced_accuracy(apart, best)) == 1
    assert best == 0.5
    # Doubts below 0.5 alone: the middle between 0.2 and 0.4.
    low = [text(0.4, True), text(0.2, False)]
    assert best_threshold(balanced_accuracy, low) == pytest.approx(0.3)
    # Where nothing can be counted, 0.5 stays.
    assert best_threshold(span_f1, FIVE) == 0.5


def test_the_interval_draws_whole_groups():
    # Two groups of equal texts: a draw holds one of them twice, or both.
    texts = [
        text(0.9, True, "a"),
        text(0.1, False, "a"),
        text(0.2, True, "b"),
        text(0.8, False, "b"),
    ]
    found = measured(balanced_accuracy, texts, 0.5, SAMPLING)
    # "a" alone is all right (1), "b" alone all wrong (0), both make 1/2.
    assert set(np.unique(found.draws)) == {0.0, 0.5, 1.0}
    estimate = found.estimate
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.0, 1.0)
    assert (estimate.n, estimate.groups, estimate.method) == (4, 2, "percentile")


def test_what_counts_nothing_has_no_value():
    found = measured(span_f1, FIVE, 0.5, SAMPLING)
    assert (found.estimate.value, found.estimate.reason) == (None, "no_items")
    alone = measured(
        balanced_accuracy, [text(0.9, True, "a"), text(0.1, False, "a")], 0.5, SAMPLING
    )
    assert (alone.estimate.value, alone.estimate.low) == (1.0, None)
    assert alone.estimate.reason == "too_few_groups"


def many(right: float, count: int) -> Sequence[ScoredText]:
    """Pairs of texts of which a share of `right` is judged right."""
    return [
        text(0.9 if (place / count < right) == wrong else 0.1, wrong)
        for place in range(count)
        for wrong in (True, False)
    ]


def test_the_mean_over_sets_is_narrower_than_each():
    one = measured(balanced_accuracy, many(0.8, 50), 0.5, SAMPLING)
    other = measured(balanced_accuracy, many(0.6, 50), 0.5, SAMPLING)
    nothing = measured(span_f1, FIVE, 0.5, SAMPLING)
    mean = mean_of([one, other, nothing], SAMPLING)
    assert mean is not None
    assert mean.value == pytest.approx(0.7)
    assert mean.n == 200

    def width(found: Sampled) -> float:
        low, high = found.estimate.low, found.estimate.high
        assert low is not None
        assert high is not None
        return high - low

    assert mean.low is not None
    assert mean.high is not None
    assert mean.high - mean.low < min(width(one), width(other))
    assert mean_of([nothing], SAMPLING) is None
