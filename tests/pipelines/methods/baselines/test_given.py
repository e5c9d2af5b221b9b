"""A correcting baseline starts from the answer that a run has, instead of writing one."""

from __future__ import annotations

import pytest

from pipelines.models.base import GenerationRequest
from pipelines.run.events import GivenAnswer
from tests.scripted.bench import Outcome
from tests.scripted.script import (
    PROBABLE,
    QUESTION,
    Turn,
    answer_verdict,
    play,
    written,
)

GIVEN = "Clinton was born in York."
FINDS = {"": ["Clinton was born in Hope."]}
FINAL = "Clinton was born in Hope."

TURNS: dict[str, list[Turn]] = {
    "chain_of_thought": [],
    "abstain": [],
    "adaptive_rag": [("How much has to be looked up", "A")],
    "cove": [
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "In Hope."),
        ("Final answer:", FINAL),
    ],
    "self_reflection": [
        ("Write down", "Clinton comes from Hope."),
        ("factually right", "YES"),
        ("Does the answer agree", "NO"),
        ("Write it again", FINAL),
        ("Does the answer agree", "YES"),
        ("Does this answer give", "YES"),
    ],
    "rarr": [
        ("Write at most", "1. In which town was Clinton born?"),
        ("In which town", "False"),
        ("Corrected text:", FINAL),
    ],
    "critic": [
        ("Proposed answer", "Clinton birthplace"),
        ("You check answers", "Reasoning: No.\nVerdict: False"),
        ("Correct answer:", FINAL),
        ("Proposed answer", "Clinton birthplace"),
        ("You check answers", "Reasoning: Yes.\nVerdict: True"),
    ],
}


async def run(name: str, *turns: Turn, **options: object) -> Outcome:
    given = GivenAnswer(text=GIVEN)
    return await play(name, *turns, given=given, finds=FINDS, **options)


@pytest.mark.parametrize("name", TURNS)
async def test_the_given_answer_is_the_original_and_no_draft_is_written(name: str):
    outcome = await run(name, *TURNS[name])
    assert outcome.answer.original == GIVEN
    corrects = name not in ("chain_of_thought", "abstain", "adaptive_rag")
    assert outcome.answer.text == (FINAL if corrects else GIVEN)


async def test_a_debate_begins_with_the_given_answer():
    outcome = await run(
        "debate",
        ("Question", "So it is.\nAnswer: Hope"),
        ("Question", "So it is.\nAnswer: Hope"),
        rounds=1,
    )
    assert outcome.answer.original == GIVEN
    # It marks no answer, and is itself one: no agent agrees with it.
    assert answer_verdict(outcome).deciding.inputs == (0.0, 2.0)
    assert outcome.answer.short == "Hope"


async def test_flare_reads_the_given_text_with_the_probabilities_a_model_gives_it():
    outcome = await run("flare", capabilities=PROBABLE)
    # Every token of the bench's scored texts has 0.8, which is not below the threshold.
    assert answer_verdict(outcome).verdict == "confident"
    assert outcome.answer.flags == ("tokens_read",)
    assert written(outcome) == []
    assert outcome.answer.text == GIVEN


async def test_flare_cannot_check_a_given_text_that_no_model_can_read():
    outcome = await run("flare", capabilities=PROBABLE.model_copy(update={"scores": False}))
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("not_checked",)


async def test_ircot_keeps_a_given_text_and_draws_the_bare_answer_from_it():
    outcome = await run("ircot", ("What is the answer that follows?", "York"))
    assert (outcome.answer.text, outcome.answer.short) == (GIVEN, "York")
    (request,) = written(outcome)
    assert isinstance(request, GenerationRequest)
    assert QUESTION in request.messages[-1].content
