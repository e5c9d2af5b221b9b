"""The calls as tools of an MCP server (streamable HTTP).

Nothing is kept between requests but the calls that are under way. A client is given a session id,
so that it can cancel a call that it made before; a session that a restart forgot goes on.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

from anyio import CancelScope
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from app.public.api import Api, checked
from app.public.contract import (
    AskRequest,
    CancelRequest,
    CheckRequest,
    GetRunRequest,
    ListMethodsRequest,
    MethodList,
    RunResult,
    with_methods,
)
from app.public.refusals import Refused, speak, told
from pipelines.errors import VeriscopeError, failure

_BEAT = 5.0
"""Seconds after which a client is told that a run goes on, though nothing new is known."""

_ABOUT = (
    "Veriscope answers questions with methods that detect and correct hallucinations, and checks"
    " answers against texts. A run that takes longer than `wait` goes on; get_run gives its result."
)

_logger = logging.getLogger(__name__)

_READS = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
_RUNS = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": False,
    "openWorldHint": False,
}
_ENDS = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": True,
    "openWorldHint": False,
}

Tell = Callable[[RunResult], Awaitable[None]]


class _Tool(NamedTuple):
    """A tool: what it takes and gives, what a client may assume about it, and what it does."""

    title: str
    request: type[BaseModel]
    result: type[BaseModel]
    hints: dict[str, bool]
    work: Callable[[Any, Request, Tell], Awaitable[BaseModel]]


class McpServer:
    """The tools, and the application that serves them at one address."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.tools = {
            "ask": _Tool("Answer a question", AskRequest, RunResult, _RUNS, self._start),
            "check": _Tool("Check a text", CheckRequest, RunResult, _RUNS, self._start),
            "get_run": _Tool("Get a run", GetRunRequest, RunResult, _READS, self._get_run),
            "cancel_run": _Tool("Cancel a run", CancelRequest, RunResult, _ENDS, self._cancel_run),
            "list_methods": _Tool(
                "List the methods", ListMethodsRequest, MethodList, _READS, self._list_methods
            ),
        }
        self._server: Server[Any, Any] = Server("veriscope", instructions=_ABOUT)
        self._server.list_tools()(self._listed)
        # The calls check their arguments themselves, with errors that say what to do.
        self._server.call_tool(validate_input=False)(self._called)
        self._manager = StreamableHTTPSessionManager(self._server, stateless=True)
        self._under_way: dict[tuple[str, str], CancelScope] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve in this block."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; what is not sent by POST is told so."""
        if scope["method"] == "POST":
            await self._serve(scope, receive, send)
            return
        answer = PlainTextResponse(
            "This is the address of an MCP server (streamable HTTP): give it to an MCP client.\n",
            status_code=405,
            headers={"Allow": "POST"},
        )
        await answer(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the library answer, after what it leaves out where it keeps no sessions.

        The body comes whole and limited: see `app.public.bodies`.
        """
        whole = await receive()
        message = _message(whole.get("body", b""))
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if message.get("method") == "notifications/cancelled" and session:
            named = message.get("params")
            call = str(named.get("requestId")) if isinstance(named, dict) else ""
            if under_way := self._under_way.get((session, call)):
                under_way.cancel()
        begins = message.get("method") == "initialize"
        unread = [whole]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        async def named_session(message: Message) -> None:
            if begins and message["type"] == "http.response.start":
                MutableHeaders(scope=message)[MCP_SESSION_ID_HEADER] = secrets.token_hex(16)
            await send(message)

        await self._manager.handle_request(scope, again, named_session)

    async def _listed(self) -> list[types.Tool]:
        return [
            types.Tool(
                name=name,
                title=tool.title,
                description=tool.request.__doc__,
                inputSchema=self._schema(tool.request),
                outputSchema=tool.result.model_json_schema(mode="serialization"),
                annotations=types.ToolAnnotations(title=tool.title, **tool.hints),
            )
            for name, tool in self.tools.items()
        ]

    def _schema(self, request: type[BaseModel]) -> dict[str, Any]:
        schema = request.model_json_schema()
        return with_methods(schema, self._api.methods()) if request is AskRequest else schema

    async def _called(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        context = self._server.request_context
        request = context.request
        assert isinstance(request, Request)
        speak(request.headers.get("accept-language", ""))
        call = (request.headers.get(MCP_SESSION_ID_HEADER, ""), str(context.request_id))
        try:
            with CancelScope() as scope:
                if call[0]:
                    self._under_way[call] = scope
                return _reply(await self._work(name, arguments, request))
        except (Refused, VeriscopeError) as error:
            return _reply(told(error), failed=True)
        except Exception:
            _logger.exception("The tool %s failed unexpectedly", name)
            return _reply(told(failure("asking.unexpected")), failed=True)
        finally:
            self._under_way.pop(call, None)
        return _reply(Refused("request.cancelled").error, failed=True)

    async def _work(self, name: str, arguments: dict[str, Any], request: Request) -> BaseModel:
        tool = self.tools.get(name)
        if tool is None:
            raise Refused("request.no_tool", name=name, known=[*self.tools])
        asked = checked(tool.request, arguments)
        return await tool.work(asked, request, self._teller())

    def _teller(self) -> Tell:
        """Return a function that tells the client how far its call has come, where it wants
        to know.
        """
        context = self._server.request_context
        token = context.meta.progressToken if context.meta is not None else None
        sent, last, at = 0, "", 0.0

        async def tell(found: RunResult) -> None:
            nonlocal sent, last, at
            message, now = _progress(found), time.monotonic()
            if token is None or found.over or (message == last and now - at < _BEAT):
                return
            sent, last, at = sent + 1, message, now
            await context.session.send_progress_notification(
                token, sent, message=message, related_request_id=str(context.request_id)
            )

        return tell

    async def _start(
        self, asked: AskRequest | CheckRequest, request: Request, tell: Tell
    ) -> RunResult:
        return await _last(await self._api.start(asked, request), tell)

    async def _get_run(self, asked: GetRunRequest, request: Request, tell: Tell) -> RunResult:
        del request
        return await _last(self._api.follow(asked), tell)

    async def _cancel_run(self, asked: CancelRequest, request: Request, tell: Tell) -> RunResult:
        del request, tell
        return await self._api.cancel(asked.run)

    async def _list_methods(
        self, asked: ListMethodsRequest, request: Request, tell: Tell
    ) -> MethodList:
        del asked, request, tell
        return MethodList(methods=self._api.methods())


async def _last(stages: AsyncGenerator[RunResult], tell: Tell) -> RunResult:
    """Return the last of `stages`, each of which is told."""
    async with aclosing(stages):
        found = await anext(stages)
        await tell(found)
        async for found in stages:
            await tell(found)
    return found


def _progress(found: RunResult) -> str:
    """Return how far a run has come, in a sentence."""
    if found.status == "waiting":
        return f"Waiting: {found.before or 0} before this one."
    doing = [f"{name}: {one.step}" for name, one in found.methods.items() if one.step]
    if doing and found.expected is not None:
        about = max(1, round(found.expected.calls))
        doing.append(f"calls: {found.calls} of about {about}")
    return "; ".join(doing) or "Running."


def _reply(result: BaseModel, *, failed: bool = False) -> types.CallToolResult:
    """Return `result` as data, and as the same JSON in a text for clients that read no data."""
    data = result.model_dump(mode="json", exclude_none=failed)
    text = json.dumps(data, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structuredContent=data,
        isError=failed,
    )


def _message(body: bytes) -> dict[str, Any]:
    """Return the JSON-RPC message in `body`, empty where there is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
