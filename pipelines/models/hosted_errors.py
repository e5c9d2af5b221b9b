"""From what a model service said, or failed to say, to the project's typed errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pipelines.errors import (
    AuthenticationError,
    CapabilityError,
    InvalidReplyError,
    MissingKeyError,
    ModelTimeoutError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    UnknownModelError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.remote.failures import retry_after, server_words, showable

__all__ = ["ErrorReader", "RefusalError"]

E = TypeVar("E", bound=VeriscopeError)

_NO_SUCH_MODEL = re.compile(r"(not|n't|no) (exist|found|such)|unknown model|model_not_found", re.I)
_NO_MODEL_CODE = re.compile(r"modelnot(found|exist)|invalidmodel")
_NO_CREDIT = re.compile(r"arrearage|billoverdue|insufficientquota|freetier|insufficientbalance")
_BILLING = re.compile(r"billing|good standing|overdue|free tier", re.I)
_INSPECTION = re.compile(r"datainspection")
_TOO_LONG = re.compile(r"range of input length|context.{0,9} length|maximum context|too long", re.I)
_WRONG_PATH = re.compile(r"url error|invalid url", re.I)
_NO_LOGPROBS = re.compile(r"logprobs|log.?probabilit", re.I)

# The classes of httpx and httpx2, on which the clients are built, and of the clients themselves.
_UNREACHABLE = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})
_TIMED_OUT = frozenset({"APITimeoutError", "TimeoutException"})
_UNSENDABLE = frozenset({"UnsupportedProtocol", "LocalProtocolError"})


class RefusalError(Exception):
    """The service answered with an error.

    `status` is an HTTP status, `code` the service's own code in lower case without underscores,
    `body` what it said, in any of the shapes in use.
    """

    def __init__(
        self, status: int, code: str | None, body: object, headers: Mapping[str, Any] | None = None
    ) -> None:
        self.status = status
        self.code = re.sub(r"[^a-z.]", "", str(code or "").lower())
        self.words = server_words(body)
        self.headers = {name.lower(): text for name, text in (headers or {}).items()}
        super().__init__(f"status {status}, {self.code}")

    @property
    def is_inspection(self) -> bool:
        """Whether the service's inspection of content stopped the text."""
        return _INSPECTION.search(self.code) is not None

    @property
    def is_about_path(self) -> bool:
        """Whether the service says that the model is not asked in this place."""
        return self.status == 400 and _WRONG_PATH.search(self.words) is not None

    @property
    def is_about_model(self) -> bool:
        """Whether the service does not know the model."""
        return _NO_MODEL_CODE.search(self.code) is not None or (
            self.status in (400, 404, 422)
            and "model" in self.words.lower()
            and _NO_SUCH_MODEL.search(self.words) is not None
        )

    @property
    def is_about_fields(self) -> bool:
        """Whether it may be a field of the request that the service objects to."""
        return self.status in (400, 422) and not self.is_inspection


@dataclass(frozen=True, kw_only=True)
class ErrorReader:
    """Words failures for one model. The key never appears in an error, even if it is echoed.

    `protocol` names what the service is taken to speak and `ending` how its addresses end.
    `client_errors` are what the client raises, and `refusal` finds in one of them what the service
    answered, None where it did not.
    """

    name: str
    model: str
    provider: str
    host: str
    key: str | None = field(repr=False)
    protocol: str
    ending: str
    client_errors: tuple[type[Exception], ...]
    refusal: Callable[[Exception], RefusalError | None]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the client raises, or what a misshapen reply causes, into a typed error.

        What the service answered is raised as a `RefusalError`: the caller may know how to do
        without what the service objects to; `refused` words it otherwise.
        """
        try:
            yield
        except self.client_errors as error:
            refusal = self.refusal(error)
            if refusal is not None:
                # Not `from error`: what the service said may echo the key.
                raise refusal from None
            raise self._connection(error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.invalid("its answer could not be read") from error

    def invalid(self, what: str) -> InvalidReplyError:
        """The reply is not what the protocol promises."""
        return self._error(
            InvalidReplyError,
            f"{self.host} did not answer as {self.protocol}: {what}.",
            "Try again; if it stays so, check the address of the server.",
        )

    def no_logprobs(self) -> CapabilityError:
        """The server takes no request for log-probabilities, or leaves them out."""
        return self._error(
            CapabilityError,
            f"{self.name} gives no log-probabilities of its tokens.",
            "Let the capability check find out what it can do, choose another model, or use"
            " a stand-in: agreement over samples, or a local model that scores the text.",
        )

    def refused(self, refusal: RefusalError) -> VeriscopeError:
        """The typed error for what the service answered."""
        status, code = refusal.status, refusal.code
        words = showable(refusal.words, self.key)
        told = f": {words}" if words else ""
        if refusal.is_inspection:
            return self._error(
                RefusedRequestError,
                f"The content inspection of {self.host} stopped the text{told}.",
                "Word the question differently, or choose another model.",
            )
        if _NO_CREDIT.search(code) or (status in (400, 429) and _BILLING.search(words)):
            return self._error(
                RefusedRequestError,
                f"The account at {self.host} has no quota or credit left{told}.",
                "Look at the account's quota and bills, or use another key.",
            )
        if status in (401, 403):
            return self.denied(status, told)
        if status == 429:
            wait = retry_after(refusal.headers)
            when = f"in {wait:.0f} s" if wait is not None else "later"
            return RateLimitError(
                f"{self.host} asks to slow down{told}.",
                remedy=f"Try again {when}, or allow fewer calls at once.",
                provider=self.provider,
                retry_after=wait,
            )
        if status == 408:
            return self._error(
                ModelTimeoutError,
                f"{self.host} gave up waiting{told}.",
                "Try again.",
            )
        if status >= 500:
            return self._error(
                ServerFailedError,
                f"{self.host} failed with status {status}{told}.",
                "Try again in a moment.",
            )
        if refusal.is_about_model:
            return self._error(
                UnknownModelError,
                f"{self.host} does not know the model {self.model!r}{told}.",
                "Check the model's name against the list of the provider.",
            )
        if _NO_LOGPROBS.search(words):
            return self.no_logprobs()
        if status in (400, 413) and _TOO_LONG.search(words):
            return self._error(
                RefusedRequestError,
                f"The text is too long for {self.name}{told}.",
                "Use fewer or shorter passages, or a model that takes longer texts.",
            )
        if refusal.is_about_path:
            return self._error(
                RefusedRequestError,
                f"{self.model!r} does not write texts at this address of {self.host}{told}.",
                f"Choose a model for text, and check the address; it ends in {self.ending}.",
            )
        if status == 404 or status < 400:
            return self._error(
                RefusedRequestError,
                f"There are no chat completions at this address of {self.host}{told}.",
                f"Check the address; it often ends in {self.ending}.",
            )
        return self._error(
            RefusedRequestError,
            f"{self.host} refused the request (status {status}){told}.",
            "Change what its message names, such as the length of the text.",
        )

    def _connection(self, error: Exception) -> VeriscopeError:
        cause = error.__cause__ or error
        kinds = {kind.__name__ for one in (error, cause) for kind in type(one).__mro__}
        words = showable(str(cause), self.key)
        if kinds & _UNREACHABLE:
            return self._error(
                UnreachableError,
                f"No connection to {self.host} could be made ({words}).",
                "Check the connection, that the server is running, and its address.",
            )
        if kinds & _TIMED_OUT:
            return self._error(
                ModelTimeoutError,
                f"{self.host} did not answer in time.",
                "Try again, or ask for a shorter text.",
            )
        if kinds & _UNSENDABLE:
            return self._error(
                RefusedRequestError,
                f"The request to {self.host} could not be sent ({words}).",
                "Check the address and the key for stray characters.",
            )
        return self.invalid("the connection was cut before the answer was complete")

    def denied(self, status: int, told: str = "") -> VeriscopeError:
        """The service refuses the key, or wants one."""
        if self.key is None:
            return self._error(
                MissingKeyError,
                f"{self.host} wants a key{told}.",
                "Enter a key for this model in the settings.",
            )
        return self._error(
            AuthenticationError,
            f"{self.host} refused the key (status {status}){told}.",
            "Check the key and what it is allowed to use.",
        )

    def _error(self, kind: type[E], message: str, remedy: str) -> E:
        return kind(message, remedy=remedy, provider=self.provider)
