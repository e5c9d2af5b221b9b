"""The embedded model on its real llama.cpp server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from itertools import pairwise
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from pipelines.base import Message
from pipelines.errors import RefusedRequestError
from pipelines.models.base import ChoiceRequest, Delta, Option, no_progress
from pipelines.models.llamacpp import EmbeddedModel, ServedModel, gguf_path
from tests.scripted.wire import asks

BORN = "Where was Bill Clinton born?"
STORY = "Write a long story about a fox."
TOWN = {
    "type": "object",
    "properties": {"town": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["town", "age"],
}


async def eventually(condition: Callable[[], bool], patience: float = 60.0) -> bool:
    """Whether `condition` comes true within `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


def is_idle(model: EmbeddedModel) -> bool:
    return model.server.counters()["requests_processing"] == 0


def without_streaming(model: EmbeddedModel) -> ServedModel:
    """The same server, asked for replies in one piece."""
    whole = ServedModel(model.server, "embedded", no_progress)
    whole._always_stream = False
    return whole


async def test_tokens_spell_the_text_and_carry_their_probabilities(embedded_model: EmbeddedModel):
    (reply,) = await embedded_model.generate(asks(BORN, logprobs=True, top_k=5, max_tokens=12))
    assert reply.tokens
    assert "".join(token.text for token in reply.tokens) == reply.text
    assert all(one.end == other.start for one, other in pairwise(reply.tokens))
    for token in reply.tokens:
        assert token.logprob is not None
        assert token.logprob <= 0
        assert token.entropy is not None
        assert token.entropy > 0
        assert token.top_k == 5
        assert 0 < token.tail_mass < 1
        # Written without chance, so it is the most probable one.
        assert token.alternatives[0].text == token.text
        assert token.alternatives[0].logprob == token.logprob
    assert reply.usage.completion_tokens >= len(reply.tokens)


async def test_more_alternatives_only_raise_the_entropy(embedded_model: EmbeddedModel):
    few, many = [
        (await embedded_model.generate(asks(BORN, logprobs=True, top_k=k, max_tokens=1)))[0]
        for k in (3, 100)
    ]
    assert few.tokens
    assert many.tokens
    assert many.tokens[0].top_k == 100
    assert (many.tokens[0].entropy or 0) > (few.tokens[0].entropy or 0)
    assert many.tokens[0].tail_mass < few.tokens[0].tail_mass


async def test_streamed_and_whole_replies_are_the_same(embedded_model: EmbeddedModel):
    request = asks(BORN, logprobs=True, max_tokens=40, reproducible=True)
    deltas: list[Delta] = []
    (streamed,) = await embedded_model.generate(request, deltas.append)
    (whole,) = await without_streaming(embedded_model).generate(request)
    assert streamed == whole
    assert len(deltas) > 1
    assert "".join(delta.text for delta in deltas) == whole.text
    assert tuple(token for delta in deltas for token in delta.tokens) == whole.tokens


async def test_reproducible_requests_repeat_to_the_last_bit(embedded_model: EmbeddedModel):
    request = asks(STORY, logprobs=True, max_tokens=24, reproducible=True)
    noise = [asyncio.ensure_future(embedded_model.generate(asks(STORY, max_tokens=24)))]
    first = await embedded_model.generate(request)
    noise += [asyncio.ensure_future(embedded_model.generate(asks(BORN, max_tokens=24)))]
    assert await embedded_model.generate(request) == first
    await asyncio.gather(*noise)


async def test_draws_differ_and_repeat_by_their_seed(embedded_model: EmbeddedModel):
    request = asks(STORY, n=3, temperature=1.0, max_tokens=12, reproducible=True)
    drawn = [reply.text for reply in await embedded_model.generate(request)]
    assert len(set(drawn)) == 3
    assert [reply.text for reply in await embedded_model.generate(request)] == drawn
    other = request.model_copy(update={"sample": 1})
    assert not {reply.text for reply in await embedded_model.generate(other)} & set(drawn)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_begun_answer_is_continued_and_not_repeated(
    embedded_model: EmbeddedModel, streamed: bool
):
    model = embedded_model if streamed else without_streaming(embedded_model)
    # How it goes on is clear: no rounding of the weights decides it.
    question, prefix = "Who was the first president?", "The first president was George"
    for logprobs in (True, False):
        request = asks(question, prefix, logprobs=logprobs, max_tokens=4, reproducible=True)
        (reply,) = await model.generate(request)
        assert reply.text.startswith(" Washington")
        if logprobs:
            assert reply.tokens
            assert reply.tokens[0].start == 0


@pytest.mark.parametrize("watched", [False, True])
async def test_a_schema_is_obeyed(embedded_model: EmbeddedModel, watched: bool):
    pieces: list[str] = []
    watch = (lambda delta: pieces.append(delta.text)) if watched else None
    request = asks("Tell me of a town.", json_schema=TOWN, logprobs=True, max_tokens=64)
    (reply,) = await embedded_model.generate(request, watch)
    record = json.loads(reply.text)
    assert set(record) == {"town", "age"}
    assert isinstance(record["age"], int)
    assert reply.tokens
    assert "".join(token.text for token in reply.tokens) == reply.text
    assert not watched or "".join(pieces) == reply.text


async def test_a_stop_string_is_no_part_of_the_text(embedded_model: EmbeddedModel):
    request = asks("Count from 1 to 10.", "1, 2, 3,", stop=(", 6",), logprobs=True, max_tokens=20)
    (reply,) = await embedded_model.generate(request)
    assert (reply.text, reply.finish_reason) == (" 4, 5", "stop")
    assert reply.tokens
    assert reply.tokens[-1].end == len(reply.text)


async def test_characters_of_several_tokens(embedded_model: EmbeddedModel):
    deltas: list[Delta] = []
    # Nothing else can be written.
    schema = {
        "type": "object",
        "properties": {"said": {"enum": ["魍魉 龘 🦜"]}},
        "required": ["said"],
        "additionalProperties": False,
    }
    request = asks("Say something.", json_schema=schema, logprobs=True, max_tokens=64)
    (reply,) = await embedded_model.generate(request, deltas.append)
    assert json.loads(reply.text) == {"said": "魍魉 龘 🦜"}
    assert "魍魉 龘 🦜" in reply.text
    assert "\ufffd" not in "".join(delta.text for delta in deltas)
    assert reply.tokens
    assert all(reply.text[token.start : token.end] == token.text for token in reply.tokens)
    assert reply.tokens[-1].end == len(reply.text)


async def test_the_watcher_frees_the_server(embedded_model: EmbeddedModel):
    written: list[str] = []

    def watch(delta: Delta) -> bool:
        written.append(delta.text)
        return len(written) == 3

    (reply,) = await embedded_model.generate(asks(STORY, max_tokens=1500), watch)
    assert (reply.text, reply.finish_reason) == ("".join(written), "watcher")
    assert await eventually(lambda: is_idle(embedded_model))


@pytest.mark.parametrize("watched", [False, True])
async def test_cancelling_frees_the_server(embedded_model: EmbeddedModel, watched: bool):
    watch = (lambda delta: None) if watched else None
    calls = [
        asyncio.create_task(embedded_model.generate(asks(STORY, max_tokens=1500), watch))
        for _ in range(3)
    ]
    busy = embedded_model.server.counters
    assert await eventually(lambda: busy()["requests_processing"] == 3)
    for call in calls:
        call.cancel()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    assert await eventually(lambda: is_idle(embedded_model))


async def test_callers_are_served_side_by_side(embedded_model: EmbeddedModel):
    most = 0.0

    def watch(delta: Delta) -> None:
        nonlocal most
        most = max(most, embedded_model.server.counters()["requests_processing"])

    cities = ("Paris", "Rome", "Oslo", "Cairo", "Lima", "Delhi")
    replies = await asyncio.gather(
        *(
            embedded_model.generate(asks(f"Describe {city}.", max_tokens=24), watch)
            for city in cities
        )
    )
    assert most > 1
    assert all(city in reply.text for city, (reply,) in zip(cities, replies, strict=True))


async def test_choices_are_made_of_first_token_probabilities(embedded_model: EmbeddedModel):
    request = ChoiceRequest(
        messages=(Message(role="user", content="Is Paris in France? Answer YES or NO."),),
        options=(
            Option(label="yes", spellings=("YES", "Yes", "yes")),
            Option(label="no", spellings=("NO", "No", "no")),
        ),
        reproducible=True,
    )
    choice = await embedded_model.choose(request)
    assert choice.source == "logprobs"
    assert all(0 < share < 1 for share in choice.probabilities.values())
    assert sum(choice.probabilities.values()) + choice.other_mass == pytest.approx(1.0)


async def test_a_text_too_long_is_refused_in_the_servers_words(embedded_model: EmbeddedModel):
    with pytest.raises(RefusedRequestError, match="context"):
        await embedded_model.generate(asks("word " * 9000))


async def test_nothing_names_a_path_and_nobody_else_gets_in(embedded_model: EmbeddedModel):
    base = embedded_model.server.start()

    def get(path: str, key: str | None) -> str:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with urlopen(Request(f"{base}/{path}", headers=headers)) as answer:
            return answer.read().decode()

    listed = await asyncio.to_thread(get, "models", embedded_model.server.key)
    assert "SmolLM2-135M-Instruct" in listed
    assert str(gguf_path().parent) not in listed
    for key in (None, "guess"):
        with pytest.raises(HTTPError, match="401"):
            await asyncio.to_thread(get, "models", key)


def test_the_embedded_model_says_what_it_can_do(embedded_model: EmbeddedModel):
    able = embedded_model.capabilities
    assert able.languages == {"en"}
    assert able.logprobs
    assert able.structured_output
    assert able.prefill
    assert able.streaming
    assert able.top_logprobs is not None
    assert able.scores
