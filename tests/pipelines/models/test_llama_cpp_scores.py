"""Texts that the embedded model reads: it is made to write them, and says how probable they are."""

from __future__ import annotations

import pytest

from pipelines.base import Message
from pipelines.models.base import ScoreRequest
from pipelines.models.llamacpp import EmbeddedModel
from tests.scripted.wire import asks

BORN = "Where was Bill Clinton born?"
MESSAGES = (Message(role="user", content=BORN),)


async def test_its_own_answer_is_as_probable_as_when_it_wrote_it(embedded_model: EmbeddedModel):
    (own,) = await embedded_model.generate(asks(BORN, logprobs=True, max_tokens=24))
    read = await embedded_model.score(ScoreRequest(messages=MESSAGES, text=own.text))
    assert read.text == own.text
    assert own.tokens
    assert read.tokens
    assert [token.text for token in read.tokens] == [token.text for token in own.tokens]
    wrote = [token.logprob for token in own.tokens]
    # Batches of another size round otherwise.
    assert [token.logprob for token in read.tokens] == pytest.approx(wrote, abs=0.1)


@pytest.mark.parametrize(
    "text",
    [
        'He said: "In Hope," and left.',
        "A \\ and a [bracket]\nin two lines,\tone tab.",
        "居里夫人出生于华沙。",
        "Zürich – 10 °C … 😀.",
    ],
)
async def test_any_text_is_read_to_the_letter(embedded_model: EmbeddedModel, text: str):
    read = await embedded_model.score(ScoreRequest(messages=MESSAGES, text=text))
    assert read.text == text
    assert read.tokens
    assert "".join(token.text for token in read.tokens) == text
    assert all(token.logprob is not None and token.logprob <= 0 for token in read.tokens)
    assert all(token.entropy is not None for token in read.tokens)


async def test_what_nobody_would_say_is_less_probable(embedded_model: EmbeddedModel):
    async def mean(text: str) -> float:
        read = await embedded_model.score(ScoreRequest(messages=MESSAGES, text=text))
        tokens = read.tokens or ()
        return sum(token.logprob or 0.0 for token in tokens) / len(tokens)

    likely = await mean("Bill Clinton was born in Arkansas.")
    assert likely > await mean("Bill Clinton zebra in born Arkansas the.")


def test_it_says_that_it_can(embedded_model: EmbeddedModel):
    assert embedded_model.capabilities.scores
