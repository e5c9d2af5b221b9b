"""What is trained on and what is kept back."""

from __future__ import annotations

import pytest

from pipelines.evaluation.datasets.bundled import sample_rows
from pipelines.research.sources import Sources
from pipelines.research.training.examples import TrainingPair
from pipelines.research.training.recipe import (
    Recipe,
    answer_as_statement,
    held_out,
    split,
    training_texts,
)


def pair(make: str, number: int = 0, group: str = "g") -> TrainingPair:
    return TrainingPair(
        evidence="e", statement=f"s{number}", label="supported", make=make, group=f"{group}{number}"
    )


def test_articles_that_statements_are_about_are_not_trained_on():
    measured_on = {row["article"] for row in sample_rows("statements.csv", "en")}
    trained_on = {text.name for text in training_texts(Sources())}
    assert measured_on
    assert len(trained_on) > 20
    assert not measured_on & trained_on


def test_groups_are_kept_back_whole_and_more_of_those_people_judged():
    groups = [f"g-{n}" for n in range(3000)]
    judged = [f"wikibio-{n}" for n in range(3000)]

    def share(names: list[str]) -> float:
        return sum(held_out(pair("m", group=name)) for name in names) / len(names)

    assert 0.06 < share(groups) < 0.11
    assert 0.14 < share(judged) < 0.20
    assert held_out(pair("wikibio", 3, "x")) == held_out(pair("statement", 3, "x"))


def test_pairs_of_a_text_are_kept_or_trained_on_together():
    kept = {held_out(pair("m", n, "one").model_copy(update={"group": "one"})) for n in range(20)}
    assert len(kept) == 1
    share = sum(held_out(pair("m", group=f"text {n}")) for n in range(2400)) / 2400
    assert share == pytest.approx(1 / 12, abs=0.02)


def test_a_group_is_trained_on_or_held_out():
    found = split(Sources(), Recipe(rounds=1))
    assert found.training
    assert not {one.group for one in found.training} & {one.group for one in found.kept}


def answer(said: str, question: str = "Who wrote the play?", **more) -> TrainingPair:
    return TrainingPair(
        evidence="Ann Lee wrote it.",
        statement=said,
        label="contradicted",
        make="qa-span",
        group="g",
        question=question,
        **more,
    )


def test_only_the_answer_is_wrong():
    found = answer_as_statement(answer("Bob").wholly_wrong)
    assert found is not None
    assert (found.statement, found.question) == ("Bob wrote the play.", "")
    assert (found.label, found.make, found.group) == ("contradicted", "told", "g")
    assert found.wrong == ((0, 3),)


def test_where_the_wrong_words_are_unknown_they_stay_so():
    unknown = answer_as_statement(answer("Bob"))
    right = answer_as_statement(answer("Bob").wholly_right)
    assert unknown is not None
    assert right is not None
    assert (unknown.wrong, right.wrong) == (None, ())


def test_long_answers_and_odd_questions_are_left_out():
    long = "He who was called the first of all the poets of the town"
    for pair in (answer(long), answer("Bob", "Why?"), answer("Bob", "")):
        assert answer_as_statement(pair) is None
