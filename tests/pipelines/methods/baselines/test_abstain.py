"""Answer or abstain: what the model is told, and which replies are no answer."""

from __future__ import annotations

import pytest

from pipelines.methods.baselines.abstain import abstains
from tests.scripted.script import QUESTION, play, turns


async def test_from_memory_the_model_is_told_what_to_say_when_it_does_not_know():
    told = "exactly these words and nothing else: I don't know."
    outcome = await play("abstain", (told, "Hope."))
    assert (outcome.answer.text, outcome.answer.abstained) == ("Hope.", False)
    assert outcome.queries == []


async def test_a_model_that_says_so_abstains():
    outcome = await play("abstain", (QUESTION, "I don't know."))
    assert outcome.answer.abstained
    assert outcome.answer.text == "I don't know."


async def test_with_retrieval_it_answers_from_the_passages_alone():
    outcome = await play(
        "abstain",
        ("only from the passages", "In Hope."),
        finds={"Clinton": ["He was born in Hope."]},
        retrieval=True,
    )
    assert outcome.queries == [QUESTION]
    (messages,) = turns(outcome)
    assert "[1] A title: He was born in Hope." in messages[-1].content
    assert not outcome.answer.abstained


async def test_where_nothing_is_found_it_answers_from_memory_and_says_so():
    outcome = await play("abstain", ("only if you are sure", "In Hope."), retrieval=True)
    assert outcome.answer.flags == ("no_evidence",)


@pytest.mark.parametrize(
    ("reply", "abstained"),
    [
        ("I don't know.", True),
        ("I'm sorry, but I cannot answer that.", True),
        ("The passages do not mention where he was born.", True),
        ("我不知道。", True),
        ("资料没有提到他的出生地。", True),
        ("He was born in Hope.", False),
        ("He was born in Hope. The passages do not say when.", False),
        ("Nobody knows who built it.", False),
        ("", False),
    ],
)
def test_which_replies_are_no_answer(reply: str, abstained: bool):
    assert abstains(reply) is abstained
