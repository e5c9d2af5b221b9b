"""From what an OpenAI-compatible server said, or failed to say, to the project's typed errors."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx2
import openai

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

__all__ = ["ErrorReader"]

_NO_SUCH_MODEL = re.compile(r"(not|n't|no) (exist|found|such)|unknown model|model_not_found", re.I)


class ErrorReader:
    """Words failures for one server. The key never appears in an error, even if it is echoed."""

    def __init__(self, *, name: str, model: str, provider: str, host: str, key: str | None) -> None:
        self._name = name
        self._model = model
        self._provider = provider
        self._host = host
        self._key = key

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the client raises, or what a misshapen reply causes, into a typed error."""
        try:
            yield
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise self.read(error) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.invalid("its answer could not be read") from error

    def read(self, error: Exception) -> VeriscopeError:
        """The typed error for what the client raised."""
        if isinstance(error, openai.APIStatusError):
            headers = error.response.headers
            return self._status(error.status_code, error.body, error.code, headers)
        if isinstance(error, openai.APIConnectionError):
            return self._connection(error)
        if isinstance(error, openai.APIError):
            return self._in_stream(error)
        return self.invalid("the connection was cut before the answer was complete")

    def invalid(self, what: str) -> InvalidReplyError:
        """The reply is not what the protocol promises."""
        return InvalidReplyError(
            f"{self._host} did not answer as an OpenAI-compatible server: {what}.",
            remedy="Try again; if it stays so, check the address of the server.",
            provider=self._provider,
        )

    def no_logprobs(self) -> CapabilityError:
        """The server takes no request for log-probabilities, or leaves them out."""
        return CapabilityError(
            f"{self._name} gives no log-probabilities of its tokens.",
            remedy="Let the capability check find out what it can do, choose another model, or use"
            " a stand-in: agreement over samples, or a local model that scores the text.",
            provider=self._provider,
        )

    def _connection(self, error: openai.APIConnectionError) -> VeriscopeError:
        cause = error.__cause__
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            return UnreachableError(
                f"No connection to {self._host} could be made ({self._clean(str(cause))}).",
                remedy="Check that the server is running and that its address is right.",
                provider=self._provider,
            )
        if isinstance(error, openai.APITimeoutError):
            return ModelTimeoutError(
                f"{self._host} did not answer in time.",
                remedy="Try again, or ask for a shorter text.",
                provider=self._provider,
            )
        if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
            return RefusedRequestError(
                f"The request to {self._host} could not be sent ({self._clean(str(cause))}).",
                remedy="Check the address and the key for stray characters.",
                provider=self._provider,
            )
        return self.invalid("the connection was cut before the answer was complete")

    def _in_stream(self, error: openai.APIError) -> VeriscopeError:
        """An error a server reports inside a stream that began well."""
        code = error.code or ""
        status = int(code) if code.isdigit() else 500
        return self._status(status, error.body or error.message, error.code, {})

    def _status(
        self, status: int, body: object, code: str | None, headers: Mapping[str, str]
    ) -> VeriscopeError:
        words = self._clean(server_words(body))
        told = f": {words}" if words else ""
        if status in (401, 403):
            return self._denied(status, told)
        if status == 429 and code != "insufficient_quota":
            wait = retry_after(headers)
            when = f"in {wait:.0f} s" if wait is not None else "later"
            return RateLimitError(
                f"{self._host} asks to slow down{told}.",
                remedy=f"Try again {when}, or allow fewer calls at once.",
                provider=self._provider,
                retry_after=wait,
            )
        if status == 408:
            return ModelTimeoutError(
                f"{self._host} gave up waiting{told}.", remedy="Try again.", provider=self._provider
            )
        if status >= 500:
            return ServerFailedError(
                f"{self._host} failed with status {status}{told}.",
                remedy="Try again in a moment.",
                provider=self._provider,
            )
        if _names_missing_model(status, code, words):
            return UnknownModelError(
                f"{self._host} does not know the model {self._model!r}{told}.",
                remedy="Check the model's name against the list of the provider.",
                provider=self._provider,
            )
        if re.search(r"logprobs|log.?probabilit", words, re.I):
            return self.no_logprobs()
        if status == 404 or status < 400:
            return RefusedRequestError(
                f"There are no chat completions at this address of {self._host}{told}.",
                remedy="Check the base URL; it often ends in /v1.",
                provider=self._provider,
            )
        return RefusedRequestError(
            f"{self._host} refused the request (status {status}){told}.",
            remedy="Change what its message names, such as the length of the text.",
            provider=self._provider,
        )

    def _denied(self, status: int, told: str) -> VeriscopeError:
        if self._key is None:
            return MissingKeyError(
                f"{self._host} wants a key{told}.",
                remedy="Enter a key for this model in the settings.",
                provider=self._provider,
            )
        return AuthenticationError(
            f"{self._host} refused the key (status {status}){told}.",
            remedy="Check the key and what it is allowed to use.",
            provider=self._provider,
        )

    def _clean(self, words: str) -> str:
        return showable(words, self._key)


def _names_missing_model(status: int, code: str | None, words: str) -> bool:
    if code == "model_not_found":
        return True
    return (
        status in (400, 404, 422)
        and "model" in words.lower()
        and _NO_SUCH_MODEL.search(words) is not None
    )
