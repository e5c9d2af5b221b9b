"""The calls over plain HTTP, under /api: JSON in and out, statuses that say what happened."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from math import ceil
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from app.public.api import Api, checked
from app.public.contract import (
    LONGEST_WAIT,
    ApiError,
    AskRequest,
    CheckRequest,
    GetRunRequest,
    MethodList,
    Refused,
    RunResult,
    refused,
    told,
    with_methods,
)
from pipelines.errors import VeriscopeError, failure

_STATUS = {
    "elsewhere": 409,
    "invalid_input": 422,
    "over_limit": 422,
    "not_found": 404,
    "busy": 503,
    "queued_already": 429,
    "rate_limit": 429,
    "storage": 503,
    "storage_busy": 503,
    "storage_damaged": 503,
    "storage_disk": 503,
    "storage_full": 503,
    "storage_lost": 503,
    "storage_read_only": 503,
    "storage_unreadable": 503,
}
"""The status of an error's code. Of others it is 429 where they say when to ask again, else 500."""

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ApiError, "description": description}
    for status, description in {
        400: "The body is no JSON.",
        404: "There is no such run.",
        409: "The run is carried out by another process of this server.",
        413: "The body is too large.",
        422: "A field is wrong; `field` names it.",
        429: "Too many requests of one caller; Retry-After says when to ask again.",
        503: "The queue is full, or runs cannot be stored; Retry-After says when to ask again,"
        " where that may help.",
    }.items()
}

_REQUESTS: dict[str, type[BaseModel]] = {"ask": AskRequest, "check": CheckRequest}
"""What is sent to an address, by its last part."""

_OTHERS = {400: "unreadable", 404: "no_address", 405: "no_http_method"}

_Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait.")]


def http_api(api: Api) -> ASGIApp:
    """Return the application that serves `api`, to be mounted at /api."""
    served = _Documented(
        title="Veriscope",
        description="Answers questions, detects hallucinations in the answers, and corrects them.",
        # The pages with documentation load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        responses=_ERRORS,
    )
    served.api = api

    @served.post("/ask", responses={202: {"model": RunResult}})
    async def ask(asked: AskRequest, request: Request, response: Response) -> RunResult:
        """Answer a question; 202 and the run's id where it takes longer than `wait`."""
        return await _waited(await api.start(asked, request), request, response)

    @served.post("/check", responses={202: {"model": RunResult}})
    async def check(asked: CheckRequest, request: Request, response: Response) -> RunResult:
        """Check an answer against a text; 202 and the run's id where it takes longer."""
        return await _waited(await api.start(asked, request), request, response)

    @served.get("/runs/{run}", responses={202: {"model": RunResult}})
    async def get_run(
        run: str, request: Request, response: Response, wait: _Wait = 0.0
    ) -> RunResult:
        """How far a run has come, after at most `wait` seconds; 200 once it is over."""
        asked = checked(GetRunRequest, {"run": run, "wait": wait})
        return await _waited(api.follow(asked), request, response)

    @served.post("/runs/{run}/cancel")
    async def cancel_run(run: str) -> RunResult:
        """End a run; what is known by then can still be read."""
        return await api.cancel(run)

    @served.delete("/runs/{run}", status_code=204)
    async def delete_run(run: str) -> None:
        """End a run and delete what was recorded of it."""
        await api.delete(run)

    @served.get("/methods")
    async def list_methods() -> MethodList:
        """The methods: what each does, costs and needs, and its settings."""
        return MethodList(methods=api.methods())

    served.add_exception_handler(RequestValidationError, _wrong_request)
    served.add_exception_handler(HTTPException, _other)
    for kind in (Refused, VeriscopeError):
        served.add_exception_handler(kind, _failed)
    served.add_exception_handler(Exception, unexpected)
    return served


class _Documented(FastAPI):
    """Its description of the calls names the methods, with what each costs here."""

    api: Api

    def openapi(self) -> dict[str, Any]:
        described = super().openapi()
        schemas = dict(described["components"]["schemas"])
        schemas["AskRequest"] = with_methods(schemas["AskRequest"], self.api.methods())
        return {**described, "components": {**described["components"], "schemas": schemas}}


async def _waited(
    stages: AsyncGenerator[RunResult], request: Request, response: Response
) -> RunResult:
    """Return the last of `stages`, or where it stood when the client hung up."""
    async with aclosing(stages):
        last = await anext(stages)
        async for stage in stages:
            last = stage
            if await request.is_disconnected():
                break
    if not last.over:
        response.status_code = 202
        response.headers["Location"] = f"{request.scope['root_path']}/runs/{last.run}"
        response.headers["Retry-After"] = "1"
    return last


async def _failed(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, Refused | VeriscopeError)
    return as_answer(told(error))


async def _wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        return as_answer(Refused("request.no_json").error, 400)
    if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
        return as_answer(Refused("request.not_sent_as_json").error, 415)
    kind = _REQUESTS.get(request.url.path.rpartition("/")[2], GetRunRequest)
    # The first part says whether it stood in the body, the path or the query.
    inside = [{**problem, "loc": problem["loc"][1:]} for problem in problems]
    return as_answer(told(refused(inside, kind.model_fields)))


async def _other(request: Request, error: Exception) -> Response:
    """Return what is wrong with a request before any call reads it."""
    del request
    assert isinstance(error, HTTPException)
    key = _OTHERS.get(error.status_code, "other")
    known = Refused(f"request.{key}", said=error.detail)
    answer = as_answer(known.error, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def unexpected(request: Request, error: Exception) -> Response:
    """Return the answer where something is wrong here; what it was is on the log."""
    del request, error
    return as_answer(told(failure("asking.unexpected")), 500)


def as_answer(error: ApiError, status: int | None = None) -> Response:
    """Return `error` with its status, and when to ask again."""
    after = error.retry_after
    usual = _STATUS.get(error.code, 429 if after else 500)
    return JSONResponse(
        error.model_dump(exclude_none=True),
        status_code=status or usual,
        headers={"Retry-After": str(ceil(after))} if after else None,
    )
