"""Streams whose every piece holds all of the text so far, told from those that add to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest

from pipelines.models.base import Delta
from pipelines.models.growing import GrowingText
from pipelines.models.openai import OpenAIModel
from tests.scripted.wire import Wire, asks, chunk, entry, streams

ANSWERS = (
    ("The moon ", "pulls ", "the water", "."),
    ("月亮", "吸引", "海水，", "每天两次涨落。"),
    ("# Tides\n", "\n- one\n", "- two\n", "- three\n"),
    ("\n\n", "Yes", ", it is", " in Paris."),
    ("It is 16", ".27 metres", " high."),
    ("Ha ha ", "ha ", "ha, said he, and ", "laughed."),
    ("Whole in two ", "pieces."),
    ("P", "a", "r", "is"),
    ("是", "的"),
    ("Yes", "."),
)
REPEATS = (
    ("ha", "ha", "ha", "ha", "ha", "ha"),
    ("ha", "haha", "hahaha", "hahahaha"),
    ("No.\n", "No.\nNo.\n", "No.\nNo.\nNo.\n"),
    ("The same line.\n",) * 3,
    ("The same line. ", "The same line. The same line. ", "The same"),
    ("再见", "再见再见", "再见再见再见再见"),
    ("1", "10", "100", "1000"),
    (" ", "  ", "   x = 1"),
    ("a", "an", "ant", "eater"),
    ("caf\ufffd", " is here"),
    ("I am ", "I am here. ", "It is so."),
    ("=", "==", "==="),
)


def read(pieces: Sequence[str]) -> str:
    text = GrowingText()
    return "".join([*(text.add(piece)[0] for piece in pieces), text.close()[0]])


@pytest.mark.parametrize("pieces", ANSWERS)
def test_pieces_that_hold_the_whole_text_are_read_as_what_adds_to_it(pieces: Sequence[str]):
    whole = list(accumulate(pieces))
    said = "".join(pieces)
    assert read(pieces) == said
    assert read(whole) == said
    # Said again while nothing is new, and half a character at the end.
    assert read([one for one in whole for _ in range(2)]) == said
    assert read([f"{one}\ufffd" for one in whole[:-1]] + whole[-1:]) == said


@pytest.mark.parametrize("pieces", REPEATS)
def test_a_model_that_repeats_itself_is_read_as_it_repeats(pieces: Sequence[str]):
    assert read(pieces) == "".join(pieces)


def test_all_of_it_once_more_in_a_last_piece_is_nothing_new():
    text, said = GrowingText(), ("The moon ", "pulls ", "the water.")
    found = [text.add(piece)[0] for piece in said]
    assert text.add("".join(said), last=True)[0] == ""
    assert found == list(said)


def test_a_whole_text_that_takes_back_what_it_said_is_no_answer():
    text = GrowingText()
    for piece in accumulate(ANSWERS[0]):
        text.add(piece)
    with pytest.raises(ValueError, match="takes back"):
        text.add("Something else altogether.")


@pytest.mark.parametrize("pieces", ANSWERS)
@pytest.mark.parametrize("ended", ["in the last", "by itself", "not at all"])
@pytest.mark.parametrize("kind", ["delta", "thought"])
async def test_such_a_stream_of_a_server(wire: Wire, pieces: Sequence[str], ended: str, kind: str):
    whole = list(accumulate(pieces))
    if kind == "thought":
        sent = [chunk("", reasoning_content=one) for one in whole] + [chunk("Answer.")]
    else:
        sent = [chunk(one) for one in whole]
    if ended == "in the last":
        sent[-1]["choices"][0]["finish_reason"] = "stop"
    elif ended == "by itself":
        sent.append(chunk(finish="stop"))
    wire.answers(streams(*sent))
    shown: list[Delta] = []
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(), shown.append)
    said = "".join(pieces)
    if kind == "thought":
        assert (reply.text, reply.thinking) == ("Answer.", said.strip())
    else:
        assert reply.text.strip() == said.strip() == "".join(one.text for one in shown).strip()


@pytest.mark.parametrize("all_of_them", [True, False])
async def test_probabilities_of_such_a_stream(wire: Wire, all_of_them: bool):
    words = ("The ", "moon ", "pulls ", "water.")
    entries = [entry(word, 0.5) for word in words]
    sent = [
        chunk("".join(words[: at + 1]), entries=entries[0 if all_of_them else at : at + 1])
        for at in range(len(words))
    ]
    wire.answers(streams(*sent, chunk(finish="stop")))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    (reply,) = await model.generate(asks(logprobs=True), lambda delta: None)
    assert [one.text for one in reply.tokens or ()] == list(words)
