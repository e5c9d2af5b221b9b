"""Chain of thought worked through by hand: reasoning, the bare answer, a second call for it."""

from __future__ import annotations

from pipelines.base import Generation
from tests.scripted.script import QUESTION, TEXT, play, turns

REASONED = "Clinton was born in Arkansas, in Hope.\nAnswer: Hope"


async def test_one_call_gives_reasoning_and_answer():
    outcome = await play("chain_of_thought", ("First think the matter through", REASONED))
    assert outcome.answer.text == outcome.answer.original == REASONED
    assert (outcome.answer.short, outcome.answer.flags) == ("Hope", ())
    (messages,) = turns(outcome)
    # A model that is not weak is shown no demonstrations: the system turn and the question.
    assert [one.role for one in messages] == ["system", "user"]
    assert messages[-1].content == f"Question: {QUESTION}"


async def test_reasoning_without_an_answer_is_asked_for_it():
    outcome = await play(
        "chain_of_thought",
        ("First think", "Clinton was born in Hope."),
        ("Somebody has thought this through:\nClinton was born in Hope.", "Hope."),
    )
    assert outcome.answer.text == "Clinton was born in Hope."
    assert outcome.answer.short == "Hope"


async def test_an_answer_that_was_cut_off_is_asked_for_again():
    cut = Generation(text="He was born in the town of Hope.\nAnswer: Ho", finish_reason="length")
    outcome = await play("chain_of_thought", ("First think", cut), ("the town of Hope", "Hope"))
    assert outcome.answer.short == "Hope"
    assert outcome.answer.flags == ("truncated",)


async def test_without_any_answer_there_is_no_bare_one():
    outcome = await play("chain_of_thought", ("First think", "I wonder."), ("I wonder.", ""))
    assert outcome.answer.short is None
    assert outcome.answer.flags == ("no_final_answer",)


async def test_a_model_that_does_not_know_abstains():
    reply = "Nobody told me.\nAnswer: I don't know"
    outcome = await play("chain_of_thought", ("First think", reply))
    assert outcome.answer.abstained


async def test_a_weak_model_is_shown_examples_first():
    weak = TEXT.model_copy(update={"weak": True})
    outcome = await play("chain_of_thought", ("First think", REASONED), capabilities=weak)
    (messages,) = turns(outcome)
    roles = [one.role for one in messages]
    assert roles == ["system", *("user", "assistant") * 2, "user"]
    assert messages[2].content.endswith("Answer: yes")


async def test_a_chinese_question_is_reasoned_about_in_chinese():
    reply = "克林顿生于霍普。\n答案：霍普"
    question = "克林顿出生在哪里？"
    outcome = await play("chain_of_thought", ("另起一行", reply), question=question)
    assert outcome.answer.short == "霍普"
