"""From what a model service said, or failed to say, to the project's typed errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pipelines.error_words import phrase
from pipelines.errors import RateLimitError, VeriscopeError, failure
from pipelines.remote.bounded import MOST_BYTES, TooLargeError
from pipelines.remote.failures import (
    CUT_OFF,
    connection_failure,
    later,
    retry_after,
    server_words,
    showable,
)
from pipelines.remote.retry import not_again

_NO_SUCH_MODEL = re.compile(r"(not|n't|no) (exist|found|such)|unknown model|model_not_found", re.I)
_NO_MODEL_CODE = re.compile(r"modelnot(found|exist)|invalidmodel")
_NO_CREDIT = re.compile(r"arrearage|billoverdue|insufficientquota|freetier|insufficientbalance")
_BILLING = re.compile(r"billing|good standing|overdue|free tier", re.I)
_INSPECTION = re.compile(r"datainspection")
_TOO_LONG = re.compile(r"range of input length|context.{0,9} length|maximum context|too long", re.I)
_WRONG_PATH = re.compile(r"url error|invalid url", re.I)
LOG_PROBABILITIES = re.compile(r"logprobs|log.?probabilit", re.I)
"""How a service names them when it gives none."""


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
        """Whether the service says that the model is not asked at this endpoint."""
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

    `facts` are what the words of failures name: `name`, `model` and `host`, the `protocol` that the
    service is taken to speak, the `ending` of its addresses. `client_errors` are what the client
    raises, and `refusal` finds in one of them what the service answered, None where it did not.
    """

    provider: str
    key: str | None = field(repr=False)
    facts: Mapping[str, str]
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
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise self.failure("invalid", what=phrase("detail.unreadable_answer")) from error

    def failure(self, kind: str, /, **facts: object) -> VeriscopeError:
        """Return the error of this kind ("service.KIND" in assets/errors.toml) for this model."""
        return failure(f"service.{kind}", self.provider, **self.facts, **facts)

    def refused(self, refusal: RefusalError) -> VeriscopeError:
        """Return the typed error for what the service answered."""
        words = showable(refusal.words, self.key)
        wait = retry_after(refusal.headers)
        error = self.failure(
            self._kind(refusal, words),
            told=phrase("detail.after_colon", words=words) if words else "",
            status=refusal.status,
            when=later(wait),
        )
        if isinstance(error, RateLimitError):
            error.retry_after = wait
        return error

    def _kind(self, refusal: RefusalError, words: str) -> str:
        status, code = refusal.status, refusal.code
        if refusal.is_inspection:
            return "inspection"
        if _NO_CREDIT.search(code) or (status in (400, 429) and _BILLING.search(words)):
            return "no_credit"
        if status in (401, 403):
            return "no_key" if self.key is None else "wrong_key"
        if status == 429:
            return "slow_down"
        if status == 408:
            return "gave_up"
        if status >= 500:
            return "failed"
        if refusal.is_about_model:
            return "unknown_model"
        if LOG_PROBABILITIES.search(words):
            return "no_logprobs"
        if status in (400, 413) and _TOO_LONG.search(words):
            return "too_long"
        if refusal.is_about_path:
            return "wrong_path"
        return "no_completions" if status == 404 or status < 400 else "refused"

    def _connection(self, error: Exception) -> VeriscopeError:
        if isinstance(error.__cause__ or error, TooLargeError):
            return not_again(self.failure("too_large", most=MOST_BYTES // 1_000_000))
        kind = connection_failure(error)
        if kind is None:
            return self.failure("invalid", what=CUT_OFF)
        found = self.failure(kind, words=showable(str(error.__cause__ or error), self.key))
        return not_again(found) if kind == "timeout" else found
