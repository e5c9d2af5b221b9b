"""The faults: what the server does instead of answering well."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tests.faults.wire import Asked, Reply, entries_of, pieces, sse, stream, whole

Sort = Literal["harmless", "passing", "lasting", "broken"]
"""What has to come of a fault that strikes once: nothing, for what is sent is still the answer; a
recovery by trying again; whatever is typed; or, for a reply whose content is of no use, anything
but an answer that rests on it."""


class Line(Protocol):
    """The connection to the client."""

    async def send(self, data: bytes) -> None:
        """Send bytes; raises ConnectionError when the client has gone."""

    async def pause(self, seconds: float) -> None:
        """Wait; raises ConnectionError when the client hangs up meanwhile."""

    def abort(self) -> None:
        """Reset the connection."""


Act = Callable[[Line, Asked, Reply], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """A fault by its name. A `slow` one is over only when the client gives up."""

    name: str
    sort: Sort
    act: Act
    slow: bool = False


FAULTS: dict[str, Fault] = {}
_FOREVER = 10_000


def head(status: int = 200, kind: str = "application/json", **headers: object) -> bytes:
    """The beginning of an answer, whose end is that of the connection."""
    named = {"content-type": kind, "connection": "close"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in named.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def give(line: Line, asked: Asked, reply: Reply) -> None:
    """Answer as asked: whole or streamed."""
    if asked.streamed:
        await line.send(head(kind="text/event-stream") + streamed(asked, stream(asked, reply)))
    else:
        await line.send(head() + json.dumps(whole(asked, reply)).encode())


def streamed(asked: Asked, parts: list[Any], *, ends: bool = True) -> bytes:
    """All of a stream."""
    data = b"".join(sse(asked, part, number) for number, part in enumerate(parts, 1))
    return data + (b"data: [DONE]\n\n" if ends and not asked.native else b"")


def _fault(name: str, sort: Sort, act: Act, *, slow: bool = False) -> None:
    assert name not in FAULTS
    FAULTS[name] = Fault(name, sort, act, slow)


def _act(name: str, sort: Sort, *, slow: bool = False) -> Callable[[Act], Act]:
    def keep(act: Act) -> Act:
        _fault(name, sort, act, slow=slow)
        return act

    return keep


# --- The connection -------------------------------------------------------------------------------


@_act("reset_before_headers", "passing")
async def _reset(line: Line, asked: Asked, reply: Reply) -> None:
    line.abort()


@_act("reset_after_headers", "passing")
async def _reset_after(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(content_length=500))
    line.abort()


@_act("cut_in_the_middle", "passing")
async def _cut(line: Line, asked: Asked, reply: Reply) -> None:
    if asked.streamed:
        data = streamed(asked, stream(asked, reply))
        await line.send(head(kind="text/event-stream", content_length=len(data)))
    else:
        data = json.dumps(whole(asked, reply)).encode()
        await line.send(head(content_length=len(data)))
    await line.send(data[: len(data) // 2])


@_act("no_http", "passing")
async def _no_http(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(b"220 mail.example.com ESMTP\r\n")


@_act("silence", "lasting", slow=True)
async def _silence(line: Line, asked: Asked, reply: Reply) -> None:
    await line.pause(_FOREVER)


@_act("silence_in_the_middle", "lasting", slow=True)
async def _silence_middle(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(kind="text/event-stream" if asked.streamed else "application/json"))
    data = streamed(asked, stream(asked, reply)) if asked.streamed else b'{"choices": ['
    await line.send(data[: len(data) // 2])
    await line.pause(_FOREVER)


@_act("dripped_bytes", "lasting", slow=True)
async def _drips(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head())
    while True:
        await line.send(b" ")
        await line.pause(0.1)


@_act("dripped_tokens", "lasting", slow=True)
async def _drip_tokens(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(kind="text/event-stream"))
    one = reply.but(text=" a", entries=reply.entries and entries_of(" a"), finish=None)
    while True:
        await line.send(sse(asked, stream(asked, one)[0]))
        await line.pause(0.1)


@_act("keep_alive_for_ever", "lasting", slow=True)
async def _keep_alive(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(kind="text/event-stream"))
    while True:
        await line.send(b": keep-alive\n\n")
        await line.pause(0.1)


@_act("endless_headers", "lasting", slow=True)
async def _endless_headers(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await line.send(b"x-more: 1\r\n")
        await line.pause(0.1)


@_act("endless_stream", "broken")
async def _endless(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(kind="text/event-stream"))
    text = " word" * 200
    one = reply.but(text=text, entries=reply.entries and entries_of(text)[:1], finish=None)
    data = sse(asked, stream(asked, one)[0])
    while True:
        await line.send(data)


@_act("ten_megabytes", "broken")
async def _huge(line: Line, asked: Asked, reply: Reply) -> None:
    await give(line, asked, reply.but(text="x" * 10_000_000, entries=None))


@_act("gzip_bomb", "lasting")
async def _bomb(line: Line, asked: Asked, reply: Reply) -> None:
    kind = "text/event-stream" if asked.streamed else "application/json"
    await line.send(head(kind=kind, content_encoding="gzip") + _BOMB)


_BOMB = gzip.compress(b" " * 60_000_000)


@_act("gzip_broken", "passing")
async def _gzip(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(content_encoding="gzip") + b"this is no gzip")


@_act("gzip", "harmless")
async def _packed(line: Line, asked: Asked, reply: Reply) -> None:
    if asked.streamed:
        kind, data = "text/event-stream", streamed(asked, stream(asked, reply))
    else:
        kind, data = "application/json", json.dumps(whole(asked, reply)).encode()
    await line.send(head(kind=kind, content_encoding="gzip") + gzip.compress(data))


@_act("redirect_loop", "lasting")
async def _loop(line: Line, asked: Asked, reply: Reply) -> None:
    await line.send(head(307, location="") + b"")


# --- Refusals of the service ----------------------------------------------------------------------


def _problem(asked: Asked, status: int, words: object, code: str = "") -> bytes:
    if asked.native:
        return json.dumps({"code": code or "Refused", "message": words, "request_id": "r"}).encode()
    return json.dumps({"error": {"message": words, "type": "x", "code": code or None}}).encode()


def _refuses(
    name: str, status: int, sort: Sort, words: object = "No.", code: str = "", **headers: str
) -> None:
    async def act(line: Line, asked: Asked, reply: Reply) -> None:
        await line.send(head(status, **headers) + _problem(asked, status, words, code))

    _fault(name, sort, act)


for _status in (400, 401, 403, 404, 409, 413, 422):
    _refuses(f"status_{_status}", _status, "lasting")
for _status in (408, 429, 500, 503, 529):
    _refuses(f"status_{_status}", _status, "passing")
_refuses("status_429_retry_after_0", 429, "passing", retry_after="0")
_refuses("status_429_retry_after_a_day", 429, "lasting", retry_after="86400")
_refuses("status_429_retry_after_negative", 429, "passing", retry_after="-5")
_refuses("status_429_retry_after_words", 429, "passing", retry_after="soon")
_refuses(
    "status_429_retry_after_far_date", 429, "lasting", retry_after="Wed, 21 Oct 2065 07:28:00 GMT"
)
_refuses("status_200_with_error", 200, "passing", "The engine is overloaded.", "InternalError.Algo")
_refuses("words_half_surrogate", 500, "passing", "bad \ud800 \0 words \x1b[31m")
_refuses("words_of_another_type", 400, "lasting", {"a": [1, {"b": None}]})
_refuses("context_too_long", 400, "lasting", "maximum context length is 10 tokens")


@_act("status_502_page", "passing")
async def _page(line: Line, asked: Asked, reply: Reply) -> None:
    page = "<html><title>502 Bad Gateway</title><script>alert(1)</script></html>"
    await line.send(head(502, "text/html") + page.encode())


def _refuses_field(name: str, field: str, words: str) -> None:
    async def act(line: Line, asked: Asked, reply: Reply) -> None:
        messages = asked.body.get("messages") or asked.body["input"]["messages"]
        # Only one of the protocols has another name for it.
        there = field in asked.options and not (asked.native and field == "max_tokens")
        if there or any(field in turn for turn in messages):
            await line.send(head(400) + _problem(asked, 400, words, "invalid_parameter"))
        else:
            await give(line, asked, reply)

    _fault(name, "harmless", act)


_refuses_field("no_seed", "seed", "Unrecognized request argument supplied: seed")
_refuses_field("no_stream_options", "stream_options", "Unknown field: stream_options")
_refuses_field("no_response_format", "response_format", "response_format is not supported")
_refuses_field("no_max_tokens", "max_tokens", "Use 'max_completion_tokens' instead of max_tokens.")
_refuses_field("no_logprobs", "logprobs", "This model does not support logprobs.")
_refuses_field(
    "no_continue_final_message", "continue_final_message", "Extra inputs: continue_final_message"
)


# --- Answers that are no answers of the protocol --------------------------------------------------


def _sends(name: str, sort: Sort, data: bytes, kind: str = "application/json") -> None:
    async def act(line: Line, asked: Asked, reply: Reply) -> None:
        if asked.streamed:
            framed = b"data: " + data.replace(b"\n", b"\ndata: ") + b"\n\n"
            await line.send(head(kind="text/event-stream") + framed)
        else:
            await line.send(head(kind=kind) + data)

    _fault(name, sort, act)


_sends("empty_body", "passing", b"")
_sends("no_json", "passing", b"I am not JSON")
_sends("json_null", "passing", b"null")
_sends("json_list", "passing", b"[1, 2]")
_sends("json_of_another_shape", "passing", b'{"result": {"answer": "True"}}')
_sends("json_nested_deep", "passing", b"[" * 100_000)
_sends("choices_null", "passing", b'{"choices": null}')
_sends("choices_of_another_type", "passing", b'{"choices": {"0": {"message": 5}}}')
_sends(
    "message_missing",
    "passing",
    b'{"choices": [{"index": 0}], "output": {"choices": [{"finish_reason": "stop"}]}}',
)
_sends("invalid_utf8", "passing", b'{"choices": [{"message": {"content": "\xff\xfe\xc3("}}]}')


@_act("json_cut", "passing")
async def _json_cut(line: Line, asked: Asked, reply: Reply) -> None:
    if asked.streamed:
        first = sse(asked, stream(asked, reply)[0])
        await line.send(head(kind="text/event-stream") + first[: len(first) // 2] + b"\n\n")
    else:
        data = json.dumps(whole(asked, reply)).encode()
        await line.send(head() + data[: len(data) // 2])


@_act("latin_1", "harmless")
async def _latin(line: Line, asked: Asked, reply: Reply) -> None:
    # The text is ASCII in JSON: only what it claims to be is wrong.
    kind = "text/event-stream" if asked.streamed else "application/json"
    data = streamed(asked, stream(asked, reply)) if asked.streamed else None
    body = data or json.dumps(whole(asked, reply)).encode()
    await line.send(head(kind=f"{kind}; charset=latin-1") + body)


@_act("wrong_content_type", "passing")
async def _wrong_type(line: Line, asked: Asked, reply: Reply) -> None:
    data = json.dumps(whole(Asked(asked.body, asked.native, streamed=False), reply)).encode()
    await line.send(head(kind="text/plain") + data)


@_act("answers_the_other_way", "passing")
async def _other_way(line: Line, asked: Asked, reply: Reply) -> None:
    """Streams what was asked for in one piece, and the other way round."""
    await give(line, Asked(asked.body, asked.native, streamed=not asked.streamed), reply)


# --- Streams --------------------------------------------------------------------------------------


def _stream_of(name: str, sort: Sort, change: Callable[[Asked, list[Any]], list[Any]]) -> None:
    async def act(line: Line, asked: Asked, reply: Reply) -> None:
        if not asked.streamed:
            await give(line, asked, reply)
            return
        parts = change(asked, stream(asked, reply))
        await line.send(head(kind="text/event-stream") + streamed(asked, parts, ends=False))

    _fault(name, sort, act)


def _error_inside(asked: Asked, parts: list[Any]) -> list[Any]:
    problem = {"message": "The engine is overloaded.", "code": "server_error"}
    problem |= {"code": "InternalError.Algo"} if asked.native else {}
    return [*parts[:-1], problem if asked.native else {"error": problem}]


_stream_of("stream_without_done", "harmless", lambda asked, parts: parts)
_stream_of("stream_without_finish", "passing", lambda asked, parts: parts[:-1])
_stream_of("stream_duplicated", "broken", lambda asked, parts: [p for p in parts for _ in "ab"])
_stream_of("stream_reordered", "broken", lambda asked, parts: [*parts[-2::-1], parts[-1]])
_stream_of("stream_error_inside", "passing", _error_inside)
_stream_of("stream_junk_inside", "passing", lambda asked, parts: [*parts[:-1], "{]", parts[-1]])
_stream_of("stream_of_nothing", "passing", lambda asked, parts: [])


# --- Contents -------------------------------------------------------------------------------------


def _changes(name: str, sort: Sort, change: Callable[[Reply], Reply]) -> None:
    async def act(line: Line, asked: Asked, reply: Reply) -> None:
        await give(line, asked, change(reply))

    _fault(name, sort, act)


def _says(name: str, text: str, sort: Sort = "broken", **changes: Any) -> None:
    def change(reply: Reply) -> Reply:
        entries = reply.entries and entries_of(text)
        return reply.but(text=text, entries=entries, **changes)

    _changes(name, sort, change)


def _with_entries(
    name: str, change: Callable[[list[dict[str, Any]]], Any], sort: Sort = "harmless"
) -> None:
    def changed(reply: Reply) -> Reply:
        return reply.but(entries=change(reply.entries)) if reply.entries else reply

    _changes(name, sort, changed)


def _numbers(value: object) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda entries: [one | {"logprob": value, "top_logprobs": []} for one in entries]


REFUSAL_EN = "I'm sorry, but I can't help with that request."
REFUSAL_ZH = "很抱歉，我无法回答这个问题。"

_changes("no_choices", "passing", lambda reply: reply.but(choices=0))
_changes("content_null", "broken", lambda reply: reply.but(content=None, entries=None))
_changes("content_number", "broken", lambda reply: reply.but(content=42, entries=None))
_says("content_empty", "")
_says("content_spaces", " \n\t ")
_says("content_filtered", "", finish="content_filter")
_changes("filtered_halfway", "broken", lambda reply: _half(reply, "content_filter"))
_changes("cut_at_the_limit", "broken", lambda reply: _half(reply, "length"))
_changes("empty_at_the_limit", "broken", lambda r: r.but(text="", entries=[], finish="length"))
_changes("finish_unknown", "broken", lambda reply: reply.but(finish="because"))
_changes("finish_of_another_type", "broken", lambda reply: reply.but(finish={"why": 1}))
_says("refusal_english", REFUSAL_EN)
_says("refusal_chinese", REFUSAL_ZH)
_changes(
    "refusal_field",
    "broken",
    lambda r: r.but(content=None, entries=None, message={"refusal": REFUSAL_EN}),
)
_changes(
    "tool_calls",
    "broken",
    lambda r: r.but(
        content=None,
        entries=None,
        finish="tool_calls",
        message={
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                }
            ]
        },
    ),
)
_says("thinking_unclosed", "<think>The passages say so. The verdict is True. YES")
_changes(
    "thinking_in_its_field",
    "broken",
    lambda r: r.but(content="", entries=None, message={"reasoning_content": "It is True. YES."}),
)
_says("echo_of_the_form", "Reasoning: ...\nVerdict: True, False or NEI")
_says("echo_of_the_form_chinese", "推理：……\n判断：正确、错误或无法判断")
_says("echo_of_one_word_forms", "Reply with True if they agree, otherwise False. YES or NO")
_says("all_options", "True False NEI YES NO 是 否 正确 错误")
_says("options_one_a_line", "True\nFalse\nYES\nNO\n正确\n错误")
_says("yes_taken_back", "Yes, but the place is wrong. True, however it is false.")
_says("other_language", "这是一段完全无关的文字，没有给出任何判断。")
_says("control_characters", "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x08\x08 \x9b31m")
_says("markup", '<img src=x onerror="alert(1)"> <script>alert(1)</script> [x](javascript:alert(1))')
_says("json_with_empty_verdict", '{"reasoning": "The answer is True.", "verdict": ""}')
_says("very_long_word", "A" * 6000)
_changes(
    "half_surrogate", "broken", lambda r: r.but(text=f"\ud83d{r.text[:4]}\0\udc00", entries=None)
)
_with_entries("logprobs_missing", lambda entries: None)
_with_entries("logprobs_nan", _numbers(math.nan))
_with_entries("logprobs_minus_infinity", _numbers(-math.inf))
_with_entries("logprobs_infinity_in_words", _numbers("-Infinity"))
_with_entries("logprobs_positive", _numbers(3.5))
_with_entries("logprobs_of_another_type", lambda entries: {"tokens": 5})
_with_entries("logprobs_of_another_text", lambda entries: entries_of("YES True 是 正确"))
_with_entries("logprobs_too_few", lambda entries: entries[:-1])
_with_entries("logprobs_stop_halfway", lambda entries: entries[: len(entries) // 2])
_with_entries("logprobs_twice", lambda entries: [*entries, *entries])
_changes("usage_missing", "harmless", lambda reply: reply.but(usage="missing"))
_changes("usage_negative", "harmless", lambda r: r.but(usage={"prompt_tokens": -5}))
_changes(
    "usage_absurd",
    "harmless",
    lambda r: r.but(usage={"completion_tokens": 10**30, "output_tokens": 10**30}),
)
_changes("fewer_texts_than_asked", "harmless", lambda reply: reply.but(choices=1))
_changes("unknown_fields", "harmless", lambda r: r.but(top={"x": {"y": [1]}}, message={"z": 1}))


def _half(reply: Reply, finish: str) -> Reply:
    cut = pieces(reply.text)
    cut = cut[: max(1, len(cut) // 2)]
    entries = reply.entries and reply.entries[: len(cut)]
    return reply.but(text="".join(cut), entries=entries, finish=finish)


MIXED, MIXED_SHARE = "mixed", 0.3
"""In place of a fault: this share of all calls of a run, of whatever kind, meet one of `QUICK`."""

QUICK = tuple(name for name, one in FAULTS.items() if not one.slow)
