"""Reads the body of every request before anything else does: one limit for the whole Space.

Too long a body, JSON that is nested too deeply and files are refused here, for the page, the API,
Gradio's own addresses and the MCP server alike.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.public.http_api import as_answer
from app.public.refusals import Refused, speak

MAX_BODY = 256 * 1024
"""Bytes of a request: the longest texts, however they are escaped."""

MAX_DEPTH = 64
"""Arrays and objects within each other: more than any request has, and far from what Python's own
limit on recursion leaves to those who read, check and show what was sent."""

_RPC_CODES = {400: -32700, 413: -32600}
"""The code of JSON-RPC for a status: what cannot be parsed, and what is no valid request."""

_GRADIO = "/gradio_api/"
_UPLOADS = (f"{_GRADIO}upload", f"{_GRADIO}process_recording")
"""Where Gradio stores what it is sent, whatever `max_file_size` says of files of one byte."""

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_OPENS, _CLOSES = "[{", "]}"
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


class CheckedBodies:
    """Middleware that reads the body of a request, and passes it on whole or refuses it.

    At the address `rpc`, with and without a slash at its end, a refusal is an error of JSON-RPC.
    """

    def __init__(self, app: ASGIApp, rpc: str) -> None:
        self._app = app
        self._rpc = rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Where a proxy serves the Space under a path, the address may begin with that.
        address = scope["path"].rstrip("/")
        in_rpc = address.endswith(self._rpc)

        headers = Headers(scope=scope)
        speak(headers.get("accept-language", ""))

        async def refuse(key: str, status: int, **facts: object) -> None:
            error = Refused(key, **facts).error
            answer = as_answer(error, status)
            if in_rpc:
                told = {
                    "code": _RPC_CODES[status],
                    "message": f"{error.message} {error.remedy}",
                    "data": error.model_dump(exclude_none=True),
                }
                answer = JSONResponse({"jsonrpc": "2.0", "id": None, "error": told}, status)
            await answer(scope, receive, send)

        if not in_rpc and _is_upload(address, headers.get("content-type", "")):
            await refuse("request.no_uploads", 404)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                # The client hung up: nobody is there who could be answered.
                return
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                await refuse("request.too_large", 413, most=MAX_BODY)
                return
            more = message.get("more_body", False)
        if too_deep(bytes(body)):
            await refuse("request.too_deep", 400, most=MAX_DEPTH)
            return
        unread: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def whole() -> Message:
            return unread.pop() if unread else await receive()

        await self._app(scope, whole, send)


def _is_upload(address: str, kind: str) -> bool:
    """Return whether Gradio would store files that this request sends."""
    form = kind.strip().lower().startswith("multipart/")
    return address.endswith(_UPLOADS) or (form and _GRADIO in address)


def too_deep(body: bytes) -> bool:
    """Return whether JSON has more than `MAX_DEPTH` arrays and objects within each other.

    Of what is no JSON it is said too, where its brackets are such.
    """
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
    except UnicodeDecodeError:
        return False
    if sum(map(text.count, _OPENS)) <= MAX_DEPTH:
        return False
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    deepest = max(accumulate(1 if one in _OPENS else -1 for one in brackets), default=0)
    return deepest > MAX_DEPTH
