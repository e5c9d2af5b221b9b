"""Adaptive-RAG worked through by hand: the class of a question decides how much is searched."""

from __future__ import annotations

import pytest

from tests.scripted.script import QUESTION, TEXT, play

FINDS = {"Where": ["He was born in Hope."]}
CLASSIFY = "How much has to be looked up"


async def test_a_simple_question_is_answered_from_memory():
    outcome = await play("adaptive_rag", (CLASSIFY, "A"), (QUESTION, "In Hope."), finds=FINDS)
    assert outcome.queries == []
    assert outcome.answer.flags == ("complexity_none",)


async def test_a_question_of_one_step_is_searched_for_once():
    outcome = await play(
        "adaptive_rag", (CLASSIFY, "B"), ("He was born in Hope.", "In Hope."), finds=FINDS
    )
    assert outcome.queries == [QUESTION]
    assert outcome.answer.flags == ("complexity_once",)


async def test_a_question_of_several_steps_is_searched_for_with_every_sentence():
    outcome = await play(
        "adaptive_rag",
        (CLASSIFY, "C"),
        ("He was born in Hope.", "He is from Arkansas. He"),
        ("Write the one sentence", "Answer: Hope"),
        finds=FINDS | {"Arkansas": ["Hope is in Arkansas."]},
    )
    assert outcome.queries == [QUESTION, "He is from Arkansas."]
    assert outcome.answer.short == "Hope"
    assert outcome.answer.flags == ("complexity_many",)


async def test_what_cannot_be_told_is_searched_for_once():
    outcome = await play(
        "adaptive_rag",
        (CLASSIFY, "It depends."),
        ("Reply with one letter only", "Hm."),
        ("He was born in Hope.", "In Hope."),
        finds=FINDS,
    )
    assert outcome.answer.flags == ("complexity_unknown",)


async def test_a_model_that_judges_by_chance_is_not_asked():
    outcome = await play(
        "adaptive_rag",
        ("He was born in Hope.", "In Hope."),
        finds=FINDS,
        capabilities=TEXT.model_copy(update={"judges": False}),
    )
    assert outcome.answer.flags == ("complexity_unknown",)


@pytest.mark.parametrize(("retrievals", "searches"), [("none", 0), ("once", 1)])
async def test_the_same_for_all_questions_needs_no_class(retrievals: str, searches: int):
    outcome = await play("adaptive_rag", (QUESTION, "In Hope."), finds=FINDS, retrievals=retrievals)
    assert len(outcome.queries) == searches
    assert outcome.answer.flags == ()
