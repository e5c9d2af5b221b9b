"""Areas under draws of the items, against scikit-learn with the draws as weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from pipelines.evaluation.statistics.detection import RANKINGS, rankings_under

_INFINITE = float("inf")


def by_scikit_learn(scores: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> list[float]:
    """Every ranking of one draw, NaN where it holds one class only."""
    there = counts > 0
    if len(np.unique(labels[there])) < 2:
        return [float("nan")] * len(RANKINGS)
    # Infinity, which scikit-learn refuses, is only the largest of all.
    known = np.unique(scores, return_inverse=True)[1]
    return [
        float(roc_auc_score(labels, known, sample_weight=counts)),
        float(average_precision_score(labels, known, sample_weight=counts)),
        float(average_precision_score(1 - labels, -known, sample_weight=counts)),
    ]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), min_size=2, max_size=30).filter(
        lambda rows: len({label for label, _ in rows}) == 2
    ),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_every_draw_has_the_areas_of_scikit_learn(
    rows: list[tuple[int, int]], tied: bool, seed: int
) -> None:
    labels, scores = np.array(rows, dtype=float).T
    if not tied:
        # The same order, without equal scores.
        scores = scores + np.arange(len(rows)) / 100
    source = np.random.default_rng(seed)
    counts = source.integers(0, 4, (5, len(rows))).astype(np.uint8)
    found = rankings_under(scores, labels)(counts)
    assert found.shape == (5, len(RANKINGS))
    for draw, areas in zip(counts, found, strict=True):
        expected = by_scikit_learn(scores, labels, draw.astype(float))
        assert areas.tolist() == pytest.approx(expected, nan_ok=True, rel=1e-12)


def test_by_hand_with_and_without_equal_scores() -> None:
    labels = np.array([1, 0, 1, 0.0])
    twice = np.array([[1, 1, 1, 1], [2, 1, 0, 1]], dtype=np.uint8)
    # In order: right, wrong, right, wrong. Pairs in order: 3 of 4; then both of the first before
    # both others: 4 of 4.
    apart = rankings_under(np.array([4, 3, 2, 1.0]), labels)(twice)
    assert apart[:, 0].tolist() == [0.75, 1]
    # Precision is 1 at the first and 2/3 at the third.
    assert apart[0, 1] == pytest.approx((1 + 2 / 3) / 2)
    # From the end: 1 at the last, 2/3 at the second.
    assert apart[0, 2] == pytest.approx((1 + 2 / 3) / 2)
    # The two in the middle are equal: half a pair more.
    tied = rankings_under(np.array([4, 3, 3, 1.0]), labels)(twice)
    assert tied[:, 0].tolist() == [0.875, 1]
    assert tied[0, 1] == pytest.approx((1 + 2 / 3) / 2)


def test_zeros_are_equal_whatever_their_sign_and_infinity_is_the_largest() -> None:
    labels, once = np.array([1, 0, 1.0]), np.ones((1, 3), dtype=np.uint8)
    assert rankings_under(np.array([0.0, -0.0, _INFINITE]), labels)(once)[0, 0] == 0.75
    assert rankings_under(np.array([_INFINITE, _INFINITE, 1]), labels)(once)[0, 0] == 0.25


def test_a_draw_of_one_class_has_no_area() -> None:
    counts = np.array([[1, 0], [0, 3], [0, 0], [1, 1]], dtype=np.uint8)
    found = rankings_under(np.array([2.0, 1.0]), np.array([1.0, 0.0]))(counts)
    assert np.isnan(found[:3]).all()
    assert found[3].tolist() == [1, 1, 1]


def test_many_copies_of_an_item_do_not_overflow() -> None:
    counts = np.full((1, 2), 255, dtype=np.uint8)
    found = rankings_under(np.array([1.0, 1.0]), np.array([1.0, 0.0]))(counts)
    assert found[0].tolist() == [0.5, 0.5, 0.5]
