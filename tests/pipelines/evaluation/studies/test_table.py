"""Tables of studies: verdict metrics, choices and halves, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.packed import ItemScore, PackedScores
from pipelines.evaluation.results.scores import (
    FLAGGED,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    SECOND_SCORE,
    Evaluation,
    ItemSummary,
    ScoredSystem,
)
from pipelines.evaluation.results.table import larger_ranks
from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.evaluation.studies.running import score_sweep
from pipelines.evaluation.studies.table import StudyMeasurements, study_table

QUICK = Sampling(resamples=100, permutations=99)


def measured(
    values: Mapping[str, Sequence[Sequence[float]]],
    diverged: list[int] | None = None,
    groups: list[str] | None = None,
    current: int | None = 0,
) -> StudyMeasurements:
    arrays = {name: np.array(rows, dtype=float) for name, rows in values.items()}
    count, items = next(iter(arrays.values())).shape
    missing = diverged or [0] * count
    return StudyMeasurements(
        points=[{"theta": number / 10} for number in range(count)],
        values=arrays,
        groups=groups or [""] * items,
        replayed=[items - one for one in missing],
        diverged=missing,
        current=current,
    )


def test_what_chose_is_not_what_is_reported():
    # Even items 0, 2, 4, 6: point 1 has 4 of 4, point 0 has 2 of 4. Odd items 1, 3, 5, 7: point 1
    # has 1 of 4, point 0 has 3 of 4, so there the odd items choose point 0.
    found = study_table(
        measured({"accuracy": [[1, 1, 0, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]]}), QUICK
    )
    choice = found.choice
    assert choice is not None
    assert (choice.metric, choice.point, choice.current, choice.selected) == ("accuracy", 1, 0, 1.0)
    assert (choice.held_out.value, choice.held_out.n) == (0.25, 4)
    assert choice.held_out_current is not None
    assert choice.held_out_current.value == 0.75
    assert choice.difference is not None
    # Items 3 and 5 are lost, none is won: mid-p of 0 of 2 is 0.25.
    assert choice.difference.difference.value == -0.5
    assert choice.difference.p == pytest.approx(0.25)
    # Odd items are judged by point 1 (1 of 4), even ones by point 0 (2 of 4).
    assert choice.other_point == 0
    assert choice.cross_validated is not None
    assert choice.cross_validated.value == pytest.approx(3 / 8)
    # The whole table: five of eight at both points.
    assert [point.metrics["accuracy"].value for point in found.points] == [5 / 8, 5 / 8]
    assert [point.current for point in found.points] == [True, False]
    assert found.points[1].differences["accuracy"].difference.value == 0


def test_items_of_one_document_stay_in_one_half():
    # Documents a, b, a, b: the even half is a, though its items are at places 0 and 2.
    rows = [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]
    found = study_table(measured({"accuracy": rows}, groups=["a", "b", "a", "b"]), QUICK)
    assert found.choice is not None
    assert (found.choice.point, found.choice.held_out.value) == (1, 0.0)


def test_among_equals_the_recorded_settings_stay():
    rows = [[1.0, 0.0, 1.0, 0.0]] * 3
    choice = study_table(measured({"accuracy": rows}, current=2), QUICK).choice
    assert choice is not None
    assert choice.point == 2
    # Where they are not among the best, the middle of the best is taken.
    rows = [[0.0, 0.0, 0.0, 0.0], *rows]
    choice = study_table(measured({"accuracy": rows}, current=0), QUICK).choice
    assert choice is not None
    assert choice.point == 2


def test_a_cost_chooses_only_where_it_is_asked_to():
    values = {"calls": [[1.0, 1.0], [2.0, 2.0]], "bleu": [[0.1, 0.1], [0.2, 0.2]]}
    free = study_table(measured(values), QUICK).choice
    asked = study_table(measured(values), QUICK, choose="calls").choice
    assert free is not None
    assert asked is not None
    assert (free.metric, free.point, asked.point) == ("bleu", 1, 0)
    alone = study_table(measured({"calls": [[1.0, 2.0]]}), QUICK)
    assert (alone.choice, alone.no_choice) == (None, "no_metric")


def test_a_point_that_needs_too_many_new_calls_is_not_chosen():
    nan = float("nan")
    rows = [[1.0, 0.0, 0.0, 0.0], [1.0, nan, 1.0, 1.0]]
    found = study_table(measured({"accuracy": rows}, diverged=[0, 1]), QUICK)
    assert found.choice is not None
    # One of four is more than a tenth.
    assert (found.choice.point, found.choice.candidates, found.choice.items) == (0, 1, 4)
    # It is shown all the same, on what is known of it.
    assert found.points[1].metrics["accuracy"].value == 1.0
    assert found.points[1].metrics["accuracy"].n == 3
    everywhere = study_table(measured({"accuracy": rows}, diverged=[1, 1]), QUICK)
    assert (everywhere.choice, everywhere.no_choice) == (None, "all_diverge")


def test_verdicts_against_labels():
    # Flagged 1 1 1 0 0, wrong 1 0 1 1 0: precision 2/3, recall 2/3, F1 2*2/(3+3) = 2/3; of the
    # accurate ones: found 1 of 2, and 1 of the 2 not flagged is: F1 2*1/(2+2) = 1/2.
    values = {FLAGGED: [[1, 1, 1, 0, 0]], HALLUCINATED: [[1, 0, 1, 1, 0]]}
    found = study_table(measured(values), QUICK).points[0].metrics
    assert found["verdict_precision"].value == pytest.approx(2 / 3)
    assert found["verdict_recall"].value == pytest.approx(2 / 3)
    assert found["verdict_f1"].value == pytest.approx(2 / 3)
    assert found["verdict_precision_accurate"].value == pytest.approx(1 / 2)
    assert found["verdict_recall_accurate"].value == pytest.approx(1 / 2)
    assert found["verdict_f1_accurate"].value == pytest.approx(1 / 2)
    assert found["verdict_accuracy"].value == pytest.approx(3 / 5)
    assert found["flagged"].value == pytest.approx(3 / 5)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_verdicts_are_those_of_scikit_learn(pairs: list[tuple[bool, bool]]):
    said, wrong = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = study_table(measured({FLAGGED: [said], HALLUCINATED: [wrong]}), QUICK).points[0].metrics
    for name, reference in (
        ("verdict_precision", precision_score),
        ("verdict_recall", recall_score),
        ("verdict_f1", f1_score),
    ):
        value = found[name].value
        options: Any = {"zero_division": np.nan}
        expected = float(reference(wrong, said, **options))
        assert (np.nan if value is None else value) == pytest.approx(expected, nan_ok=True)


def test_a_share_is_chosen_with_a_minimum_of_another():
    # On even items (0, 2, 4): point 0 finds 1 of 2 with precision 1, point 1 finds 2 of 2 with
    # precision 2/3, and the minimum leaves point 1 alone.
    wrong = [1, 1, 1, 0, 0, 1]
    values = {FLAGGED: [[1, 1, 0, 0, 0, 1], [1, 1, 1, 0, 1, 1]], HALLUCINATED: [wrong, wrong]}
    free = study_table(measured(values), QUICK, choose="verdict_precision").choice
    bound = study_table(
        measured(values), QUICK, choose="verdict_precision", at_least=("verdict_recall", 0.9)
    ).choice
    assert free is not None
    assert bound is not None
    assert (free.point, free.selected) == (0, 1.0)
    assert (bound.point, bound.selected) == (1, pytest.approx(2 / 3))


def test_a_minimum_that_no_point_reaches_is_told():
    # On even items (0 and 2) at most one of two is right.
    values = {"accuracy": [[1, 1, 0, 1], [0, 1, 1, 1]], "bleu": [[0.5] * 4, [0.6] * 4]}
    found = study_table(measured(values), QUICK, choose="bleu", at_least=("accuracy", 0.6))
    assert (found.choice, found.no_choice) == (None, "none_reaches")
    # One item is no two halves, whatever it reaches.
    alone = study_table(measured({"accuracy": [[1.0]]}), QUICK, at_least=("accuracy", 0.6))
    assert (alone.choice, alone.no_choice) == (None, "too_few_items")


@pytest.mark.parametrize(
    ("choose", "minimum"), [("auroc", "verdict_recall"), ("verdict_f1", "auroc")]
)
def test_a_minimum_beside_a_ranking_is_refused(choose: str, minimum: str):
    wrong = [1, 1, 0, 0]
    values = {
        HALLUCINATION_SCORE: [[0.9, 0.8, 0.1, 0.2]],
        FLAGGED: [[1, 1, 0, 0]],
        HALLUCINATED: [wrong],
    }
    with pytest.raises(InvalidInputError, match="minimum does not go together with 'auroc'"):
        study_table(measured(values), QUICK, choose=choose, at_least=(minimum, 0.8))


def test_the_recorded_settings_are_not_compared_with_themselves():
    # Point 1 loses items 0 and 1, point 2 items 0 to 2: mid-p 1/4 and 1/8. Holm over these two
    # comparisons makes them 1/4 and 2/8; over three they would be 2/4 and 3/8.
    rows = [[1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    points = study_table(measured({"accuracy": rows}), QUICK).points
    assert points[0].differences == {}
    pairs = [point.differences["accuracy"] for point in points[1:]]
    assert [pair.p for pair in pairs] == pytest.approx([0.25, 0.125])
    assert [pair.adjusted for pair in pairs] == pytest.approx([0.25, 0.25])


def test_rankings_are_told_and_can_choose():
    wrong = [1, 1, 0, 0, 1, 1, 0, 0]
    scores = [[0.1, 0.9, 0.9, 0.1, 0.1, 0.9, 0.9, 0.1], [0.9, 0.8, 0.1, 0.2, 0.8, 0.7, 0.2, 0.9]]
    values = {HALLUCINATION_SCORE: scores, HALLUCINATED: [wrong, wrong]}
    found = study_table(measured(values), QUICK, choose="auroc")
    assert found.choice is not None
    # Even items 0, 2, 4, 6: point 0 has all pairs the wrong way round, point 1 all the right way.
    assert (found.choice.point, found.choice.selected) == (1, 1.0)
    # Odd items: wrong 0.8 and 0.7 against right 0.2 and 0.9: two of four pairs.
    assert found.choice.held_out.value == pytest.approx(0.5)
    # Accurate at point 1: 0.1, 0.2, 0.2, 0.9. Passing up to 0.2 finds three of four, all right.
    best = found.points[1].metrics
    assert best["best_f1_accurate"].value == pytest.approx(6 / 7)
    assert best["best_precision_accurate"].value == 1
    # The threshold was chosen on these items.
    assert best["best_f1_accurate"].low is None
    chosen = study_table(measured(values), QUICK, prefer=["best_f1_accurate"]).choice
    assert chosen is not None
    assert (chosen.metric, chosen.point, chosen.selected) == ("best_f1_accurate", 1, 1.0)


def test_two_scores_on_two_scales_are_ranked_by_the_larger_rank():
    # Ranks of P: 2 1 3 4, of H (no value for the last, so 1 2 3 count 4/3 each): 4/3 4 8/3.
    probabilities, entropies = [0.2, 0.1, 0.6, 0.9], [0.5, 3.0, 1.0, nan]
    both = larger_ranks(np.array([probabilities], float), np.array([entropies], float))
    assert both[0].tolist() == pytest.approx([2, 4, 3, 4])
    values = {HALLUCINATION_SCORE: [probabilities], SECOND_SCORE: [entropies]}
    values[HALLUCINATED] = [[0, 1, 0, 1]]
    found = study_table(measured(values), QUICK).points[0].metrics
    # By P alone one of the two wrong ones is below both right ones.
    assert found["auroc"].value == 1.0
    alone = study_table(measured({**values, SECOND_SCORE: [[nan] * 4]}), QUICK)
    assert alone.points[0].metrics["auroc"].value == 0.5


def test_an_unknown_metric_is_refused_with_those_that_there_are():
    with pytest.raises(InvalidInputError, match="no value of 'f1'") as caught:
        study_table(measured({"accuracy": [[1.0, 0.0]]}), QUICK, choose="f1")
    assert "accuracy" in str(caught.value.remedy)


def test_thresholds_on_scores():
    wrong = [1.0, 1.0, 0.0, 0.0]
    scores = tuple(
        ItemScore(
            item=f"q{number}",
            method="slm",
            values={HALLUCINATION_SCORE: score, HALLUCINATED: wrong[number]},
        )
        for number, score in enumerate([0.9, 0.8, 0.3, 0.8])
    )
    results = Evaluation(
        name="e",
        data_set="d",
        data_hash="h",
        systems={"slm": ScoredSystem(method="slm")},
        items={f"q{number}": ItemSummary() for number in range(4)},
        scores=PackedScores.of(scores),
    )
    found = score_sweep(results, "e", "slm", sampling=QUICK)
    assert [point.values["threshold"] for point in found.points] == [0.3, 0.8, 0.9]
    # From 0.8 on three are flagged, two of them wrong: precision 2/3, recall 1.
    middle = found.points[1].metrics
    assert middle["verdict_precision"].value == pytest.approx(2 / 3)
    assert middle["verdict_recall"].value == 1.0
    assert found.choice is not None
    # Even items: 0.9 (wrong) and 0.3 (right). From 0.8 on is the first that separates them.
    assert found.points[found.choice.point].values == {"threshold": 0.8}
    with pytest.raises(InvalidInputError, match="no scores with labels"):
        score_sweep(results, "e", "drad")
