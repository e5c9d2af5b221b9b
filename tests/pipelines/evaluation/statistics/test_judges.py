"""Agreement of a judge with people, and rates corrected by labels: numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluation.statistics.judges import agreement, corrected_rate, transferred_rate

GRADES = ("correct", "wrong")


def graded(
    both: int, only_people: int, only_judge: int, neither: int
) -> tuple[list[str], list[str]]:
    people = ["correct"] * (both + only_people) + ["wrong"] * (only_judge + neither)
    judge = ["correct"] * both + ["wrong"] * only_people
    judge += ["correct"] * only_judge + ["wrong"] * neither
    return people, judge


def test_kappa_and_its_interval_by_hand():
    # 20 5 / 10 15: observed 0.7, by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa 0.2 / 0.5 = 0.4.
    found = agreement(*graded(20, 5, 10, 15), GRADES, undecided=3)
    assert found.confusion == ((20, 5), (10, 15))
    assert found.undecided == 3
    assert found.accuracy.value == pytest.approx(0.7)
    # Wilson: (0.7 + 1.9208/50 -+ 1.96 sqrt(0.21/50 + 3.8415/10000)) / (1 + 3.8415/50).
    assert found.accuracy.low == pytest.approx(0.5625, abs=1e-4)
    assert found.accuracy.high == pytest.approx(0.8090, abs=1e-4)
    assert found.kappa.value == pytest.approx(0.4)
    # Fleiss, Cohen and Everitt (1969): with A = 0.4 * 0.34^2 + 0.3 * 0.46^2 = 0.10972,
    # B = 0.6^2 (0.1 * 1.1^2 + 0.2 * 0.9^2) = 0.10188, C = (0.4 - 0.5 * 0.6)^2 = 0.01, the variance
    # is (A + B - C) / (0.5^2 * 50) = 0.016128, so 1.96 deviations are 0.24891.
    assert found.kappa.low == pytest.approx(0.4 - 0.24891, abs=1e-4)
    assert found.kappa.high == pytest.approx(0.4 + 0.24891, abs=1e-4)


def test_where_all_say_the_same_there_is_no_kappa():
    found = agreement(["correct"] * 4, ["correct"] * 4, GRADES)
    assert found.accuracy.value == 1
    assert found.kappa.value is None
    assert found.kappa.reason == "all_equal"
    with pytest.raises(ValueError, match="one label at least"):
        agreement([], [], GRADES)


def test_perfect_agreement_has_a_kappa_without_an_interval():
    # Not all grades are equal, so nothing says that they are.
    kappa = agreement(["correct", "wrong"], ["correct", "wrong"], GRADES).kappa
    assert (kappa.value, kappa.low, kappa.high, kappa.reason) == (1, None, None, None)


def test_a_rate_is_corrected_by_errors_found_elsewhere():
    # Sensitivity 0.9, specificity 0.8, observed 0.6: (0.6 + 0.8 - 1) / 0.7 = 0.5714.
    people = [1.0] * 10 + [0.0] * 10
    judge = [1.0] * 9 + [0.0] + [1.0] * 2 + [0.0] * 8
    found = transferred_rate([1.0] * 60 + [0.0] * 40, people, judge)
    assert found is not None
    assert found.value == pytest.approx(0.4 / 0.7)
    # Smoothed: sensitivity 10/12, specificity 9/12, observed 61.9207/103.8415 = 0.59630, and the
    # rate (0.59630 + 0.75 - 1) / 0.58333 = 0.59366. With 0.13889/12 = 0.011574 and
    # 0.1875/12 = 0.015625 the centre is 0.59366 + 7.68292 (0.59366 * 0.011574 - 0.40634 * 0.015625)
    # = 0.59767. The variance is 0.24073/103.8415 + 0.35243 * 0.011574 + 0.16511 * 0.015625
    # = 0.0089771; 1.95996 roots of it by 0.58333: 0.31835.
    assert found.low == pytest.approx(0.59767 - 0.31835, abs=2e-4)
    assert found.high == pytest.approx(0.59767 + 0.31835, abs=2e-4)


def test_few_answers_without_an_error_leave_a_wide_interval():
    found = transferred_rate([1.0] * 100, [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0])
    assert found is not None
    assert (found.value, found.high) == (1, 1)
    # Smoothed: both 3/4, the rate 1, the centre 1 + 7.68292 * 0.1875/4 = 1.36014, the variance
    # 0.98150 * 0.01850/103.8415 + 0.046875 = 0.047050, and 1.95996 roots by 0.5 are 0.85027.
    assert found.low == pytest.approx(0.50987, abs=2e-4)
    # One right answer found right, and one wrong one in ten found: 2/3 + 2/12 is less than 1.
    assert transferred_rate([1.0], [1.0] + [0.0] * 10, [1.0] * 10 + [0.0]) is None


@pytest.mark.parametrize("truth", [0.3, 0.9, 1.0])
def test_the_interval_by_errors_found_elsewhere_covers_the_truth(truth: float):
    source = np.random.default_rng(11)

    def said(right: np.ndarray) -> list[float]:
        n = len(right)
        found = np.where(right, source.random(n) < 0.95, source.random(n) < 0.2)
        return found.astype(float).tolist()

    people = np.repeat([True, False], 15)
    covered = 0
    for _ in range(300):
        judge = said(source.random(200) < truth)
        found = transferred_rate(judge, people.astype(float).tolist(), said(people))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    # 95 % of 300 are 285; 270 is four deviations below.
    assert covered >= 270


def test_a_judge_at_chance_corrects_nothing():
    assert transferred_rate([1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]) is None
    assert transferred_rate([1.0, 0.0], [1.0, 1.0], [1.0, 1.0]) is None


def test_a_judge_that_is_too_kind_is_corrected_down():
    # 100 answers, all judged right but 16; of the first 40, people find 28 right, 6 of those that
    # the judge found right are wrong and none the other way round.
    judge = [1.0] * 34 + [0.0] * 6 + [1.0] * 50 + [0.0] * 10
    labels = [1.0] * 28 + [0.0] * 12
    found = corrected_rate(judge, labels, range(40))
    assert found.judge == pytest.approx(0.84)
    assert (found.n, found.labels) == (100, 40)
    assert found.people is not None
    assert found.people.value == pytest.approx(0.7)
    # Rogan-Gladen: sensitivity 28/28, specificity 6/12, (0.84 + 0.5 - 1) / 0.5 = 0.68.
    assert found.rogan_gladen is not None
    assert found.rogan_gladen.value == pytest.approx(0.68)
    powered = found.corrected
    assert powered is not None
    assert powered.low is not None
    assert powered.high is not None
    assert found.people.low is not None
    assert found.people.high is not None
    # By the formulas of PPI++ (arXiv 2311.01453): labels and judge covary by 0.7 - 0.7 * 0.85 =
    # 0.105, the judge varies by 13.44/99; lambda = 0.105 / (13.44/99 * (1 + 40/60)) = 0.4640625.
    # The rate is lambda * 50/60 + 0.7 - lambda * 0.85 = 0.7 - lambda / 60. The labels less lambda
    # times the judge vary by 0.143594, the judge on the others by 60/59 * 5/36 = 0.141243:
    # 1.959964 * sqrt(0.143594 / 40 + lambda^2 * 0.141243 / 60) = 0.125450.
    assert powered.value == pytest.approx(0.7 - 0.4640625 / 60)
    ends = 0.692266 - 0.125450, 0.692266 + 0.125450
    assert (powered.low, powered.high) == pytest.approx(ends, abs=1e-5)
    # What the judge says of the others makes the interval narrower.
    assert powered.high - powered.low < found.people.high - found.people.low


def test_what_cannot_be_corrected_says_why():
    assert "Two labels" in corrected_rate([1.0, 0.0], [1.0], [0]).why
    whole = corrected_rate([1.0, 0.0], [1.0, 0.0], [0, 1])
    # The mean of the labels.
    assert whole.corrected is not None
    assert (whole.by, whole.corrected.value) == ("labels", 0.5)
    assert "Every answer is labelled" in whole.why
    assert "between right and wrong" in corrected_rate([1.0, 0.5, 0.0], [1.0, 0.0], [0, 2]).why
    # Two answers of one group, one of them labelled: the parts are not independent, and are
    # weighted. Labels without an interval of their own say what people find.
    split = corrected_rate([1.0, 0.0, 1.0, 0.0], [1.0, 0.0], [0, 1], ["a", "b", "a", "b"])
    assert split.corrected is not None
    assert (split.by, split.corrected.value) == ("weighted", pytest.approx(0.5))
    assert split.people is not None
    assert (split.people.value, split.people.low) == (0.5, None)
    assert "as probable" in corrected_rate([1.0] * 3, [1.0, 0.0], [0, 1], (), [0.5, 0.1]).why
    with pytest.raises(ValueError, match="no judged answer"):
        corrected_rate([], [], [])


def test_the_corrected_interval_covers_the_truth():
    source = np.random.default_rng(5)
    covered = alone = 0
    for _ in range(200):
        truth = source.random(400) < 0.6
        # Right answers are found right in 95 %, wrong ones in 35 %.
        judge = np.where(truth, source.random(400) < 0.95, source.random(400) < 0.35).astype(float)
        found = corrected_rate(judge.tolist(), truth[:80].astype(float).tolist(), range(80))
        estimate = found.corrected
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 0.6 <= estimate.high
        alone += abs(found.judge - 0.6) < 0.05
    # 95 % of 200 are 190; 178 is four deviations below.
    assert covered >= 178
    # The judge alone is off by 0.11.
    assert alone < 10


@given(st.lists(st.tuples(st.sampled_from(GRADES), st.sampled_from(GRADES)), min_size=1))
def test_a_confusion_matrix_counts_every_pair(pairs: list[tuple[str, str]]):
    found = agreement([one for one, _ in pairs], [two for _, two in pairs], GRADES)
    assert sum(map(sum, found.confusion)) == len(pairs)
    if found.kappa.value is not None:
        assert -1 <= found.kappa.value <= 1
