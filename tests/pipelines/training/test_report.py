"""Measures worked out by hand."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from pipelines.models.judges.reader import settle
from pipelines.training.balance import balanced
from pipelines.training.calibrating import best_scaling, fitted_curve
from pipelines.training.examples import Example, Label
from pipelines.training.recipe import held_out
from pipelines.training.report import binary, calibration_error, reliability, three_way
from pipelines.training.shortcuts import SHORTCUTS, shortcut_areas
from pipelines.training.suites import equal_length_auroc


def pair(label: Label, statement: str = "a b", evidence: str = "c", group: str = "g") -> Example:
    return Example(evidence=evidence, statement=statement, label=label, make="m", group=group)


def test_supported_against_the_rest():
    examples = [pair("supported"), pair("contradicted"), pair("not_enough"), pair("supported")]
    said = np.array([[0.9, 0.1, 0], [0.6, 0.4, 0], [0.1, 0, 0.9], [0.5, 0, 0.5]])
    # Of the four comparisons only 0.5 against 0.6 is lost.
    assert binary(examples, said)["auroc"] == 0.75
    assert binary(examples, said)["supported"] == 0.5
    # 0.9 and 0.1 are on the right side of a half, 0.6 is not, and 0.5 is on neither.
    assert binary(examples, said)["right"] == 2


def test_calibration_error_is_the_gap_weighted_by_how_many():
    # A bin of two at 0.95, both right: gap 0.05. A bin of two at 0.25, one right: gap 0.25.
    said = np.array([0.95, 0.95, 0.25, 0.25])
    assert calibration_error(said, [True, True, True, False]) == pytest.approx(0.15)
    assert calibration_error(np.array([1.0, 0.0]), [True, False]) == 0.0


def test_reliability_is_what_was_said_beside_what_is_true():
    said = np.array([0.95, 1.0, 0.25, 0.21])
    found = reliability(said, [True, True, True, False])
    assert found == [(pytest.approx(0.23), 0.5, 2), (pytest.approx(0.975), 1.0, 2)]


def test_macro_f1_counts_every_label_the_same():
    examples = [pair("supported"), pair("supported"), pair("contradicted"), pair("not_enough")]
    said = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]], dtype=float)
    found = three_way(examples, said)
    # Supported: precision 1, recall 1/2. Contradicted: 1/3 and 1. Not enough: never said.
    assert found["classes"]["supported"]["f1"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["classes"]["contradicted"]["f1"] == pytest.approx(1 / 2, abs=1e-4)
    assert found["classes"]["not_enough"]["f1"] == 0
    assert found["macro_f1"] == pytest.approx((2 / 3 + 1 / 2) / 3, abs=1e-4)


def test_answers_are_compared_with_those_of_their_length():
    examples = [pair("supported", "a"), pair("contradicted", "b"), pair("contradicted", "b b b")]
    said = np.array([[0.5, 0, 0], [0.4, 0, 0], [0.9, 0, 0]])
    # The long one is above, and is not compared with a short one.
    assert equal_length_auroc(examples, said) == 1.0


def test_shortcuts_measure_what_can_be_seen_without_reading():
    one = pair("supported", "Red is it", "It is red now")
    assert SHORTCUTS["word overlap"](one) == 1.0
    assert SHORTCUTS["statement length"](one) == 3
    assert SHORTCUTS["position"](pair("supported", "red", "it is red now")) == 2 / 4


def test_balancing_takes_the_shortcut_away():
    random = Random(3)
    said = [pair("supported", "a b", "a b", f"{n}") for n in range(400)]
    unsaid = [pair("not_enough", "a b", "c d" if n % 10 else "a b", f"{n}") for n in range(400)]
    before = shortcut_areas([*said, *unsaid])["word overlap"]
    kept = balanced([*said, *unsaid], random)
    after = shortcut_areas(kept)["word overlap"]
    assert before > 0.9
    assert abs(after - 0.5) < 0.3
    assert {one.label for one in kept} == {"supported", "not_enough"}


def test_the_scaling_makes_the_labels_most_probable():
    # Right three times of four at scores of 4: too sure by far.
    examples = [pair("supported")] * 3 + [pair("contradicted")]
    scored = [[(4.0, 0.0, -99.0)]] * 4
    scaling = best_scaling(examples, scored)
    assert settle(scored[0], scaling).supported == pytest.approx(3 / 4, abs=0.02)


def test_every_make_weighs_the_same():
    # Nine of a make that is right, one of another that is not.
    examples = [*[pair("supported")] * 9, pair("unsupported").model_copy(update={"make": "n"})]
    scored = [[(1.0, 0.0, 0.0)]] * 10
    scaling = best_scaling(examples, scored)
    assert settle(scored[0], scaling).supported == pytest.approx(1 / 2, abs=0.02)


def test_offsets_put_right_what_leans_to_one_side():
    # Always a little too sure of support, more so where it is told from contradiction.
    labels: list[Label] = ["supported", "not_enough", "contradicted"]
    examples = [pair(label, group=f"{n}") for n in range(30) for label in labels]
    scored = [[(2.0, 0.0, 0.0)], [(1.5, 0.0, 1.0)], [(1.5, 1.0, 0.0)]] * 30
    scaling = best_scaling(examples, scored)
    said = [settle(one, scaling).supported for one in scored[:3]]
    assert said[0] > 0.5 > max(said[1:])


def test_a_claim_without_evidence_settles_nothing_and_is_no_error():
    examples = [pair("not_enough"), pair("supported")]
    scaling = best_scaling(examples, [[], [(3.0, 0.0, 0.0), (1.0, 0.0, 0.0)]])
    assert settle([(3.0, 0.0, 0.0)], scaling).supported > 0.5


def test_a_curve_through_what_is_right_and_wrong():
    numbers = [0.0] * 4 + [1.0] * 4
    right = [True, False, False, False, True, True, True, False]
    offset, slope = fitted_curve(numbers, right)
    # One of four at 0, three of four at 1: log odds of -ln 3 and ln 3.
    assert offset == pytest.approx(-np.log(3), abs=1e-2)
    assert slope == pytest.approx(2 * np.log(3), abs=2e-2)


def test_pairs_of_a_text_are_kept_or_trained_on_together():
    kept = {held_out(pair("supported", f"s{n}", group="one")) for n in range(20)}
    assert len(kept) == 1
    share = sum(held_out(pair("supported", group=f"text {n}")) for n in range(2400)) / 2400
    assert share == pytest.approx(1 / 12, abs=0.02)
