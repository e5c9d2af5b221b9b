"""A detector made of several, worked out by hand."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.combining import combined, triggered
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.statistics.estimates import Sampling
from tests.pipelines.evaluation.results.evaluations import evaluation, score

QUICK = Sampling(resamples=100, permutations=99)


def two_detectors() -> Evaluation:
    # On four items; c has no scores.
    scores = {"a": [1.0, 3.0, 1.0, 3.0], "b": [0.0, 10.0, 10.0, 20.0]}
    return evaluation([
        *(
            score(f"q{n}", system, None, cost={"calls": n}, values={
                "hallucination_score": value, "hallucinated": float(n > 1)})
            for system, row in scores.items()
            for n, value in enumerate(row)
        ),
        score("q0", "c", 1),
    ])  # fmt: skip


def test_it_is_the_mean_of_normalised_scores():
    found = combined(two_detectors(), "both", ["a", "b"])
    ours = [one for one in found.scores if one.method == "both"]
    # a: mean 2, deviation 1; b: mean 10, deviation sqrt(50).
    far = 10 / 50**0.5
    assert [one.values["hallucination_score"] for one in ours] == pytest.approx(
        [(-1 - far) / 2, 0.5, -0.5, (1 + far) / 2]
    )
    assert [one.cost["calls"] for one in ours] == [0, 2, 4, 6]
    table = results_table(found, sampling=QUICK)
    assert table.detection is not None
    assert "both" in table.detection.detectors


@pytest.mark.parametrize(
    ("name", "systems"), [("a", ["a", "b"]), ("x", ["a"]), ("x", ["a", "c"]), ("", ["a", "b"])]
)
def test_what_cannot_be_combined_is_refused(name: str, systems: list[str]):
    with pytest.raises(InvalidInputError):
        combined(two_detectors(), name, systems)


def test_a_detector_triggers_the_repair_of_another_system():
    # The repair makes q0 right, spoils q1 and leaves q2; the detector asks for q0 and q1.
    doubts, before, after = [0.9, 0.8, 0.5], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]
    rows = [
        one
        for n in range(3)
        for one in (
            score(f"q{n}", "sac3", 1, cost={"calls": 4}, values={
                "hallucination_score": doubts[n], "hallucinated": 0.0}),
            score(f"q{n}", "rowen", after[n], cost={"calls": 10, "retrievals": 1},
                  original_values={"accuracy": before[n]}, original="first"),
        )
    ]  # fmt: skip
    found = triggered(evaluation(rows), "sac3+rowen", "sac3", "rowen", 0.5)
    ours = [one for one in found.scores if one.method == "sac3+rowen"]
    assert [one.values["accuracy"] for one in ours] == [1.0, 0.0, 1.0]
    assert [one.cost["calls"] for one in ours] == [14, 14, 4]
    assert [one.cost["retrievals"] for one in ours] == [1, 1, 0]
    assert [one.answer == "first" for one in ours] == [False, False, True]
    (late,) = (
        one
        for one in triggered(evaluation(rows), "x", "sac3", "rowen", 0.85).scores
        if one.method == "x" and one.item == "q1"
    )
    assert late.values["accuracy"] == 1.0
    with pytest.raises(InvalidInputError):
        triggered(evaluation(rows), "x", "rowen", "sac3", 0.5)


@pytest.mark.parametrize(
    ("share", "asked_for"),
    [
        # The highest two of five; 1.5 is rounded to 2, 0.4 to 0.
        (0.4, "bd"), (0.3, "bd"), (0.08, ""), (1.0, "abcde"),
        # Of three, two are equal and would be the third and the fourth.
        (0.6, "bd"),
    ],
)  # fmt: skip
def test_a_share_of_the_highest_scores_triggers(share: float, asked_for: str):
    doubts = {"a": 2.0, "b": 9.0, "c": 2.0, "d": 5.0, "e": -1.0}
    rows = [
        one
        for item, doubt in doubts.items()
        for one in (
            score(item, "ngram", 1, values={"hallucination_score": doubt, "hallucinated": 0.0}),
            score(item, "rowen", 1.0, original_values={"accuracy": 0.0}, original="first"),
        )
    ]
    found = triggered(evaluation(rows), "x", "ngram", "rowen", share, share=True)
    right = [one.item for one in found.scores if one.method == "x" and one.values["accuracy"]]
    assert "".join(right) == asked_for


def test_a_combined_detector_triggers_a_repair():
    rows = two_detectors()
    repairs = [
        score(f"q{n}", "rowen", 1.0, original_values={"accuracy": 0.0}, original="first")
        for n in range(4)
    ]
    # Nobody has scored this one: it keeps its first answer.
    repairs.append(score("q4", "rowen", 1.0, original_values={"accuracy": 0.0}, original="first"))
    whole = evaluation([*rows.scores, *repairs])
    both = triggered(combined(whole, "both", ["a", "b"]), "x", "both", "rowen", 0.0)
    # Means of normalised scores: below 0, 0.5, -0.5 and above 0.
    values = [one.values["accuracy"] for one in both.scores if one.method == "x"]
    assert values == [0.0, 1.0, 0.0, 1.0, 0.0]
