"""Errors that reach a person: each is a key with facts, and a class that says what can be done.

Their words are in assets/errors.toml and looked up where they are shown (`ErrorInfo.said`); the
English ones are kept beside the key for the log, and for readers of a record whose key is gone.
`failure` makes an error. Nothing else does: words in the code are forbidden by a test.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Self

from pydantic import Field

from pipelines.base import Frozen, Language, printable
from pipelines.error_words import (
    Fact,
    Phrase,
    as_facts,
    entries,
    facts_of,
    language_of_terminal,
    words_of,
)

_logger = logging.getLogger(__name__)


class ErrorInfo(Frozen):
    """An error as an event stores it. Never contains a key of a service or a path of the machine.

    `key` and `facts` are what it is ("service.timeout", the host); `message` and `remedy` are its
    English words, shown where this release has no words for the key.
    """

    code: str
    message: str
    remedy: str
    provider: str | None = None
    retryable: bool = False
    key: str = ""
    facts: dict[str, Fact] = Field(default_factory=dict)

    def said(self, language: Language) -> tuple[str, str]:
        """Return what happened and what to do about it, in `language` where it has words."""
        return self._worded(language) or (self.message, self.remedy)

    def sentence(self, language: Language) -> str:
        """Return what happened and what to do about it as one text."""
        worded = self._worded(language)
        # Chinese sentences have no space between them.
        between = "" if worded and language == "zh" else " "
        return between.join(filter(None, worded or (self.message, self.remedy)))

    def _worded(self, language: Language) -> tuple[str, str] | None:
        match words_of(self.key, self.facts, language):
            case (message, remedy):
                return message, remedy
            case _:
                return None


class _ExplainedError(Exception):
    """An error with its code, what happened, what to do about it, and whose service failed.

    `retry_after` is in seconds, where a service said how long to wait. `code` and `retryable` are
    only given where they are not those of the class, which stand behind its base.
    """

    code: str
    retryable = False

    def __init_subclass__(cls, code: str | None = None, retryable: bool | None = None) -> None:
        if code is not None:
            cls.code = code
        if retryable is not None:
            cls.retryable = retryable

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        provider: str | None = None,
        retry_after: float | None = None,
        code: str | None = None,
        retryable: bool | None = None,
        key: str = "",
        facts: Mapping[str, Fact] | None = None,
    ) -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy
        self.provider = provider
        self.retry_after = retry_after
        self.key = key
        self.facts = dict(facts or {})
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what the error is made of anew: it comes back from other processes as it was."""
        return partial(type(self), **vars(self)), ()

    @classmethod
    def of(cls, key: str, provider: str | None = None, /, **facts: object) -> Self:
        """Return the error of this class that assets/errors.toml has under `key`."""
        entry, named = entries()[key], facts_of(key)
        stored = as_facts({name: value for name, value in facts.items() if name in named})
        words = words_of(key, stored, "en")
        if words is None:
            raise KeyError(f"{key} needs other facts than {', '.join(facts) or 'none'}")
        message, remedy = words
        code = None if entry.code == getattr(cls, "code", None) else entry.code
        return cls(message, remedy=remedy, provider=provider, code=code, key=key, facts=stored)

    def phrase(self, part: Literal[0, 1] = 0) -> Fact:
        """Return what happened, or what to do about it (1), as a part of another error's words."""
        if not self.key:
            return (self.message, self.remedy)[part].rstrip(".")
        return Phrase(key=self.key, facts=self.facts, part=part)

    def info(self) -> ErrorInfo:
        """Return the error as a storable value."""
        return ErrorInfo(
            code=self.code,
            message=self.message,
            remedy=self.remedy,
            provider=self.provider,
            retryable=self.retryable,
            key=self.key,
            facts=self.facts,
        )


class VeriscopeError(_ExplainedError, code="unexpected"):
    """Base of all expected failures: `message` says what happened, `remedy` what to do."""


class MethodEnded(_ExplainedError):  # noqa: N818 - not an error of a method, which must not handle it
    """What ends a method whatever failed calls it copes with; recorded like any other error.

    It is no VeriscopeError, so that no method takes it for a call that failed.
    """


class MissingReply(MethodEnded, code="missing_reply"):
    """A replayed or scripted run asked for a call that was never recorded."""


class LimitReached(MethodEnded):
    """A call was not made, or was ended, because it could pass a limit that the run was given.

    `code` is one of `LIMIT_CODES`.
    """


LIMIT_CODES = {
    "limit_calls": "calls",
    "limit_tokens": "tokens",
    "limit_seconds": "seconds",
    "limit_money": "money",
}
"""The codes of `LimitReached`, each with the name of the limit."""


def limit_in(code: str) -> str | None:
    """Return the name of the limit that an error of this code is about; None for others."""
    return LIMIT_CODES.get(code)


def revived(info: ErrorInfo) -> VeriscopeError | MethodEnded:
    """Return the error that `info` was made of, of the class that has its code.

    A code that this version does not know is kept.
    """
    kind: type[VeriscopeError | MethodEnded] = _class_of(info.code)
    if info.code == MissingReply.code:
        kind = MissingReply
    elif limit_in(info.code) is not None:
        kind = LimitReached
    error = kind(
        info.message,
        remedy=info.remedy,
        provider=info.provider,
        code=None if getattr(kind, "code", None) == info.code else info.code,
        key=info.key,
        facts=info.facts,
    )
    if error.retryable != info.retryable:
        error.retryable = info.retryable
    return error


def failure(key: str, provider: str | None = None, /, **facts: object) -> VeriscopeError:
    """Return the error that assets/errors.toml has under `key` ("loading.gated"), with its facts.

    It is of the class that has its code. `provider` is whose service failed.
    """
    return _class_of(entries()[key].code).of(key, provider, **facts)


def _class_of(code: str) -> type[VeriscopeError]:
    kinds = {kind.code: kind for kind in _subclasses(VeriscopeError)}
    return kinds.get(code, VeriscopeError)


def _subclasses(kind: type[VeriscopeError]) -> list[type[VeriscopeError]]:
    return [each for sub in kind.__subclasses__() for each in (sub, *_subclasses(sub))]


class InvalidInputError(VeriscopeError, code="invalid_input"):
    """The question, a setting or a file cannot be used as given."""


class OverLimitError(InvalidInputError, code="over_limit"):
    """A run was not started, because it is expected to pass a limit."""


class UnknownModelError(VeriscopeError, code="unknown_model"):
    """The provider does not know the model asked for."""


class MissingKeyError(VeriscopeError, code="missing_key"):
    """The provider needs a key and none was given."""


class AuthenticationError(VeriscopeError, code="authentication"):
    """The provider refused the key (401 or 403)."""


class GatedModelError(AuthenticationError, code="gated"):
    """The hub gives a model only to those who accepted its terms."""


class RateLimitError(VeriscopeError, code="rate_limit", retryable=True):
    """The provider asks to slow down (429)."""


class TooOftenError(VeriscopeError, code="too_often"):
    """A visitor has used up what they may take here; `retry_after` says until when."""


class BusyError(VeriscopeError, code="busy", retryable=True):
    """This machine has as much to do as it can take."""


class QueuedAlreadyError(BusyError, code="queued_already"):
    """A visitor has as many runs in the queue as one may have."""


class UnreachableError(VeriscopeError, code="unreachable", retryable=True):
    """No connection to the provider could be made."""


class OfflineError(UnreachableError, code="offline"):
    """The hub that models are downloaded from cannot be reached."""


class ModelTimeoutError(VeriscopeError, code="timeout", retryable=True):
    """The provider did not answer in time."""


class ServerFailedError(VeriscopeError, code="server_failed", retryable=True):
    """The provider failed on its side (5xx)."""


class InvalidReplyError(VeriscopeError, code="invalid_reply", retryable=True):
    """The provider's reply is not what its protocol promises (bad JSON, a cut stream)."""


class RefusedRequestError(VeriscopeError, code="refused_request"):
    """The provider rejected the request as such (other 4xx), e.g. the text is too long."""


class CapabilityError(VeriscopeError, code="capability"):
    """The model or retriever cannot do what the method needs."""


class NotFoundError(VeriscopeError, code="not_found"):
    """No such run, library or document for this owner."""


class DiskFullError(VeriscopeError, code="disk_full"):
    """A download does not fit on the disk."""


class UnwritableError(VeriscopeError, code="unwritable"):
    """A download could not be written to its folder."""


class DamagedDownloadError(VeriscopeError, code="damaged_download"):
    """What was downloaded is not what it should be."""


class StorageError(VeriscopeError, code="storage", retryable=True):
    """The database cannot be reached, read or written."""


class StorageFullError(StorageError, code="storage_full", retryable=False):
    """The disk that holds the database has no space left."""


class StorageReadOnlyError(StorageError, code="storage_read_only", retryable=False):
    """This account or connection may not write to the database."""


class StorageBusyError(StorageError, code="storage_busy"):
    """Another process holds the database locked, or all connections are in use."""


class StorageDamagedError(StorageError, code="storage_damaged", retryable=False):
    """The file of the database is damaged, or is no database of runs."""


class StorageDiskError(StorageError, code="storage_disk", retryable=False):
    """The disk that holds the database reports an error, or a limit that was reached."""


class UnreadableRunError(StorageError, code="storage_unreadable", retryable=False):
    """A stored run has a format that this release does not know; no other try can read it."""


class StorageLostError(StorageError, code="storage_lost", retryable=False):
    """Another process ended a run because the one that wrote it could not be seen any more."""


def exit_status(command: Callable[[], int | None]) -> int:
    """Return what `command` returns; 2 when it refuses its input, 1 when it fails, 130 when
    interrupted.

    141 when nobody reads the output any more. What went wrong goes to standard error.
    """
    try:
        status = command() or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except VeriscopeError as error:
        _say(printable(error.info().sentence(language_of_terminal())))
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
        known = failure("command.system", said=said)
        _say(known.info().sentence(language_of_terminal()))
        return 1
    except KeyboardInterrupt:
        return 130


def _say(text: str) -> None:
    with suppress(OSError):
        print(f"veriscope: {text}", file=sys.stderr, flush=True)


def _discard_output() -> None:
    """Discard what is left to be printed, so that it does not fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
