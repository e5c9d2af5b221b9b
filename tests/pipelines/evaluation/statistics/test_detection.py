"""Rankings of detectors against scikit-learn and by hand; curves; reliability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from pipelines.evaluation.statistics.detection import curves, detection, reliability
from pipelines.evaluation.statistics.estimates import Sampling, draws, wilson

SAMPLING = Sampling(resamples=300, seed=1)
NAN = float("nan")


def sample(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels [items] and scores [2, items] of a good and of a useless detector."""
    source = np.random.default_rng(seed)
    labels = (source.random(n) < 0.4).astype(float)
    return labels, np.stack([source.random(n) + labels, source.random(n)])


def test_auroc_by_hand() -> None:
    # Of the pairs (1, 0): 3 > 2, 3 > 1, 2 = 2 counts half, 2 > 1: 3.5 of 4.
    found = detection(
        np.array([[3, 2, 2, 1.0]]), np.array([1, 1, 0, 0.0]), ["a"], [""] * 4, SAMPLING
    )
    assert found.rankings[0]["auroc"].value == pytest.approx(3.5 / 4)
    # Flagged first 3: precision 1 at half of the recall; then both 2s: precision 2/3.
    assert found.rankings[0]["auc_pr_nonfactual"].value == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert (found.base_rate, found.n) == (0.5, 4)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=40).filter(
        lambda rows: len({label for label, _ in rows}) == 2
    )
)
def test_rankings_are_those_of_scikit_learn(rows: list[tuple[int, int]]) -> None:
    labels, scores = np.array(rows, dtype=float).T
    few = Sampling(resamples=100)
    found = detection(scores[None, :], labels, ["a"], [""] * len(rows), few).rankings[0]
    assert found["auroc"].value == pytest.approx(roc_auc_score(labels, scores))
    assert found["auc_pr_nonfactual"].value == pytest.approx(
        average_precision_score(labels, scores)
    )
    turned = average_precision_score(1 - labels, -scores)
    assert found["auc_pr_factual"].value == pytest.approx(turned)


def test_draws_weigh_items_as_copies_would() -> None:
    # Each draw has to give what scikit-learn gives with these weights: compare the mean and the
    # ends of the interval with its own bootstrap on the same draws.
    labels, scores = sample(40)
    # Ties too.
    scores = np.round(10 * scores) / 10
    values = [
        roc_auc_score(labels, scores[0], sample_weight=weights)
        for batch in draws(40, 300, 1)
        for weights in batch
    ]
    expected = np.quantile(values, [0.025, 0.975])
    found = detection(scores, labels, ["a", "b"], [""] * 40, SAMPLING).rankings[0]["auroc"]
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-6)
    assert found.method == "percentile"


def test_a_good_detector_differs_from_a_useless_one() -> None:
    labels, scores = sample()
    found = detection(scores, labels, ["good", "useless"], [""] * 120, SAMPLING)
    (pair,) = found.differences["auroc"]
    first, second = (ranking["auroc"].value or 0 for ranking in found.rankings)
    assert pair.difference.value == pytest.approx(first - second)
    assert pair.p is not None
    assert pair.p < 0.05
    assert pair.test == "bootstrap"
    assert (pair.difference.low or 0) > 0


def test_a_detector_does_not_differ_from_itself() -> None:
    labels, scores = sample()
    found = detection(scores[[1, 1]], labels, ["a", "b"], [""] * 120, SAMPLING)
    (pair,) = found.differences["auroc"]
    assert (pair.difference.value, pair.difference.low, pair.p) == (0, 0, 1)


def test_copies_of_an_item_in_its_group_tell_nothing_new() -> None:
    labels, scores = sample(60)
    groups = [f"g{place}" for place in range(60)]
    once = detection(scores[:1], labels, ["a"], groups, SAMPLING).rankings[0]
    often = detection(
        np.repeat(scores[:1], 3, axis=1),
        np.repeat(labels, 3),
        ["a"],
        np.repeat(groups, 3).tolist(),
        SAMPLING,
    ).rankings[0]
    for name in ("auroc", "auc_pr_nonfactual"):
        assert often[name].value == pytest.approx(once[name].value)
        assert often[name].low == pytest.approx(once[name].low, abs=1e-6)
    assert (often["auroc"].n, often["auroc"].groups) == (180, 60)


def test_each_detector_is_ranked_on_what_it_scored() -> None:
    labels, scores = sample()
    scores[0, :30] = NAN
    labels[100:] = NAN
    found = detection(scores, labels, ["a", "b"], [""] * 120, SAMPLING)
    assert [ranking["auroc"].n for ranking in found.rankings] == [70, 100]
    (pair,) = found.differences["auroc"]
    assert (pair.difference.n, pair.left_out) == (70, 30)
    expected = roc_auc_score(labels[30:100], scores[0, 30:100])
    assert found.rankings[0]["auroc"].value == pytest.approx(expected)


def test_several_subsets_of_the_items_are_ranked_as_each_alone() -> None:
    labels, scores = sample()
    scores = np.vstack([scores, scores[0] ** 2])
    scores[0, :30], scores[1, 100:], scores[2, 50:60] = NAN, NAN, NAN
    names, groups = ["a", "b", "c"], [f"g{place // 2}" for place in range(120)]
    found = detection(scores, labels, names, groups, SAMPLING)
    for k, name in enumerate(names):
        there = np.isfinite(scores[k])
        kept = [group for group, held in zip(groups, there, strict=True) if held]
        alone = detection(scores[[k]][:, there], labels[there], [name], kept, SAMPLING)
        assert found.rankings[k] == alone.rankings[0]
    quick = detection(scores, labels, names, groups, SAMPLING, compared=False)
    assert quick == found.model_copy(update={"differences": {}})


def test_detectors_may_check_answers_of_their_own() -> None:
    labels, scores = sample()
    own = np.stack([labels, 1 - labels])
    found = detection(scores[[0, 0]], own, ["a", "b"], [""] * 120, SAMPLING)
    first, second = (ranking["auroc"].value or 0 for ranking in found.rankings)
    assert second == pytest.approx(1 - first)


@pytest.mark.parametrize(
    ("scores", "labels", "groups", "reason"),
    [
        ([1.0, 2.0], [1.0, 1.0], ["", ""], "one_class"),
        ([NAN, NAN], [1.0, 0.0], ["", ""], "no_items"),
        ([1.0, 2.0], [1.0, 0.0], ["g", "g"], "too_few_groups"),
        # (2/3)^3 + (1/3)^3, a third of the draws, hold one class only.
        ([1.0, 2.0, 3.0], [1.0, 0.0, 0.0], ["", "", ""], "no_resamples"),
    ],
)
def test_what_is_not_defined_says_why(
    scores: list[float], labels: list[float], groups: list[str], reason: str
) -> None:
    found = detection(np.array([scores]), np.array(labels), ["a"], groups, SAMPLING)
    ranking = found.rankings[0]["auroc"]
    assert (ranking.reason, ranking.low) == (reason, None)


def test_curves_enclose_the_areas() -> None:
    labels, scores = sample()
    both = curves(scores[0], labels)
    assert both is not None
    roc, pr = both
    assert auc(roc.x, roc.y) == pytest.approx(roc_auc_score(labels, scores[0]))
    assert (roc.x[0], roc.y[0], roc.thresholds[0]) == (0, 0, None)
    assert (pr.x[-1], pr.y[-1], pr.thresholds[-1]) == (0, 1, None)
    # Average precision is the sum of steps.
    steps = sum((a - b) * y for a, b, y in zip(pr.x, pr.x[1:], pr.y, strict=False))
    assert steps == pytest.approx(average_precision_score(labels, scores[0]))


def test_one_class_has_no_curve() -> None:
    assert curves(np.array([1.0, 2.0]), np.array([1.0, NAN])) is None


def test_reliability_by_hand() -> None:
    found = reliability(np.array([0.05, 0.15, 0.18, 1.0, NAN]), np.array([0, 1, 0, 1, 1.0]))
    assert [(one.predicted, one.n) for one in found] == [
        (0.05, 1),
        (pytest.approx(0.165), 2),
        (1, 1),
    ]
    assert found[1].observed == 0.5
    assert (found[1].low, found[1].high) == wilson(1, 2, 0.95)


def test_reliability_needs_probabilities() -> None:
    with pytest.raises(ValueError, match="probabilities"):
        reliability(np.array([1.5]), np.array([1.0]))
    assert reliability(np.array([]), np.array([])) == []
