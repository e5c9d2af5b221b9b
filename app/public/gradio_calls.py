"""The calls for `gradio_client`: with their progress, ended when the client stops listening."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from inspect import Parameter, Signature
from typing import Any, TypeVar

import gradio as gr
from gradio.events import api as register
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from app.public.api import Api, Going, checked
from app.public.contract import (
    ApiError,
    AskRequest,
    CheckRequest,
    GetRunRequest,
    MethodList,
    Refused,
    told,
)
from app.public.http_api import as_answer
from pipelines.errors import VeriscopeError

R = TypeVar("R", bound=BaseModel)

_LEFT_OUT = {"wait"}
"""Fields that have no use where the result is waited for in any case."""


@contextmanager
def _worded() -> Iterator[None]:
    """Errors as Gradio shows them."""
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
    begin: Callable[[R, gr.Request | None], Awaitable[Going]], kind: type[R]
) -> Callable[..., Any]:
    """A call with the fields of `kind` as its arguments, which Gradio reads from its signature."""
    fields = {name: one for name, one in kind.model_fields.items() if name not in _LEFT_OUT}

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


async def wrong_call(request: Request, error: Exception) -> Response:
    """The answer where Gradio's own address is asked for a call, or given an argument, that is not
    there: Gradio only raises what Python does. Any other error is raised again."""
    before, _, name = request.url.path.rstrip("/").rpartition("/")
    if before.endswith("/call/v2"):
        said = str(error).partition(" Please click")[0]
        if isinstance(error, TypeError) and said.startswith(("Parameter", "No value provided")):
            return _answer(422, "invalid_input", said)
        if error.args == (f"/{name}",):
            return _answer(404, "not_found", "There is no such call.")
    raise error


def _answer(status: int, code: str, message: str) -> Response:
    remedy = "GET /gradio_api/info lists the calls and their arguments; /api is the plain HTTP API."
    return as_answer(ApiError(code=code, message=message, remedy=remedy), status)
