"""Means, proportions and corrections: values by hand, groups that are not independent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.evaluation.statistics.estimates import (
    CorrectionRates,
    Estimator,
    Floats,
    Sampling,
    corrections,
    mean_estimates,
    wilson,
)

SAMPLING = Sampling(resamples=400, seed=1)
NAN = float("nan")


def alone(n: int) -> list[str]:
    return [""] * n


def test_a_proportion_of_independent_items_has_the_wilson_interval() -> None:
    (found,) = mean_estimates(np.array([[1, 0, 1, 1, NAN]]), alone(5), SAMPLING)
    assert (found.value, found.n, found.groups, found.method) == (0.75, 4, 4, "wilson")
    assert (found.low, found.high) == wilson(3, 4, 0.95)


def test_a_proportion_that_is_all_right_still_has_an_interval() -> None:
    (found,) = mean_estimates(np.ones((1, 20)), alone(20), SAMPLING)
    # The mirror of 0 of 20, whose upper end is 0.1611 (Newcombe 1998).
    assert (found.value, found.high) == (1.0, pytest.approx(1.0))
    assert found.low == pytest.approx(1 - 0.1611, abs=5e-5)


def test_shares_and_grouped_items_have_the_bootstrap_interval() -> None:
    values = np.array([[0.2, 0.9, 0.4, 0.1, 0.8, 0.3], [1, 1, 0, 0, 1, 0]])
    shares, grouped = mean_estimates(values, ["a", "a", "b", "b", "c", "c"], SAMPLING)
    assert shares.value == pytest.approx(2.7 / 6)
    assert grouped.value == 0.5
    assert (grouped.n, grouped.groups, grouped.method) == (6, 3, "bca")
    assert shares.low is not None
    assert shares.high is not None
    assert shares.low < 0.45 < shares.high


def test_copies_of_an_item_in_its_group_tell_nothing_new() -> None:
    values = np.random.default_rng(0).random(30)
    groups = [f"g{place}" for place in range(30)]
    (once,) = mean_estimates(values[None, :], groups, SAMPLING)
    (often,) = mean_estimates(
        np.repeat(values, 4)[None, :], np.repeat(groups, 4).tolist(), SAMPLING
    )
    (fooled,) = mean_estimates(np.repeat(values, 4)[None, :], alone(120), SAMPLING)
    assert (often.low, often.high) == pytest.approx((once.low, once.high))
    assert (once.low or 0) < (fooled.low or 0) < (fooled.high or 0) < (once.high or 0)
    assert (often.n, often.groups) == (120, 30)


@pytest.mark.parametrize(
    ("values", "groups", "value", "reason"),
    [
        ([NAN, NAN, NAN], ["", "", ""], None, "no_items"),
        ([0.3, NAN, NAN], ["", "", ""], 0.3, "too_few_groups"),
        ([0.3, 0.5, 0.1], ["a", "a", "a"], pytest.approx(0.3), "too_few_groups"),
        ([0.5, 0.5, 0.5], ["", "", ""], 0.5, "all_equal"),
    ],
)
def test_what_is_not_defined_says_why(
    values: list[float], groups: list[str], value: float | None, reason: str
) -> None:
    (found,) = mean_estimates(np.array([values]), groups, SAMPLING)
    assert (found.value, found.low, found.high) == (value, None, None)
    assert (found.reason, found.method) == (reason, "none")


def test_no_columns_and_no_items() -> None:
    assert mean_estimates(np.empty((0, 3)), alone(3), SAMPLING) == []
    (found,) = mean_estimates(np.empty((1, 0)), [], SAMPLING)
    assert (found.value, found.n, found.reason) == (None, 0, "no_items")


def test_columns_do_not_change_each_other() -> None:
    values = np.random.default_rng(3).random((5, 25))
    values[2, :10] = NAN
    together = mean_estimates(values, alone(25), SAMPLING)
    apart = [mean_estimates(values[[k]], alone(25), SAMPLING)[0] for k in range(5)]
    for one, other in zip(together, apart, strict=True):
        assert one.model_dump() == pytest.approx(other.model_dump())


@settings(max_examples=40)
@given(
    # What is apart is so by more than rounding, which moves the values too.
    st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=2, max_size=25),
    st.floats(-5, 5),
)
def test_an_interval_holds_its_value_and_moves_with_it(values: list[float], by: float) -> None:
    data = np.array([values, [value + by for value in values]])
    first, moved = mean_estimates(data, alone(len(values)), Sampling(resamples=200))
    if first.method == "bca" and moved.method == "bca" and np.ptp(values) > 1e-3:
        assert first.low is not None
        assert first.high is not None
        assert min(values) - 1e-9 <= first.low <= first.high <= max(values) + 1e-9
        assert moved.low == pytest.approx(first.low + by, abs=1e-6)


def correction(original: Floats, final: Floats) -> CorrectionRates:
    """What became of answers that are each alone."""
    return corrections(Estimator(alone(original.shape[1]), SAMPLING), original, final)()


def test_corrected_and_spoiled_by_hand() -> None:
    #                    wrong            right
    original = np.array([[0, 0, 0, 0, 1, 1, 1, 1, 1, NAN]])
    final = np.array([[1, 1, 0, 0, 1, 1, 1, 1, 0, 1]])
    found = correction(original, final)
    # 2 of 4 wrong ones became right, 1 of 5 right ones wrong; (2 - 1) / 9 more are right.
    assert (found.corrected.value, found.corrected.n) == (0.5, 4)
    assert (found.spoiled.value, found.spoiled.n) == (0.2, 5)
    assert found.change.value == pytest.approx(1 / 9)
    assert (found.change.n, found.change.method) == (9, "bca")
    assert (found.corrected.low, found.corrected.high) == wilson(2, 4, 0.95)


def test_repeats_are_pooled_within_their_item() -> None:
    # One item, wrong in both repeats and corrected in one; one right in both and kept; one whose
    # original was wrong once: it counts half among the wrong, and was corrected there.
    original = np.array([[0, 1, 0], [0, 1, 1.0]])
    final = np.array([[1, 1, 1], [0, 1, 1.0]])
    found = correction(original, final)
    assert found.corrected.value == pytest.approx((0.5 + 0.5) / 1.5)
    assert found.spoiled.value == 0
    assert found.change.value == pytest.approx((0.5 + 0 + 0.5) / 3)


def test_without_wrong_originals_nothing_could_be_corrected() -> None:
    found = correction(np.ones((1, 4)), np.array([[1, 1, 0, 1.0]]))
    assert (found.corrected.value, found.corrected.reason) == (None, "no_items")
    assert found.spoiled.value == 0.25
    assert found.change.value == -0.25


def test_a_change_is_never_taken_for_a_proportion() -> None:
    # All changes are 0 or 1, but the change lies in [-1, 1].
    found = correction(np.zeros((1, 6)), np.array([[1, 0, 1, 0, 0, 0.0]]))
    assert found.change.method == "bca"
