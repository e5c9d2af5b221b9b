"""Puts the Space together and serves it: page, API and MCP server on one port."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.exposure import SpaceHeaders, believe, what_space_opens
from app.public.api import Api
from app.public.contract import Refused, speak
from app.public.http_api import as_answer, http_api, unexpected
from app.public.mcp import NO_SUCH_CALL, CheckedArguments, McpServer, no_such_call, offer_calls
from app.public.page import SpacePage
from app.public.parts import HEAD
from app.public.streaming import STREAM, CheckStream
from app.public.visitors import (
    HOUR,
    ModelCatalog,
    Runs,
    VisitorLimits,
    build_for_visitors,
    fetch_weights,
    missing_weights,
)
from components.base.theme import gradio_theme, tokens
from pipelines.aio import write_whole
from pipelines.base import ASSETS, data_folder, guard_log
from pipelines.engine.pool import Admission, ModelPool
from pipelines.engine.service import Engine
from pipelines.models.devices import is_zerogpu
from pipelines.models.fetch import SETS, fetch_if_possible
from pipelines.run.live import Limits
from pipelines.store import StorageError, database_url

# Reads the body of every request before anything else does: one limit for the whole Space.
#
# Too long a body, JSON that is nested too deeply and files are refused here, for the page, the API,
# Gradio's own addresses and the MCP server alike.

MAX_BODY = 256 * 1024
"""Bytes of a request: the longest texts, however they are escaped."""

BODY_SECONDS = 30.0
"""Seconds in which a whole body has to arrive: one that is half sent holds a connection."""

MAX_DEPTH = 64
"""Arrays and objects within each other: more than any request has, and far from what Python's own
limit on recursion leaves to those who read, check and show what was sent."""

_RPC_CODES = {400: -32700, 408: -32600, 413: -32600}
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
        if address.endswith(f"/api{STREAM}"):
            # Read while it comes, and limited there.
            await self._app(scope, receive, send)
            return

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
        until = asyncio.get_running_loop().time() + BODY_SECONDS
        while more:
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                await refuse("request.too_slow", 408, seconds=f"{BODY_SECONDS:g}")
                return
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


_logger = logging.getLogger(__name__)

_MCP = "/gradio_api/mcp"
_ANY = ["GET", "POST", "DELETE"]

_SESSIONS = 1000
"""Open or recently closed pages whose state is kept; the least recently used gives way."""

_USAGE = {"GRADIO_ANALYTICS_MAX_EVENTS": "100", "GRADIO_ANALYTICS_CACHE_FREQUENCY": "1000000"}
"""Without these, Gradio computes statistics over its last 10,000 events at every event."""

_SHEETS = ("tokens", "recorded", "space")


class Space:
    """The engine, who may use it, and the page with its API."""

    def __init__(self, folder: Path, limits: VisitorLimits, **options: Any) -> None:
        self.limits = limits
        for name, value in _USAGE.items():
            os.environ.setdefault(name, value)
        options.setdefault("pool", ModelPool(build_for_visitors))
        each = Limits(limits.seconds, limits.tokens)
        self.engine = Engine(folder, unwatched_after=limits.idle_timeout, limits=each, **options)
        admission = Admission(
            limits.max_runs, limits.max_runs_per_visitor, limits.max_queue, limits.address_queue
        )
        self.runs = Runs(self.engine, admission, limits)
        self.catalog = ModelCatalog()
        self.visits = SpacePage(self.runs, self.catalog, limits)
        self.page = self.visits.build(_secret(folder))
        self.api = Api(self.runs, self.catalog)
        self.mcp = McpServer(self.api)
        with self.page:
            offer_calls(self.api)
        # The admission decides who waits, and how many; Gradio does not limit them.
        self.page.queue(default_concurrency_limit=None, api_open=False)

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Do the background work while visitors are served."""
        del app
        begun = [
            self.engine.submit(self.engine.service.warm_up()),
            self.engine.submit(self.catalog.fetch(self.engine)),
            self.engine.submit(self._forget()),
            asyncio.create_task(self.runs.walkthroughs.prepare()),
        ]
        try:
            async with self.mcp.running():
                yield
        finally:
            await self.api.aclose()
            for one in begun:
                one.cancel()
            self.runs.walkthroughs.close()
            self.visits.frames.drawing.close()
            await asyncio.to_thread(self.engine.close)

    def launch(self, **options: Any) -> tuple[Any, str, str]:
        """Serve; the host and port are Gradio's own, GRADIO_SERVER_NAME and GRADIO_SERVER_PORT."""
        believe(self.limits.trusted_proxies)
        options.setdefault("state_session_capacity", _SESSIONS)
        return self.page.launch(
            theme=gr.Theme(font=_fonts("sans"), font_mono=_fonts("mono")).set(**gradio_theme()),
            css_paths=[ASSETS / "theme" / f"{name}.css" for name in _SHEETS],
            head=HEAD,
            favicon_path=ASSETS / "logo" / "mark.svg",
            footer_links=["api", "gradio"],
            # Runs are kept by us, where they can be shared and deleted; Gradio's history would keep
            # only calls of its own clients.
            run_history=False,
            # Its tools would be the calls for its own clients; ours are served beside it.
            mcp_server=False,
            # It would show everybody how often the page is used.
            enable_monitoring=False,
            ssr_mode=False,
            # Its check of its own page gives up after three seconds, and then refuses to serve. A
            # loaded machine takes longer for the first page.
            _frontend=False,
            # Visitors upload nothing: CheckedBodies refuses it before.
            max_file_size=1,
            app_kwargs={
                "routes": [
                    Route("/health", _health),
                    # Gradio's deep links would write what is in the fields into a file, keys too.
                    Route("/gradio_api/deep_link", _no_deep_link),
                    self.runs.walkthroughs.route,
                    Route(f"/api{STREAM}", CheckStream(self.api), methods=["POST"]),
                    Mount("/api", http_api(self.api)),
                    *(Route(f"{_MCP}{end}", self.mcp, methods=_ANY) for end in ("", "/")),
                ],
                "exception_handlers": {
                    **dict.fromkeys(NO_SUCH_CALL, no_such_call),
                    Exception: unexpected,
                },
                "lifespan": self.lifespan,
                "middleware": [
                    Middleware(SpaceHeaders),
                    Middleware(CheckedBodies, rpc=_MCP),
                    Middleware(CheckedArguments, inputs=self._inputs),
                ],
            },
            **options,
        )

    def _inputs(self, event: int) -> int | None:
        """Return how many values an event of the page takes; None where there is no such event."""
        found = self.page.fns.get(event)
        return None if found is None else len(found.inputs)

    async def _forget(self) -> None:
        """Delete old runs: runs are kept for a while only, shared ones too."""
        while True:
            try:
                store = self.engine.service.store
                # A database that cannot be reached or written now may be the next time.
                with suppress(StorageError):
                    await asyncio.to_thread(store.recover)
                    await asyncio.to_thread(store.delete_older_than, self.limits.keep_hours * HOUR)
                await self.runs.make_room()
            except Exception:
                # Nobody waits for this work, so nobody else would say that it failed.
                _logger.exception("Old runs could not be deleted")
            await asyncio.sleep(HOUR / 4)


def serve() -> None:
    """Serve the Space until the process is told to end."""
    guard_log()
    if missing_weights():
        fetch_weights()
    # Beside the models that the platform brings from the hub.
    fetch_if_possible(SETS["small"])
    if is_zerogpu():
        # Before anything looks for a GPU: the platform's package simulates one until it is lent.
        import_module("spaces")
    folder = data_folder().resolve()
    space = Space(folder, VisitorLimits.of(os.environ), database=database_url(folder))
    if is_zerogpu():
        # The models that use the lent GPU have to be loaded before the page is served.
        space.engine.call(space.catalog.fetch(space.engine))
    told = what_space_opens(
        os.environ.get("GRADIO_SERVER_NAME"), custom_servers=space.limits.custom_servers
    )
    if told:
        print(told, flush=True)
    with suppress(KeyboardInterrupt):
        space.launch()


def _fonts(token: str) -> list[str]:
    """Return fonts of the machine: none is fetched from anywhere."""
    return [name.strip(" \"'") for name in tokens("light")[token].split(",")]


async def _no_deep_link(request: Request) -> Response:
    del request
    return Response(status_code=404)


async def _health(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


def _secret(folder: Path) -> str:
    """Return what visitors' ids are encrypted with in their browsers; the same after the
    next start.

    Where it cannot be kept, visitors are new ones after the next start.
    """
    path = folder / "space-secret"
    with suppress(OSError):
        if kept := path.read_text(encoding="utf-8"):
            return kept
    secret = secrets.token_urlsafe(32)
    with suppress(OSError):
        # Several that start at the same time take the same.
        write_whole(path, secret, mode=0o600, unless_there=True)
        return path.read_text(encoding="utf-8")
    return secret
