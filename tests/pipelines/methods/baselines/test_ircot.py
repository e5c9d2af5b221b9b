"""IRCoT worked through by hand: a search for every sentence, by the sentence before it."""

from __future__ import annotations

import pytest

from tests.scripted.bench import Outcome
from tests.scripted.script import QUESTION, play, turns

FINDS = {
    "Where was": ["Clinton grew up in Hot Springs."],
    "grew up": ["He was born in Hope.", "Hope is a town."],
    "born in Hope": ["Hope is in Arkansas."],
}


async def test_each_sentence_is_the_query_for_the_next():
    outcome = await play(
        "ircot",
        ("[1] A title: Clinton grew up", "Clinton grew up in Hot Springs. He"),
        ("Write the one sentence that comes next", "He was born in Hope."),
        ("Hope is in Arkansas.", "Answer: Hope"),
        finds=FINDS,
    )
    assert outcome.queries == [
        QUESTION,
        "Clinton grew up in Hot Springs.",
        "He was born in Hope.",
    ]
    assert outcome.drafts == [
        "Clinton grew up in Hot Springs.",
        "Clinton grew up in Hot Springs. He was born in Hope.",
        "Clinton grew up in Hot Springs. He was born in Hope. Answer: Hope",
    ]
    assert outcome.answer.short == "Hope"
    assert outcome.answer.text == outcome.answer.original == outcome.drafts[-1]
    assert outcome.answer.flags == ()


def prompt(outcome: Outcome, call: int) -> str:
    return turns(outcome)[call][-1].content


@pytest.mark.parametrize(("keep", "seen"), [("all", True), ("newest", False)])
async def test_what_was_found_before_stays_in_view_or_does_not(keep: str, seen: bool):
    outcome = await play(
        "ircot",
        ("A title", "Clinton grew up in Hot Springs. He"),
        ("He was born in Hope.", "Answer: Hope"),
        finds=FINDS,
        keep=keep,
    )
    assert ("A title: Clinton grew up" in prompt(outcome, 1)) is seen


async def test_beyond_the_maximum_the_oldest_passages_leave():
    outcome = await play(
        "ircot",
        ("A title", "Clinton grew up in Hot Springs. He"),
        ("[1] A title: Hope is a town.", "Answer: Hope"),
        finds=FINDS,
        max_passages=1,
    )
    assert "[2]" not in prompt(outcome, 1)


async def test_a_chain_without_an_answer_is_asked_for_it():
    outcome = await play(
        "ircot",
        ("A title", "Clinton grew up in Hot Springs. He"),
        ("Write the one sentence", "DONE"),
        ("What is the answer that follows?", "Hot Springs"),
        finds=FINDS,
    )
    assert outcome.answer.text == "Clinton grew up in Hot Springs."
    assert outcome.answer.short == "Hot Springs"


async def test_it_ends_with_the_maximum_of_sentences():
    outcome = await play(
        "ircot",
        ("A title", "Clinton grew up in Hot Springs. He"),
        ("What is the answer that follows?", "Hot Springs"),
        finds=FINDS,
        max_sentences=1,
    )
    assert outcome.queries == [QUESTION]


async def test_a_refusal_ends_the_text_with_a_flag():
    outcome = await play(
        "ircot",
        ("A title", "Clinton grew up in Hot Springs. He"),
        ("Write the one sentence", "I'm sorry, but I cannot continue."),
        ("What is the answer that follows?", "Hot Springs"),
        finds=FINDS,
    )
    assert outcome.answer.text == "Clinton grew up in Hot Springs."
    assert outcome.answer.flags == ("continuation_unusable",)


async def test_without_passages_it_reasons_from_memory_and_says_so():
    outcome = await play(
        "ircot",
        ("First think the matter through", "Easy.\nAnswer: Hope"),
        ("Written so far: Easy.", "Answer: Hope"),
    )
    assert outcome.answer.short == "Hope"
    assert outcome.answer.flags == ("no_evidence",)
