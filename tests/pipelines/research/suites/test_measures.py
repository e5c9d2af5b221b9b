"""Measures under the weights of a draw, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.metrics.separation import (
    auroc,
    average_precision,
    best_balanced_accuracy,
)
from pipelines.evaluation.statistics.resampling import Sampling
from pipelines.research.suites.measures import (
    SuitePredictions,
    area,
    balanced_at,
    best_balanced,
    best_f1_threshold,
    calibration_error,
    estimated,
    flagged_f1,
    precision_area,
)

SAID = np.array([0.9, 0.6, 0.6, 0.2])
TRUTH = np.array([True, True, False, False])
ONE = np.ones((1, 4))
FEW = Sampling(resamples=200)


def test_areas_by_hand():
    # Of four pairs three are in order and one is a tie.
    assert area(SAID, TRUTH, ONE).tolist() == [3.5 / 4]
    # Wrong ones at 0.2, then at 0.6 together with a right one: 1/2 * 1 + 1/2 * 2/3.
    assert precision_area(SAID, TRUTH, ONE).tolist() == pytest.approx([1 / 2 + 1 / 3])


def test_thresholds_by_hand():
    assert balanced_at(0.5)(SAID, TRUTH, ONE).tolist() == [0.75]
    # Above 0.2 all right ones and half of the wrong ones; above 0.6 half and all.
    assert best_balanced(SAID, TRUTH, ONE).tolist() == [0.75]
    assert best_balanced(SAID, ~TRUTH, ONE).tolist() == [0.5]
    # Flagged are those at 0.2 and 0.6: both wrong ones and a right one.
    assert flagged_f1(0.6)(SAID, TRUTH, ONE).tolist() == [2 * 2 / (2 + 3)]
    assert best_f1_threshold(SAID, TRUTH) == pytest.approx(0.75)


def test_calibration_by_hand():
    # Bins: 0.9 is right, off by 0.1; 0.6 twice, half right, off by 0.1 each; 0.2 wrong, by 0.2.
    assert calibration_error(SAID, TRUTH, ONE).tolist() == pytest.approx([(0.1 + 0.2 + 0.2) / 4])


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_counts_a_pair_so_many_times(seed: int):
    source = np.random.default_rng(seed)
    said = np.round(source.random(80), 1)
    truth = source.random(80) < said
    weights = source.integers(0, 4, 80)
    often, kind = np.repeat(said, weights).tolist(), np.repeat(truth, weights).tolist()
    drawn = weights[None].astype(float)
    wrong = [not one for one in kind]
    assert area(said, truth, drawn)[0] == pytest.approx(auroc(often, kind))
    assert precision_area(said, truth, drawn)[0] == pytest.approx(
        average_precision([-one for one in often], wrong)
    )
    assert best_balanced(said, truth, drawn)[0] == pytest.approx(
        best_balanced_accuracy(often, kind)
    )


def test_several_draws_are_measured_at_once():
    weights = np.array([[1.0, 1, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0]])
    found = area(SAID, TRUTH, weights)
    assert found[:2].tolist() == [3.5 / 4, 1.0]
    # Without a wrong one it is not defined.
    assert np.isnan(found[2])
    assert np.isnan(balanced_at(0.5)(SAID, TRUTH, weights)[2])


def test_an_answer_is_as_supported_as_its_weakest_sentence():
    judged = SuitePredictions(
        np.array([0.9, 0.3, 0.8]), np.array([True, False, True]), ("first", "first", "second")
    )
    weakest = judged.weakest()
    assert weakest.said.tolist() == [0.3, 0.8]
    assert weakest.truth.tolist() == [False, True]
    assert weakest.groups == ("first", "second")


def test_some_pairs_are_chosen_with_their_groups():
    chosen = SuitePredictions(SAID, TRUTH, ("a", "b", "c", "d")).chosen([True, False, False, True])
    assert chosen.said.tolist() == [0.9, 0.2]
    assert chosen.groups == ("a", "d")


def test_intervals_are_over_groups():
    source = np.random.default_rng(0)
    said = source.random(200)
    truth = source.random(200) < said
    alone = SuitePredictions(said, truth, tuple(map(str, range(200))))
    by_ten = SuitePredictions(said, truth, tuple(str(n // 20) for n in range(200)))
    one, ten = (estimated(area, judged, FEW) for judged in (alone, by_ten))
    assert one.value == ten.value
    assert (one.groups, ten.groups) == (200, 10)
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    assert one.low < one.value < one.high
    assert estimated(area, alone, FEW) == one


def test_what_is_not_defined_says_why():
    nothing = SuitePredictions(np.array([]), np.array([], dtype=bool), ())
    assert estimated(area, nothing, FEW).reason == "no_items"
    one_kind = SuitePredictions(np.array([0.1, 0.9]), np.array([True, True]), ("a", "b"))
    assert estimated(area, one_kind, FEW).reason == "one_class"
    one_group = SuitePredictions(SAID, TRUTH, ("a",) * 4)
    found = estimated(area, one_group, FEW)
    assert (found.value, found.low, found.reason) == (3.5 / 4, None, "too_few_groups")
