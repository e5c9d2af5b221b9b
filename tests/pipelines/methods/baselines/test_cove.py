"""CoVe worked through by hand: draft, questions, answers apart, final answer."""

from __future__ import annotations

import pytest

from pipelines.base import Generation
from tests.scripted.script import QUESTION, TEXT, play, turns, verdicts

DRAFT = "Clinton was born in York in 1946."
PLAN = "1. In which town was Clinton born?\n2. In which year was Clinton born?"
FINAL = "Clinton was born in Hope in 1946."


async def test_the_questions_are_answered_without_the_draft_and_decide_the_answer():
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most 5 short questions", PLAN),
        ("In which town was Clinton born?", "In Hope."),
        ("In which year was Clinton born?", "In 1946."),
        ("Checked: In which town was Clinton born? In Hope.", FINAL),
    )
    assert (outcome.answer.text, outcome.answer.original) == (FINAL, DRAFT)
    assert outcome.answer.flags == ()
    # Factored: neither call that answers a question sees the draft.
    for messages in turns(outcome)[2:4]:
        assert all("York" not in one.content for one in messages)
    assert verdicts(outcome, "question") == [
        ("In which town was Clinton born?", "unchecked"),
        ("In which year was Clinton born?", "unchecked"),
    ]
    assert outcome.drafts == [DRAFT, FINAL]


async def test_factor_and_revise_says_first_what_the_draft_disagrees_with():
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most", PLAN),
        ("In which town", "In Hope."),
        ("In which year", "In 1946."),
        ("Does the draft agree", "NO"),
        ("Does the draft agree", "YES"),
        ("In Hope. (The draft disagrees with this.)", FINAL),
        variant="factor_revise",
    )
    assert verdicts(outcome, "question") == [
        ("In which town was Clinton born?", "contradicted"),
        ("In which year was Clinton born?", "supported"),
    ]
    final = turns(outcome)[-1][-1].content
    assert final.count("disagrees") == 1
    assert outcome.answer.text == FINAL


async def test_a_list_without_a_question_leaves_the_draft():
    outcome = await play("cove", (QUESTION, DRAFT), ("Write at most", "There is nothing to ask."))
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("no_questions",)


async def test_the_visitors_own_question_checks_nothing():
    outcome = await play("cove", (QUESTION, DRAFT), ("Write at most", f"1. {QUESTION}"))
    assert outcome.answer.flags == ("no_questions",)


async def test_questions_without_an_answer_are_left_out():
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most", PLAN),
        ("In which town", "I don't know."),
        ("In which year", "In 1946."),
        ("Checked: In which year", DRAFT),
    )
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("checks_incomplete",)
    assert "In which town" not in turns(outcome)[-1][-1].content


async def test_where_no_question_is_answered_nothing_is_rewritten():
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most", PLAN),
        ("In which town", ""),
        ("In which year", "I don't know."),
    )
    assert outcome.answer.flags == ("not_checked",)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I'm sorry, but I cannot answer that.",
        QUESTION,
        "克林顿出生在霍普。",
        Generation(text="Clinton was bo", finish_reason="length"),
        Generation(text="Clinton", finish_reason="filter"),
    ],
)
async def test_a_final_answer_that_cannot_be_used_leaves_the_draft(reply: str | Generation):
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "In Hope."),
        ("Final answer:", reply),
    )
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("revision_unusable",)
    assert outcome.drafts == [DRAFT]


@pytest.mark.parametrize(("rewriting", "text"), [("auto", DRAFT), ("always", FINAL)])
async def test_a_weak_models_rewriting_is_taken_only_where_that_is_set(rewriting: str, text: str):
    outcome = await play(
        "cove",
        (QUESTION, DRAFT),
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "In Hope."),
        ("Final answer:", FINAL),
        capabilities=TEXT.model_copy(update={"weak": True}),
        rewriting=rewriting,
    )
    assert outcome.answer.text == text
    assert ("revision_not_taken" in outcome.answer.flags) is (text == DRAFT)
