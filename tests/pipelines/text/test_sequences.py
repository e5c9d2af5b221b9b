"""Distances and common parts of sequences, against the table that they abbreviate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.sentences import common_length, edit_distance

TEXTS = st.text(alphabet="abc 霍", max_size=12)


def tables(first: str, second: str) -> tuple[int, int]:
    """Distance and length of the longest common subsequence, cell by cell."""
    distance = [list(range(len(second) + 1))]
    common = [[0] * (len(second) + 1)]
    for i, one in enumerate(first, start=1):
        distance.append([i])
        common.append([0])
        for j, other in enumerate(second, start=1):
            distance[i].append(
                min(
                    distance[i - 1][j - 1] + (one != other),
                    distance[i - 1][j] + 1,
                    distance[i][j - 1] + 1,
                )
            )
            longest = max(common[i - 1][j], common[i][j - 1])
            common[i].append(common[i - 1][j - 1] + 1 if one == other else longest)
    return distance[-1][-1], common[-1][-1]


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("霍普", "纽约", 2), ("ab", "ba", 2)],
)
def test_the_distance_counts_single_characters(first: str, second: str, distance: int):
    # kitten, sitten, sittin, sitting: two replaced, one inserted.
    assert edit_distance(first, second) == edit_distance(second, first) == distance


TEXTS = st.text(alphabet="abc 霍", max_size=12)


@given(TEXTS, TEXTS, TEXTS)
def test_the_distance_is_a_metric(one: str, two: str, three: str):
    assert (edit_distance(one, two) == 0) is (one == two)
    assert edit_distance(one, three) <= edit_distance(one, two) + edit_distance(two, three)
    assert abs(len(one) - len(two)) <= edit_distance(one, two) <= max(len(one), len(two))


@given(TEXTS, TEXTS)
def test_both_are_those_of_the_table(one: str, two: str):
    assert (edit_distance(one, two), common_length(one, two)) == tables(one, two)


def test_words_are_items_as_well():
    assert edit_distance(["he", "won"], ["she", "won", "it"]) == 2
    assert common_length(["he", "won", "in"], ["he", "in", "won"]) == 2


def test_long_texts_are_compared():
    one, two = "ab" * 4000, "ba" * 4000
    # The first character is left out, and stands at the end instead.
    assert (edit_distance(one, two), common_length(one, two)) == (2, 7999)
