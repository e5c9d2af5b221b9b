"""An answer that is being written: which sentences are complete, and how each is checked."""

from __future__ import annotations

import pytest

from pipelines.engine.checking import TextToCheck
from pipelines.engine.messages import Utterance
from pipelines.engine.streaming import WrittenAnswer
from pipelines.run.events import MAX_TEXT

TEXT = "Dr. Marie Curie was born in 1867. She won 2.5 prizes, i.e. many! 她出生于华沙。她很有名"
SENTENCES = [
    "Dr. Marie Curie was born in 1867.",
    "She won 2.5 prizes, i.e. many!",
    "她出生于华沙。",
    "她很有名",
]


def read(pieces: list[str], about: TextToCheck | None = None) -> list[tuple[int, str]]:
    answer = WrittenAnswer(about or TextToCheck(text=""))
    found = [one for piece in pieces for one in answer.add(piece)] + answer.end()
    assert [one.number for one in found] == list(range(len(found)))
    assert all(answer.text[one.start : one.end] == one.text for one in found)
    return [(one.number, one.text) for one in found]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40, 500])
def test_sentences_are_the_same_however_the_text_comes(size: int):
    pieces = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
    assert [text for _, text in read(pieces)] == SENTENCES


def test_a_sentence_is_complete_when_the_next_one_begins():
    answer = WrittenAnswer(TextToCheck(text=""))
    assert answer.add("It was built in 1889.") == []
    assert [one.text for one in answer.add(" It")] == ["It was built in 1889."]
    assert [one.text for one in answer.end()] == ["It"]
    assert answer.end() == []


def test_what_is_thought_is_no_sentence():
    answer = WrittenAnswer(TextToCheck(text=""))
    found = [one for piece in ("<think>It is", " tall. It is old.", "</think>It is red. ", "Yes.")
             for one in answer.add(piece)] + answer.end()  # fmt: skip
    assert [one.text for one in found] == ["It is red.", "Yes."]


def test_each_sentence_brings_the_question_and_the_sources_of_the_answer():
    about = TextToCheck(text="", question="Who was she?", sources=("A.",))
    answer = WrittenAnswer(about)
    first, second = [*answer.add("Curie was a physicist. She died in 1934."), *answer.end()]
    assert first.given == about.model_copy(update={"text": "Curie was a physicist."})
    assert second.given == about.model_copy(update={"text": "She died in 1934."})
    # Without a question the first sentence says whom a pronoun means.
    alone = WrittenAnswer(TextToCheck(text=""))
    _, later = [*alone.add("Curie was a physicist. She died in 1934."), *alone.end()]
    assert later.given is not None
    assert later.given.question == "Curie was a physicist."


def test_a_conversation_before_it_gives_the_question_and_the_sources():
    said = (
        Utterance(speaker="user", text="When was Marie Curie born?"),
        Utterance(speaker="tool", text="Born in 1867."),
    )
    (one,) = [*(answer := WrittenAnswer(TextToCheck(text=""), said)).add("In 1867."), *answer.end()]
    assert one.given is not None
    assert one.given.question == "When was Marie Curie born?"
    assert one.given.sources == ("Born in 1867.",)


def test_what_holds_no_word_is_not_checked_and_what_is_too_long_is_cut():
    answer = WrittenAnswer(TextToCheck(text=""))
    assert [one.given for one in (*answer.add("* ..."), *answer.end())] in ([None], [])
    answer.add("word " * MAX_TEXT)
    assert answer.cut
    assert len(answer.text) == MAX_TEXT
