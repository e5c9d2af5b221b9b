"""Scores hold together, and become arrays as they should."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.evaluation.results.packed import ItemScore, PackedScores
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import Grid, cost_reader, value_reader
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score


def test_an_evaluation_survives_json() -> None:
    made = binary(a=[1, 0], b=[1, 1])
    assert Evaluation.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(
    ("scores", "more", "says"),
    [
        ([score("q", "a", 1)], {"systems": {}}, "system 'a'"),
        ([score("q", "a", 1)], {"items": {}}, "item 'q'"),
        ([score("q", "a", 1), score("q", "a", 0)], {}, "there twice"),
    ],
)
def test_scores_have_to_fit(scores: list[ItemScore], more: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        evaluation(scores, **more)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_none(value: float) -> None:
    with pytest.raises(ValidationError, match="accuracy: not a finite number"):
        score("q", "a", value)
    assert score("q", "a", None).values == {"accuracy": None}


def test_listed_metrics_come_first() -> None:
    made = evaluation([score("q", "a", 1, values={"b": 0.5, "a": 0.5})])
    assert made.metric_names() == ("accuracy", "a", "b")
    unknown = made.metric("a")
    assert (unknown.low, unknown.high, unknown.better) == (None, None, None)
    # What is not listed is looked up in the table of metrics.
    length, error = made.metric("answer_words"), made.metric("brier")
    assert (length.low, length.high, length.better) == (0, None, None)
    assert (error.low, error.high, error.better) == (0, 1, "lower")


def test_a_part_by_tag_and_language() -> None:
    made = binary(a=[1, 0, 1, 0])
    assert made.selected() is made
    assert list(made.selected(tags=("odd",)).items) == ["q1", "q3"]
    part = made.selected(language="en")
    assert [one.item for one in part.scores] == ["q0", "q2"]
    assert not made.selected(tags=("odd",), language="en").items


def test_a_failed_score_has_a_cost_but_no_value() -> None:
    failed = PackedScores.of([score("q", "a", 1, error="timeout", cost={"calls": 3})])
    assert np.isnan(value_reader("accuracy")(failed)).tolist() == [True]
    assert cost_reader("calls")(failed).tolist() == [3]
    assert np.isnan(cost_reader("money_usd")(failed)).tolist() == [True]


def test_the_length_is_counted_where_it_is_not_given() -> None:
    read = value_reader("answer_words")
    counted = score("q", "a", 1, answer="two words")
    known = score("q", "a", 1, answer="two words", values={"answer_words": 7})
    scores = PackedScores.of([counted, known, score("q", "a", 1, answer="")])
    assert read(scores).tolist() == pytest.approx([2, 7, np.nan], nan_ok=True)


def test_repeats_are_averaged_and_kept_apart() -> None:
    made = evaluation([
        score("q", "a", 1, repeat=0), score("q", "a", 0, repeat=1), score("q", "a", None, repeat=2),
        score("r", "a", 1, repeat=0), score("r", "b", 0, group="g"),
    ])  # fmt: skip
    grid = Grid.of(made)
    values = grid.read(value_reader("accuracy"))
    assert grid.means(values).tolist() == [[0.5, 1], pytest.approx([np.nan, 0], nan_ok=True)]
    assert grid.by_repeat(values, 0)[:2].tolist() == [
        [1, 1],
        pytest.approx([0, np.nan], nan_ok=True),
    ]
    # A group that one of the scores names holds for the item.
    assert grid.groups == ("", "g")
    assert Grid.of(made, ["b"]).systems == ("b",)
