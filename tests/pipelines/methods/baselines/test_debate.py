"""A debate worked through by hand: agents, rounds, majority, summary."""

from __future__ import annotations

import pytest

from pipelines.base import Generation
from tests.scripted.script import (
    QUESTION,
    TEXT,
    Script,
    answer_verdict,
    play,
    turns,
    written,
)


def says(town: str, why: str = "So it is.") -> str:
    return f"{why}\nAnswer: {town}"


FIRST = f"Question: {QUESTION}"


async def test_the_majority_of_the_last_round_is_the_answer():
    outcome = await play(
        "debate",
        (FIRST, says("York")),
        (FIRST, says("Hope")),
        (FIRST, says("Hope")),
        ("Person 2", says("Hope", "They are right.")),
        ("Person 2", says("Hope")),
        ("Person 2", says("York")),
    )
    assert outcome.answer.short == "Hope"
    assert outcome.answer.text == says("Hope", "They are right.")
    assert outcome.answer.original == says("York")
    verdict = answer_verdict(outcome)
    # One of three agents gives the original's answer at the end: 1/3, not more than a half.
    assert (verdict.verdict, verdict.deciding.inputs) == ("doubtful", (1.0, 3.0))
    assert verdict.deciding.value == pytest.approx(1 / 3)


async def test_each_agent_reads_the_others_and_its_own_answer():
    outcome = await play(
        "debate",
        (FIRST, says("York")),
        (FIRST, says("Hope")),
        (FIRST, says("Rome")),
        *[("Person 1", says("Hope"))] * 3,
    )
    second = turns(outcome)[4]
    assert [one.role for one in second] == ["system", "user", "assistant", "user"]
    assert second[2].content == says("Hope")
    assert "Person 1: So it is.\nAnswer: York" in second[3].content
    assert "Person 2: So it is.\nAnswer: Rome" in second[3].content
    assert "Hope" not in second[3].content
    # The first answer of the first agent is greedy, the others are drawn and numbered.
    drawn = [(request.temperature, request.sample) for request in written(outcome)]
    assert drawn == [(0.0, None), (1.0, 1), (1.0, 2), (1.0, 3), (1.0, 4), (1.0, 5)]


async def test_without_a_majority_the_model_sums_up():
    outcome = await play(
        "debate",
        (FIRST, says("York")),
        (FIRST, says("Hope")),
        (FIRST, says("Rome")),
        ("Weigh their reasons", "In Hope."),
        rounds=1,
    )
    assert outcome.answer.text == outcome.answer.short == "In Hope."
    assert outcome.answer.flags == ("no_majority",)


async def test_agreement_with_the_original_changes_nothing():
    outcome = await play("debate", *[(FIRST, says("Hope"))] * 3, rounds=1)
    assert outcome.answer.text == outcome.answer.original == says("Hope")
    assert outcome.drafts == [says("Hope")]
    assert answer_verdict(outcome).verdict == "confident"


async def test_an_agent_without_a_usable_reply_keeps_what_it_said_and_is_not_counted():
    outcome = await play(
        "debate",
        (FIRST, says("Hope")),
        (FIRST, ""),
        (FIRST, says("Hope")),
        ("Person 1", says("Hope")),
        ("Person 2", "I'm sorry, but I cannot answer that."),
        ("Person 1", ""),
    )
    # The second agent never gave an answer; the third keeps that of the first round.
    assert answer_verdict(outcome).deciding.inputs == (2.0, 2.0)
    assert outcome.answer.flags == ("fewer_agents",)


async def test_a_reply_that_marks_no_answer_takes_back_none():
    outcome = await play(
        "debate",
        (FIRST, says("Hope")),
        (FIRST, says("Hope")),
        ("Person 1", "I am not so sure any more."),
        ("Person 1", "I wonder."),
        agents=2,
    )
    assert outcome.answer.short == "Hope"
    assert answer_verdict(outcome).deciding.inputs == (2.0, 2.0)


async def test_where_no_answer_is_marked_nothing_is_counted():
    outcome = await play("debate", *[(FIRST, "I wonder.")] * 3, rounds=1)
    assert outcome.answer.text == "I wonder."
    assert answer_verdict(outcome).verdict == "unchecked"
    assert outcome.answer.flags == ("no_final_answer",)


async def test_yes_and_no_are_the_same_however_they_are_worded():
    question = "Was Bill Clinton born in Hope?"
    outcome = await play(
        "debate",
        ("Question", says("no")),
        ("Question", says("Yes, he was")),
        ("Question", says("yes")),
        question=question,
        rounds=1,
    )
    assert answer_verdict(outcome).deciding.inputs == (1.0, 3.0)
    assert outcome.answer.short == "Yes, he was"


async def test_a_verifier_is_every_second_agent():
    other = Script((FIRST, says("Hope")), capabilities=TEXT)
    outcome = await play(
        "debate",
        (FIRST, says("Hope")),
        (FIRST, says("Hope")),
        models={"verifier": other},
        rounds=1,
    )
    other.check()
    assert sorted(call.role for call in outcome.calls) == ["main", "main", "verifier"]


async def test_a_weak_models_majority_does_not_take_the_answers_place():
    outcome = await play(
        "debate",
        (FIRST, says("York")),
        (FIRST, says("Hope")),
        (FIRST, says("Hope")),
        rounds=1,
        capabilities=TEXT.model_copy(update={"weak": True}),
    )
    assert outcome.answer.text == says("York")
    assert outcome.answer.short == "York"
    assert outcome.answer.flags == ("revision_not_taken",)


async def test_answers_that_a_service_gives_again_are_no_majority():
    again = Generation(text=says("Hope"), repeated=True)
    outcome = await play("debate", (FIRST, says("Hope")), (FIRST, again), (FIRST, again), rounds=1)
    assert answer_verdict(outcome).verdict == "unchecked"
    assert set(outcome.answer.flags) == {"samples_repeated", "fewer_agents"}
