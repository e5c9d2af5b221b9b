"""What programs are told when a request of theirs is refused or fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from operator import itemgetter
from typing import Annotated, Any

from pydantic import Field, ValidationError

from pipelines.error_words import entries, phrase, phrase_in, what_is_wrong
from pipelines.errors import ErrorInfo, VeriscopeError, failure
from pipelines.types import Frozen, Language

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


_speaking: ContextVar[Language] = ContextVar("language of the caller", default="en")


def speak(accepted: str) -> None:
    """Word errors in this task as the header Accept-Language says; English unless Chinese is first.

    Programs that send no such header read English.
    """
    wanted = [
        (-_weight(parameters), tag.strip().lower())
        for tag, _, parameters in (one.partition(";") for one in accepted.split(","))
    ]
    known = [tag for _, tag in sorted(wanted, key=itemgetter(0)) if tag[:2] in ("en", "zh")]
    _speaking.set("zh" if known and known[0].startswith("zh") else "en")


def _weight(parameters: str) -> float:
    try:
        return float(parameters.strip().removeprefix("q="))
    except ValueError:
        return 1.0


def spoken() -> Language:
    """Return the language of the caller whom this task answers."""
    return _speaking.get()


class Refused(Exception):  # noqa: N818 - what happened to the request
    """A request that cannot be carried out as it is: a key of assets/errors.toml and facts."""

    def __init__(self, key: str, field: str | None = None, /, **facts: object) -> None:
        known = failure(key, **facts)
        super().__init__(str(known))
        self.info, self.field = known.info(), field

    @property
    def error(self) -> ApiError:
        """What the program is told, in the language of the caller."""
        message, remedy = self.info.said(spoken())
        return ApiError(code=self.info.code, message=message, remedy=remedy, field=self.field)


_RETRY_AFTER = {"busy": 30.0, "queued_already": 10.0, "storage": 30.0, "storage_busy": 5.0}
"""Seconds after which asking again may work, for errors that pass by themselves."""


def for_caller(info: ErrorInfo) -> ApiError:
    """Return an error that a run recorded, as a program can use it.

    What a program can do about an error is not what a visitor can: it sees no screens, and cannot
    choose models or keys.
    """
    message, remedy = info.said(spoken())
    own = f"program.{info.code}"
    if own in entries():
        remedy = phrase_in(phrase(own), spoken())
    return ApiError(code=info.code, message=message, remedy=remedy)


def told(error: Refused | VeriscopeError) -> ApiError:
    """Return a refused request or a failure, as a program can use it."""
    if isinstance(error, Refused):
        return error.error
    known = for_caller(error.info())
    if error.retry_after is not None:
        # It says itself what to wait for.
        _, remedy = error.info().said(spoken())
        return known.model_copy(update={"remedy": remedy, "retry_after": error.retry_after})
    return known.model_copy(update={"retry_after": _RETRY_AFTER.get(error.code)})


def problems_of(error: ValidationError) -> list[Any]:
    """Return the problems of `error` as `refused` takes them."""
    return error.errors(include_url=False)


def refused(
    problems: Iterable[Mapping[str, Any]], fields: Iterable[str], within: tuple[str, ...] = ()
) -> Refused:
    """Return the first of pydantic's `problems` with an object that has these `fields`, as a
    refusal.

    `within` is the path of the object in the request.
    """
    problem = next(iter(problems))
    field = ".".join(str(part) for part in (*within, *problem["loc"]))
    if problem["type"] == "missing":
        return Refused("request.missing_field", field, field=field)
    if problem["type"] == "extra_forbidden":
        known = [*fields] or phrase("detail.none")
        return Refused("request.no_field", field, field=field, known=known)
    where = phrase("request.the_field", field=field) if field else phrase("request.body")
    given = _shown(problem.get("input"))
    wanted = what_is_wrong(problem)
    return Refused("request.bad_value", field or None, where=where, given=given, wanted=wanted)


def _shown(value: Any) -> str:
    """Return a wrong value in JSON, so that "1" and 1 look different; at most _SHOWN characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    # Half a character of a faulty encoding could not be sent back.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
