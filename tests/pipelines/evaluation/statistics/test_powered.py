"""A judge's mean corrected by labels of known probability."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.statistics.judges import corrected_rate, powered_mean

JUDGE = [1.0] * 34 + [0.0] * 6 + [1.0] * 50 + [0.0] * 10
LABELS = [1.0] * 28 + [0.0] * 12
"""100 answers, of which people labelled the first 40: six that the judge finds right are wrong."""


def test_equal_probabilities_by_hand():
    found = powered_mean(JUDGE, LABELS, range(40))
    # With N/n = 2.5, mean judge 0.84 and 0.85 on the labelled, mean label 0.7. What relying on the
    # judge gains: -0.215 (34 times), 1.285 (6), 0.16 (50), -0.84 (10), squares adding up to 19.815;
    # labels: 0.75 (28), -1.75 (12). Their products add up to
    # 28 * 0.75 * -0.215 + 6 * -1.75 * -0.215 + 6 * -1.75 * 1.285 = -15.75.
    assert found.tuning == pytest.approx(15.75 / 19.815, abs=1e-4)
    assert found.corrected.value == pytest.approx(0.7 - 0.01 * found.tuning)


def test_it_agrees_with_truescore_where_all_are_equally_probable():
    usual = corrected_rate(JUDGE, LABELS, range(40)).corrected
    found = powered_mean(JUDGE, LABELS, range(40), [0.4] * 40).corrected
    assert usual is not None
    for name in ("value", "low", "high"):
        assert getattr(found, name) == pytest.approx(getattr(usual, name), abs=0.006)


def test_weights_by_hand():
    # A judge that always says the same is not relied on. Weights 2 and 4: (2 * 1 + 4 * 0) / 6.
    found = powered_mean([1, 1, 1, 1], [1, 0], [0, 2], [0.5, 0.25])
    assert found.tuning == 0
    assert found.corrected.value == pytest.approx(1 / 3)
    # Only their ratio counts.
    assert powered_mean([1] * 4, [1, 0], [0, 2], [1, 0.5]).corrected.value == pytest.approx(1 / 3)


def test_a_constant_set_of_labels_is_no_certainty():
    found = powered_mean([1.0] * 50, [1.0] * 10, range(10))
    assert found.corrected.value == 1
    # Half of Wilson's interval of 10 of 10: 3.8415 / 2 / 13.8415 = 0.13877.
    assert found.corrected.low == pytest.approx(1 - 0.13877, abs=1e-4)


def test_when_every_answer_is_labelled_the_labels_are_the_result():
    found = powered_mean([1, 0, 1, 0] * 5, [1, 1, 0, 0] * 5, range(20))
    assert (found.corrected.value, found.tuning) == (0.5, 0)
    # 0.25 * 20/19 for one label, by 20: a deviation of 0.114708, times t(19) = 2.093024.
    assert found.corrected.low == pytest.approx(0.5 - 2.093024 * 0.114708, abs=1e-5)


def test_equal_answers_of_a_group_count_once():
    single = powered_mean(JUDGE, LABELS, range(40))
    twice = powered_mean(
        [one for one in JUDGE for _ in range(2)],
        [one for one in LABELS for _ in range(2)],
        range(80),
        groups=[f"g{n}" for n in range(100) for _ in range(2)],
    )
    for name in ("value", "low", "high"):
        assert getattr(twice.corrected, name) == pytest.approx(getattr(single.corrected, name))


def test_groups_may_be_labelled_in_part():
    groups = [f"g{n // 2}" for n in range(100)]
    found = powered_mean(JUDGE, LABELS[::2], range(0, 40, 2), [0.2] * 20, groups)
    assert found.corrected.groups == 50
    assert found.corrected.low is not None
    assert found.corrected.low < (found.corrected.value or 0) < 1


@pytest.mark.parametrize(
    ("labels", "places", "drawn", "groups", "said"),
    [
        ([1.0], [0], [0.5], [], "Two labelled groups"),
        ([1.0, 0.0], [0, 1], [0.5, 0.5], ["g"] * 4, "Two labelled groups"),
        ([1.0, 0.0], [0, 1], [0.5], [], "one probability for each"),
        ([1.0, 0.0], [0, 1], [0.5, 0.0], [], "lies in"),
        ([1.0, 0.0], [0, 1], [0.5, 0.5], ["g"], "one label and one probability"),
    ],
)
def test_what_does_not_fit_is_refused(
    labels: list[float], places: list[int], drawn: list[float], groups: list[str], said: str
):
    with pytest.raises(ValueError, match=said):
        powered_mean([1.0, 0.0, 1.0, 0.0], labels, places, drawn, groups)


@pytest.fixture(scope="module")
def source() -> np.random.Generator:
    return np.random.default_rng(5)


def judged(source: np.random.Generator, n: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The truth of n answers, and a judge that finds 95 % of the right ones and spares 65 %."""
    truth = source.random(n) < rate
    said = np.where(truth, source.random(n) < 0.95, source.random(n) < 0.35)
    return truth.astype(float), said.astype(float)


def test_intervals_of_unequal_draws_cover_the_truth(source: np.random.Generator):
    covered = alone = 0
    for _ in range(400):
        truth, said = judged(source, 500, 0.7)
        probability = np.where(said == 1, 0.15, 0.5)
        drawn = np.flatnonzero(source.random(500) < probability)
        found = powered_mean(
            said.tolist(), truth[drawn].tolist(), drawn.tolist(), probability[drawn].tolist()
        ).corrected
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.7 <= found.high
        alone += abs(truth[drawn].mean() - 0.7) < 0.05
    # 95 % of 400 are 380; 362 is four deviations below.
    assert covered >= 362
    # The labels alone, of which those that the judge finds wrong are too many, miss it.
    assert alone < 100
