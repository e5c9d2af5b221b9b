"""Scores as probabilities, against values worked out by hand and scikit-learn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from pipelines.evaluation.metrics import brier, calibration_error, reliability_bins

SCORES = (0.1, 0.2, 0.9, 0.8)
TRUTH = (False, True, True, True)

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


def test_brier_is_the_mean_squared_distance():
    # (0.01 + 0.64 + 0.01 + 0.04) / 4
    assert brier(SCORES, TRUTH) == pytest.approx(0.175)


@given(PAIRS)
def test_brier_is_that_of_scikit_learn(pairs: list[tuple[float, bool]]):
    scores, truth = zip(*pairs, strict=True)
    wanted = brier_score_loss(truth, scores, labels=[False, True])
    assert brier(scores, truth) == pytest.approx(float(wanted))


def test_calibration_error_of_two_bins():
    # (0, 0.5]: mean 0.15, share 1/2. (0.5, 1]: mean 0.85, share 1. Half of 0.35 and half of 0.15.
    assert calibration_error(SCORES, TRUTH, bins=2) == pytest.approx(0.25)
    low, high = reliability_bins(SCORES, TRUTH, bins=2)
    assert (low.low, low.high, low.items, low.share) == (0, 0.5, 2, 0.5)
    assert (high.low, high.high, high.items, high.share) == (0.5, 1, 2, 1)
    assert (low.mean_score, high.mean_score) == (pytest.approx(0.15), pytest.approx(0.85))


def test_a_score_on_an_edge_belongs_to_the_lower_bin():
    (only,) = reliability_bins((0.5, 0.0), (True, False), bins=2)
    assert (only.low, only.high, only.items) == (0, 0.5, 2)


def test_bins_of_equal_mass_hold_equally_many():
    scores = (0.01, 0.02, 0.03, 0.9)
    bins = reliability_bins(scores, (False, False, True, True), bins=2, binning="mass")
    # The median is 0.025.
    assert [(each.items, each.share) for each in bins] == [(2, 0), (2, 1)]
    assert (bins[0].low, bins[0].high, bins[1].high) == (0.01, pytest.approx(0.025), 0.9)
    # Halves of |0.015 - 0| and |0.465 - 1|.
    assert calibration_error(
        scores, (False, False, True, True), bins=2, binning="mass"
    ) == pytest.approx((0.015 + 0.535) / 2)


def test_equal_scores_are_in_one_bin():
    (only,) = reliability_bins((0.4,) * 5, (True, False, False, True, False), 10, "mass")
    assert (only.items, only.mean_score, only.share) == (5, pytest.approx(0.4), 0.4)
    assert calibration_error((0.4,) * 5, (True, False, False, True, False)) == pytest.approx(0)


@given(PAIRS, st.integers(1, 15), st.sampled_from(["width", "mass"]))
def test_bins_hold_all_items_in_order(pairs: list[tuple[float, bool]], count: int, binning):
    scores, truth = zip(*pairs, strict=True)
    bins = reliability_bins(scores, truth, count, binning)
    assert sum(each.items for each in bins) == len(scores)
    assert sum(each.items * each.share for each in bins) == pytest.approx(sum(truth))
    for each in bins:
        assert each.low - 1e-9 <= each.mean_score <= each.high + 1e-9
    assert 0 <= calibration_error(scores, truth, count, binning) <= 1


@pytest.mark.parametrize("scores", [(1.1, 0), (-0.1, 0), (float("nan"), 0)])
def test_other_scores_are_no_probabilities(scores: tuple[float, ...]):
    for measure in (brier, calibration_error, reliability_bins):
        with pytest.raises(ValueError, match="no probabilities"):
            measure(scores, (True, False))


@pytest.mark.parametrize(("scores", "truth"), [((), ()), ((0.1,), (True, False))])
def test_scores_and_truths_belong_together(scores: tuple[float, ...], truth: tuple[bool, ...]):
    with pytest.raises(ValueError, match="cannot be compared"):
        brier(scores, truth)
