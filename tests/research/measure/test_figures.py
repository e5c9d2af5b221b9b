"""Measures under the weights of a draw, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.metrics.detection import auroc, average_precision, best_balanced_accuracy
from pipelines.evaluation.statistics.estimates import Sampling
from research.figures import (
    balanced_at,
    best_balanced,
    calibration,
    estimated,
    flagged_f1,
    ranking,
    share,
)

SAID = np.array([0.9, 0.6, 0.6, 0.2])
TRUTH = np.array([True, True, False, False])
ONE = np.ones((1, 4))
FEW = Sampling(resamples=200)


def test_areas_by_hand():
    # Of four pairs three are in order and one is a tie.
    assert ranking(SAID, TRUTH)(ONE).tolist() == [3.5 / 4]
    # Wrong ones at 0.2, then at 0.6 together with a right one: 1/2 * 1 + 1/2 * 2/3.
    assert ranking(SAID, TRUTH, "auc_pr_nonfactual")(ONE).tolist() == pytest.approx([1 / 2 + 1 / 3])


def test_thresholds_by_hand():
    assert balanced_at(SAID, TRUTH, 0.5)(ONE).tolist() == [0.75]
    # Above 0.2 all right ones and half of the wrong ones; above 0.6 half and all.
    assert best_balanced(SAID, TRUTH)(ONE).tolist() == [0.75]
    assert best_balanced(SAID, ~TRUTH)(ONE).tolist() == [0.5]
    # Flagged are those at 0.2 and 0.6: both wrong ones and a right one.
    assert flagged_f1(SAID, TRUTH, 0.6)(ONE).tolist() == [2 * 2 / (2 + 3)]


def test_calibration_by_hand():
    # Bins: 0.9 is right, off by 0.1; 0.6 twice, half right, off by 0.1 each; 0.2 wrong, by 0.2.
    assert calibration(SAID, TRUTH)(ONE).tolist() == pytest.approx([(0.1 + 0.2 + 0.2) / 4])


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_counts_a_pair_so_many_times(seed: int):
    source = np.random.default_rng(seed)
    said = np.round(source.random(80), 1)
    truth = source.random(80) < said
    weights = source.integers(0, 4, 80)
    often, kind = np.repeat(said, weights).tolist(), np.repeat(truth, weights).tolist()
    drawn = weights[None].astype(float)
    wrong = [not one for one in kind]
    assert ranking(said, truth)(drawn)[0] == pytest.approx(auroc(often, kind))
    assert ranking(said, truth, "auc_pr_nonfactual")(drawn)[0] == pytest.approx(
        average_precision([-one for one in often], wrong)
    )
    assert best_balanced(said, truth)(drawn)[0] == pytest.approx(
        best_balanced_accuracy(often, kind)
    )


def test_several_draws_are_measured_at_once():
    weights = np.array([[1.0, 1, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0]])
    found = ranking(SAID, TRUTH)(weights)
    assert found[:2].tolist() == [3.5 / 4, 1.0]
    # Without a wrong one it is not defined.
    assert np.isnan(found[2])
    assert np.isnan(balanced_at(SAID, TRUTH, 0.5)(weights)[2])


def test_intervals_are_over_groups():
    source = np.random.default_rng(0)
    said = source.random(200)
    truth = source.random(200) < said
    area = ranking(said, truth)
    alone, by_ten = [str(n) for n in range(200)], [str(n // 20) for n in range(200)]
    one, ten = (estimated(area, groups, FEW) for groups in (alone, by_ten))
    assert one.value == ten.value
    assert (one.groups, ten.groups) == (200, 10)
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    assert one.low < one.value < one.high
    assert estimated(area, alone, FEW) == one


def test_what_is_not_defined_says_why():
    area = ranking(SAID, TRUTH)
    assert estimated(area, (), FEW).reason == "no_items"
    one_kind = balanced_at(SAID, np.ones(4, dtype=bool), 0.5)
    assert estimated(one_kind, "abcd", FEW).reason == "one_class"
    found = estimated(area, ("a",) * 4, FEW)
    assert (found.value, found.low, found.reason) == (3.5 / 4, None, "too_few_groups")


def test_shares_by_hand():
    said, kind = np.array([True, False, True, True]), np.array([True, True, False, False])
    assert share(said)(ONE).tolist() == [0.75]
    assert share(said, kind)(ONE).tolist() == [0.5]
    assert np.isnan(share(said, np.zeros(4, dtype=bool))(ONE)[0])
