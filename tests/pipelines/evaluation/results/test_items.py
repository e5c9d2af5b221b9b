"""The items of one system, and filters over items."""

from __future__ import annotations

from math import isnan

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.compare import (
    Wanted,
    comparison,
    filtered,
    finds_right,
    system_items,
)
from pipelines.evaluation.results.scores import MetricInfo
from tests.pipelines.evaluation.results.evaluations import ACCURACY, binary, evaluation, score


def test_the_worst_items_come_first_and_those_without_a_value_last():
    made = evaluation(
        [
            score("q0", "a", 1),
            # Half of the repeats are right; the first one failed.
            score("q1", "a", None, error="timeout", repeat=0),
            score("q1", "a", 0, repeat=1),
            score("q1", "a", 1, repeat=2),
            score("q2", "a", None, error="timeout"),
            score("q3", "a", 0),
            score("q4", "b", 0),
        ]
    )
    items = system_items(made, "a", "accuracy")
    assert [item.item for item in items] == ["q3", "q1", "q0", "q2"]
    (second,) = items[1].answers
    assert (second.value, second.repeats, second.run) == (0.5, 3, "run-a-q1-1")
    (last,) = items[-1].answers
    assert isnan(last.value)
    assert last.error == "timeout"
    assert not finds_right(items, ACCURACY)
    assert finds_right(system_items(made, "b", "accuracy"), ACCURACY)
    lower = made.model_copy(update={"metrics": (ACCURACY.model_copy(update={"better": "lower"}),)})
    assert [one.item for one in system_items(lower, "a", "accuracy")] == ["q0", "q1", "q3", "q2"]
    even = system_items(made, "a", "accuracy", tags=("even",))
    assert {one.item for one in even} == {"q0", "q2"}
    with pytest.raises(InvalidInputError, match="no system 'c'"):
        system_items(made, "c", "accuracy")


def test_a_right_part_of_an_answer_that_failed_is_not_counted_as_right():
    made = evaluation([score("q0", "a", 1, error="timeout"), score("q1", "a", 0)])
    first, last = system_items(made, "a", "accuracy")
    assert (first.item, first.answers[0].value) == ("q1", 0.0)
    assert (last.item, last.answers[0].error) == ("q0", "timeout")
    assert isnan(last.answers[0].value)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), ["q1", "q2", "q0", "q3"]),
        (Wanted(different=True), ["q1", "q2"]),
        (Wanted(wrong_by="a"), ["q2", "q3"]),
        (Wanted(wrong_by="a", different=True), ["q2"]),
        # In the question, in an answer, in an id.
        (Wanted(text=" QUESTION Q3? "), ["q3"]),
        (Wanted(text="b says q1"), ["q1"]),
        (Wanted(text="q2"), ["q2"]),
        (Wanted(text="nothing"), []),
        (Wanted(wrong_by="c"), []),
    ],
)
def test_items_are_filtered(wanted: Wanted, found: list[str]):
    compared = comparison(binary(a=[1, 1, 0, 0], b=[1, 0, 1, 0]), ["a", "b"], "accuracy")
    assert [one.item for one in filtered(compared.items, wanted, compared.metric)] == found


def test_wrong_is_the_other_end_where_lower_is_better():
    items = comparison(binary(a=[1, 0], b=[0, 0]), ["a", "b"], "accuracy").items
    info = MetricInfo(name="wrong_answer", better="lower")
    assert [one.item for one in filtered(items, Wanted(wrong_by="a"), info)] == ["q0"]
    assert not finds_right(items, info)
