"""Paired tests against published examples and reference libraries; Holm and bands by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, permutation_test
from statsmodels.stats.contingency_tables import mcnemar

from pipelines.evaluation.statistics.estimates import (
    Estimate,
    PairedDifference,
    Sampling,
    adjusted,
    bands,
    mcnemar_midp,
    mean_estimates,
    paired_differences,
    permutation_p,
)

SAMPLING = Sampling(resamples=400, permutations=4999, seed=1)
NAN = float("nan")


@pytest.mark.parametrize(
    ("b", "c", "p"),
    # Fagerland, Lydersen and Laake 2013: airway hyper-responsiveness before and after stem cell
    # transplantation, and complete responses of patients.
    [(1, 7, 0.039), (6, 16, 0.035)],
)
def test_midp_is_as_published(b: int, c: int, p: float) -> None:
    assert mcnemar_midp(b, c) == pytest.approx(p, abs=5e-4)
    assert mcnemar_midp(c, b) == mcnemar_midp(b, c)


def test_midp_by_hand() -> None:
    # b = 1, c = 3: P(X <= 1) = (1 + 4) / 16, twice that less P(X = 1) = 4 / 16.
    assert mcnemar_midp(1, 3) == pytest.approx(10 / 16 - 4 / 16)
    # Equal counts: 1 less half of P(X = 2) = 6 / 16.
    assert mcnemar_midp(2, 2) == pytest.approx(1 - 3 / 16)
    assert mcnemar_midp(0, 0) == 1
    with pytest.raises(ValueError, match="0 or more"):
        mcnemar_midp(-1, 2)


@settings(max_examples=40)
@given(st.integers(0, 60), st.integers(0, 60))
def test_midp_is_the_exact_p_less_half_of_what_was_observed(b: int, c: int) -> None:
    if b == c:
        return
    exact = vars(mcnemar([[0, b], [c, 0]], exact=True))["pvalue"]
    # Both tails hold the observed probability once; half of each is taken away.
    expected = exact - float(binom.pmf(min(b, c), b + c, 0.5))
    assert mcnemar_midp(b, c) == pytest.approx(expected)
    assert 0 < mcnemar_midp(b, c) <= 1


def test_all_signs_are_tried_with_few_groups() -> None:
    # Differences 1, 2, 3: only +++ and --- reach a sum of 6, of 8.
    assert permutation_p(np.array([[1.0], [2.0], [3.0]]), SAMPLING) == pytest.approx([2 / 8])
    # 1, 1, -1: every assignment reaches 1.
    assert permutation_p(np.array([[1.0], [1.0], [-1.0]]), SAMPLING) == pytest.approx([1])


def test_exact_permutation_is_that_of_scipy() -> None:
    first, second = np.random.default_rng(4).random((2, 11))

    def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return (a - b).mean(axis=axis)

    theirs = permutation_test(
        (first, second), difference, permutation_type="samples", n_resamples=2**11
    )
    ours = permutation_p((first - second)[:, None], SAMPLING)
    assert ours == pytest.approx([theirs.pvalue])


def test_random_permutation_is_near_that_of_scipy() -> None:
    first, second = np.random.default_rng(4).random((2, 60))
    second = second * 0.75

    def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return (a - b).mean(axis=axis)

    theirs = permutation_test(
        (first, second), difference, permutation_type="samples", rng=np.random.default_rng(0)
    )
    (ours,) = permutation_p((first - second)[:, None], SAMPLING)
    # The standard error of either is below sqrt(p (1 - p) / 4999) = 0.004.
    assert ours == pytest.approx(theirs.pvalue, abs=0.016)


def test_a_random_permutation_is_never_zero() -> None:
    (p,) = permutation_p(np.ones((40, 1)), SAMPLING)
    assert p == pytest.approx(1 / 5000)


def test_a_binary_pair_by_hand() -> None:
    first = [1, 1, 1, 1, 0, 1, 0, NAN]
    second = [0, 0, 0, 1, 1, 1, 0, 1]
    (found,) = paired_differences(np.array([first, second]), ["a", "b"], [""] * 8, SAMPLING)
    assert (found.first, found.second, found.test) == ("a", "b", "mcnemar")
    assert (found.only_first, found.only_second, found.left_out) == (3, 1, 1)
    assert found.difference.value == pytest.approx(2 / 7)
    assert found.p == found.adjusted == mcnemar_midp(3, 1)
    assert found.difference.n == 7


def test_items_of_groups_are_tested_by_groups() -> None:
    first, second = np.ones(12), np.zeros(12)
    groups = [f"g{place // 4}" for place in range(12)]
    (found,) = paired_differences(np.stack([first, second]), ["a", "b"], groups, SAMPLING)
    # Three groups with all differences on one side: 2 of 8 signs, whatever the number of items.
    assert (found.test, found.p) == ("permutation", pytest.approx(0.25))
    assert (found.only_first, found.only_second) == (12, 0)
    (independent,) = paired_differences(np.stack([first, second]), ["a", "b"], [""] * 12, SAMPLING)
    assert independent.p == pytest.approx(0.5**12)


def test_shares_are_tested_by_permutation() -> None:
    values = np.array([[0.5, 0.7, 0.9], [0.4, 0.5, 0.6]])
    (found,) = paired_differences(values, ["a", "b"], [""] * 3, SAMPLING)
    assert (found.test, found.p) == ("permutation", pytest.approx(0.25))
    assert found.only_first is None


def test_systems_without_a_shared_item_are_not_tested() -> None:
    values = np.array([[1, NAN], [NAN, 1.0]])
    (found,) = paired_differences(values, ["a", "b"], ["", ""], SAMPLING)
    assert (found.p, found.adjusted, found.test) == (None, None, "none")
    assert (found.difference.reason, found.left_out) == ("no_items", 2)


def test_equal_systems_differ_by_nothing() -> None:
    values = np.array([[0.2, 0.6, 0.9], [0.2, 0.6, 0.9]])
    (found,) = paired_differences(values, ["a", "b"], [""] * 3, SAMPLING)
    assert (found.difference.value, found.difference.reason, found.p) == (0, "all_equal", 1)


def test_pairing_narrows_the_interval() -> None:
    source = np.random.default_rng(0)
    difficulty = source.random(100)
    values = np.stack([difficulty + 0.05, difficulty + source.normal(0, 0.02, 100)])
    (found,) = paired_differences(values, ["a", "b"], [""] * 100, SAMPLING)
    one, _ = mean_estimates(values, [""] * 100, SAMPLING)
    assert found.difference.low is not None
    assert found.difference.high is not None
    assert one.low is not None
    assert one.high is not None
    assert found.difference.high - found.difference.low < 0.2 * (one.high - one.low)
    assert found.difference.low > 0


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 0.5]), st.sampled_from([0.0, 1.0, 0.5])),
             min_size=1, max_size=30)
)  # fmt: skip
def test_the_order_of_two_systems_only_turns_the_sign(rows: list[tuple[float, float]]) -> None:
    values = np.array(rows).T
    few = Sampling(resamples=100, permutations=99)
    both = paired_differences(values, ["a", "b"], [""] * len(rows), few, pairs=[(0, 1), (1, 0)])
    assert both[0].difference.value == pytest.approx(-(both[1].difference.value or 0))
    assert both[0].p == pytest.approx(both[1].p)
    assert both[0].p is not None
    assert 0 < both[0].p <= 1


def pair(first: str, second: str, p: float | None) -> PairedDifference:
    estimate = Estimate(value=0.1)
    return PairedDifference(first=first, second=second, difference=estimate, p=p, adjusted=p)


def test_holm_by_hand() -> None:
    found = adjusted([pair("a", "b", 0.01), pair("a", "c", 0.04), pair("b", "c", 0.03)])
    # Sorted .01 .03 .04: times 3, 2 and 1, never below the one before: .03 .06 .06.
    assert [one.adjusted for one in found] == pytest.approx([0.03, 0.06, 0.06])


def test_holm_counts_what_was_tested() -> None:
    found = adjusted([pair("a", "b", 0.01), pair("a", "c", None), pair("b", "c", 0.03)])
    assert [one.adjusted for one in found] == [pytest.approx(0.02), None, pytest.approx(0.03)]
    assert adjusted([pair("a", "b", None)])[0].adjusted is None


def test_bands_overlap_where_only_the_ends_differ() -> None:
    compared = [pair("a", "b", 0.3), pair("b", "c", 0.2), pair("a", "c", 0.01)]
    assert bands(["a", "b", "c"], compared) == [("a", "b"), ("b", "c")]


def test_bands_need_not_be_neighbours() -> None:
    # With missing items the outer two can be alike while the middle one differs from both.
    compared = [pair("a", "b", 0.01), pair("b", "c", 0.01), pair("a", "c", 0.5)]
    assert bands(["a", "b", "c"], compared) == [("a", "c"), ("b",)]


def test_what_was_not_tested_cannot_be_told_apart() -> None:
    assert bands(["a", "b"], [pair("a", "b", None)]) == [("a", "b")]
    assert bands(["a"], []) == [("a",)]
    assert bands([], []) == []


@settings(max_examples=40)
@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_bands_are_all_largest_groups_of_alike_systems(apart: set[tuple[int, int]]) -> None:
    names = [str(number) for number in range(7)]
    edges = {frozenset(map(str, two)) for two in apart if two[0] != two[1]}
    found = bands(names, [pair(min(edge), max(edge), 0.001) for edge in edges])
    assert len(set(found)) == len(found)
    assert {name for band in found for name in band} == set(names)

    def alike(members: tuple[str, ...]) -> bool:
        return not any(edge <= set(members) for edge in edges)

    for band in found:
        assert alike(band)
        assert not any(alike((*band, name)) for name in names if name not in band)
    # Every pair that is alike stands together in some band.
    together = {frozenset((a, b)) for band in found for a in band for b in band}
    for a in names:
        for b in names:
            assert frozenset((a, b)) in edges or frozenset((a, b)) in together


def test_no_pairs() -> None:
    assert paired_differences(np.ones((1, 3)), ["a"], [""] * 3, SAMPLING) == []
