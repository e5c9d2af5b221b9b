"""What DashScope's text generation puts on the wire, for the server of `wire`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipelines.models.dashscope_model import DashScopeModel
from tests.scripted.wire import Handler, Respond, Wire, says

KEY = "sk-0123456789abcdef"
PATH = "/v1/services/aigc/text-generation/generation"
NO_FALSE = "The value of the enable_thinking parameter is restricted to True."
NO_WHOLE = "parameter.enable_thinking must be set to false for non-streaming calls"

Content = str | Sequence[dict[str, str]] | None

REQUEST_ID = "5b441aa7-0b9c-9fbc-ae0a-e2b212b71eac"


def choice(
    content: Content, entries: Sequence[dict] | None = None, finish: str = "stop", **message: Any
) -> dict[str, Any]:
    """A choice of `output.choices`; `finish` is the word "null" while a stream goes on.

    The text call answers with a string as content, the multimodal call with a list of parts.
    """
    made: dict[str, Any] = {
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    if entries is not None:
        made["logprobs"] = {"content": list(entries)}
    return made


def answer(*choices: dict[str, Any], used: tuple[int, int] = (7, 3)) -> dict[str, Any]:
    """A whole answer, or a part of a streamed one; `used` are input and output tokens."""
    return {
        "output": {"choices": list(choices)},
        "usage": {
            "input_tokens": used[0],
            "output_tokens": used[1],
            "total_tokens": sum(used),
        },
        "request_id": REQUEST_ID,
    }


def part(
    content: Content, entries: Sequence[dict] | None = None, finish: str = "null", **message: Any
) -> dict[str, Any]:
    """A part of a streamed answer with a single choice."""
    return answer(choice(content, entries, finish, **message))


def problem(code: str | None, message: str) -> dict[str, Any]:
    """The body of an error."""
    return {"code": code, "message": message, "request_id": REQUEST_ID}


def refuses(code: str, message: str, status: int = 400, **headers: str) -> Respond:
    """An error as it answers a request for a whole text."""
    return says(problem(code, message), status, **headers)


def event(number: int, body: object, status: int = 200) -> bytes:
    """A server-sent event; the comment line is how the service tells its status."""
    kind = "result" if status == 200 else "error"
    data = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return f"id:{number}\nevent:{kind}\n:HTTP_STATUS/{status}\ndata:{data}\n\n".encode()


def streams(*parts: object, error: tuple[object, int] | None = None) -> Respond:
    """A stream of `parts`, with an error at its end if there is one: its body and its status."""

    def respond(handler: Handler) -> None:
        handler.begin(200, {"content-type": "text/event-stream;charset=UTF-8"})
        for number, body in enumerate(parts, 1):
            handler.wfile.write(event(number, body))
        if error is not None:
            handler.wfile.write(event(len(parts) + 1, *error))

    return respond


def streams_then_waits(*parts: object) -> Respond:
    """A stream of `parts`, and then nothing until the caller hangs up."""

    def respond(handler: Handler) -> None:
        streams(*parts)(handler)
        handler.wfile.flush()
        handler.until_gone()

    return respond


def refuses_to_stream(code: str, message: str, status: int, **headers: str) -> Respond:
    """An error as it answers a request for a stream: one event, under the error's own status."""

    def respond(handler: Handler) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.begin(status, {"content-type": "text/event-stream"} | named)
        handler.wfile.write(event(1, problem(code, message), status))

    return respond


def model(wire: Wire, **options: Any) -> DashScopeModel:
    """The model "m" at this address."""
    fields: dict[str, Any] = {"name": "M", "model": "m", "base_url": wire.url, "api_key": KEY}
    return DashScopeModel(**fields | options)
