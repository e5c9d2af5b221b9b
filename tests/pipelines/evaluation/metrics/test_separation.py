"""Curves and thresholds against values worked out by hand."""

from __future__ import annotations

import pytest

from pipelines.evaluation.metrics.detection import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    best_accuracy,
    best_balanced_accuracy,
    best_cut,
    best_f1_accurate,
    best_precision_accurate,
    youden,
)

# One tie between a positive and a negative.
SCORES = (0.9, 0.8, 0.8, 0.3)
TRUTH = (True, False, True, False)


def test_auroc_counts_pairs_and_ties_as_half():
    # 0.9 beats 0.8 and 0.3; the positive 0.8 ties with 0.8 and beats 0.3: 3.5 of 4 pairs.
    assert auroc(SCORES, TRUTH) == pytest.approx(0.875)


def test_average_precision_takes_equal_scores_as_one_point():
    # Recall 0 -> 1/2 at precision 1, then 1/2 -> 1 at precision 2/3.
    assert average_precision(SCORES, TRUTH) == pytest.approx(1 / 2 + 1 / 2 * 2 / 3)


def test_a_perfect_score_and_its_reverse():
    scores, truth = (1.0, 2.0, 3.0), (False, True, True)
    assert auroc(scores, truth) == average_precision(scores, truth) == 1.0
    reverse = [-score for score in scores]
    assert auroc(reverse, truth) == 0.0
    # Negative first: recall 1/2 at precision 1/2, recall 1 at precision 2/3.
    assert average_precision(reverse, truth) == pytest.approx(1 / 4 + 1 / 3)


def test_a_score_that_says_nothing_reaches_the_base_rate():
    truth = (True, False, True, True)
    assert auroc((1.0,) * 4, truth) == 0.5
    assert average_precision((1.0,) * 4, truth) == 0.75


def test_unscored_items_rank_last():
    scores = (float("-inf"), 0.2, float("-inf"))
    # 0.2 is found at precision 1, the other positive among all three: 1/2 + 1/2 * 2/3.
    assert average_precision(scores, (True, True, False)) == pytest.approx(5 / 6)
    assert auroc(scores, (True, True, False)) == 0.75


def test_youden_is_sensitivity_and_specificity_less_one():
    # 2 of 3 positives and 1 of 2 negatives flagged: 2/3 + 1/2 - 1.
    flagged = (True, True, False, True, False)
    assert youden(flagged, (True, True, True, False, False)) == pytest.approx(1 / 6)


def test_the_threshold_is_the_middle_of_the_best_interval():
    cut = best_cut((1.0, 2.0, 3.0, 4.0), (False, False, True, True))
    assert cut == (2.5, 2.0, 3.0, 1.0)


def test_a_plateau_over_several_intervals_counts_as_one():
    # Above 2: 1 of 2 positives, no negative. Above 1: both, and 1 of 2 negatives. J = 1/2 twice.
    cut = best_cut((1.0, 2.0, 2.0, 3.0), (False, True, False, True))
    assert cut == (2.0, 1.0, 3.0, 0.5)


def test_of_separate_best_intervals_the_widest_is_taken():
    # J = 1/2 in [4, 5) and in [1, 3).
    cut = best_cut((5.0, 4.0, 3.0, 1.0), (True, False, True, False))
    assert cut == (2.0, 1.0, 3.0, 0.5)


def test_of_equally_wide_best_intervals_the_lowest_is_taken():
    cut = best_cut((5.0, 4.0, 3.0, 2.0), (True, False, True, False))
    assert cut == (2.5, 2.0, 3.0, 0.5)


def test_the_threshold_reaches_the_j_it_promises():
    scores, truth = (0.4, 1.7, 0.9, 1.1, 0.2), (False, True, True, False, False)
    cut = best_cut(scores, truth)
    assert cut is not None
    assert youden([score > cut.threshold for score in scores], truth) == pytest.approx(cut.youden)


@pytest.mark.parametrize("scores", [(2.0, 2.0, 2.0), (1.0, 3.0, 2.0)])
def test_no_threshold_where_none_beats_chance(scores: tuple[float, ...]):
    assert best_cut(scores, (True, False, False)) is None


@pytest.mark.parametrize("measure", [auroc, average_precision, youden, best_cut])
@pytest.mark.parametrize("truth", [(), (True, True), (False, False)])
def test_both_kinds_must_occur(measure, truth: tuple[bool, ...]):
    with pytest.raises(ValueError, match="cannot be compared"):
        measure((1.0,) * len(truth), truth)


def test_accuracies_of_flagged_items():
    # 2 of 3 positives and 1 of 2 negatives are told: 3 of 5, and the mean of 2/3 and 1/2.
    flagged, truth = (True, True, False, True, False), (True, True, True, False, False)
    assert accuracy(flagged, truth) == pytest.approx(3 / 5)
    assert balanced_accuracy(flagged, truth) == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_the_best_accuracy_may_flag_nothing_or_all():
    # One positive below three negatives: flag nothing, 3 of 4. Balanced, chance is all there is.
    scores, truth = (0.1, 0.5, 0.6, 0.7), (True, False, False, False)
    assert best_accuracy(scores, truth) == 0.75
    assert best_balanced_accuracy(scores, truth) == 0.5
    assert best_accuracy(scores, [not one for one in truth]) == 1.0
    # One negative above three positives: flag all.
    assert best_accuracy((0.9, 0.5, 0.4, 0.3), (False, True, True, True)) == 0.75


@pytest.mark.parametrize(
    ("scores", "truth", "f1", "precision"),
    [
        # Accurate: 0.1, 0.3, 0.4, 0.6. Up to 0.1 precision 1 at a recall of 1/4, which is too low;
        # up to 0.4 three of four are, at 3/4; up to 0.6 four of five, and F1 is 2 * 4 / (5 + 4).
        ((0.1, 0.2, 0.3, 0.4, 0.6, 0.9), (False, True, False, False, False, True), 8 / 9, 4 / 5),
        # The worst order: all have to pass for one that is right.
        ((0.1, 0.9), (True, False), 2 / 3, 1 / 2),
        # An item without a score passes first.
        ((float("-inf"), 0.5, 0.5), (False, True, True), 1, 1),
    ],
)
def test_the_best_of_accurate_items(
    scores: tuple[float, ...], truth: tuple[bool, ...], f1: float, precision: float
):
    assert best_f1_accurate(scores, truth) == pytest.approx(f1)
    assert best_precision_accurate(scores, truth) == pytest.approx(precision)


def test_the_best_accuracies_of_unscored_items():
    scores = (float("-inf"), 0.2, float("-inf"))
    assert best_accuracy(scores, (True, True, False)) == pytest.approx(2 / 3)
