"""Which recorded runs are shipped, by their outcomes alone."""

from __future__ import annotations

from pipelines.samples.record import MOST, Outcomes, choose
from pipelines.store.exchange import ChosenRun, choice


def runs(outcomes: Outcomes, most: int = MOST) -> list[str]:
    return [one.run for one in choose(outcomes, most).runs]


def test_the_fewest_runs_that_show_every_method_are_chosen():
    outcomes: Outcomes = {
        "a": {"drad": "corrects"},
        "b": {"rowen": "corrects"},
        "c": {"drad": "corrects", "rowen": "corrects", "slm": "confirms"},
    }
    found = choose(outcomes)
    assert found.runs == (ChosenRun(run="c", shows={"drad": "corrects", "rowen": "corrects"}),)
    assert found.recorded == outcomes


def test_every_method_is_shown_in_each_language():
    assert runs(
        {
            "zh-1": {"rowen": "corrects", "ever": "corrects"},
            "en-1": {"rowen": "misses", "ever": "confirms"},
            "en-2": {"rowen": "corrects", "ever": "corrects"},
        }
    ) == ["zh-1", "en-1", "en-2"]


def test_to_correct_is_more_than_to_withhold():
    assert runs({"a": {"haarag": "withholds"}, "b": {"haarag": "corrects"}}) == ["b"]
    assert runs({"a": {"haarag": "withholds"}, "b": {"haarag": "lucky"}}) == ["a"]


def test_a_failure_of_every_method_is_added():
    outcomes: Outcomes = {
        "a": {"drad": "corrects", "ever": "confirms"},
        "b": {"drad": "misses", "ever": "doubts"},
        "c": {"drad": "spoils", "ever": "doubts"},
    }
    assert choose(outcomes).runs == (
        ChosenRun(run="a", shows={"drad": "corrects"}),
        ChosenRun(run="c", fails={"drad": "spoils", "ever": "doubts"}),
    )


def test_what_works_goes_before_what_fails():
    outcomes: Outcomes = {
        "a": {"drad": "corrects"},
        "b": {"ever": "corrects"},
        "c": {"drad": "misses", "ever": "misses", "slm": "misses"},
    }
    assert runs(outcomes, most=2) == ["a", "b"]
    assert runs(outcomes) == ["a", "b", "c"]


def test_a_method_stands_in_one_run_among_equals_in_the_one_that_stands_for_most():
    outcomes: Outcomes = {
        "a": {"drad": "corrects", "slm": "catches"},
        "b": {"drad": "corrects", "ever": "corrects", "rag": "mends"},
    }
    assert choose(outcomes).runs == (
        ChosenRun(run="a", shows={"slm": "catches"}),
        ChosenRun(run="b", shows={"drad": "corrects", "ever": "corrects", "rag": "mends"}),
    )


def test_equals_are_taken_in_their_order():
    assert runs({"b": {"drad": "corrects"}, "a": {"drad": "corrects"}}) == ["b"]


def test_nothing_to_show_is_no_run():
    assert runs({"a": {"drad": "confirms", "ever": "lucky"}, "b": {}}) == []
    assert runs({}) == []


def test_the_shipped_choice_is_what_its_outcomes_say():
    shipped = choice()
    assert 0 < len(shipped.runs) <= MOST
    without_answers = [one.model_copy(update={"answer": ""}) for one in shipped.runs]
    assert list(choose(shipped.recorded).runs) == without_answers
