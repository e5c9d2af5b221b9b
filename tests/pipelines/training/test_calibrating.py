"""The scaling of scores, against odds worked out by hand."""

from __future__ import annotations

from math import log

import pytest

from pipelines.models.judges.reader import Scaling, settle
from pipelines.training.calibrating import best_scaling, fitted_curve
from pipelines.training.examples import Example


def pair(label: str, make: str = "one") -> Example:
    return Example.model_validate(
        {"evidence": "e", "statement": "s", "label": label, "make": make, "group": "g"}
    )


def test_scores_that_say_too_much_are_divided():
    # Three of four are supported where the scores say 81 to 1: log 81 / 4 = log 3.
    examples = [pair("supported")] * 3 + [pair("unsupported")]
    scores = [[(log(81), 0.0, -1e9)]] * 4 + [[(-log(81), 0.0, -1e9)]] * 4
    found = best_scaling([*examples, *[pair("unsupported")] * 3, pair("supported")], scores)
    assert settle(scores[0], found).supported == pytest.approx(0.75, abs=0.02)
    assert settle(scores[4], found).supported == pytest.approx(0.25, abs=0.02)


def test_what_is_not_supported_leans_as_often_as_it_is_contradicted():
    # Alike in score; one of four is contradicted: the lean is log(1/3).
    examples = [pair("contradicted"), *[pair("not_enough")] * 3, *[pair("supported")] * 4]
    scores = [[(-2.0, 1.0, 1.0)]] * 4 + [[(2.0, 1.0, 1.0)]] * 4
    found = best_scaling(examples, scores)
    assert found.lean == pytest.approx(log(1 / 3), abs=0.05)
    _, contradicted, silent = settle(scores[0], found)
    assert contradicted / (contradicted + silent) == pytest.approx(0.25, abs=0.02)


def test_where_nobody_knows_what_contradicts_nothing_leans():
    examples = [pair("supported"), pair("unsupported")]
    assert best_scaling(examples, [[(1.0, 0.0, 0.0)], [(0.0, 1.0, 0.0)]]).lean == 0


def test_every_make_weighs_the_same():
    # Nine of one make are supported, the only one of the other is not; the scores know nothing.
    examples = [*[pair("supported")] * 9, pair("unsupported", "other")]
    found = best_scaling(examples, [[(0.0, 0.0, 0.0)]] * 10)
    assert settle([(0.0, 0.0, 0.0)], found).supported == pytest.approx(0.5, abs=0.02)


def test_a_missing_window_settles_nothing():
    examples = [pair("supported"), pair("unsupported")]
    found = best_scaling(examples, [[(3.0, 0.0, 0.0), (1.0, 0.0, 0.0)], []])
    assert isinstance(found, Scaling)


def test_the_curve_of_numbers_that_mean_what_they_say():
    numbers = [0.0] * 4 + [1.0] * 4
    offset, slope = fitted_curve(numbers, [True, False, False, False, True, True, True, False])
    # 1 of 4 at 0, 3 of 4 at 1: odds 1/3 and 3.
    assert offset == pytest.approx(-log(3), abs=0.01)
    assert slope == pytest.approx(2 * log(3), abs=0.01)
