"""The bootstrap over groups, against scipy and against what has to hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipelines.evaluation.statistics.estimates import (
    Sampling,
    draws,
    group_numbers,
    group_sums,
    interval,
    ratio_draws,
    wilson,
)

SKEWED = np.random.default_rng(5).exponential(size=40)


def left_out(values: np.ndarray) -> np.ndarray:
    """The mean without each value in turn."""
    return (values.sum() - values) / (len(values) - 1)


def test_items_without_a_group_are_their_own() -> None:
    assert group_numbers(["", "a", "", "a", "b"]).tolist() == [0, 1, 2, 1, 3]


def test_sums_are_over_the_items_of_a_group() -> None:
    values = np.array([[1.0, 2.0, 4.0], [0.0, 10.0, 0.5]])
    assert group_sums(values, group_numbers(["a", "b", "a"]), 2).tolist() == [[5, 0.5], [2, 10]]
    # Without shared groups the sums are the values themselves.
    assert group_sums(values, group_numbers(["", "", ""]), 3).tolist() == values.T.tolist()


def test_every_draw_takes_as_many_groups_as_there_are() -> None:
    weights = np.concatenate(list(draws(7, 601, seed=1)))
    assert weights.shape == (601, 7)
    assert set(weights.sum(axis=1)) == {7.0}
    # Each group is drawn once on average; the standard error of the mean is 0.93 / sqrt(601).
    assert weights.mean(axis=0) == pytest.approx(np.ones(7), abs=0.15)


def test_draws_follow_the_seed() -> None:
    def first(seed: int) -> list[float]:
        return next(draws(50, 100, seed))[0].tolist()

    assert first(3) == first(3)
    assert first(3) != first(4)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_bca_interval_is_that_of_scipy(level: float) -> None:
    theirs = stats.bootstrap(
        (SKEWED,), np.mean, confidence_level=level, method="BCa", rng=np.random.default_rng(2)
    )
    ours = interval(SKEWED.mean(), theirs.bootstrap_distribution, left_out(SKEWED), level)
    assert ours[:2] == pytest.approx(theirs.confidence_interval)
    assert ours[2] == "bca"


def test_the_percentile_interval_is_that_of_scipy() -> None:
    theirs = stats.bootstrap((SKEWED,), np.mean, method="percentile", rng=np.random.default_rng(2))
    ours = interval(SKEWED.mean(), theirs.bootstrap_distribution, None, 0.95)
    assert ours[:2] == pytest.approx(theirs.confidence_interval)
    assert ours[2] == "percentile"


def test_without_acceleration_it_falls_back_and_says_so() -> None:
    # All values without one group are equal: 0 / 0.
    found = interval(0.5, np.linspace(0, 1, 101), np.full(10, 0.5), 0.9)
    assert found == (pytest.approx(0.05), pytest.approx(0.95), "percentile")
    # Every draw lies above the value: the bias is infinite.
    assert interval(-1.0, np.linspace(0, 1, 101), left_out(SKEWED), 0.9)[2] == "percentile"


def test_draws_without_a_value_do_not_count() -> None:
    distribution = np.append(np.linspace(0, 1, 101), np.full(50, np.nan))
    assert interval(0.5, distribution, None, 0.9)[:2] == pytest.approx((0.05, 0.95))


def test_means_under_draws_are_ratios_of_sums() -> None:
    sampling = Sampling(resamples=300, seed=9)
    sums, counts = np.array([[3.0], [1.0], [8.0]]), np.array([[2.0], [1.0], [4.0]])
    found = ratio_draws(sums, counts, sampling)[:, 0]
    weights = np.concatenate(list(draws(3, 300, 9)))
    # By hand: the first draw weighs each group's sum and count alike.
    first = weights[0]
    expected = (3 * first[0] + first[1] + 8 * first[2]) / (2 * first[0] + first[1] + 4 * first[2])
    assert found[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611),
     (1, 29, 0.0061, 0.1718)],
)  # fmt: skip
def test_wilson_intervals_are_the_published_ones(
    hits: int, n: int, low: float, high: float
) -> None:
    assert wilson(hits, n, 0.95) == pytest.approx((low, high), abs=5e-5)


def test_what_was_computed_says_with_what() -> None:
    assert set(Sampling().versions) == {"numpy", "scipy", "statsmodels"}
