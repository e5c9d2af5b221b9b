"""Every fault of a server as a typed error with a way out."""

from __future__ import annotations

import asyncio
import math
import socket
from typing import Any

import pytest

from pipelines.base import Usage
from pipelines.errors import (
    AuthenticationError,
    CapabilityError,
    InvalidInputError,
    InvalidReplyError,
    MissingKeyError,
    ModelTimeoutError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    UnknownModelError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.models import openai
from pipelines.models.base import ChoiceRequest, Delta, Option
from pipelines.models.hosted import longest_text
from pipelines.models.openai import OpenAIModel
from pipelines.models.replies import NO_MARKS
from pipelines.remote import MOST_BYTES
from tests.scripted.wire import (
    Respond,
    Wire,
    asks,
    breaks_off,
    chunk,
    completion,
    drips,
    entry,
    event,
    refusal,
    says,
    streams,
    waits,
)

KEY = "sk-secret1234567890abcdef"


async def fails(
    wire: Wire, *replies: Respond, watched: bool = False, key: str | None = KEY, **request: Any
) -> VeriscopeError:
    """The error a call ends with; neither its text nor its cause's text may hold the key."""
    wire.answers(*replies)
    model = OpenAIModel("Model", "m", base_url=wire.url, api_key=key, timeout=30)
    with pytest.raises(VeriscopeError) as caught:
        await model.generate(asks(**request), (lambda delta: None) if watched else None)
    assert KEY not in str(caught.value)
    assert KEY not in caught.value.info().model_dump_json()
    assert caught.value.remedy
    assert caught.value.provider is not None
    return caught.value


def said(content: object) -> dict[str, object]:
    """An answer whose text may be none."""
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


@pytest.mark.parametrize("watched", [False, True])
async def test_a_key_that_is_echoed_in_a_text_is_hidden(wire: Wire, watched: bool):
    text = f"You sent {KEY}, and I am well."
    wire.answers(streams(chunk(text), chunk(finish="stop")) if watched else says(completion(text)))
    model = OpenAIModel("Model", "m", base_url=wire.url, api_key=KEY)
    shown: list[str] = []
    watch = (lambda delta: shown.append(delta.text)) if watched else None
    (reply,) = await model.generate(asks(), watch)
    assert reply.text == "You sent [key], and I am well."
    assert KEY not in "".join(shown)
    # What is too short to be a secret may be a word.
    model = OpenAIModel("Model", "m", base_url=wire.url, api_key="well")
    (reply,) = await model.generate(asks(), watch)
    assert reply.text == text


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, refusal(f"Incorrect API key provided: {KEY}."), AuthenticationError),
        (403, refusal("No access"), AuthenticationError),
        (404, refusal("The model `m` does not exist", code="model_not_found"), UnknownModelError),
        (404, refusal("model 'm' not found, try pulling it first"), UnknownModelError),
        (400, refusal("Model Not Exist"), UnknownModelError),
        (404, refusal("File Not Found"), RefusedRequestError),
        (429, refusal("Slow down"), RateLimitError),
        (429, refusal("No credit", code="insufficient_quota"), RefusedRequestError),
        (408, refusal("Too slow"), ModelTimeoutError),
        (500, refusal("Oops"), ServerFailedError),
        (503, "<html>Bad gateway</html>", ServerFailedError),
        (400, refusal("the request exceeds the available context size"), RefusedRequestError),
        (402, refusal("Insufficient Balance"), RefusedRequestError),
        (422, {"detail": "Unexpected fields in the request: {'x'}"}, RefusedRequestError),
        (307, "", RefusedRequestError),
    ],
)
async def test_statuses(
    wire: Wire, watched: bool, status: int, body: object, expected: type[VeriscopeError]
):
    error = await fails(wire, says(body, status), watched=watched)
    assert type(error) is expected
    assert len(wire.seen) == 1, "a backend makes one attempt"


async def test_the_servers_words_are_passed_on(wire: Wire):
    error = await fails(wire, says(refusal("9031 tokens exceed the context of 8192"), 400))
    assert "9031 tokens exceed the context of 8192" in error.message


async def test_the_servers_words_are_shortened_and_cleaned_of_keys(wire: Wire):
    words = f"Your key {KEY} or sk-ab12****wxyz is odd. " + "x" * 5000
    error = await fails(wire, says(refusal(words), 400))
    assert len(error.message) < 400
    assert "sk-ab12" not in error.message


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_wanted_but_missing(wire: Wire, status: int):
    error = await fails(wire, says(refusal("Invalid API Key"), status), key=None)
    assert isinstance(error, MissingKeyError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "1500"}, 1.5),
        (
            {
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
                "retry_after": "Wed, 21 Oct 2026 07:28:30 GMT",
            },
            30.0,
        ),
        ({}, None),
    ],
)
async def test_how_long_to_wait(wire: Wire, headers: dict[str, str], seconds: float | None):
    error = await fails(wire, says(refusal("Slow down"), 429, **headers))
    assert isinstance(error, RateLimitError)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    "reply",
    [
        says("{not json"),
        says('"text"'),
        says({}),
        says({"choices": []}),
        says({"choices": [{"index": 0}]}),
        says({"choices": None}),
        says(said(True)),
        says("<html>Welcome</html>", content_type="text/html"),
        breaks_off,
    ],
)
async def test_answers_that_are_none(wire: Wire, reply: Respond):
    assert isinstance(await fails(wire, reply), InvalidReplyError)


@pytest.mark.parametrize(
    "reply",
    [
        streams(done=False),
        streams(chunk("Hi"), done=False),
        streams(chunk("Hi"), "{not json"),
        streams(chunk("Hi"), '{"choices": [7]}'),
        streams('{"choices": [{"index": 0, "delta": {"content": true}}]}', chunk(finish="stop")),
        says("<html>Welcome</html>", content_type="text/html"),
        breaks_off,
    ],
)
async def test_streams_that_break(wire: Wire, reply: Respond):
    assert isinstance(await fails(wire, reply, watched=True), InvalidReplyError)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"error": {"code": 500, "message": "context exceeded"}}, ServerFailedError),
        ({"error": {"code": 400, "message": "too long"}}, RefusedRequestError),
        ({"error": "out of memory"}, ServerFailedError),
    ],
)
async def test_errors_inside_a_stream(
    wire: Wire, said: dict[str, object], expected: type[VeriscopeError]
):
    assert type(await fails(wire, streams(chunk("Hi"), said), watched=True)) is expected


@pytest.mark.parametrize("watched", [False, True])
async def test_a_server_that_refuses_log_probabilities_is_asked_without(wire: Wire, watched: bool):
    refused = says(refusal("This model does not support logprobs"), 400)
    given = streams(chunk("Hi"), chunk(finish="stop")) if watched else says(completion("Hi"))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    for _ in range(2):
        # Another number of alternatives may be taken: each request tries.
        wire.answers(refused, given)
        watch = (lambda delta: None) if watched else None
        (text,) = await model.generate(asks(logprobs=True), watch)
        assert (text.text, text.tokens) == ("Hi", None)
        assert ["logprobs" in seen.body for seen in wire.seen[-2:]] == [True, False]
        assert "top_logprobs" not in wire.seen[-1].body


async def test_log_probabilities_that_were_refused_twice_are_asked_for_no_more(
    wire: Wire, caplog: pytest.LogCaptureFixture
):
    refused = says(refusal("This model does not support logprobs"), 400)
    given = says(completion("Hi"))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    # A number that was not refused before is tried, and what was taken in between counts.
    for most in (5, 1, 5):
        wire.answers(refused, given)
        await model.generate(asks(logprobs=True, top_k=most))
    wire.answers(says(completion("Hi", entries=[entry("Hi", 0.5)])))
    (text,) = await model.generate(asks(logprobs=True, top_k=5))
    assert text.tokens
    for _ in range(2):
        wire.answers(refused, given)
        await model.generate(asks(logprobs=True, top_k=5))
    # In the service's own words.
    assert "This model does not support logprobs" in caplog.text
    wire.seen.clear()
    wire.answers(given)
    (text,) = await model.generate(asks(logprobs=True, top_k=5))
    assert (text.text, text.tokens) == ("Hi", None)
    wire.answers(says(completion("Yes")))
    options = (Option(label="yes", spellings=("Yes",)), Option(label="no", spellings=("No",)))
    request = ChoiceRequest(messages=asks().messages, options=options)
    assert (await model.choose(request)).best == "yes"
    # One request each.
    assert ["logprobs" in seen.body for seen in wire.seen] == [False, False]


async def test_fewer_alternatives_are_asked_for_where_only_their_number_is_refused(wire: Wire):
    model = OpenAIModel("Model", "m", base_url=wire.url)
    said = "Invalid value for 'top_logprobs': must be less than or equal to 5."
    given = says(completion("Hi", entries=[entry("Hi", 0.5)]))
    wire.answers(says(refusal(said), 400), given, given)
    for _ in range(2):
        (text,) = await model.generate(asks(logprobs=True, top_k=20))
        assert text.tokens
    assert [seen.body["top_logprobs"] for seen in wire.seen] == [20, 5, 5]


async def test_a_server_that_refuses_them_even_where_there_are_none(wire: Wire):
    error = await fails(wire, says(refusal("This model does not support logprobs"), 400))
    assert isinstance(error, CapabilityError)
    assert "capability check" in error.remedy


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        None,
        {"logprob": math.nan},
        {"logprob": 0.7},
        {"logprob": "many"},
        {"logprob": None},
        {"bytes": [999]},
        {"token": None, "bytes": None},
        {"top_logprobs": [{"token": "Hi", "logprob": 3.0}]},
        {"top_logprobs": 5},
    ],
)
async def test_log_probabilities_that_are_none_leave_the_text(
    wire: Wire, watched: bool, change: dict[str, Any] | None
):
    entries = None if change is None else [entry("Hi", 0.5) | change]
    ended = streams(chunk("Hi", entries=entries), chunk(finish="stop"))
    wire.answers(ended if watched else says(completion("Hi", entries=entries)))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    shown: list[Delta] = []
    (text,) = await model.generate(asks(logprobs=True), shown.append if watched else None)
    assert (text.text, text.tokens) == ("Hi", None)
    assert all(token.logprob is None for delta in shown for token in delta.tokens)


async def test_a_token_that_cannot_be_has_a_number_all_the_same(wire: Wire):
    others = [{"token": "Ho", "logprob": "-Infinity"}, {"token": "Ha", "logprob": -9999.0}]
    given = entry("Hi", 1.0) | {"top_logprobs": others, "logprob": 1e-7}
    wire.answers(says(completion("Hi", entries=[given])))
    (text,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(logprobs=True))
    assert text.tokens is not None
    (token,) = text.tokens
    assert token.logprob == 0.0
    assert [other.logprob for other in token.alternatives] == [-9999.0, -9999.0]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "many",
        {"prompt_tokens": -5, "completion_tokens": 10**30},
        {"prompt_tokens": "a"},
    ],
)
async def test_an_absurd_count_of_tokens_is_none(wire: Wire, usage: object):
    wire.answers(says(completion("Hi") | {"usage": usage}))
    (text,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert (text.text, text.usage) == ("Hi", Usage())


async def test_what_cannot_be_stored_is_replaced(wire: Wire):
    wire.answers(says('{"choices": [{"index": 0, "message": {"content": "a\\ud800b\\u0000c"}}]}'))
    (text,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert text.text == "a\ufffdb\ufffdc"


async def test_a_refusal_in_a_field_of_its_own_is_a_filtered_answer(wire: Wire):
    wire.answers(says(completion(None, refusal="I'm sorry, I can't help with that.")))
    (text,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert (text.text, text.finish_reason) == ("", "filter")


@pytest.mark.parametrize("watched", [False, True])
async def test_a_server_that_never_answers(wire: Wire, watched: bool):
    wire.answers(waits)
    model = OpenAIModel("Model", "m", base_url=wire.url, timeout=0.1)
    with pytest.raises(ModelTimeoutError):
        await model.generate(asks(), (lambda delta: None) if watched else None)


@pytest.mark.parametrize(
    ("drip", "kind", "watched"),
    [
        (b": keep-alive\n\n", "text/event-stream", True),
        (event(chunk("")), "text/event-stream", True),
        (b" ", "application/json", False),
    ],
)
async def test_a_server_that_sends_next_to_nothing_for_ever(
    wire: Wire, drip: bytes, kind: str, watched: bool
):
    wire.answers(says(completion("Hope.")), drips(drip, kind))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    # What a first call has to load takes a busy machine longer than the limit.
    await model.generate(asks())
    model._longest = 0.3
    with pytest.raises(ModelTimeoutError) as caught:
        await model.generate(asks(), (lambda delta: None) if watched else None)
    # It had all the time that a call may take.
    assert not caught.value.retryable
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_a_text_that_goes_on_for_ever_is_cut(wire: Wire):
    wire.answers(drips(event(chunk("word " * 500))), says({}, 404))
    request = asks(max_tokens=10)
    model = OpenAIModel("Model", "m", base_url=wire.url)
    shown: list[str] = []
    (text,) = await model.generate(request, lambda delta: shown.append(delta.text))
    assert (len(text.text), text.finish_reason) == (longest_text(request), "length")
    assert "".join(shown) == text.text
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_a_question_beside_the_texts_has_its_time_as_a_whole(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(openai, "_ASIDE", 0.1)
    wire.answers(drips(b" ", "application/json"))
    assert await OpenAIModel("Model", "m", base_url=wire.url)._declared_marks() == NO_MARKS
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_a_whole_text_that_is_too_long_is_cut(wire: Wire):
    wire.answers(says(completion("word " * 5000)))
    request = asks(max_tokens=10)
    (text,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(request)
    assert (len(text.text), text.finish_reason) == (longest_text(request), "length")


@pytest.mark.parametrize("watched", [False, True])
async def test_an_answer_of_many_megabytes_is_not_read(wire: Wire, watched: bool):
    huge = "x" * (MOST_BYTES + 1)
    wire.answers(streams(huge) if watched else says(completion(huge)))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    with pytest.raises(InvalidReplyError) as caught:
        await model.generate(asks(), (lambda delta: None) if watched else None)
    assert "too large (more than 8 MB)" in caught.value.message
    assert not caught.value.retryable


async def test_nobody_at_the_address():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    model = OpenAIModel("Model", "m", base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(UnreachableError) as caught:
        await model.generate(asks())
    assert f"127.0.0.1:{port}" in caught.value.message


@pytest.mark.parametrize("watched", [False, True])
async def test_cancelling_closes_the_connection(wire: Wire, watched: bool):
    wire.answers(waits)
    model = OpenAIModel("Model", "m", base_url=wire.url)
    call = asyncio.create_task(model.generate(asks(), (lambda delta: None) if watched else None))
    assert await asyncio.to_thread(wire.arrived.wait, 60)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_a_fault_of_the_watcher_is_its_own(wire: Wire):
    def watch(delta: Delta) -> bool:
        raise KeyError("mine")

    wire.answers(streams(chunk("Hi"), chunk(finish="stop")))
    with pytest.raises(KeyError, match="mine"):
        await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(), watch)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "host/v1",
        "http://",
        "http://user:pw@host/v1",
        "http://h:x/v1",
        "http://h?k",
    ],
)
def test_addresses_that_are_none(url: str):
    with pytest.raises(InvalidInputError):
        OpenAIModel("Model", "m", base_url=url)


@pytest.mark.parametrize("key", ["sk-é", "sk a", "sk\nb", "“sk”"])
def test_keys_that_are_none(key: str):
    with pytest.raises(AuthenticationError) as caught:
        OpenAIModel("Model", "m", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("watched", [False, True])
async def test_the_call_of_a_tool_is_no_answer(wire: Wire, watched: bool):
    said = (
        streams(chunk(finish="tool_calls"))
        if watched
        else says(completion(None, finish="tool_calls"))
    )
    assert isinstance(await fails(wire, said, watched=watched), InvalidReplyError)


@pytest.mark.parametrize("watched", [False, True])
async def test_json_that_is_nested_too_deep(wire: Wire, watched: bool):
    deep = "[" * 100_000
    said = streams(deep) if watched else says(deep)
    assert isinstance(await fails(wire, said, watched=watched), InvalidReplyError)
