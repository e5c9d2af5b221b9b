"""The calls for `gradio_client`: with their progress, ended when the client stops listening."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from inspect import Parameter, Signature
from typing import Any, TypeVar

import gradio as gr
from gradio.events import api as register
from gradio.route_utils import FnIndexInferError
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.public.api import Api, PendingRun, checked
from app.public.contract import (
    AskRequest,
    CheckRequest,
    GetRunRequest,
    ListMethodsRequest,
    MethodList,
)
from app.public.http_api import as_answer
from app.public.refusals import Refused, told
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError

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
    """Return a call with the fields of `kind` as its arguments, which Gradio reads from its
    signature.
    """
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
    have been limited before.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = _ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        kind = _KINDS.get(address["name"]) if address is not None else None
        if address is None or kind is None or scope["method"] != "POST":
            # Events of the page among them.
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        try:
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
