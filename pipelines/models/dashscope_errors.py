"""From what DashScope said, or failed to say, to the project's typed errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from dashscope.api_entities.dashscope_response import GenerationResponse
from dashscope.common.error import DashScopeException

from pipelines.errors import (
    InvalidReplyError,
    ModelTimeoutError,
    RefusedRequestError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.models.openai_errors import ErrorReader
from pipelines.remote.failures import server_words

__all__ = ["DashScopeErrors", "ServiceError", "check"]

# A stream opens with status 200, so that what goes wrong in it is known by its code alone.
_STATUS_BY_CODE = (
    (re.compile(r"invalidapikey"), 401),
    (re.compile(r"accessdenied|unpurchased"), 403),
    (re.compile(r"throttling|limitrequests|ratelimit"), 429),
    (re.compile(r"timeout"), 408),
    (re.compile(r"internalerror|systemerror|internalservererror"), 500),
    (re.compile(r"unavailable|modelservicefailed"), 503),
)
_NO_MODEL = re.compile(r"modelnot(found|exist)|invalidmodel")
_NO_CREDIT = re.compile(r"arrearage|billoverdue|insufficientquota|freetier|insufficientbalance")
_BILLING = re.compile(r"billing|good standing|overdue|free tier", re.I)
_INSPECTION = re.compile(r"datainspection")
_TOO_LONG = re.compile(r"range of input length|context.{0,9} length|maximum context|too long", re.I)
_NO_SUCH_PLACE = re.compile(r"url error|invalid url", re.I)


class ServiceError(Exception):
    """The service answered with an error. `code` is in lower case without underscores."""

    def __init__(self, response: GenerationResponse) -> None:
        self.code = re.sub(r"[^a-z.]", "", str(response.code or "").lower())
        self.words = server_words(response.message)
        self.headers = {name.lower(): text for name, text in (response.headers or {}).items()}
        by_code = (status for pattern, status in _STATUS_BY_CODE if pattern.search(self.code))
        self.status = next(by_code, int(response.status_code))
        super().__init__(f"status {self.status}, {self.code}")

    @property
    def is_inspection(self) -> bool:
        """Whether the service's inspection of content stopped it."""
        return _INSPECTION.search(self.code) is not None

    @property
    def is_about_fields(self) -> bool:
        """Whether it may be a field of the request that the service objects to."""
        return self.status in (400, 422) and not self.is_inspection

    @property
    def is_unreadable(self) -> bool:
        """Whether it is the client's word for a part of a stream that is no JSON."""
        streamed = "text/event-stream" in self.headers.get("content-type", "")
        return streamed and self.code == "unknown"


def check(response: GenerationResponse) -> GenerationResponse:
    """`response`, or ServiceError when it is an error."""
    if response.status_code != 200:
        raise ServiceError(response)
    return response


class DashScopeErrors(ErrorReader):
    """Words failures of one DashScope model. The key never appears in an error."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the client raises, or what a misshapen reply causes, into a typed error.

        A `ServiceError` passes: whoever made the request may know how to do without.
        """
        try:
            yield
        except aiohttp.ClientResponseError as error:
            # It keeps the headers of the request, and with them the key.
            raise self.read(error) from None
        except (aiohttp.ClientError, OSError, DashScopeException) as error:
            raise self.read(error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.invalid("its answer could not be read") from error

    def read(self, error: Exception) -> VeriscopeError:
        """The typed error for what the client raised or the service answered."""
        if isinstance(error, ServiceError):
            return self._service(error)
        if isinstance(error, DashScopeException):
            return RefusedRequestError(
                f"The client of {self._host} refused the request ({self._clean(str(error))}).",
                remedy="Check the name of the model.",
                provider=self._provider,
            )
        if isinstance(
            error,
            aiohttp.ClientConnectorError
            | aiohttp.ConnectionTimeoutError
            | aiohttp.ClientHttpProxyError,
        ):
            return UnreachableError(
                f"No connection to {self._host} could be made ({self._clean(str(error))}).",
                remedy="Check the connection to the internet and the address.",
                provider=self._provider,
            )
        if isinstance(error, TimeoutError):
            return ModelTimeoutError(
                f"{self._host} did not answer in time.",
                remedy="Try again, or ask for a shorter text.",
                provider=self._provider,
            )
        if isinstance(error, aiohttp.ContentTypeError):
            return self.invalid("its answer could not be read")
        return self.invalid("the connection was cut before the answer was complete")

    def invalid(self, what: str) -> InvalidReplyError:
        """The reply is not what the protocol promises."""
        return InvalidReplyError(
            f"{self._host} did not answer as DashScope does: {what}.",
            remedy="Try again; if it stays so, check the address.",
            provider=self._provider,
        )

    def missing_key(self) -> VeriscopeError:
        """No key was given, and the service answers nobody without."""
        return self._denied(401, "")

    def _service(self, error: ServiceError) -> VeriscopeError:
        words = self._clean(error.words)
        told = f": {words}" if words else ""
        if error.is_unreadable:
            return self.invalid("a part of its stream could not be read")
        if error.is_inspection:
            return self._refused(
                f"The content inspection of {self._host} stopped the text{told}.",
                "Word the question differently, or choose another model.",
            )
        if _NO_CREDIT.search(error.code) or (error.status in (400, 429) and _BILLING.search(words)):
            return self._refused(
                f"The account at {self._host} has no quota or credit left{told}.",
                "Look at the account's quota and bills, or use another key.",
            )
        if _NO_MODEL.search(error.code):
            return self._status(404, words, "model_not_found", error.headers)
        if error.status in (400, 413) and _TOO_LONG.search(words):
            return self._refused(
                f"The text is too long for {self._name}{told}.",
                "Use fewer or shorter passages, or a model that takes longer texts.",
            )
        if error.status == 400 and _NO_SUCH_PLACE.search(words):
            return self._refused(
                f"{self._model!r} is not to be had at this address of {self._host}{told}.",
                "Choose a model for text, and check the address; it ends in /api/v1.",
            )
        found = self._status(error.status, words, error.code, error.headers)
        if error.status == 404 and isinstance(found, RefusedRequestError):
            return self._refused(
                f"There is no text generation at this address of {self._host}{told}.",
                "Check the address; it ends in /api/v1.",
            )
        return found

    def _refused(self, message: str, remedy: str) -> RefusedRequestError:
        return RefusedRequestError(message, remedy=remedy, provider=self._provider)
