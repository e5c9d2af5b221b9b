"""From what a search service said, or failed to say, to the project's typed errors."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx2

from pipelines.errors import (
    AuthenticationError,
    InvalidReplyError,
    MissingKeyError,
    ModelTimeoutError,
    RateLimitError,
    RefusedRequestError,
    ServerFailedError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.remote.address import usable_key
from pipelines.remote.failures import retry_after, server_words, showable

__all__ = ["ErrorReader", "required_key"]

_OTHER_SOURCE = "choose another source under Evidence"


class ErrorReader:
    """Words failures for one service. The key never appears in an error, even if it is echoed."""

    def __init__(self, *, service: str, host: str, key: str | None) -> None:
        self._service = service
        self._host = host
        self._key = key

    def unsent(self, error: httpx2.HTTPError) -> VeriscopeError:
        """The typed error for a request that brought no whole answer."""
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            return UnreachableError(
                f"No connection to {self._host} could be made.",
                remedy=f"Check that this machine is online, or {_OTHER_SOURCE}.",
                provider=self._service,
            )
        if isinstance(error, httpx2.TimeoutException):
            return self.timeout()
        if isinstance(error, httpx2.TooManyRedirects):
            return self._redirected()
        if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
            return RefusedRequestError(
                f"The request to {self._host} could not be sent.",
                remedy="Check the address of the search service.",
                provider=self._service,
            )
        return self.invalid("the connection was cut before the answer was complete")

    def timeout(self) -> ModelTimeoutError:
        """No whole answer came in time."""
        return ModelTimeoutError(
            f"{self._service} did not answer in time.",
            remedy=f"Try again, or {_OTHER_SOURCE}.",
            provider=self._service,
        )

    def invalid(self, what: str) -> InvalidReplyError:
        """The answer is not what the service's protocol promises."""
        return InvalidReplyError(
            f"{self._service} did not answer as expected: {what}.",
            remedy=f"Try again; if it stays so, check the address or {_OTHER_SOURCE}.",
            provider=self._service,
        )

    def slow_down(self, told: str = "", headers: Mapping[str, str] | None = None) -> RateLimitError:
        """Too many searches; `headers` of the answer may say how long to wait."""
        wait = retry_after(headers or {})
        when = f"in {wait:.0f} s" if wait is not None else "later"
        return RateLimitError(
            f"{self._service} asks to slow down{self._quoted(told)}.",
            remedy=f"Try again {when}, or {_OTHER_SOURCE}.",
            provider=self._service,
            retry_after=wait,
        )

    def failed(self, told: str) -> ServerFailedError:
        """The service failed on its side."""
        return ServerFailedError(
            f"{self._service} failed{self._quoted(told)}.",
            remedy=f"Try again in a moment, or {_OTHER_SOURCE}.",
            provider=self._service,
        )

    def refused(self, told: str) -> RefusedRequestError:
        """The service rejects the search as such."""
        return RefusedRequestError(
            f"{self._service} refused the search{self._quoted(told)}.",
            remedy=f"Change what its message names, or {_OTHER_SOURCE}.",
            provider=self._service,
        )

    def status(self, status: int, headers: Mapping[str, str], body: bytes) -> VeriscopeError:
        """The typed error for an answer whose status is not a success."""
        # A service that refuses a key likes to quote it, in part or in a form of its own.
        if status in (401, 403):
            return self._denied(status)
        words = _words(body)
        told = f"status {status}: {words}" if words else f"status {status}"
        if status == 429:
            return self.slow_down(words, headers)
        if status == 408:
            return self.timeout()
        if status >= 500:
            return self.failed(told)
        return self.refused(told) if status >= 400 else self._redirected()

    def _denied(self, status: int) -> VeriscopeError:
        if self._key is None:
            return RefusedRequestError(
                f"{self._service} takes no searches from this machine (status {status}).",
                remedy=f"Wait a while, or {_OTHER_SOURCE}.",
                provider=self._service,
            )
        return AuthenticationError(
            f"{self._service} refused the key (status {status}).",
            remedy="Check the key and what it is allowed to use.",
            provider=self._service,
        )

    def _redirected(self) -> RefusedRequestError:
        return RefusedRequestError(
            f"{self._host} sends the search on to another address.",
            remedy="Check the address of the search service.",
            provider=self._service,
        )

    def _quoted(self, words: str) -> str:
        words = showable(words, self._key)
        return f" ({words})" if words else ""


def required_key(key: str | None, service: str) -> str:
    """The key without stray white space; raises MissingKeyError or AuthenticationError."""
    usable = usable_key(key, service)
    if usable is None:
        raise MissingKeyError(
            f"{service} wants a key.",
            remedy=f"Enter a key for {service} in the settings, or {_OTHER_SOURCE}.",
            provider=service,
        )
    return usable


def _words(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        return server_words(json.loads(text))
    except (ValueError, RecursionError):
        return server_words(text)
