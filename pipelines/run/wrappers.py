"""Thin wrappers around a model, each doing one thing; a method sees them as one model.

From the outside in: `Streamed` shows tokens as they are written, `Cached` answers what was asked
before, `Retried` tries again what may succeed, `Recorded` waits for a free place at the model and
writes every attempt down.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pipelines.errors import ErrorInfo, RateLimitError, VeriscopeError
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    ModelRequest,
    ScoreRequest,
    Watcher,
)
from pipelines.run.cache import Cache, Gate
from pipelines.run.events import ModelCalled
from pipelines.types import Choice, Generation

__all__ = ["Cached", "Recorded", "Retried", "RetryPolicy", "Streamed"]

T = TypeVar("T")
Emit = Callable[..., Any]
Clock = Callable[[], float]


class Wrapper(Model):
    """A model around a model. Subclasses override `around`, which sees every kind of call."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self.name = inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    async def around(self, request: ModelRequest, proceed: Callable[[], Awaitable[T]]) -> T:
        """Do something before, after or instead of `proceed()`."""
        return await proceed()

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await self.around(request, lambda: self.inner.generate(request, watch))

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await self.around(request, lambda: self.inner.choose(request))

    async def score(self, request: ScoreRequest) -> Generation:
        return await self.around(request, lambda: self.inner.score(request))


class Streamed(Wrapper):
    """Shows what is being written: every piece goes to `show` before the caller's watcher."""

    def __init__(self, inner: Model, show: Callable[[Delta], None]) -> None:
        super().__init__(inner)
        self._show = show

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if watch is None:
            return await self.inner.generate(request)

        def show_and_watch(delta: Delta) -> bool | None:
            self._show(delta)
            return watch(delta)

        return await self.inner.generate(request, show_and_watch)


class Cached(Wrapper):
    """Answers a repeated request from `cache`, and joins one that is already under way.

    A request above temperature 0 is a draw, not a question: it is cached only when it carries a
    sample index. Hits are reported through `on_hit`.
    """

    def __init__(self, inner: Model, cache: Cache, on_hit: Callable[..., None]) -> None:
        super().__init__(inner)
        self._cache = cache
        self._on_hit = on_hit

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if request.temperature > 0 and request.sample is None:
            return await self.inner.generate(request, watch)
        reply, hit = await self._cache.generations(
            request, watch, lambda share: self.inner.generate(request, share)
        )
        if hit:
            self._on_hit(request, generations=reply)
        return reply

    async def choose(self, request: ChoiceRequest) -> Choice:
        reply, hit = await self._cache.value(request, lambda: self.inner.choose(request))
        if hit:
            self._on_hit(request, choice=reply)
        return reply

    async def score(self, request: ScoreRequest) -> Generation:
        reply, hit = await self._cache.value(request, lambda: self.inner.score(request))
        if hit:
            self._on_hit(request, generations=(reply,))
        return reply


class RetryPolicy:
    """How often and how soon to try again: doubling pauses with jitter, or as the server says.

    `pause` is seconds before the second attempt, `longest` the longest single pause; a server that
    asks for more than that is given up at once.
    """

    def __init__(
        self,
        attempts: int = 4,
        pause: float = 0.5,
        longest: float = 30.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.attempts = attempts
        self._pause = pause
        self._longest = longest
        self.sleep = sleep

    def wait_before(self, attempt: int, error: VeriscopeError) -> float | None:
        """Seconds to wait before `attempt` (from 2), or None to give up."""
        if not error.retryable or attempt > self.attempts:
            return None
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            return error.retry_after if error.retry_after <= self._longest else None
        exponential = self._pause * 2 ** (attempt - 2)
        return min(self._longest, exponential * random.uniform(0.75, 1.25))


class Retried(Wrapper):
    """Tries again after rate limits, timeouts, lost connections and server errors."""

    def __init__(self, inner: Recorded, policy: RetryPolicy) -> None:
        super().__init__(inner)
        self._recorded = inner
        self._policy = policy

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        written = False

        def note(delta: Delta) -> bool | None:
            nonlocal written
            written = True
            return watch(delta) if watch else None

        async def attempt() -> tuple[Generation, ...]:
            nonlocal written
            if written and watch:
                watch(Delta(text="", restart=True))
                written = False
            return await self.inner.generate(request, note if watch else None)

        return await self.around(request, attempt)

    async def around(self, request: ModelRequest, proceed: Callable[[], Awaitable[T]]) -> T:
        attempt = 1
        while True:
            self._recorded.attempt = attempt
            try:
                return await proceed()
            except VeriscopeError as error:
                attempt += 1
                pause = self._policy.wait_before(attempt, error)
                if pause is None:
                    raise
                await self._policy.sleep(pause)


class Recorded(Wrapper):
    """Waits for a free place at the model, makes the call, and emits what came of it.

    `Retried` sets `attempt` right before each call, and it is read before anything is awaited, so
    that concurrent calls through one instance keep their own numbers.
    """

    def __init__(self, inner: Model, gate: Gate, role: str, emit: Emit, now: Clock) -> None:
        super().__init__(inner)
        self._gate = gate
        self._role = role
        self._emit = emit
        self._now = now
        self.attempt = 1

    async def around(self, request: ModelRequest, proceed: Callable[[], Awaitable[T]]) -> T:
        attempt = self.attempt
        started = self._now()
        queued = 0.0
        in_flight = 0

        def write_down(**outcome: Any) -> None:
            self._emit(
                ModelCalled,
                role=self._role,
                model=self.name,
                request=request,
                attempt=attempt,
                started=started,
                queued=queued,
                in_flight=max(1, in_flight),
                **outcome,
            )

        try:
            async with self._gate.place(alone=request.reproducible):
                queued = self._now() - started
                in_flight = self._gate.busy
                reply = await proceed()
        except VeriscopeError as error:
            write_down(error=error.info())
            raise
        except asyncio.CancelledError:
            write_down(error=CANCELLED)
            raise
        if isinstance(reply, Choice):
            write_down(choice=reply)
        else:
            write_down(generations=(reply,) if isinstance(reply, Generation) else reply)
        return reply


CANCELLED = ErrorInfo(
    code="cancelled", message="The call was stopped before it ended.", remedy="Run it again."
)
