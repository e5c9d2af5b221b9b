"""What programs are told when a request of theirs is refused or fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.types import Frozen

_SHOWN = 60
"""Characters of a wrong value that its error repeats."""


class ApiError(Frozen):
    """What went wrong and what to do about it; `code` is for programs."""

    code: str
    message: str
    remedy: str
    field: Annotated[str | None, Field(description="The field of the request that is wrong.")] = (
        None
    )
    retry_after: Annotated[float | None, Field(description="Seconds after which to ask again.")] = (
        None
    )


class Refused(Exception):  # noqa: N818 - what happened to the request
    """A request that cannot be carried out as it is."""

    def __init__(
        self,
        message: str,
        remedy: str,
        field: str | None = None,
        *,
        code: str = "invalid_input",
    ) -> None:
        super().__init__(f"{message} {remedy}")
        self.error = ApiError(code=code, message=message, remedy=remedy, field=field)


_OF_MODELS = (
    "Ask again later or with another method; if it happens again, tell who runs the server."
)
_REMEDIES = {
    "capability": "Ask with another method: list_methods says what each needs.",
    "not_found": "Give the id that ask or check gave as `run`, or that of a shared run. Runs are"
    " deleted after some time.",
    "queued_already": "All programs that ask from one address count as one visitor. Wait until one"
    " of these runs is over, or cancel the one that waits (cancel_run; HTTP: POST"
    " /api/runs/RUN/cancel).",
    "unexpected": "Ask again; if it happens again, tell who runs the server.",
    "refused_request": "Shorten the question or the texts, or ask with other settings.",
    "rate_limit": _OF_MODELS,
    "storage": "Ask again later; if it happens again, tell who runs the server.",
    "storage_busy": "Ask again in a moment.",
    "storage_damaged": "Tell who runs the server: the database of runs is damaged.",
    "storage_disk": "Tell who runs the server: the disk that keeps the runs reports an error.",
    "storage_full": "Tell who runs the server: there is no space left.",
    "storage_lost": "Ask again: the run ended when the server lost the connection to its storage.",
    "storage_read_only": "Tell who runs the server: runs cannot be stored.",
    "storage_unreadable": "Start a new run: another release of the server recorded this one.",
    **dict.fromkeys(
        (
            "authentication",
            "gated",
            "invalid_reply",
            "missing_key",
            "offline",
            "server_failed",
            "timeout",
            "unknown_model",
            "unreachable",
        ),
        _OF_MODELS,
    ),
}
"""What a program can do about an error. It sees no screens, and cannot choose models or keys."""

_RETRY_AFTER = {"busy": 30.0, "queued_already": 10.0, "storage": 30.0, "storage_busy": 5.0}
"""Seconds after which asking again may work, for errors that pass by themselves."""


def for_caller(info: ErrorInfo) -> ApiError:
    """An error that a run recorded, as a program can use it."""
    remedy = _REMEDIES.get(info.code, info.remedy)
    return ApiError(code=info.code, message=info.message, remedy=remedy)


def told(error: Refused | VeriscopeError) -> ApiError:
    """A refused request or a failure, as a program can use it."""
    if isinstance(error, Refused):
        return error.error
    known = for_caller(error.info())
    if error.retry_after is not None:
        # It says itself what to wait for.
        return known.model_copy(update={"remedy": error.remedy, "retry_after": error.retry_after})
    return known.model_copy(update={"retry_after": _RETRY_AFTER.get(error.code)})


_WORDS = {
    "Input should be": "It has to be",
    "String should have": "It has to have",
    "a valid boolean": "true or false",
    "a valid list": "a list",
    "a valid string": "a text",
    "a valid number": "a number",
}
"""Words of pydantic, and those of JSON."""

_OBJECT = "It has to be an object"
_NO_OBJECT = ("dict_type", "model_type", "model_attributes_type")


def problems_of(error: ValidationError) -> list[Any]:
    """The problems of `error` as `refused` takes them."""
    return error.errors(include_url=False, include_context=False)


def refused(
    problems: Iterable[Mapping[str, Any]], fields: Iterable[str], within: tuple[str, ...] = ()
) -> Refused:
    """The first of pydantic's `problems` with an object that has these `fields`, as a refusal.

    `within` is the path of the object in the request.
    """
    problem = next(iter(problems))
    field = ".".join(str(part) for part in (*within, *problem["loc"]))
    if problem["type"] == "missing":
        return Refused(f"`{field}` is missing.", "Give it.", field)
    if problem["type"] == "extra_forbidden":
        known = ", ".join(fields) or "none"
        return Refused(f"There is no field `{field}`.", f"The fields are: {known}.", field)
    wanted = _OBJECT if problem["type"] in _NO_OBJECT else problem["msg"]
    for theirs, ours in _WORDS.items():
        wanted = wanted.replace(theirs, ours)
    where = f"`{field}`" if field else "The request"
    given = _shown(problem.get("input"))
    return Refused(f"{where} cannot be {given}.", f"{wanted}.", field or None)


def _shown(value: Any) -> str:
    """A wrong value in JSON, so that "1" and 1 look different; at most _SHOWN characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    # Half a character of a faulty encoding could not be sent back.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
