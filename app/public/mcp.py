"""The calls as tools of an MCP server (streamable HTTP).

Nothing is kept between requests but the calls that are under way. A client is given a session id,
so that it can cancel a call that it made before; a session that a restart forgot goes on.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from inspect import Parameter, Signature
from typing import Any, NamedTuple, TypeVar

import gradio as gr
from anyio import CancelScope
from gradio.events import api as register
from gradio.route_utils import FnIndexInferError
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.public.api import Api, PendingRun, checked
from app.public.contract import (
    AskRequest,
    CancelRequest,
    CheckRequest,
    GetRunRequest,
    ListMethodsRequest,
    MethodList,
    Refused,
    RunResult,
    speak,
    told,
    with_methods,
)
from app.public.http_api import as_answer
from pipelines.error_words import phrase
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

        The body comes whole and limited: see `app.public.serving`.
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
        """Return a function that tells the client, where it asks, how far its call has come."""
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
        content=[types.TextContent(type="text", text=text)], structuredContent=data, isError=failed
    )


def _message(body: bytes) -> dict[str, Any]:
    """Return the JSON-RPC message in `body`, empty where there is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# The calls for `gradio_client`: with their progress, ended when the client stops listening.

R = TypeVar("R", bound=BaseModel)

_LEFT_OUT = {"wait"}
"""Fields that have no use where the result is waited for in any case."""

_KINDS: dict[str, type[BaseModel]] = {
    "ask": AskRequest,
    "check": CheckRequest,
    "get_run": GetRunRequest,
    "list_methods": ListMethodsRequest,
}
_ADDRESS = re.compile(r"/gradio_api/(?:run|api|call(?P<named>/v2)?)/(?P<name>[^/]+)/?")
"""Where Gradio takes calls that are no events of its page."""

_EVENTS = ("/gradio_api/run/predict", "/gradio_api/queue/join")
"""Where it takes those that are."""


@contextmanager
def _worded() -> Iterator[None]:
    """Raise errors as Gradio shows them."""
    try:
        yield
    except (Refused, VeriscopeError) as error:
        known = told(error)
        raise gr.Error(
            f"{known.message} {known.remedy}", title=known.code, print_exception=False
        ) from error


def offer_calls(api: Api) -> None:
    """Offer the calls on the page that is being built."""
    offered: dict[str, Callable[..., Any]] = {
        "ask": _streaming(api.ask, AskRequest),
        "check": _streaming(api.check, CheckRequest),
    }
    for name, call in offered.items():
        register(call, api_name=name, queue=True, concurrency_limit=None)

    async def get_run(run: str) -> dict[str, Any]:
        with _worded():
            found = await api.get(checked(GetRunRequest, {"run": run}).run)
        return found.model_dump(mode="json")

    def list_methods() -> list[dict[str, Any]]:
        return MethodList(methods=api.methods()).model_dump(mode="json")["methods"]

    get_run.__doc__ = GetRunRequest.__doc__
    list_methods.__doc__ = MethodList.__doc__
    for call in (get_run, list_methods):
        register(call, api_name=call.__name__, queue=False, concurrency_limit=None)


def _streaming(
    begin: Callable[[R, gr.Request | None], Awaitable[PendingRun]], kind: type[R]
) -> Callable[..., Any]:
    """Return a call with the fields of `kind` as arguments, since Gradio reads its signature."""
    fields = _fields(kind)

    async def call(*given: Any) -> AsyncGenerator[dict[str, Any]]:
        *values, request = given
        with _worded():
            asked = checked(kind, dict(zip(fields, values, strict=True)))
            going = await begin(asked, request)
        async with aclosing(going.follow()) as stages:
            async for found in stages:
                yield found.model_dump(mode="json")

    hints = {name: one.annotation for name, one in fields.items()}
    parameters = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty
            if one.is_required()
            else one.get_default(call_default_factory=True),
        )
        for name, one in fields.items()
    ]
    parameters.append(Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, default=None))
    vars(call)["__signature__"] = Signature(parameters, return_annotation=dict[str, Any])
    call.__annotations__ = {**hints, "request": gr.Request, "return": dict[str, Any]}
    call.__doc__ = kind.__doc__
    return call


class CheckedArguments:
    """Middleware that checks calls at Gradio's own addresses before Gradio reads them.

    Gradio answers a wrong argument with an error that says nothing, and takes no defaults where the
    arguments come as a list. Here what is wrong is told, and what is left out is filled in. Bodies
    have been limited before. `inputs` tells how many values an event of the page takes, None for a
    number of no event: the page's own functions are for the page alone, and are not called by name.
    """

    def __init__(self, app: ASGIApp, inputs: Callable[[int], int | None]) -> None:
        self._app = app
        self._inputs = inputs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        address = _ADDRESS.fullmatch(path)
        event = path.rstrip("/").endswith(_EVENTS)
        if (address is None and not event) or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        kind = None if event or address is None else _KINDS.get(address["name"])
        body = await Request(scope, receive).body()
        try:
            if event:
                complete = self._event(body)
            elif kind is None or address is None:
                raise Refused("request.no_call", known=[*_KINDS])
            else:
                complete = _complete(kind, body, named=bool(address["named"]))
        except Refused as error:
            await as_answer(told(error))(scope, receive, send)
            return
        unread: list[Message] = [{"type": "http.request", "body": complete}]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        headers = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
        headers.append((b"content-length", str(len(complete)).encode()))
        await self._app({**scope, "headers": headers}, again, send)

    def _event(self, body: bytes) -> bytes:
        """Return the body of an event as it is; raises Refused where it is none of the page's.

        What is no such body is left to Gradio, which says so.
        """
        try:
            given = json.loads(body)
        except ValueError:
            return body
        number, values = (
            (given.get("fn_index"), given.get("data")) if isinstance(given, dict) else (None, None)
        )
        if not isinstance(values, list):
            return body
        wanted = self._inputs(number) if isinstance(number, int) else None
        if wanted is None:
            raise Refused("request.no_call", known=[*_KINDS])
        if len(values) != wanted:
            raise Refused("request.event_values", "data", given=len(values), wanted=wanted)
        return body


def _complete(kind: type[BaseModel], body: bytes, *, named: bool) -> bytes:
    """Return the body of a call with every argument, which were given by name or as a list.

    What is no such body is left to Gradio, which says so. Raises Refused.
    """
    try:
        given = json.loads(body)
    except ValueError:
        return body
    fields = _fields(kind)
    values = given if named else given.get("data") if isinstance(given, dict) else None
    if isinstance(values, list) and not named:
        if len(values) > len(fields):
            known = [*fields] or phrase("detail.none")
            raise Refused("request.many_arguments", "data", known=known)
        values = dict(zip(fields, values, strict=False))
    if not isinstance(values, dict):
        return body
    for left_out in _LEFT_OUT & values.keys():
        known = [*fields] or phrase("detail.none")
        raise Refused("request.no_field", left_out, field=left_out, known=known)
    asked = checked(kind, values).model_dump(include=set(fields))
    complete = asked if named else {**given, "data": [asked[field] for field in fields]}
    return json.dumps(complete).encode()


NO_SUCH_CALL = (KeyError, FnIndexInferError)
"""What Gradio raises at its own addresses for a call that is not there."""


async def no_such_call(request: Request, error: Exception) -> Response:
    """Return the answer to `NO_SUCH_CALL`; any other error of these kinds is raised again."""
    name = request.url.path.rstrip("/").rpartition("/")[2]
    if isinstance(error, FnIndexInferError) or error.args == (f"/{name}",):
        return as_answer(Refused("request.no_call", known=[*_KINDS]).error, 404)
    raise error


def _fields(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    return {name: one for name, one in kind.model_fields.items() if name not in _LEFT_OUT}
