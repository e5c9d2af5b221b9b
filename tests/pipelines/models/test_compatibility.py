"""Servers that refuse or say something a little differently: each form once, over a real socket.

Every refusal holds three things: the text comes, what was given up is known afterwards, and the
next call makes one request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from components.base.words import Catalogue
from components.models import model_facts, probe_table
from pipelines.base import Generation
from pipelines.engine.pool import ModelPool
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.methods.writing import independent
from pipelines.models.base import Concession, Delta
from pipelines.models.openai import OpenAIModel
from pipelines.models.probe import probe
from pipelines.models.providers import ModelSpec, build_model, known_capabilities
from pipelines.models.replies import finish_of
from tests.scripted.wire import (
    Handler,
    Respond,
    Wire,
    asks,
    chunk,
    completion,
    entry,
    refusal,
    says,
    streams,
    usage_chunk,
)

Body = dict[str, Any]
SYSTEM = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello?"}]
TWO_USERS = [{"role": "user", "content": "Hello."}, {"role": "user", "content": "Hello?"}]
BEGUN = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "In"}]


def answers(body: Body) -> Respond:
    """What a server with no objection says, in the form that was asked for."""
    if body.get("stream"):
        return streams(chunk("Par"), chunk("is"), chunk(finish="stop"))
    # Without an id: of equal ones the draws would be taken for one from a cache.
    return says(completion(*["Paris"] * body.get("n", 1)) | {"id": None})


def picky(objects: Callable[[Body], bool], error: object, status: int = 400) -> Respond:
    """A server that refuses a request to which it `objects`."""

    def respond(handler: Handler) -> None:
        body = handler.wire.seen[-1].body
        given = says(error, status) if objects(body) else answers(body)
        given(handler)

    return respond


def has(field: str) -> Callable[[Body], bool]:
    return lambda body: field in body


def named(field: str, message: str = "Extra inputs are not permitted") -> Body:
    """A refusal that names the field in `loc` alone, as FastAPI words it."""
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": message}]}


def roles(body: Body) -> list[str]:
    return [turn["role"] for turn in body["messages"]]


def repeats_role(body: Body) -> bool:
    found = roles(body)
    return any(one == other for one, other in pairwise(found))


class Case(NamedTuple):
    """To what a server objects, what it says, with what request, and what is given up for it."""

    objects: Callable[[Body], bool]
    error: object
    made: tuple[Concession, ...]
    request: Mapping[str, Any] = MappingProxyType({})
    status: int = 400
    watched: bool = False


WARM: Body = {"temperature": 1.0}
LOGS: Body = {"logprobs": True, "top_k": 5}
JSON: Body = {"json_schema": {"type": "object"}}
NO_TEMPERATURE = refusal(
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1)"
    " value is supported.",
    param="temperature",
    code="unsupported_value",
)

REFUSALS: dict[str, Case] = {
    "o1: temperature": Case(has("temperature"), NO_TEMPERATURE, ("temperature",)),
    "temperature in param alone": Case(
        has("temperature"),
        refusal("Invalid value.", param="temperature"),
        ("temperature",),
    ),
    "temperature in loc alone": Case(
        has("temperature"), named("temperature"), ("temperature",), status=422
    ),
    "temperature as a pointer": Case(
        has("temperature"),
        {"errors": [{"pointer": "/temperature", "title": "not allowed"}]},
        ("temperature",),
        status=422,
    ),
    "temperature as a key of the errors": Case(
        has("temperature"),
        {"errors": {"temperature": ["is not a permitted attribute"]}},
        ("temperature",),
        status=422,
    ),
    "TGI: temperature above zero": Case(
        lambda body: body.get("temperature") == 0,
        {"error": "Input validation error: `temperature` must be strictly positive"},
        ("temperature_above_zero",),
        status=422,
    ),
    "temperature at least 0.01": Case(
        lambda body: body.get("temperature", 1) < 0.01,
        refusal("temperature should be at least 0.01"),
        ("temperature_above_zero",),
    ),
    "temperature neither zero nor small": Case(
        has("temperature"),
        refusal("temperature must be greater than 0"),
        ("temperature", "temperature_above_zero"),
    ),
    "GPT-5: max_completion_tokens": Case(
        has("max_tokens"),
        refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
            " 'max_completion_tokens' instead.",
            param="max_tokens",
        ),
        ("max_tokens",),
    ),
    "max_tokens without its new name": Case(
        has("max_tokens"), refusal("Unknown parameter: 'max_tokens'."), ("max_tokens",)
    ),
    "no limit of length at all": Case(
        lambda body: bool({"max_tokens", "max_completion_tokens"} & body.keys()),
        refusal("max_tokens and max_completion_tokens are unsupported"),
        ("max_tokens", "max_completion_tokens"),
    ),
    "n": Case(has("n"), refusal("n > 1 is not supported", param="n"), ("n",), {**WARM, "n": 2}),
    "n in loc": Case(has("n"), named("n"), ("n",), {**WARM, "n": 3}, status=422),
    "n must be 1": Case(
        has("n"), {"error": "`n` must be 1 for this model"}, ("n",), {**WARM, "n": 2}
    ),
    "seed": Case(has("seed"), refusal("Unrecognized argument: seed"), ("seed",), WARM),
    "Mistral: seed in loc": Case(
        has("seed"),
        {"object": "error", "message": named("seed"), "type": "invalid_request_error"},
        ("seed",),
        WARM,
        status=422,
    ),
    "Groq: seed and n": Case(
        lambda body: "seed" in body or "n" in body,
        refusal("property 'seed' is unsupported; property 'n' is unsupported"),
        ("n", "seed"),
        {**WARM, "n": 2},
    ),
    "stop": Case(
        has("stop"),
        refusal("Unsupported parameter: 'stop' is not supported with this model.", param="stop"),
        ("stop",),
        {"stop": ("\n",)},
    ),
    "stop sequences in words": Case(
        has("stop"),
        refusal("Stop sequences are not available."),
        ("stop",),
        {"stop": ("###",)},
    ),
    "stop in loc": Case(has("stop"), named("stop"), ("stop",), {"stop": ("#",)}, status=422),
    "DeepSeek: response_format": Case(
        has("response_format"),
        refusal("This response_format type is unavailable now"),
        ("response_format",),
        JSON,
    ),
    "response_format in its camel case": Case(
        has("response_format"),
        refusal('Unknown name "responseFormat": Cannot find field.'),
        ("response_format",),
        JSON,
    ),
    "JSON mode in words": Case(
        has("response_format"),
        refusal("JSON mode is not supported for this model"),
        ("response_format",),
        JSON,
    ),
    "response_format in loc": Case(
        has("response_format"),
        named("response_format"),
        ("response_format",),
        JSON,
        status=422,
    ),
    "stream_options": Case(
        has("stream_options"),
        named("stream_options"),
        ("stream_options",),
        status=422,
        watched=True,
    ),
    "several at once, in words": Case(
        lambda body: "seed" in body or "temperature" in body,
        refusal("unsupported parameters: temperature, seed"),
        ("temperature", "seed"),
        WARM,
    ),
    "one after the other": Case(
        lambda body: "seed" in body or "temperature" in body,
        refusal("temperature is not supported, nor seed"),
        ("temperature", "seed"),
        WARM,
    ),
    "a gateway that passes the refusal on as text": Case(
        has("seed"),
        {"error": {"message": '{"detail":[{"loc":["body","seed"],"msg":"extra"}]}'}},
        ("seed",),
        WARM,
    ),
    "fields too many, none named": Case(
        lambda body: "seed" in body or "temperature" in body,
        refusal("Extra inputs are not permitted"),
        ("temperature", "seed"),
        WARM,
    ),
    "Gemma: no system role": Case(
        lambda body: "system" in roles(body),
        refusal("System role not supported"),
        ("system_role",),
        {"messages": SYSTEM},
    ),
    "a template that fails with 500": Case(
        lambda body: "system" in roles(body),
        {"error": {"code": 500, "message": "Jinja Exception: System role not supported"}},
        ("system_role",),
        {"messages": SYSTEM},
        status=500,
    ),
    "o1-mini: messages[0].role": Case(
        lambda body: "system" in roles(body),
        refusal(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
        ),
        ("system_role",),
        {"messages": SYSTEM},
    ),
    "only user and assistant roles": Case(
        lambda body: "system" in roles(body),
        refusal("Only user and assistant roles are supported!"),
        ("system_role",),
        {"messages": SYSTEM},
    ),
    "a role that is no value": Case(
        lambda body: "system" in roles(body),
        {
            "detail": [
                {
                    "loc": ["body", "messages", 0, "role"],
                    "msg": "Input should be 'user' or 'assistant'",
                }
            ]
        },
        ("system_role",),
        {"messages": SYSTEM},
        status=422,
    ),
    "Gemma 2: roles must alternate": Case(
        lambda body: roles(body)[0] == "system",
        refusal("Conversation roles must alternate user/assistant/user/assistant/..."),
        ("system_role",),
        {"messages": SYSTEM},
    ),
    "Mistral: two turns of one role": Case(
        repeats_role,
        refusal(
            "After the optional system message, conversation roles must alternate user and"
            " assistant roles"
        ),
        ("alternation",),
        {"messages": TWO_USERS},
    ),
    "Anthropic: successive messages": Case(
        repeats_role,
        refusal(
            'messages: roles must alternate between "user" and "assistant", but found'
            ' multiple "user" roles in a row'
        ),
        ("alternation",),
        {"messages": TWO_USERS},
    ),
    "both at once": Case(
        lambda body: "system" in roles(body) or repeats_role(body),
        refusal("Conversation roles must alternate user/assistant/user/assistant/..."),
        ("system_role", "alternation"),
        {"messages": [SYSTEM[0], *TWO_USERS]},
    ),
    "Mistral: the last role": Case(
        lambda body: roles(body)[-1] == "assistant" and "prefix" not in body["messages"][-1],
        refusal(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but"
            " got assistant"
        ),
        ("prefix",),
        {"messages": BEGUN},
    ),
    "vLLM of old: no field for going on": Case(
        has("continue_final_message"),
        named("continue_final_message"),
        ("continue_final_message", "add_generation_prompt"),
        {"messages": BEGUN},
        status=422,
    ),
    "content as a list": Case(
        lambda body: isinstance(body["messages"][0]["content"], str),
        {
            "detail": [
                {"loc": ["body", "messages", 0, "content"], "msg": "Input should be a valid list"}
            ]
        },
        ("content_parts",),
        status=422,
    ),
    "QwQ: streams only": Case(
        lambda body: not body.get("stream"),
        refusal(
            "This model only support stream mode, please enable the stream parameter to access"
            " the model."
        ),
        ("stream_only",),
    ),
    "stream=true is required": Case(
        lambda body: not body.get("stream"),
        refusal("Non-streaming requests are not allowed, set stream=true"),
        ("stream_only",),
    ),
    "o1 of old: never a stream": Case(
        has("stream"),
        refusal(
            "Unsupported value: 'stream' does not support true with this model.", param="stream"
        ),
        ("no_stream",),
        watched=True,
    ),
    "streaming is not supported": Case(
        has("stream"), {"detail": "Streaming is not supported"}, ("no_stream",), watched=True
    ),
    "streams not implemented": Case(
        has("stream"),
        refusal("streaming not implemented"),
        ("no_stream",),
        status=501,
        watched=True,
    ),
    "Qwen3: enable_thinking demanded": Case(
        lambda body: body.get("enable_thinking") is not False,
        refusal("parameter.enable_thinking must be set to false for non-streaming calls"),
        ("thinking_off",),
    ),
    "top_logprobs alone": Case(
        has("top_logprobs"),
        refusal("Unsupported parameter: 'top_logprobs'", param="top_logprobs"),
        ("top_logprobs",),
        LOGS,
    ),
    "an error in an answer with status 200": Case(
        has("seed"),
        {"error": {"type": "invalid_request_error", "message": "seed is not supported"}},
        ("seed",),
        WARM,
        status=200,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_is_refused_is_given_up_once(wire: Wire, name: str):
    case = REFUSALS[name]
    wire.answers(picky(case.objects, case.error, case.status))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    request = asks(**case.request)
    watch = (lambda delta: None) if case.watched else None
    for _ in range(2):
        replies = await model.generate(request, watch)
        assert [reply.text for reply in replies] == ["Paris"] * request.n
    assert set(model.capabilities.concessions) == set(case.made)
    # Known from the first time on: what is refused is not sent any more.
    before = len(wire.seen)
    await model.generate(request, watch)
    assert len(wire.seen) - before == (request.n if "n" in case.made else 1)
    # And so it is for a model that is configured with what was found.
    known = OpenAIModel("Model", "m", base_url=wire.url, concessions=case.made)
    before = len(wire.seen)
    await known.generate(request, watch)
    assert not case.objects(wire.seen[before].body)


async def test_the_system_text_is_not_lost(wire: Wire):
    case = REFUSALS["Gemma: no system role"]
    wire.answers(picky(case.objects, case.error))
    await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(messages=SYSTEM))
    assert wire.seen[-1].body["messages"] == [{"role": "user", "content": "Be short.\n\nHello?"}]


async def test_a_stop_string_that_the_server_does_not_take_ends_the_text_here(wire: Wire):
    wire.answers(says(refusal("'stop' is not supported"), 400), says(completion("Paris\n\nQ: x")))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    (reply,) = await model.generate(asks(stop=("\n\n",)))
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")
    wire.answers(streams(chunk("Paris\n"), chunk("\nQ: x"), chunk(finish="length")))
    shown: list[Delta] = []
    (reply,) = await model.generate(asks(stop=("\n\n",)), shown.append)
    assert "".join(delta.text for delta in shown) == reply.text == "Paris"


@pytest.mark.parametrize(
    ("said", "asked", "sent"),
    [
        ("max_tokens is too large: 900. This model supports at most 512 tokens.", 900, 512),
        ("max_tokens must be less than or equal to 512", 900, 512),
        ("Invalid 'max_tokens': integer below minimum value. Expected >= 16, got 1.", 1, 16),
    ],
)
async def test_a_length_that_is_bounded(wire: Wire, said: str, asked: int, sent: int):
    wire.answers(picky(lambda body: body["max_tokens"] != sent, refusal(said, param="max_tokens")))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    for _ in range(2):
        await model.generate(asks(max_tokens=asked))
    assert [seen.body["max_tokens"] for seen in wire.seen] == [asked, sent, sent]


async def test_a_text_that_does_not_fit_is_no_matter_of_fields(wire: Wire):
    said = (
        "'max_tokens' or 'max_completion_tokens' is too large: 256. This model's maximum context"
        " length is 4096 tokens and your request has 4000 input tokens."
    )
    wire.answers(says(refusal(said, param="max_tokens"), 400))
    with pytest.raises(VeriscopeError, match="too long"):
        await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert len(wire.seen) == 1


async def test_the_remedy_names_what_was_tried(wire: Wire):
    wire.answers(
        says(NO_TEMPERATURE, 400),
        says(refusal("System role not supported"), 400),
        says(refusal("The account may not do this"), 400),
    )
    with pytest.raises(VeriscopeError) as caught:
        await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(messages=SYSTEM))
    assert "tried already" in caught.value.remedy
    assert "`temperature`" in caught.value.remedy
    assert "first turn of the user" in caught.value.remedy
    assert "第一轮" in caught.value.info().said("zh")[1]


@pytest.mark.parametrize(
    ("url", "path", "header"),
    [
        (
            "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
            "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
            "api-key",
        ),
        (
            "/openai/deployments/d?api-version=2024-02-01",
            "/openai/deployments/d/chat/completions?api-version=2024-02-01",
            "api-key",
        ),
        ("/v1/?region=eu", "/v1/chat/completions?region=eu", "authorization"),
    ],
)
async def test_addresses_with_a_version(wire: Wire, url: str, path: str, header: str):
    wire.answers(says(completion("Paris")))
    root = wire.url.removesuffix("/v1")
    await OpenAIModel("Model", "m", base_url=root + url, api_key="k-1").generate(asks())
    (seen,) = wire.seen
    assert seen.path == path
    sent = {name.lower(): value for name, value in seen.headers.items()}
    assert sent[header].removeprefix("Bearer ") == "k-1"
    assert ("authorization" in sent) is (header == "authorization")


@pytest.mark.parametrize("query", ["?api_key=1", "?code=abc", "?sig=x&api-version=1", "?empty="])
def test_an_address_never_holds_a_secret(query: str):
    with pytest.raises(InvalidInputError):
        OpenAIModel("Model", "m", base_url=f"http://127.0.0.1/v1{query}")


# What servers say.


def choice(**fields: Any) -> dict[str, Any]:
    """An answer with one choice of these fields."""
    return {"id": "c", "choices": [fields]}


def raw(*lines: str) -> Respond:
    """A stream of these very lines."""

    def respond(handler: Handler) -> None:
        handler.begin(200, {"content-type": "text/event-stream", "connection": "close"})
        handler.wfile.write("\n".join(lines).encode())

    return respond


PARTS = [{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}]
MESSAGE = {"role": "assistant", "content": "Paris"}

WHOLE: dict[str, Respond] = {
    "content as parts": says(completion(PARTS)),  # type: ignore[arg-type]
    "content as one part": says(completion({"type": "text", "text": "Paris"})),  # type: ignore[arg-type]
    "content as output_text": says(completion([{"type": "output_text", "text": "Paris"}])),  # type: ignore[arg-type]
    "content with a value inside": says(completion([{"type": "text", "text": {"value": "Paris"}}])),  # type: ignore[arg-type]
    "bare strings as parts": says(completion(["Par", "is"])),  # type: ignore[arg-type]
    "no index": says(choice(message=MESSAGE, finish_reason="stop")),
    "index null": says(choice(index=None, message=MESSAGE, finish_reason="stop")),
    "index as text": says(choice(index="0", message=MESSAGE, finish_reason="stop")),
    "index from 1": says(choice(index=1, message=MESSAGE, finish_reason="stop")),
    "no finish_reason": says(choice(index=0, message=MESSAGE)),
    "no role": says(choice(index=0, message={"content": "Paris"}, finish_reason="stop")),
    "text beside no message": says(choice(index=0, text="Paris", finish_reason="stop")),
    "a finish reason of another service": says(completion("Paris", finish="eos_token")),
    "a finish reason in capitals": says(completion("Paris", finish="STOP")),
    "a finish reason as a mapping": says(completion("Paris", finish={"type": "stop"})),  # type: ignore[arg-type]
    "usage under other names": says(
        completion("Paris") | {"usage": {"input_tokens": 7, "output_tokens": 3}}
    ),
    "no usage": says(choice(index=0, message=MESSAGE, finish_reason="stop")),
    "a stream that nobody asked for": streams(chunk("Par"), chunk("is"), chunk(finish="stop")),
    "such a stream without an end of its own": streams(chunk("Par"), chunk("is")),
    "another type of content": says(completion("Paris"), content_type="text/plain"),
}

STREAMS: dict[str, Respond] = {
    "role in every chunk": streams(
        chunk("Par", role="assistant"), chunk("is", role="assistant"), chunk(finish="stop")
    ),
    "Azure: a chunk without delta": streams(
        {"id": "", "choices": [], "prompt_filter_results": []},
        chunk("Paris"),
        choice(index=0, finish_reason=None, content_filter_results={}, content_filter_offsets={}),
        chunk(finish="stop"),
    ),
    "delta null": streams(chunk("Paris"), choice(index=0, delta=None, finish_reason="stop")),
    "choices null": streams({"choices": None}, chunk("Paris"), chunk(finish="stop")),
    "no choices": streams({"id": "c"}, chunk("Paris"), chunk(finish="stop")),
    "no index": streams(
        choice(delta={"content": "Par"}), choice(delta={"content": "is"}, finish_reason="stop")
    ),
    "a counting index": streams(
        chunk("Pa", index=0), chunk("r", index=1), chunk("is", index=2, finish="stop")
    ),
    "an index that counts from 1": streams(
        chunk("Pa", index=1), chunk("r", index=2), chunk("is", index=3, finish="stop")
    ),
    "an index that stays 1": streams(chunk("Par", index=1), chunk("is", index=1, finish="stop")),
    "another text beside it": streams(
        chunk("Par"), chunk("is"), chunk("Rome", index=1), chunk(finish="stop")
    ),
    "no finish_reason at all": streams(chunk("Par"), chunk("is")),
    "finish_reason spelled out as null": streams(
        chunk("Par", finish="null"), chunk("is", finish=""), chunk(finish="stop")
    ),
    "usage in a chunk of its own": streams(chunk("Paris"), chunk(finish="stop"), usage_chunk(4, 2)),
    "content as parts": streams(
        chunk([{"type": "text", "text": "Par"}]),  # type: ignore[arg-type]
        chunk([{"type": "text", "text": "is"}]),  # type: ignore[arg-type]
        chunk(finish="stop"),
    ),
    "message for delta": streams(
        choice(index=0, message={"content": "Par"}),
        choice(index=0, message={"content": "is"}, finish_reason="stop"),
    ),
    "all of it once more at the end": streams(
        chunk("Par"), chunk("is"), choice(index=0, message=MESSAGE, finish_reason="stop")
    ),
    "the older completions": streams(
        choice(index=0, text="Par"), choice(index=0, text="is", finish_reason="stop")
    ),
    "comments that keep it alive": raw(
        ": OPENROUTER PROCESSING",
        "",
        ":",
        "",
        'data: {"choices":[{"delta":{"content":"Par"}}]}',
        "",
        ": ping",
        "",
        'data:{"choices":[{"delta":{"content":"is"}}]}',
        "",
        "data: [DONE]",
        "",
        "",
    ),
    "lines that end as in Windows": raw(
        'data: {"choices":[{"delta":{"content":"Paris"}}]}\r', "\r", "data: [DONE]\r", "\r", ""
    ),
    "events with names and numbers": raw(
        "id: 1",
        "event: message",
        "retry: 10",
        'data: {"choices":[{"delta":{"content":"Paris"},"finish_reason":"stop"}]}',
        "",
        "",
    ),
    "empty data": raw(
        "data:",
        "",
        "data: ",
        "",
        'data: {"choices":[{"delta":{"content":"Paris"}}]}',
        "",
        "data: [DONE]",
        "",
        "",
    ),
    "data over two lines": raw(
        'data: {"choices":[{"delta":',
        'data: {"content":"Paris"},"finish_reason":"stop"}]}',
        "",
        "",
    ),
    "no empty line at the end": raw(
        'data: {"choices":[{"delta":{"content":"Paris"},"finish_reason":"stop"}]}'
    ),
    "a whole answer": says(completion("Paris")),
    "lines of JSON": says(
        '{"choices":[{"delta":{"content":"Par"}}]}\n'
        '{"choices":[{"delta":{"content":"is"},"finish_reason":"stop"}]}\n'
    ),
    "an end of line inside a text": raw(
        'data: {"choices":[{"delta":{"content":"Paris"},"x":"\u2028","finish_reason":"stop"}]}',
        "",
        "",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_whole_answers_in_other_forms(wire: Wire, name: str):
    wire.answers(WHOLE[name])
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")
    assert len(wire.seen) == 1


@pytest.mark.parametrize("name", STREAMS)
async def test_streams_in_other_forms(wire: Wire, name: str):
    wire.answers(STREAMS[name])
    shown: list[Delta] = []
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(), shown.append)
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")
    assert "".join(delta.text for delta in shown) == "Paris"
    assert len(wire.seen) == 1


BROKEN = (
    "error", "abort", "aborted", "cancelled", "insufficient_system_resource", "network_error",
    "timeout", "server_error", "repetition_truncation", "preempted", "because", "unknown",
    "FINISH_REASON_UNSPECIFIED", "incomplete", "unfinished", "other",
)  # fmt: skip
CUT = ("length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens", "token_limit",
       "context_length_exceeded", "model_context_window_exceeded")  # fmt: skip
FILTERED = ("content_filter", "SAFETY", "recitation", "sensitive", "refusal", "ERROR_TOXIC",
            "guardrail_intervened", "PROHIBITED_CONTENT")  # fmt: skip
ENDED = ("stop", "eos", "eos_token", "stop_sequence", "end_turn", "COMPLETE", "STOP", "finished",
         "FINISH_REASON_STOP", "eos_found", "done")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "meant"),
    [(BROKEN, "broken"), (CUT, "length"), (FILTERED, "filter"), (ENDED, "stop")],
)
def test_why_a_text_ended(words: tuple[str, ...], meant: str):
    assert {word: finish_of(word)[0] for word in words} == dict.fromkeys(words, meant)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("word", ["error", "insufficient_system_resource", "because"])
async def test_a_text_that_was_broken_off_is_never_whole(wire: Wire, word: str, watched: bool):
    given = (
        streams(chunk("Par"), chunk(finish=word))
        if watched
        else says(completion("Par", finish=word))
    )
    wire.answers(given, says({}, 404))
    watch = (lambda delta: None) if watched else None
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(), watch)
    assert (reply.text, reply.finish_reason, reply.ended) == ("Par", "broken", word)
    assert reply.is_cut


# Draws that a gateway gives again.


def drawn(text: str, name: str) -> Respond:
    return says(completion(text) | {"id": name})


@pytest.mark.parametrize(
    ("answers", "temperature", "repeated"),
    [
        ([("Paris", "a"), ("Paris", "a")], 1.0, [False, True]),
        ([("Paris", "a"), ("Paris", "b")], 1.0, [False, False]),
        ([("Paris", "a"), ("Rome", "a")], 1.0, [False, False]),
        ([("Paris", "a"), ("Rome", "a"), ("Paris", "a")], 1.0, [False, False, False]),
        ([("Paris", "a"), ("Paris", "a")], 0.3, [False, True]),
        ([("Paris", "a"), ("Paris", "a")], 0.0, [False, False]),
        ([("Paris", ""), ("Paris", "")], 1.0, [False, False]),
    ],
)
async def test_a_draw_from_a_cache_is_noticed(
    wire: Wire, answers: list[tuple[str, str]], temperature: float, repeated: list[bool]
):
    wire.answers(*(drawn(text, name) for text, name in answers))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    found = [
        (await model.generate(asks(temperature=temperature, sample=number)))[0].repeated
        for number in range(len(answers))
    ]
    assert found == repeated
    assert ("cached_samples" in model.capabilities.concessions) is any(repeated)


async def test_alternatives_that_are_refused_leave_the_probabilities(wire: Wire):
    given = says(completion("Hi", entries=[entry("Hi", 0.5, top_logprobs=[])]))
    wire.answers(says(refusal("top_logprobs is not supported"), 400), given)
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(**LOGS))
    assert reply.tokens is not None
    assert reply.tokens[0].probability == pytest.approx(0.5)
    assert "logprobs" in wire.seen[-1].body


# What was given up is kept and shown.


async def test_a_check_finds_what_is_given_up_and_a_saved_model_keeps_it(wire: Wire):
    def objects(body: Body) -> bool:
        return "temperature" in body or "system" in roles(body)

    wire.answers(picky(objects, NO_TEMPERATURE))
    report = await probe(OpenAIModel("Model", "m", base_url=wire.url))
    assert report.capabilities.concessions == ("temperature",)
    assert report.findings[-1].value == "temperature"
    spec = ModelSpec(kind="openai", name="Model", model="m", base_url=wire.url)
    saved = spec.with_capabilities(report.capabilities)
    assert ModelSpec.model_validate_json(saved.model_dump_json()).concessions == ("temperature",)
    before = len(wire.seen)
    await build_model(saved).generate(asks())
    assert ["temperature" in seen.body for seen in wire.seen[before:]] == [False]
    known = known_capabilities(saved)
    assert known is not None
    for language, words in (("en", "the server’s own holds"), ("zh", "按服务器的默认温度生成")):
        assert words in model_facts(saved, known, Catalogue(language))  # type: ignore[arg-type]
        assert words in probe_table(report, Catalogue(language))  # type: ignore[arg-type]


async def test_a_model_in_use_tells_what_it_has_learned(wire: Wire):
    wire.answers(picky(has("temperature"), NO_TEMPERATURE))
    pool = ModelPool()
    spec = ModelSpec(kind="openai", name="Model", model="m", base_url=wire.url)
    assert pool.learned(spec) == ()
    slot = await pool.get(spec)
    await slot.model.generate(asks())
    assert pool.learned(spec) == ("temperature",)
    # Another key is another account: nothing is told of it.
    assert pool.learned(spec, "k-1") == ()


def test_draws_from_a_cache_call_nothing_confident():
    once = Generation(text="Paris")
    again = once.model_copy(update={"repeated": True})
    assert independent([once, again, again]) == []
    assert independent([once, Generation(text="Rome"), again]) == [once, Generation(text="Rome")]
    assert independent([once]) == [once]
