"""Direct and RAG: what they ask, and what they say when nothing is found."""

import pytest

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.registry import METHODS
from pipelines.models.base import GenerationRequest
from pipelines.run.events import ModelCalled, Revised
from tests.scripted.bench import Outcome, PieceModel, Shelf, run_method

QUESTION = "Where was Bill Clinton born?"


def only_request(outcome: Outcome) -> GenerationRequest:
    (call,) = outcome.calls
    assert isinstance(call, ModelCalled)
    assert isinstance(call.request, GenerationRequest)
    return call.request


async def test_direct_asks_once_greedily_and_keeps_probabilities():
    outcome = await run_method(METHODS["direct"], QUESTION, PieceModel(lambda _: "In Hope."))
    request = only_request(outcome)
    assert (request.temperature, request.logprobs, request.max_tokens) == (0.0, True, 128)
    assert request.messages[-1].content == QUESTION
    assert outcome.answer.text == outcome.answer.original == "In Hope."
    assert outcome.queries == []


async def test_rag_searches_with_the_question_and_shows_passages_in_order():
    shelf = Shelf(lambda _: ["First.", "Second.", "Third."])
    outcome = await run_method(
        METHODS["rag"], QUESTION, PieceModel(lambda _: "In Hope."), shelf=shelf, passages=2
    )
    assert outcome.queries == [QUESTION]
    prompt = only_request(outcome).messages[-1].content
    assert prompt.index("[1] A title: First.") < prompt.index("[2] A title: Second.")
    assert "Third" not in prompt
    assert prompt.endswith(f"Question: {QUESTION}")
    assert outcome.answer.flags == ()


async def test_rag_without_a_passage_answers_from_memory_and_says_so():
    outcome = await run_method(
        METHODS["rag"], QUESTION, PieceModel(lambda _: "In Hope."), shelf=Shelf(lambda _: [])
    )
    assert outcome.answer.flags == ("no_evidence",)
    assert only_request(outcome).messages[-1].content == QUESTION


async def test_a_chinese_question_is_asked_in_chinese():
    outcome = await run_method(
        METHODS["rag"],
        "克林顿出生在哪里？",
        PieceModel(lambda _: "霍普。"),
        shelf=Shelf(lambda _: ["他出生在霍普。"]),
    )
    system, user = only_request(outcome).messages
    assert "资料" in system.content
    assert user.content == "[1] A title：他出生在霍普。\n\n问题：克林顿出生在哪里？"


@pytest.mark.parametrize("name", ["direct", "rag"])
async def test_inline_thinking_is_no_part_of_an_answer(name: str):
    reply = [("<think>Hope?</think>", 0.9), ("\n", 0.9), ("In", 0.8), (" Hope.", 0.7)]
    outcome = await run_method(
        METHODS[name], QUESTION, PieceModel(lambda _: reply), shelf=Shelf(lambda _: ["It is."])
    )
    assert outcome.answer.text == outcome.answer.original == "In Hope."
    (draft,) = (event.generation for event in outcome.events if isinstance(event, Revised))
    tokens = draft.tokens or ()
    assert [draft.text[token.start : token.end] for token in tokens] == ["In", " Hope."]
    assert [token.probability for token in tokens] == pytest.approx([0.8, 0.7])
    assert reevaluate(outcome.trace, METHODS[name], METHODS[name].settings()).diverges_at is None


async def test_dollar_signs_and_markup_in_a_question_are_only_text():
    question = "What costs $5 $question <b>?"
    outcome = await run_method(METHODS["direct"], question, PieceModel(lambda _: "Tea."))
    assert only_request(outcome).messages[-1].content == question
