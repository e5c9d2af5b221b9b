"""Spans against labelled ones, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.metrics import SpanCounts, count_spans, sum_counts
from pipelines.evaluation.metrics.answers import Ends, SpanMatch, overlap

SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8)).map(lambda one: (one[0], sum(one))), max_size=6
)


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ((0, 10), (0, 10), 1),
        # 5 of 15.
        ((0, 10), (5, 15), 1 / 3),
        ((0, 4), (0, 8), 1 / 2),
        ((0, 4), (4, 8), 0),
        ((3, 3), (3, 3), 1),
        ((3, 3), (4, 4), 0),
    ],
)
def test_overlap_is_intersection_over_union(one: Ends, other: Ends, share: float):
    assert overlap(one, other) == overlap(other, one) == pytest.approx(share)


def test_the_three_ways_to_count():
    predicted, labelled = [(0, 4), (10, 20)], [(0, 8), (10, 20), (30, 32)]
    assert count_spans(predicted, labelled, "exact") == (1, 2, 3)
    # (0, 4) covers half of (0, 8).
    assert count_spans(predicted, labelled, "iou") == (2, 2, 3)
    assert count_spans(predicted, labelled, "iou", 0.6) == (1, 2, 3)
    # 4 + 10 shared; 14 marked; 8 + 10 + 2 labelled.
    assert count_spans(predicted, labelled, "characters") == (14, 14, 20)


def test_each_span_is_matched_once():
    # Both overlap the same labelled span by half.
    assert count_spans([(0, 4), (4, 8)], [(0, 8)], "iou") == (1, 2, 1)
    # The first could take either; as many as possible are matched.
    assert count_spans([(0, 6), (0, 12)], [(0, 7), (0, 5)], "iou") == (2, 2, 2)
    assert count_spans([(0, 4), (0, 4)], [(0, 4)], "exact") == (1, 1, 1)


def test_f1_of_counts():
    counts = SpanCounts(found=2, predicted=4, labelled=3)
    # Precision 1/2, recall 2/3.
    assert (counts.precision, counts.recall) == (0.5, pytest.approx(2 / 3))
    assert counts.f1 == pytest.approx(4 / 7)
    nothing = SpanCounts(0, 0, 0)
    assert nothing.precision == nothing.recall == nothing.f1 == 1
    assert SpanCounts(0, 3, 0).f1 == SpanCounts(0, 0, 3).f1 == 0


def test_counts_are_summed_before_f1_is_taken():
    texts = [SpanCounts(1, 1, 1), SpanCounts(0, 1, 3)]
    # 1 of 2 predicted and 1 of 4 labelled, and not the mean of 1 and 0.
    assert sum_counts(texts) == (1, 2, 4)
    assert sum_counts(texts).f1 == pytest.approx(1 / 3)
    assert sum_counts([]) == (0, 0, 0)


@given(SPANS, SPANS)
def test_counts_are_in_bounds_and_symmetric(one: list[Ends], other: list[Ends]):
    exact, close, marked = (
        count_spans(one, other, match) for match in ("exact", "iou", "characters")
    )
    assert exact.found <= close.found <= min(close.predicted, close.labelled)
    ways: tuple[tuple[SpanCounts, SpanMatch], ...]
    ways = ((exact, "exact"), (close, "iou"), (marked, "characters"))
    for counts, match in ways:
        assert 0 <= counts.f1 <= 1
        assert count_spans(other, one, match) == (counts.found, counts.labelled, counts.predicted)
    assert count_spans(one, one, "iou").f1 == 1
