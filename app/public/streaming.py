"""`POST /api/check/stream`: an answer is read while it is written, and each sentence reported.

The body is a stream of lines: first an object with what is known of the answer, then its pieces, in
the format of the server that writes the answer. Reports are sent while the body still comes (full
duplex); a client that sends the whole body first gets them as well.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from app.public.api import Api, checked
from app.public.contract import Refused, StreamRequest, speak, told
from app.public.http_api import as_answer
from pipelines.errors import VeriscopeError, failure
from pipelines.models.growing import GrowingText

STREAM = "/check/stream"
"""The address under /api. Its body is not read whole: see `app.public.serving.CheckedBodies`."""

MOST_BYTES = 4 * 2**20
"""Bytes of a body: pieces of an answer come wrapped in much JSON."""

_PATIENCE = 60.0
"""Seconds without any byte of the body, after which the answer counts as broken off."""

_FIELDS = frozenset(StreamRequest.model_fields)


class CheckStream:
    """The application at this address."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        headers = Headers(scope=scope)
        speak(headers.get("accept-language", ""))
        events = "text/event-stream" in headers.get("accept", "")
        begun = False

        async def report(found: BaseModel | dict[str, Any]) -> None:
            nonlocal begun
            if not begun:
                kind = b"text/event-stream" if events else b"application/x-ndjson"
                kept = [
                    (b"content-type", kind + b"; charset=utf-8"),
                    (b"cache-control", b"no-store"),
                    (b"x-accel-buffering", b"no"),
                ]
                await send({"type": "http.response.start", "status": 200, "headers": kept})
                begun = True
            plain = found if isinstance(found, dict) else found.model_dump(mode="json")
            line = json.dumps(plain, ensure_ascii=False)
            body = f"data: {line}\n\n" if events else f"{line}\n"
            await send({"type": "http.response.body", "body": body.encode(), "more_body": True})

        try:
            body = _Body(request)
            asked = await body.asked()
            async with aclosing(self._api.written(asked, body.pieces(), request)) as reports:
                async for found in reports:
                    await report(found)
        except ClientDisconnect:
            return
        except (Refused, VeriscopeError) as error:
            known = told(error)
            if not begun:
                await as_answer(known)(scope, receive, send)
                return
            await report({"event": "error", **known.model_dump(exclude_none=True)})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Body:
    """The lines of a request, as they come."""

    def __init__(self, request: Request) -> None:
        self._plain = request.headers.get("content-type", "").startswith("text/plain")
        self._lines = self._read(request)
        self._first: list[str] = []
        self._query = request.query_params

    async def asked(self) -> StreamRequest:
        """Return what is known of the answer, by address or first line; Refused names the field."""
        known: dict[str, Any] = {
            n: v for n, v in self._query.items() if n in ("question", "context")
        }
        if sources := self._query.getlist("source"):
            known["sources"] = sources
        if not self._plain and not known:
            first = await anext(self._lines, None)
            given = _parsed(first) if first is not None else None
            if isinstance(given, Mapping) and _FIELDS & given.keys():
                text = _piece(given) if "answer" in given or "text" in given else ""
                known = {n: v for n, v in given.items() if n not in ("answer", "text")}
                self._first = [json.dumps({"text": text})] if text else []
            elif first is not None:
                self._first = [first]
        return checked(StreamRequest, known)

    async def pieces(self) -> AsyncIterator[str]:
        """Yield the pieces of the answer, which may come as all of it so far each time."""
        if self._plain:
            async for text in self._lines:
                yield text
            return
        said = GrowingText()
        try:
            for line in self._first:
                yield said.add(_piece(_parsed(line)))[0]
            async for line in self._lines:
                if piece := said.add(_piece(_parsed(line)))[0]:
                    yield piece
        except ValueError:
            raise Refused("request.stream_takes_back") from None
        yield said.close()[0]

    async def _read(self, request: Request) -> AsyncIterator[str]:
        """Yield lines, of plain text whatever has come."""
        size, rest = 0, b""
        chunks = request.stream()
        while True:
            try:
                chunk = await asyncio.wait_for(anext(chunks, None), _PATIENCE)
            except TimeoutError:
                raise Refused("request.stream_silent", seconds=int(_PATIENCE)) from None
            if chunk is None:
                break
            size += len(chunk)
            if size > MOST_BYTES:
                raise Refused("request.too_large", most=MOST_BYTES)
            rest += chunk
            *whole, rest = _characters(rest) if self._plain else rest.split(b"\n")
            for line in whole:
                if line.strip() or self._plain:
                    yield line.decode("utf-8", "replace").rstrip("\r")
        if rest.strip():
            yield rest.decode("utf-8", "replace")


def _characters(read: bytes) -> tuple[bytes, bytes]:
    """Return the whole characters in `read`, and the beginning of one at its end."""
    for left in range(min(3, len(read)), 0, -1):
        if read[-left] >= 0xC0:
            need = 2 if read[-left] < 0xE0 else 3 if read[-left] < 0xF0 else 4
            return (read[:-left], read[-left:]) if left < need else (read, b"")
    return read, b""


def _parsed(line: str) -> Any:
    """Return what a line holds, as it is or as an event of a server; None for its end and for
    comments. Raises Refused for anything but JSON.
    """
    line = line.strip()
    if line.startswith("data:"):
        line = line.removeprefix("data:").strip()
    elif line.startswith((":", "event:", "id:", "retry:")):
        return None
    if line in ("", "[DONE]"):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise Refused("request.no_json_line", line=line[:60]) from None


def _piece(given: Any) -> str:
    """Return the text of a piece: a string, or an object of OpenAI, Anthropic, Gemini or Ollama."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        return "".join(map(_piece, given))
    if not isinstance(given, Mapping):
        return ""
    if isinstance(given.get("error"), (str, Mapping)):
        raise failure("asking.unexpected")
    for name in ("choices", "candidates"):
        if isinstance(given.get(name), list):
            # Of several answers, the first.
            return _piece(next(iter(given[name]), None))
    if given.get("type") in ("thinking_delta", "signature_delta", "input_json_delta", "thinking"):
        return ""
    for name in ("delta", "text", "answer", "piece", "content", "message", "parts", "response"):
        if isinstance(given.get(name), (str, Mapping, list)):
            return _piece(given[name])
    return ""
