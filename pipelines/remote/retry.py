"""The one way to try again what a service may do at a later attempt."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from pipelines.errors import RateLimitError, VeriscopeError

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

_JITTER = 0.25


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how soon to try again: doubling pauses with jitter, or as the server says.

    `attempts` counts the first one too. `pause` is seconds before the second attempt, `longest` the
    longest single pause; a server that asks for more than that is not tried again. A pause differs
    by up to a quarter from the computed one, so that clients that failed together do not return
    together. `sleep` does the waiting.
    """

    attempts: int = 4
    pause: float = 0.5
    longest: float = 30.0
    sleep: Sleep = asyncio.sleep

    async def run(self, call: Callable[[int], Awaitable[T]]) -> T:
        """Return what `call(attempt)` returns, attempts counted from 1.

        Raises what the last attempt raised: a `VeriscopeError` that is not retryable, one after
        which no attempt is left, or any other exception at once.
        """
        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.attempts),
            wait=self._wait,
            retry=retry_if_exception(self._may_pass),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                return await call(attempt.retry_state.attempt_number)
        raise AssertionError("the last attempt returns or raises")

    def _may_pass(self, error: BaseException) -> bool:
        asked = _asked_wait(error)
        return (
            isinstance(error, VeriscopeError)
            and error.retryable
            and (asked is None or asked <= self.longest)
        )

    def _wait(self, state: RetryCallState) -> float:
        """Return seconds before the next attempt."""
        asked = _asked_wait(state.outcome.exception() if state.outcome else None)
        if asked is not None:
            return asked
        doubled = self.pause * 2 ** (state.attempt_number - 1)
        return min(self.longest, doubled * random.uniform(1 - _JITTER, 1 + _JITTER))


def not_again(error: VeriscopeError) -> VeriscopeError:
    """Return `error`, after which the call is not tried again, although others of its class are."""
    error.retryable = False
    return error


def _asked_wait(error: BaseException | None) -> float | None:
    return error.retry_after if isinstance(error, RateLimitError) else None
