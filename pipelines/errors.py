"""Errors that reach a person. Each names what failed and what to do about it.

`code` is the catalogue key under `error.*` with which a screen words the error in the visitor's
language; `str(error)` is the English sentence for logs and the command line. The words of most
failures of models, of searches and of the storage are in assets/failures.toml.
"""

from __future__ import annotations

import logging
import os
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

from pydantic import ValidationError

from pipelines.paths import ASSETS
from pipelines.printable import printable
from pipelines.types import Frozen

_logger = logging.getLogger(__name__)


class ErrorInfo(Frozen):
    """An error as an event stores it. Never contains a key or a path of the machine."""

    code: str
    message: str
    remedy: str
    provider: str | None = None
    retryable: bool = False


class _ExplainedError(Exception):
    """An error with its code, what happened, what to do about it, and whose service failed.

    `retry_after` is in seconds, where a service said how long to wait. `code` and `retryable` are
    only given where they are not those of the class.
    """

    code: str
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        provider: str | None = None,
        retry_after: float | None = None,
        code: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy
        self.provider = provider
        self.retry_after = retry_after
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors come back from other processes as they were."""
        return partial(type(self), **vars(self)), ()

    def info(self) -> ErrorInfo:
        """The error as a storable value."""
        return ErrorInfo(
            code=self.code,
            message=self.message,
            remedy=self.remedy,
            provider=self.provider,
            retryable=self.retryable,
        )


class VeriscopeError(_ExplainedError):
    """Base of all expected failures: `message` says what happened, `remedy` what to do."""

    code = "unexpected"


class MethodEnded(_ExplainedError):  # noqa: N818 - not an error of a method, which must not handle it
    """What ends a method whatever failed calls it copes with; recorded like any other error.

    It is no VeriscopeError, so that no method takes it for a call that failed.
    """


class MissingReply(MethodEnded):
    """A replayed or scripted run asked for a call that was never recorded."""

    code = "missing_reply"


class LimitReached(MethodEnded):
    """A call was not made, or was ended, because it could pass a limit that the run was given.

    `code` is one of `LIMIT_CODES`.
    """

    @classmethod
    def of(cls, name: str, **facts: object) -> LimitReached:
        """The error for the limit `name`, with `facts` put into its words."""
        said = failure_words()["limit"][name]
        message, remedy = (said[part].format_map(facts) for part in ("message", "remedy"))
        return cls(message, remedy=remedy, code=said["code"])


LIMIT_CODES = {
    "limit_calls": "calls",
    "limit_tokens": "tokens",
    "limit_seconds": "seconds",
    "limit_money": "money",
}
"""The codes of `LimitReached`, each with the name of the limit."""


def limit_in(code: str) -> str | None:
    """The name of the limit that an error of this code is about; None for every other error."""
    return LIMIT_CODES.get(code)


def revived(info: ErrorInfo) -> VeriscopeError:
    """The error that `info` was made of, of the class that has its code.

    A code that this version does not know is kept. Not for a `MissingReply`, which is no
    VeriscopeError.
    """
    error = _of_code(info.code, info.message, info.remedy, info.provider)
    if error.retryable != info.retryable:
        error.retryable = info.retryable
    return error


def failure(name: str, provider: str | None = None, /, **facts: object) -> VeriscopeError:
    """The error that the file has under `name` ("loading.gated"), with `facts` put into its words.

    It is of the class that has its code.
    """
    group, _, key = name.partition(".")
    said = failure_words()[group][key]
    message, remedy = (said[part].format_map(facts) for part in ("message", "remedy"))
    return _of_code(said["code"], message, remedy, provider)


@cache
def failure_words() -> dict[str, dict[str, Any]]:
    """Group to name to the code, message and remedy of a failure."""
    return tomllib.loads((ASSETS / "failures.toml").read_text(encoding="utf-8"))


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Where the first mistake is ("methods.0.name", empty for the whole), and what it is."""
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    said = problem["msg"].removeprefix("Value error, ")
    return ".".join(str(part) for part in problem["loc"]), said


def _of_code(code: str, message: str, remedy: str, provider: str | None) -> VeriscopeError:
    kinds = {kind.code: kind for kind in _subclasses(VeriscopeError)}
    kind = kinds.get(code, VeriscopeError)
    unknown = None if kind.code == code else code
    return kind(message, remedy=remedy, provider=provider, code=unknown)


def _subclasses(kind: type[VeriscopeError]) -> list[type[VeriscopeError]]:
    return [each for sub in kind.__subclasses__() for each in (sub, *_subclasses(sub))]


class InvalidInputError(VeriscopeError):
    """The question, a setting or a file cannot be used as given."""

    code = "invalid_input"


class OverLimitError(InvalidInputError):
    """A run was not started, because it is expected to pass a limit."""

    code = "over_limit"


class UnknownModelError(VeriscopeError):
    """The provider does not know the model asked for."""

    code = "unknown_model"


class MissingKeyError(VeriscopeError):
    """The provider needs a key and none was given."""

    code = "missing_key"


class AuthenticationError(VeriscopeError):
    """The provider refused the key (401 or 403)."""

    code = "authentication"


class GatedModelError(AuthenticationError):
    """The hub gives a model only to those who accepted its terms."""

    code = "gated"


class RateLimitError(VeriscopeError):
    """The provider asks to slow down (429)."""

    code = "rate_limit"
    retryable = True


class TooOftenError(VeriscopeError):
    """A visitor has used up what they may take here; `retry_after` says until when."""

    code = "too_often"


class BusyError(VeriscopeError):
    """This machine has as much to do as it can take."""

    code = "busy"
    retryable = True


class QueuedAlreadyError(BusyError):
    """A visitor has as many runs in the queue as one may have."""

    code = "queued_already"


class UnreachableError(VeriscopeError):
    """No connection to the provider could be made."""

    code = "unreachable"
    retryable = True


class OfflineError(UnreachableError):
    """The hub that models are downloaded from cannot be reached."""

    code = "offline"


class ModelTimeoutError(VeriscopeError):
    """The provider did not answer in time."""

    code = "timeout"
    retryable = True


class ServerFailedError(VeriscopeError):
    """The provider failed on its side (5xx)."""

    code = "server_failed"
    retryable = True


class InvalidReplyError(VeriscopeError):
    """The provider's reply is not what its protocol promises (bad JSON, a cut stream)."""

    code = "invalid_reply"
    retryable = True


class RefusedRequestError(VeriscopeError):
    """The provider rejected the request as such (other 4xx), e.g. the text is too long."""

    code = "refused_request"


class CapabilityError(VeriscopeError):
    """The model or retriever cannot do what the method needs."""

    code = "capability"


class NotFoundError(VeriscopeError):
    """No such run, library or document for this owner."""

    code = "not_found"


class DiskFullError(VeriscopeError):
    """A download does not fit on the disk."""

    code = "disk_full"


class UnwritableError(VeriscopeError):
    """A download could not be written to its folder."""

    code = "unwritable"


class DamagedDownloadError(VeriscopeError):
    """What was downloaded is not what it should be."""

    code = "damaged_download"


class StorageError(VeriscopeError):
    """The database cannot be reached, read or written."""

    code = "storage"
    retryable = True


class StorageFullError(StorageError):
    """The disk that holds the database has no space left."""

    code = "storage_full"
    retryable = False


class StorageReadOnlyError(StorageError):
    """This account or connection may not write to the database."""

    code = "storage_read_only"
    retryable = False


class StorageBusyError(StorageError):
    """Another process holds the database locked, or all connections are in use."""

    code = "storage_busy"


class StorageDamagedError(StorageError):
    """The file of the database is damaged, or is no database of runs."""

    code = "storage_damaged"
    retryable = False


class StorageDiskError(StorageError):
    """The disk that holds the database reports an error, or a limit that was reached."""

    code = "storage_disk"
    retryable = False


class UnreadableRunError(StorageError):
    """A stored run has a format that this release does not know; no other try can read it."""

    code = "storage_unreadable"
    retryable = False


class StorageLostError(StorageError):
    """Another process ended a run because the one that wrote it could not be seen any more."""

    code = "storage_lost"
    retryable = False


def exit_status(command: Callable[[], int | None]) -> int:
    """What `command` returns; 2 when it refuses its input, 1 when it fails, 130 when interrupted.

    141 when nobody reads the output any more. What went wrong goes to standard error.
    """
    try:
        status = command() or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except VeriscopeError as error:
        _say(printable(str(error)))
        return 2 if isinstance(error, InvalidInputError) else 1
    except BrokenPipeError:
        # Who read the output wants no more of it.
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        # Errors of connections and time limits have no words of the system, and are not expected.
        level = logging.DEBUG if error.strerror else logging.ERROR
        _logger.log(level, "The command failed.", exc_info=error)
        said = error.strerror or type(error).__name__
        _say(f"Something could not be written or read ({said}). Check disks and rights.")
        return 1
    except KeyboardInterrupt:
        return 130


def _say(text: str) -> None:
    with suppress(OSError):
        print(f"veriscope: {text}", file=sys.stderr, flush=True)


def _discard_output() -> None:
    """What is left to be printed must not fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
