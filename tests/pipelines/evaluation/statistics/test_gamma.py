"""Gamma, held against the published example and values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.statistics.agreement import (
    MOST_PEOPLE,
    MarkedSpan,
    MarkedText,
    _bounded,
    _shifts,
    disorder,
    dissimilarity,
    gamma,
)
from pipelines.evaluation.statistics.estimates import Sampling

FEW = Sampling(resamples=100)
# Three people on one text, the example of Mathet and others (2015) that comes with the authors'
# program and with pygamma-agreement, whose tests say: 6 parts, disorder 0.96, gamma 0.44 to 0.47.
PUBLISHED = MarkedText(
    58,
    [
        [
            MarkedSpan(0, 7, "1"),
            MarkedSpan(9, 15, "2"),
            MarkedSpan(22, 28, "5"),
            MarkedSpan(30, 34, "6"),
            MarkedSpan(34, 42, "6"),
            MarkedSpan(42, 58, "7"),
        ],
        [
            MarkedSpan(0, 7, "1"),
            MarkedSpan(9, 15, "3"),
            MarkedSpan(17, 23, "5"),
            MarkedSpan(30, 42, "6"),
        ],
        [
            MarkedSpan(0, 7, "1"),
            MarkedSpan(9, 15, "4"),
            MarkedSpan(19, 25, "5"),
            MarkedSpan(30, 34, "6"),
            MarkedSpan(34, 38, "6"),
            MarkedSpan(38, 42, "6"),
        ],
    ],
)


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ((4, 14), (40, 44), 22.2),
        ((4, 14), (4, 14), 0.0),
        ((4, 14), (20, 25), 3.2),
        ((4, 14), (14, 24), 1.0),
        ((20, 30), (20, 25), 0.11),
        ((20, 25), (14, 24), 0.22),
    ],
)
def test_places_differ_as_in_the_figure_of_the_paper(
    one: tuple[int, int], other: tuple[int, int], published: float
):
    # Figure 10 has the difference of places alone, which weighs three times that of kinds.
    assert dissimilarity(MarkedSpan(*one), MarkedSpan(*other)) / 3 == pytest.approx(
        published, abs=0.05
    )
    assert dissimilarity(MarkedSpan(*one, "a"), MarkedSpan(*one, "b")) == 1


def test_gamma_is_that_of_the_published_example():
    spans = sum(map(len, PUBLISHED.people))
    assert disorder(PUBLISHED.people) / (spans / 3) == pytest.approx(0.96, abs=0.01)
    for seed in range(3):
        found = gamma([PUBLISHED], Sampling(seed=seed, resamples=100)).value
        assert found == pytest.approx(0.455, abs=0.02)


def test_the_best_alignment_by_hand():
    # The same span twice costs nothing; a span of one person alone costs 1.
    assert disorder([[MarkedSpan(0, 4)], [MarkedSpan(0, 4)]]) == 0
    assert disorder([[MarkedSpan(0, 4)], []]) == 1
    # Ends 1 and 1 apart of lengths 4 and 4: 3 * (2 / 8) ** 2 = 0.1875, and 1 for the kinds.
    assert disorder([[MarkedSpan(0, 4, "a")], [MarkedSpan(1, 5, "b")]]) == pytest.approx(1.1875)
    # Too far apart to be the same: 1 each, where together they would cost 3 * (20 / 8) ** 2.
    assert disorder([[MarkedSpan(0, 4)], [MarkedSpan(10, 14)]]) == 2
    # Of three people two agree: of three pairs of people two have a span on one side alone.
    assert disorder([[MarkedSpan(0, 4)], [MarkedSpan(0, 4)], []]) == pytest.approx(2 / 3)
    # Each span is in one part: the second of a person who marked it twice stays alone.
    assert disorder([[MarkedSpan(0, 4), MarkedSpan(0, 4, "b")], [MarkedSpan(0, 4)]]) == 1
    assert disorder([[], []]) == 0


def test_equal_spans_are_perfect_and_random_ones_are_chance():
    same = [
        MarkedText(80, [[MarkedSpan(n, n + 9)], [MarkedSpan(n, n + 9)]]) for n in range(0, 60, 3)
    ]
    assert gamma(same, FEW).value == 1
    random = np.random.default_rng(5)

    def anywhere() -> list[MarkedSpan]:
        return [MarkedSpan(int(at), int(at) + 8) for at in random.integers(0, 72, 2)]

    apart = gamma([MarkedText(80, [anywhere(), anywhere()]) for _ in range(150)], FEW)
    assert apart.value is not None
    assert apart.value == pytest.approx(0, abs=0.06)
    assert apart.low is not None
    assert apart.high is not None
    assert apart.low < apart.value < apart.high


def test_another_kind_of_error_is_a_smaller_difference_than_another_place():
    def of(other: MarkedSpan) -> float:
        texts = [MarkedText(100, [[MarkedSpan(n, n + 10, "a")], [other]]) for n in (20, 20, 20)]
        found = gamma(texts, FEW).value
        assert found is not None
        return found

    kinds, places = of(MarkedSpan(20, 30, "b")), of(MarkedSpan(60, 70, "a"))
    assert places < kinds < 1


def test_what_is_not_defined_is_explained():
    assert gamma([], FEW).why == "no_items"
    assert gamma([MarkedText(10, [[MarkedSpan(0, 2)]])], FEW).why == "no_items"
    nothing = gamma([MarkedText(10, [[], []])] * 3, FEW)
    assert (nothing.value, nothing.why, nothing.n) == (None, "all_equal", 3)
    alone = gamma([PUBLISHED], FEW)
    assert (alone.value is None, alone.low, alone.why) == (False, None, "few_resamples")


def test_texts_of_different_numbers_of_people_count_together():
    two = MarkedText(60, [[MarkedSpan(0, 8)], [MarkedSpan(1, 8)]])
    three = MarkedText(60, [[MarkedSpan(20, 30)], [MarkedSpan(20, 30)], []])
    found = gamma([two, three, two, three], FEW)
    assert found.n == 4
    assert found.value is not None
    assert 0 < found.value < 1
    # Where nobody marked anything there is room in which chance would have missed.
    roomy = gamma([two, three, two, three, MarkedText(400, [[], []])], FEW)
    assert roomy.value is not None
    assert roomy.value > found.value


def test_large_sessions_are_drawn_from():
    crowd = MarkedText(100, [[MarkedSpan(0, 9)]] * (MOST_PEOPLE + 6))
    assert gamma([crowd, crowd], FEW).value == 1
    long = [MarkedText(9_000, [[MarkedSpan(n, n + 3) for n in range(0, 900, 9)]] * 2)] * 20
    kept = _bounded(long, np.random.default_rng(0))
    assert sum(len(own) for text in kept for own in text.people) <= 1_500
    assert len(kept) == 7


def test_random_places_keep_apart():
    random = np.random.default_rng(1)
    for _ in range(50):
        found = sorted(_shifts(3, 40, 6.0, random))
        gaps = [b - a for a, b in zip(found, [*found[1:], found[0] + 40], strict=True)]
        assert min(gaps) > 6
    # Where there is no room, they are anywhere.
    assert len(_shifts(4, 3, 6.0, random)) == 4
