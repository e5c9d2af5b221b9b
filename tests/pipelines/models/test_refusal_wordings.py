"""Refusals in many wordings, wrappings and languages, and answers inside other wrappings.

The wordings are of our own, after public bug reports. Each must lead to one and the same thing:
the request goes on without what was refused, and what was given up is known.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pipelines.errors import VeriscopeError
from pipelines.models.base import Concession
from pipelines.models.openai import OpenAIModel
from tests.scripted.wire import Handler, Respond, Wire, asks, chunk, completion, says, streams

Body = dict[str, Any]
SYSTEM = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello?"}]
TWO_USERS = [{"role": "user", "content": "Hello."}, {"role": "user", "content": "Hello?"}]
BEGUN = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "In"}]


def roles(body: Body) -> list[str]:
    return [turn["role"] for turn in body["messages"]]


# What is sent, what of it the server objects to, and what is given up for it.
MATTERS: dict[str, tuple[Body, Callable[[Body], object], tuple[Concession, ...]]] = {
    "seed": ({"temperature": 1.0}, lambda body: "seed" in body, ("seed",)),
    "temperature": ({}, lambda body: "temperature" in body, ("temperature",)),
    "above zero": ({}, lambda body: body["temperature"] == 0, ("temperature_above_zero",)),
    "n": ({"temperature": 1.0, "n": 2}, lambda body: "n" in body, ("n",)),
    "stop": ({"stop": ("#",)}, lambda body: "stop" in body, ("stop",)),
    "logprobs": (
        {"logprobs": True, "top_k": 5},
        lambda body: "logprobs" in body,
        ("logprobs", "top_logprobs"),
    ),
    "form": (
        {"json_schema": {"type": "object"}},
        lambda body: "response_format" in body,
        ("response_format",),
    ),
    "length": ({}, lambda body: "max_tokens" in body, ("max_tokens",)),
    "system": ({"messages": SYSTEM}, lambda body: "system" in roles(body), ("system_role",)),
    "turns": (
        {"messages": TWO_USERS},
        lambda body: any(one == other for one, other in pairwise(roles(body))),
        ("alternation",),
    ),
    "begun": (
        {"messages": BEGUN},
        lambda body: "prefix" not in body["messages"][-1],
        ("prefix",),
    ),
    "streams only": ({}, lambda body: not body.get("stream"), ("stream_only",)),
    "never streams": ({}, lambda body: body.get("stream"), ("no_stream",)),
}

WORDINGS: dict[str, tuple[str, ...]] = {
    "seed": (
        "Unsupported parameter(s): `seed`",
        "Failed to deserialize the JSON body into the target type: unknown field `seed`, expected"
        " one of `messages`, `model`, `stop` at line 1 column 20",
        "Malformed input request: #: extraneous key [seed] is not permitted, please reformat",
        'invalid request: json: unknown field "seed"',
        "Extra inputs are not permitted, field: 'seed', value: 12",
        "body -> seed: extra fields not permitted",
        "The 'seed' parameter isn't available for this deployment.",
        "不支持的参数：seed",
    ),
    "temperature": (
        "litellm.UnsupportedParamsError: O-series models don't support temperature=0.0. Only"
        " temperature=1 is supported. To drop unsupported params set `drop_params = True`",
        "temperature and top_p cannot both be specified for this model.",
        "invalid temperature: only 1 is allowed for this model",
        "This model has fixed sampling settings; temperature cannot be changed.",
        "temperature may only be left at its default",
        "API 调用参数有误，请检查文档。temperature 参数非法。",
    ),
    "above zero": (
        "temperature must be in range (0.0, 2.0]",
        "temperature=0 is not allowed; use a small positive value",
        "Value error, temperature > 0 required",
        "temperature 必须大于 0",
        "temperature 取值范围为 (0, 1]",
    ),
    "n": (
        "'n' : value must be at most 1",
        "Multiple candidates is not enabled for this model",
        "Only one completion choice is allowed",
        "Number of returned candidates must be 1",
        "参数 n 只支持 1",
        "invalid n: only 1 is allowed when temperature is close to 0",
        "n must be less than or equal to 1 when temperature=0",
        "一次请求只能返回一条结果，n 须为 1",
    ),
    "stop": (
        "[\"At body -> stop: Extra inputs are not permitted\"]",
        "Argument not supported on this model: stop",
        "stop words count exceeds the limit of 0",
        "不支持参数 stop",
    ),
    "logprobs": (
        "bedrock does not support parameters: ['logprobs', 'top_logprobs']. To drop these, set it",
        "Logprobs is not enabled for models/m",
        "Model m does not support parameter logprobs.",
        "logprobs and top_logprobs are not currently supported",
        "Log probabilities have been turned off by the administrator",
        "当前模型不支持返回对数概率 logprobs",
    ),
    "form": (
        "Invalid structured output schema: grammar could not be compiled",
        "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'.",
        "Structured outputs require a newer model",
        "response_format 参数暂不支持 json_schema",
        "结构化输出暂未开放（response_format）",
    ),
    "length": (
        "`max_tokens` was renamed: use `max_completion_tokens`",
        "max_tokens is deprecated and no longer accepted",
        "参数 max_tokens 不支持，请使用 max_completion_tokens",
    ),
    "system": (
        'messages: Unexpected role "system". The API accepts a top-level `system` parameter.',
        "Developer instruction is not enabled for models/m",
        "'system' is not one of ['user', 'assistant'] - 'messages.0.role'",
        "Model template has no slot for a system message",
        "System prompts can't be used with this model",
        "role 'system' is disallowed",
        "Role must be one of: user, assistant",
        "the length of messages must be an odd number",
        "该模型不支持 system 角色",
        "系统提示词在该模型上无效",
        "messages[0].role 取值错误，仅允许 user、assistant",
    ),
    "turns": (
        "Found two messages in a row with role user",
        "Messages with the same role cannot follow each other",
        "messages 中 user 和 assistant 必须交替出现",
        "user 与 assistant 消息须成对出现",
    ),
    "begun": (
        "The last message must have role 'user' or 'tool'",
        "The last message of role `assistant` must have `prefix` set to true",
        "最后一条消息的角色必须为 user",
    ),
    "streams only": (
        "current user api does not support http call",
        "Unsupported value: 'stream' does not support false with this model.",
        "Set stream to true to use reasoning models",
        "Synchronous requests are disabled; use SSE streaming",
        "该模型仅支持流式输出",
        "请将 stream 设置为 true",
    ),
    "never streams": (
        "Your organization must be verified to stream this model.",
        "Server-sent events are not available on this endpoint",
        "stream=True cannot be used here",
        "Method not supported: streaming",
        "该模型不支持流式输出",
        "流式调用已关闭",
    ),
}  # fmt: skip

SEED = "the parameter seed is not supported"
WRAPPINGS: dict[str, tuple[object, int]] = {
    "plain text": (SEED, 400),
    "a JSON string": (json.dumps(SEED), 422),
    "a list of strings": ({"detail": [SEED]}, 422),
    "errors as strings": ({"errors": [SEED]}, 400),
    "errors with codes": ({"result": None, "success": False, "errors": [{"message": SEED}]}, 400),
    "a list around it": ([{"error": {"code": 400, "message": SEED}}], 400),
    "errors in errors": ({"error": {"error": {"error": {"message": SEED}}}}, 400),
    "an error's text in a text": (
        {"error": {"message": f"Error code: 400 - {{'error': {{'message': \"{SEED}\"}}}}"}},
        400,
    ),
    "JSON in a text": (
        {"message": json.dumps({"external_message": {"error": {"message": SEED}}})},
        400,
    ),
    "a word, and why": ({"error": "invalid_request", "error_description": SEED}, 400),
    "a code, and why": ({"code": "Client specified an invalid argument", "error": SEED}, 400),
    "error_msg": ({"error_code": 336002, "error_msg": SEED}, 400),
    "errorMessage": ({"errorMessage": SEED, "errorType": "ValidationException"}, 400),
    "capitals": ({"Error": {"Code": "InvalidParameter", "Message": SEED}}, 400),
    "metadata": ({"ResponseMetadata": {"Error": {"Message": SEED}}}, 400),
    "a fault": ({"fault": {"faultstring": SEED, "detail": {"errorcode": "x"}}}, 400),
    "a reason": ({"success": False, "reason": SEED}, 400),
    "a key of its own": ({"code": 400, "data": None, "info": SEED}, 400),
    "a problem": ({"type": "about:blank", "title": "Bad Request", "detail": SEED}, 400),
    "parameters with names": (
        {"title": "Not valid.", "invalid-params": [{"name": "seed", "reason": "unknown"}]},
        400,
    ),
    "a field beside an issue": ({"error": {"details": [{"field": "seed", "issue": "no"}]}}, 400),
    "a place without a body": ({"errors": {"body": [{"loc": ["seed"], "msg": "extra"}]}}, 422),
    "a status of its own": (
        {"choices": None, "base_resp": {"status_code": 2013, "status_msg": SEED}},
        200,
    ),
    "an error code with status 200": ({"error_code": 336002, "error_msg": SEED}, 200),
    "capitals with status 200": ({"Response": {"Error": {"Code": "X", "Message": SEED}}}, 200),
    "XML": (f"<Error><Code>Invalid</Code><Message>{SEED}</Message></Error>", 400),
    "not implemented": ({"error": {"message": "seed is not implemented"}}, 501),
    "a server that failed over it": ({"error": SEED}, 500),
}


def picky(objects: Callable[[Body], object], error: object, status: int) -> Respond:
    def respond(handler: Handler) -> None:
        body = handler.wire.seen[-1].body
        if objects(body):
            kind = {"content_type": "text/plain"} if isinstance(error, str) else {}
            return says(error, status, **kind)(handler)
        if body.get("stream"):
            return streams(chunk("Par"), chunk("is"), chunk(finish="stop"))(handler)
        texts = ["Paris"] * body.get("n", 1)
        return says(completion(*texts) | {"id": None})(handler)

    return respond


async def gives_up(wire: Wire, matter: str, error: object, status: int = 400) -> None:
    sent, objects, made = MATTERS[matter]
    wire.answers(picky(objects, error, status))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    watch = (lambda delta: None) if matter == "never streams" else None
    for _ in range(2):
        replies = await model.generate(asks(**sent), watch)
        assert {reply.text for reply in replies} == {"Paris"}
    assert set(model.capabilities.concessions) == set(made)


@pytest.mark.parametrize(
    ("matter", "words"), [(matter, words) for matter, said in WORDINGS.items() for words in said]
)
async def test_a_refusal_is_understood_in_any_words(wire: Wire, matter: str, words: str):
    await gives_up(wire, matter, {"error": {"message": words}})


@pytest.mark.parametrize("name", WRAPPINGS)
async def test_a_refusal_is_found_in_any_wrapping(wire: Wire, name: str):
    error, status = WRAPPINGS[name]
    await gives_up(wire, "seed", error, status)


async def test_log_probabilities_may_be_a_privilege(wire: Wire):
    said = {"error": {"message": "You are not allowed to request logprobs from this model"}}
    await gives_up(wire, "logprobs", said, 403)


async def test_a_gateway_without_a_server_that_takes_all(wire: Wire):
    said = "No endpoints found that can handle the requested parameters. To learn more, visit us"
    wire.answers(picky(lambda body: "response_format" in body, {"error": {"message": said}}, 404))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    for _ in range(2):
        (reply,) = await model.generate(asks(json_schema={"type": "object"}))
        assert reply.text == "Paris"
    # One field at a time: the others are still sent.
    assert model.capabilities.concessions == ("response_format",)


OTHER_REASONS = {
    "The maximum context length is 8192 tokens. Your messages have 9000 tokens.": 400,
    "prompt is too long: 210000 tokens > 200000 maximum": 400,
    "输入长度超出模型上下文限制": 400,
    "the request exceeds the available context size": 400,
    "模型 m 不存在": 404,
    "The model `m` does not exist": 400,
    "You exceeded your current quota, please check your plan and billing details.": 429,
    "余额不足，请充值": 402,
    "Output blocked by content filtering policy": 400,
    "Incorrect API key provided": 401,
    "you are not allowed to use seed": 403,
    "CUDA out of memory": 500,
    "Internal system error": 500,
    "The system is not available": 500,
    "系统繁忙，请稍后再试": 500,
    "stream error: not available": 500,
}


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("words", OTHER_REASONS)
async def test_another_reason_is_no_matter_of_form(wire: Wire, words: str, watched: bool):
    wire.answers(says({"error": {"message": words}}, OTHER_REASONS[words]))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    request = asks(messages=SYSTEM, temperature=1.0)
    with pytest.raises(VeriscopeError):
        await model.generate(request, (lambda delta: None) if watched else None)
    assert len(wire.seen) == 1
    assert model.capabilities.concessions == ()


async def test_a_guess_that_did_not_help_is_not_kept(wire: Wire):
    wire.answers(says({"error": {"message": "The role of the account is wrong"}}, 400))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    with pytest.raises(VeriscopeError, match="role of the account"):
        await model.generate(asks(messages=SYSTEM))
    assert len(wire.seen) == 2
    assert model.capabilities.concessions == ()


async def test_calls_that_are_refused_at_once_all_go_on(wire: Wire):
    both = threading.Barrier(2)

    def refuses(handler: Handler) -> None:
        # Neither is told before the other has been sent, too.
        both.wait(60)
        says({"error": {"message": "Unknown field: seed"}}, 400)(handler)

    wire.answers(refuses, refuses, says(completion("Hello.")))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    request = asks(temperature=1.0)
    replies = await asyncio.gather(model.generate(request), model.generate(request))
    assert [reply.text for (reply,) in replies] == ["Hello.", "Hello."]
    assert "seed" in model.capabilities.concessions


async def test_of_two_bounds_the_one_that_is_broken_counts(wire: Wire):
    said = "max_tokens must be greater than 0 and less than or equal to 200"
    wire.answers(picky(lambda body: body["max_tokens"] > 200, {"error": said}, 400))
    await OpenAIModel("Model", "m", base_url=wire.url).generate(asks(max_tokens=900))
    assert [seen.body["max_tokens"] for seen in wire.seen] == [900, 200]


# Answers in other wrappings.

MESSAGE = {"role": "assistant", "content": "Paris"}


def choice(**fields: Any) -> Body:
    return {"choices": [fields]}


def raw(text: str, size: int = 10_000) -> Respond:
    """A stream of this very text, `size` bytes at a time."""

    def respond(handler: Handler) -> None:
        handler.begin(200, {"content-type": "text/event-stream", "connection": "close"})
        data = text.encode()
        for at in range(0, len(data), size):
            handler.wfile.write(data[at : at + size])
            handler.wfile.flush()

    return respond


WHOLE: dict[str, object] = {
    "nothing wrong, said": completion("Paris") | {"code": 0, "msg": "ok", "error": {}},
    "under data": {"code": 0, "message": "success", "data": completion("Paris")},
    "under result": {"success": True, "result": completion("Paris"), "errors": []},
    "a list of one": [completion("Paris")],
    "JSON as a text": json.dumps(json.dumps(completion("Paris"))),
    "behind spaces that keep it alive": "\n    \n\n" + json.dumps(completion("Paris")),
    "behind a mark of the encoding": "\ufeff" + json.dumps(completion("Paris")),
    "one choice, not a list": {"choices": {"message": MESSAGE, "finish_reason": "stop"}},
    "a message that is a text": choice(message="Paris", finish_reason="stop"),
    "a list of messages": choice(messages=[{"role": "assistant", "text": "Paris"}]),
    "parts": choice(message={"role": "model", "parts": [{"text": "Paris"}]}),
    "text beside content null": choice(message={"content": None, "text": "Paris"}),
    "text beside message null": choice(message=None, text="Paris", finish_reason="stop"),
    "blocks with thinking": choice(
        message={
            "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Paris"}]
        },
        stop_reason="end_turn",
    ),
    "finish_details": choice(message=MESSAGE, finish_details={"type": "stop"}),
    "a list of reasons": choice(message=MESSAGE, finish_reason=["stop"]),
    "Ollama's own": {"message": MESSAGE, "done": True, "done_reason": "stop"},
    "Cohere's own": {
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Paris"}]},
        "finish_reason": "COMPLETE",
    },
}

PAR = '{"choices":[{"index":0,"delta":{"content":"Par"}}]}'
IS = '{"choices":[{"index":0,"delta":{"content":"is"},"finish_reason":"stop"}]}'
STREAMED: dict[str, Respond] = {
    "CRLF, byte by byte": raw(f"data: {PAR}\r\n\r\ndata: {IS}\r\n\r\ndata: [DONE]\r\n\r\n", 1),
    "CR alone": raw(f"data: {PAR}\r\rdata: {IS}\r\rdata: [DONE]\r\r"),
    "CR alone, byte by byte": raw(f"data: {PAR}\r\rdata: {IS}\r\rdata: [DONE]\r\r", 1),
    "no space": raw(f"data:{PAR}\n\ndata:{IS}\n\ndata:[DONE]\n\n"),
    "a tab": raw(f"data:\t{PAR}\n\ndata:\t{IS}\n\n"),
    "no empty lines": raw(f"data: {PAR}\ndata: {IS}\ndata: [DONE]\n"),
    "several lines of data": raw(
        'data: {"choices":[{"index":0,\ndata: "delta":{"content":"Paris"},\n'
        'data: "finish_reason":"stop"}]}\n\n'
    ),
    "a mark of the encoding": raw(f"\ufeffdata: {PAR}\n\ndata: {IS}\n\n"),
    "another word for the end": raw(f"data: {PAR}\n\ndata: {IS}\n\ndata: [done]\n\n"),
    "a bare word for the end": raw(f"data: {PAR}\n\ndata: {IS}\n\ndata: DONE\n\n"),
    "the end in quotes": raw(f'data: {PAR}\n\ndata: {IS}\n\ndata: "[DONE]"\n\n'),
    "null, and words that keep it alive": raw(
        f"data: null\n\ndata: heartbeat\n\ndata: {PAR}\n\ndata: {IS}\n\n"
    ),
    "lines of JSON with an end": raw(f"{PAR}\n{IS}\n[DONE]\n"),
    "an array of JSON": raw(f"[{PAR},\n{IS}]"),
    "under result": raw(f'{{"result":{PAR}}}\n{{"result":{IS}}}\n'),
    "Ollama's own": raw(
        '{"message":{"role":"assistant","content":"Par"},"done":false}\n'
        '{"message":{"content":"is"},"done":true,"done_reason":"stop"}\n'
    ),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_answers_in_other_wrappings(wire: Wire, name: str):
    wire.answers(says(WHOLE[name]))
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")


@pytest.mark.parametrize("name", STREAMED)
async def test_streams_in_other_wrappings(wire: Wire, name: str):
    wire.answers(STREAMED[name])
    shown: list[str] = []
    model = OpenAIModel("Model", "m", base_url=wire.url)
    (reply,) = await model.generate(asks(), lambda delta: shown.append(delta.text))
    assert (reply.text, reply.finish_reason, "".join(shown)) == ("Paris", "stop", "Paris")


FAILED: dict[str, Respond] = {
    "an event called error": raw(f"data: {PAR}\n\nevent: error\ndata: over\n\ndata: [DONE]\n\n"),
    "an error in plain words": raw(
        f"data: {PAR}\n\ndata: Error: upstream timeout\n\ndata: [DONE]\n\n"
    ),
    "beside what only one service adds": streams(
        chunk("Par"), {"choices": [], "x_groq": {"error": "over capacity"}}
    ),
    "in the choice": says(
        choice(message={"content": "Par"}, finish_reason="error", error={"message": "gone"})
    ),
    "a status of its own": says(
        {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}
    ),
}


@pytest.mark.parametrize("name", FAILED)
async def test_a_failure_inside_an_answer_is_an_error(wire: Wire, name: str):
    wire.answers(FAILED[name])
    model = OpenAIModel("Model", "m", base_url=wire.url)
    with pytest.raises(VeriscopeError, match=r"over|timeout|gone|balance"):
        await model.generate(asks(), lambda delta: None)


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {
            "prompt_tokens": 7, "completion_tokens": 3}}]},
        chunk(finish="stop") | {"x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}},
    ],
)  # fmt: skip
async def test_usage_in_other_places(wire: Wire, last: Body):
    wire.answers(streams(chunk("Paris"), last))
    model = OpenAIModel("Model", "m", base_url=wire.url)
    (reply,) = await model.generate(asks(), lambda delta: None)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (7, 3)


@pytest.mark.parametrize("reason", [2, {"type": "max_tokens"}, ["length"]])
async def test_a_reason_of_another_kind_is_never_an_end(wire: Wire, reason: object):
    wire.answers(says(choice(message=MESSAGE, stop_reason=reason)), says({}, 404))
    (reply,) = await OpenAIModel("Model", "m", base_url=wire.url).generate(asks())
    assert reply.is_cut
