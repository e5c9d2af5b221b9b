"""Agreement coefficients, held against published worked examples and values by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa
from truescore import krippendorff_alpha

from pipelines.evaluation.statistics.agreement import (
    WORDS,
    _fleisses,
    agreement,
    alpha,
    character_alpha,
    character_ratings,
    equally_rated,
    fleiss,
    label_alphas,
    pair_agreement,
    raw_agreement,
    share,
)
from pipelines.evaluation.statistics.estimates import Sampling, draws

FEW = Sampling(resamples=100)
X = np.nan
# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers,
# twelve units, missing values.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
        [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
    ]
)
# A table of 14 raters on ten subjects in five categories, often given as the example of Fleiss'
# kappa: 0.210.
FOURTEEN = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_is_that_of_krippendorffs_example(level, published: float):
    assert alpha(KRIPPENDORFF, level) == pytest.approx(published, abs=5e-4)
    found = agreement(KRIPPENDORFF, level, FEW)
    assert found.alpha.value == alpha(KRIPPENDORFF, level)
    assert found.alpha.low is not None
    assert found.alpha.high is not None
    assert found.alpha.low < published < found.alpha.high
    # The twelfth unit has one value, which nothing can be compared with.
    assert (found.people, found.items, found.shared) == (4, 12, 11)


def test_fleiss_is_that_of_the_published_table():
    ratings = np.array([np.repeat(np.arange(5), row) for row in FOURTEEN]).T.astype(float)
    assert fleiss(ratings) == pytest.approx(0.210, abs=5e-4)
    assert fleiss(ratings) == pytest.approx(fleiss_kappa(FOURTEEN))


def test_fleiss_takes_different_people_for_each_item():
    # Every item of the table has its 14 ratings from other people: as many people as ratings.
    people, items = FOURTEEN.sum(), len(FOURTEEN)
    ratings = np.full((people, items), X)
    for item, row in enumerate(FOURTEEN):
        ratings[14 * item : 14 * (item + 1), item] = np.repeat(np.arange(5), row)
    found = agreement(ratings, "nominal", FEW).fleiss
    assert (found.value, found.n) == (pytest.approx(0.210, abs=5e-4), 10)
    assert found.low is not None
    # An item with another number of ratings does not count.
    ratings = np.column_stack([ratings, np.where(np.arange(people) < 3, 1.0, X)])
    again = agreement(ratings, "nominal", FEW).fleiss
    assert (again.value, again.n) == (pytest.approx(found.value), 10)


def test_items_have_as_many_ratings_as_most_of_them_have():
    ratings = np.array([[1, X, 0, 2, X], [1, 0, X, 2, X], [X, 1, 0, 2, 1]])
    assert equally_rated(ratings).tolist() == [[1, 0, 0], [1, 1, 0]]
    # Of equally frequent numbers it is the largest.
    assert equally_rated(ratings[:, 2:]).tolist() == [[2], [2], [2]]
    assert equally_rated(ratings[:, 4:]).shape == (3, 0)
    assert equally_rated(np.full((0, 0), X)).size == 0


def test_cohen_is_that_of_a_table_by_hand():
    # Two people on 50 items: yes/yes 20, yes/no 5, no/yes 10, no/no 15. They agree on 35/50 = 0.7;
    # by chance on 0.5 * 0.6 + 0.5 * 0.4 = 0.5. Kappa = (0.7 - 0.5) / (1 - 0.5) = 0.4.
    first = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
    second = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    ratings = np.array([first, second], dtype=float)
    found = agreement(ratings, "nominal", FEW)
    assert found.cohen is not None
    assert found.cohen.value == pytest.approx(0.4)
    assert found.raw == 0.7
    pair = pair_agreement(ratings, 0, 1, 2, FEW)
    assert pair.confusion == ((15, 10), (5, 20))
    assert (pair.n, pair.raw, pair.cohen.value) == (50, 0.7, found.cohen.value)


def test_cohens_own_example():
    # Cohen (1960), table 1, as shares: 0.25 0.13 0.12 / 0.12 0.02 0.16 / 0.03 0.15 0.02 of 200
    # (rows A, columns B): agreement 0.29; chance 0.50 * 0.40 + 0.30 * 0.30 + 0.20 * 0.30 = 0.35.
    # Kappa = (0.29 - 0.35) / (1 - 0.35) = -0.092.
    counts = [50, 26, 24, 24, 4, 32, 6, 30, 4]
    first = np.repeat([0, 0, 0, 1, 1, 1, 2, 2, 2], counts)
    second = np.repeat([0, 1, 2] * 3, counts)
    found = agreement(np.array([first, second], dtype=float), "nominal", FEW)
    assert found.cohen is not None
    assert found.cohen.value == pytest.approx((0.29 - 0.35) / 0.65)


def test_what_is_not_defined_is_explained():
    equal = agreement(np.ones((3, 5)), "nominal", FEW)
    assert (equal.raw, equal.alpha.value, equal.alpha.why) == (1.0, None, "all_equal")
    assert (equal.fleiss.why, equal.cohen) == ("all_equal", None)
    apart = agreement(np.array([[1.0, X], [X, 1.0]]), "nominal", FEW)
    assert (apart.raw, apart.shared, apart.alpha.why) == (None, 0, "no_items")
    alone = agreement(np.array([[1.0, 0.0], [X, X]]), "nominal", FEW)
    assert alone.alpha.why == "one_person"
    rare = agreement(np.array([[1.0, 0, 0, 0], [1, 0, 0, 1]]), "nominal", FEW)
    assert rare.alpha.value is not None
    assert all(WORDS[one.alpha.why] for one in (equal, apart, alone))


def test_alpha_of_each_label():
    ratings = np.array([[0, 1, 2, 2, 1, 0], [0, 1, 2, 1, 2, 0]], dtype=float)
    first, second, third = label_alphas(ratings, 3, FEW)
    # The two people never differ about the first label, and only about the other two.
    assert first.value == pytest.approx(1)
    assert second.value == third.value
    # By hand for the second: 12 ratings, 4 of them the label; each disagreement counts 2 in the
    # coincidences o, of which there are 2 * 2 / 2 = 2 off the diagonal on either side:
    # 1 - 11 * 2 / (4 * 8) = 0.3125.
    assert second.value == pytest.approx(0.3125)


def test_alpha_over_characters_by_hand():
    # One text of ten characters; one person marks [2, 6), the other [4, 8). Coincidences: both
    # marked 2 characters, neither 4, one of them 4. o01 = 4, n1 = 8, n0 = 12, n = 20:
    # 1 - 19 * 4 / (12 * 8) = 0.208333.
    texts = character_ratings([10], [[[(2, 6)], [(4, 8)]]])
    assert character_alpha(texts, FEW).value == pytest.approx(1 - 19 * 4 / 96)
    # The same by the general function, whose units are characters.
    assert alpha(texts[0], "nominal") == pytest.approx(1 - 19 * 4 / 96)
    nothing = character_ratings([10], [[[], []]])
    assert character_alpha(nothing, FEW).why == "all_equal"
    assert character_alpha(character_ratings([10], [[[(0, 2)], None]]), FEW).why == "no_items"


@settings(max_examples=30)
@given(
    spans=st.lists(
        st.lists(
            st.one_of(
                st.none(),
                st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), max_size=3),
            ),
            min_size=3,
            max_size=3,
        ),
        min_size=2,
        max_size=4,
    )
)
def test_alpha_over_characters_is_alpha_of_all_characters_together(spans):
    people = [
        [None if own is None else [(a, a + length) for a, length in own] for own in text]
        for text in spans
    ]
    texts = character_ratings([14] * len(people), people)
    expected = alpha(np.concatenate(texts, axis=1), "nominal")
    found = character_alpha(texts, FEW).value
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected)


def test_raw_agreement_counts_pairs():
    # Three people on one item, two of them agree: one of three pairs. Two on another: agree.
    ratings = np.array([[1, 0], [1, 0], [2, X]])
    assert raw_agreement(ratings) == pytest.approx((2 + 2) / (6 + 2))
    # Drawn twice, the first item alone gives 1/3 and the second alone 1.
    found = agreement(ratings, "nominal", FEW)
    assert found.raw == pytest.approx(1 / 2)
    assert found.raw_ends == pytest.approx((1 / 3, 1))
    assert agreement(ratings[:1], "nominal", FEW).raw_ends is None


def test_a_share_has_wilsons_interval():
    # 8 of 10 at 95 %: centre (0.8 + 1.92073/10) / (1 + 3.84146/10) = 0.716733,
    # half 1.959964 / (1 + 0.384146) * sqrt(0.8 * 0.2 / 10 + 3.84146 / 400) = 0.226577.
    found = share(8, 10)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, 0.49016, 0.94331), abs=1e-4)
    assert share(0, 0).value is None


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, X]), min_size=3, max_size=3),
        min_size=2,
        max_size=12,
    )
)
def test_alpha_is_that_of_another_library_and_what_is_drawn_is_fleiss_itself(rows):
    ratings = np.array(rows).T
    shared = ratings[:, np.isfinite(ratings).sum(axis=0) >= 2]
    for level in ("nominal", "ordinal"):
        found = alpha(ratings, level)
        if shared.shape[1] >= 2:
            expected = krippendorff_alpha(shared, level=level)
            equal = len(np.unique(shared[np.isfinite(shared)])) < 2
            # The library says 1 where all ratings are equal.
            assert found == (None if equal else pytest.approx(expected))
    complete = ratings[:, np.isfinite(ratings).all(axis=0)]
    expected = fleiss(complete)
    if expected is not None:
        features, measure = _fleisses(complete)
        assert measure(features.sum(axis=0)[None])[0] == pytest.approx(expected)


def test_the_interval_is_that_of_drawing_items():
    ratings = KRIPPENDORFF[:, :11]
    found = agreement(ratings, "nominal", FEW).alpha
    drawn = [
        alpha(np.repeat(ratings, weights.astype(int), axis=1), "nominal")
        for batch in draws(11, FEW.resamples, FEW.seed)
        for weights in batch
    ]
    known = [one for one in drawn if one is not None]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(known, [0.025, 0.975])))
