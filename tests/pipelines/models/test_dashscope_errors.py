"""Every fault of DashScope as a typed error with a way out."""

from __future__ import annotations

import asyncio
import json
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
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.models.hosted import longest_text
from pipelines.remote import MOST_BYTES
from tests.scripted.dashscope_wire import (
    answer,
    choice,
    event,
    part,
    problem,
    refuses,
    refuses_to_stream,
    streams,
)
from tests.scripted.wire import (
    Handler,
    Respond,
    Wire,
    asks,
    breaks_off,
    drips,
    entry,
    says,
    waits,
)

KEY = "sk-secret1234567890abcdef"

FAULTS: list[tuple[int, str, str, type[VeriscopeError]]] = [
    (401, "InvalidApiKey", f"Invalid API-key provided: {KEY}.", AuthenticationError),
    (403, "AccessDenied", "Access denied.", AuthenticationError),
    (403, "AccessDenied.Unpurchased", "Access to model denied.", AuthenticationError),
    (403, "Model.AccessDenied", "Model access denied.", AuthenticationError),
    (404, "ModelNotFound", "Model can not be found.", UnknownModelError),
    (400, "InvalidParameter", "Model not exist.", UnknownModelError),
    (404, "model_not_found", "The model `m` does not exist.", UnknownModelError),
    (429, "Throttling", "Requests throttling triggered.", RateLimitError),
    (429, "Throttling.RateQuota", "Requests rate limit exceeded.", RateLimitError),
    (429, "Throttling.AllocationQuota", "Allocated quota exceeded.", RateLimitError),
    (429, "LimitRequests", "You exceeded your current requests list.", RateLimitError),
    (429, "Throttling.AllocationQuota", "Check your plan and billing.", RefusedRequestError),
    (400, "Arrearage", "Access denied, your account is overdue.", RefusedRequestError),
    (403, "AllocationQuota.FreeTierOnly", "The free tier is used up.", RefusedRequestError),
    (400, "DataInspectionFailed", "Input data may be inappropriate.", RefusedRequestError),
    (400, "InvalidParameter", "Range of input length should be [1, 6000]", RefusedRequestError),
    (400, "BadRequest.EmptyInput", "Required input missing.", RefusedRequestError),
    (408, "RequestTimeOut", "Request timed out.", ModelTimeoutError),
    (500, "InternalError.Timeout", "An internal timeout error.", ModelTimeoutError),
    (500, "InternalError.Algo", "An internal error has occurred.", ServerFailedError),
    (503, "ModelUnavailable", "The model is unavailable.", ServerFailedError),
    (400, "InvalidParameter", "This model has no logprobs.", CapabilityError),
]
RETRYABLE = (RateLimitError, ModelTimeoutError, ServerFailedError, InvalidReplyError)


def model(wire: Wire, **options: Any) -> DashScopeModel:
    fields: dict[str, Any] = {"name": "M", "model": "m", "base_url": wire.url, "api_key": KEY}
    return DashScopeModel(**fields | options)


async def fails(
    wire: Wire, *replies: Respond, watched: bool = False, **request: Any
) -> VeriscopeError:
    """The error a call ends with; neither its text nor that of its causes may hold the key."""
    wire.answers(*replies)
    with pytest.raises(VeriscopeError) as caught:
        await model(wire).generate(asks(**request), (lambda delta: None) if watched else None)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in f"{error} {error!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert caught.value.remedy
    assert caught.value.provider is not None
    assert caught.value.retryable is isinstance(caught.value, RETRYABLE)
    return caught.value


@pytest.mark.parametrize(("status", "code", "message", "expected"), FAULTS)
async def test_a_refused_request(
    wire: Wire, status: int, code: str, message: str, expected: type[VeriscopeError]
):
    assert type(await fails(wire, refuses(code, message, status))) is expected
    assert len(wire.seen) == 1, "a backend makes one attempt"


@pytest.mark.parametrize(("status", "code", "message", "expected"), FAULTS)
async def test_a_refused_stream(
    wire: Wire, status: int, code: str, message: str, expected: type[VeriscopeError]
):
    said = refuses_to_stream(code, message, status)
    assert type(await fails(wire, said, watched=True)) is expected
    assert len(wire.seen) == 1


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [fault for fault in FAULTS if fault[1] != "DataInspectionFailed"],
)
async def test_an_error_inside_a_stream(
    wire: Wire, status: int, code: str, message: str, expected: type[VeriscopeError]
):
    said = streams(part("Hi"), error=(problem(code, message), status))
    assert type(await fails(wire, said, watched=True)) is expected


async def test_the_services_words_are_passed_on(wire: Wire):
    error = await fails(wire, refuses("InvalidParameter", "Range of input length is [1, 6]."))
    assert "Range of input length is [1, 6]" in error.message


@pytest.mark.parametrize("status", [404, 500])
async def test_an_answer_of_something_else(wire: Wire, status: int):
    page = says("<html>Not here</html>", status, content_type="text/html")
    expected = RefusedRequestError if status == 404 else ServerFailedError
    error = await fails(wire, page)
    assert type(error) is expected
    assert "html" not in error.message


async def test_how_long_to_wait(wire: Wire):
    error = await fails(wire, refuses("Throttling", "Slow down.", 429, Retry_After="7"))
    assert isinstance(error, RateLimitError)
    assert error.retry_after == 7.0
    said = refuses_to_stream("Throttling", "Slow down.", 429)
    error = await fails(wire, said, watched=True)
    assert isinstance(error, RateLimitError)
    assert error.retry_after is None


async def test_a_text_stopped_by_the_inspection_is_kept_as_far_as_it_went(wire: Wire):
    stopped = (problem("DataInspectionFailed", "Output data may be inappropriate."), 400)
    wire.answers(streams(part("Hi"), part(" you"), error=stopped))
    (reply,) = await model(wire).generate(asks(), lambda delta: None)
    assert (reply.text, reply.finish_reason) == ("Hi you", "filter")
    assert isinstance(await fails(wire, streams(error=stopped), watched=True), RefusedRequestError)
    wire.answers(says(answer(choice("Hi", finish="content_filter"))))
    (reply,) = await model(wire).generate(asks())
    assert reply.finish_reason == "filter"


@pytest.mark.parametrize(
    "reply",
    [
        says("{not json"),
        says('"text"'),
        says({}),
        says({"output": None}),
        says({"output": {}}),
        says({"output": {"choices": []}}),
        says({"output": {"choices": [{"finish_reason": "stop"}]}}),
        says("<html>Welcome</html>", content_type="text/html"),
        breaks_off,
    ],
)
async def test_answers_that_are_none(wire: Wire, reply: Respond):
    assert isinstance(await fails(wire, reply), InvalidReplyError)


def cut_inside_an_event(handler: Handler) -> None:
    handler.begin(200, {"content-type": "text/event-stream", "content-length": "5000"})
    handler.wfile.write(event(1, part("Hi")) + b"id:2\nevent:res")


@pytest.mark.parametrize(
    "reply",
    [
        streams(),
        streams(part("Hi")),
        streams(part("Hi"), "{not json"),
        streams(part("Hi"), {"request_id": "r"}),
        streams(part("Hi"), error=({"request_id": "r"}, 500)),
        says("<html>Welcome</html>", content_type="text/html"),
        cut_inside_an_event,
        breaks_off,
    ],
)
async def test_streams_that_break(wire: Wire, reply: Respond):
    assert isinstance(await fails(wire, reply, watched=True), InvalidReplyError)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("change", [None, {"logprob": None}, {"logprob": 0.7}, {"token": None}])
async def test_log_probabilities_that_are_none_leave_the_text(
    wire: Wire, watched: bool, change: dict[str, Any] | None
):
    entries = None if change is None else [entry("Hi", 0.5, bytes=None) | change]
    said = streams(part("Hi", entries, finish="stop"))
    wire.answers(said if watched else says(answer(choice("Hi", entries))))
    watch = (lambda delta: None) if watched else None
    (text,) = await model(wire).generate(asks(logprobs=True), watch)
    assert (text.text, text.tokens) == ("Hi", None)


@pytest.mark.parametrize(
    ("drip", "kind", "watched"),
    [
        (b":keep-alive\n\n", "text/event-stream", True),
        (event(1, part("")), "text/event-stream", True),
        (b" ", "application/json", False),
    ],
)
async def test_a_service_that_sends_next_to_nothing_for_ever(
    wire: Wire, drip: bytes, kind: str, watched: bool
):
    wire.answers(says(answer(choice("Hope."))), drips(drip, kind))
    watch = (lambda delta: None) if watched else None
    asked = model(wire)
    # What a first call has to load takes a busy machine longer than the limit.
    await asked.generate(asks())
    asked._longest = 0.3
    with pytest.raises(ModelTimeoutError) as caught:
        await asked.generate(asks(), watch)
    assert not caught.value.retryable
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_a_text_that_goes_on_for_ever_is_cut(wire: Wire):
    wire.answers(drips(event(1, part("word " * 500))))
    request = asks(max_tokens=10)
    (text,) = await model(wire).generate(request, lambda delta: None)
    assert (len(text.text), text.finish_reason) == (longest_text(request), "length")
    assert await asyncio.to_thread(wire.gone.wait, 60)


@pytest.mark.parametrize("watched", [False, True])
async def test_an_answer_of_many_megabytes_is_not_read(wire: Wire, watched: bool):
    huge = "x" * (MOST_BYTES + 1)
    wire.answers(streams(huge) if watched else says(answer(choice(huge))))
    with pytest.raises(InvalidReplyError) as caught:
        await model(wire).generate(asks(), (lambda delta: None) if watched else None)
    assert "too large" in caught.value.message
    assert not caught.value.retryable


@pytest.mark.parametrize("watched", [False, True])
async def test_a_service_that_never_answers(wire: Wire, watched: bool):
    wire.answers(waits)
    with pytest.raises(ModelTimeoutError):
        await model(wire, timeout=0.1).generate(asks(), (lambda delta: None) if watched else None)
    assert len(wire.seen) <= 1, "a backend makes one attempt"


@pytest.mark.parametrize("watched", [False, True])
async def test_nobody_at_the_address(watched: bool):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{closed.getsockname()[1]}"
    absent = DashScopeModel(name="M", model="m", base_url=f"http://{host}/api/v1", api_key=KEY)
    with pytest.raises(UnreachableError) as caught:
        await absent.generate(asks(), (lambda delta: None) if watched else None)
    assert host in caught.value.message


async def test_a_key_that_is_missing(wire: Wire, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-env")
    monkeypatch.setattr("dashscope.api_key", "sk-module")
    for key in (None, "", "  "):
        with pytest.raises(MissingKeyError):
            await model(wire, api_key=key).generate(asks())
    assert wire.seen == []
    await model(wire, api_key=None).aclose()


def test_an_address_that_is_none():
    with pytest.raises(InvalidInputError) as caught:
        DashScopeModel(name="M", model="m", base_url="https://{workspace_id}.example.com/api/v1")
    assert "dashscope.aliyuncs.com" in caught.value.remedy


def test_a_key_that_is_none():
    with pytest.raises(AuthenticationError):
        DashScopeModel(name="M", model="m", api_key="sk a")


def test_the_wire_is_well_formed():
    lines = event(1, part("好")).decode().split("\n")
    assert lines[:3] == ["id:1", "event:result", ":HTTP_STATUS/200"]
    assert json.loads(lines[3].removeprefix("data:"))["output"]["choices"][0]["message"] == {
        "role": "assistant",
        "content": "好",
    }


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": -5, "output_tokens": 10**30}])
async def test_an_absurd_count_of_tokens_is_none(wire: Wire, usage: object, watched: bool):
    said = answer(choice("Hi")) | {"usage": usage}
    wire.answers(streams(said) if watched else says(said))
    watch = (lambda delta: None) if watched else None
    (text,) = await model(wire).generate(asks(), watch)
    assert (text.text, text.usage) == ("Hi", Usage())


@pytest.mark.parametrize("watched", [False, True])
async def test_the_call_of_a_tool_is_no_answer(wire: Wire, watched: bool):
    said = answer(choice("", finish="tool_calls"))
    error = await fails(wire, streams(said) if watched else says(said), watched=watched)
    assert isinstance(error, InvalidReplyError)
