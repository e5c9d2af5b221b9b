"""Thin wrappers around a model, each doing one thing; a method sees them as one model.

From the outside in: `Streamed` shows tokens as they are written, `Cached` answers what was asked
before, `Retried` tries again what may succeed, `Recorded` waits for a free slot at the model and
records every attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, TypeVar

from pipelines.errors import ErrorInfo, MissingReply, VeriscopeError
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
from pipelines.models.limiter import Limiter
from pipelines.remote.retry import RetryPolicy
from pipelines.run.cache import Cache
from pipelines.run.events import ModelCalled
from pipelines.types import Choice, Generation

__all__ = ["Cached", "Recorded", "Retried", "Streamed"]

T = TypeVar("T")
Emit = Callable[..., Any]
Clock = Callable[[], float]


class Wrapper(Model):
    """A model around a model. Subclasses override what they change."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self.name = inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await self.inner.generate(request, watch)

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await self.inner.choose(request)

    async def score(self, request: ScoreRequest) -> Generation:
        return await self.inner.score(request)


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

    The reply to a request above temperature 0 is random: it is cached only when the request has a
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


class Retried(Wrapper):
    """Tries again after rate limits, timeouts, lost connections and server errors."""

    def __init__(self, inner: Recorded, policy: RetryPolicy) -> None:
        super().__init__(inner)
        self._recorded = inner
        self._policy = policy

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if watch is None:
            return await self._policy.run(lambda n: self._recorded.attempt(n).generate(request))
        written = False

        def note(delta: Delta) -> bool | None:
            nonlocal written
            written = True
            return watch(delta)

        async def attempt(number: int) -> tuple[Generation, ...]:
            nonlocal written
            if written:
                watch(Delta(text="", restart=True))
                written = False
            return await self._recorded.attempt(number).generate(request, note)

        return await self._policy.run(attempt)

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await self._policy.run(lambda n: self._recorded.attempt(n).choose(request))

    async def score(self, request: ScoreRequest) -> Generation:
        return await self._policy.run(lambda n: self._recorded.attempt(n).score(request))


class Recorded(Wrapper):
    """Waits for a free slot at the model, makes the call, and records the outcome."""

    def __init__(self, inner: Model, limiter: Limiter, role: str, emit: Emit, now: Clock) -> None:
        super().__init__(inner)
        self._limiter = limiter
        self._role = role
        self._emit = emit
        self._now = now
        self._attempt = 1

    def attempt(self, number: int) -> Recorded:
        """The same, but its calls are recorded as attempt `number`, counted from 1."""
        numbered = copy(self)
        numbered._attempt = number
        return numbered

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await self._call(request, lambda: self.inner.generate(request, watch))

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await self._call(request, lambda: self.inner.choose(request))

    async def score(self, request: ScoreRequest) -> Generation:
        return await self._call(request, lambda: self.inner.score(request))

    async def _call(self, request: ModelRequest, proceed: Callable[[], Awaitable[T]]) -> T:
        started = self._now()
        queued = 0.0
        in_flight = 0

        def record(**outcome: Any) -> None:
            self._emit(
                ModelCalled,
                role=self._role,
                model=self.name,
                request=request,
                attempt=self._attempt,
                started=started,
                queued=queued,
                in_flight=max(1, in_flight),
                **outcome,
            )

        try:
            # Not in a slot: others may be loaded and answer meanwhile.
            await self.inner.prepare()
            async with self._limiter.slot(exclusive=request.reproducible):
                queued = self._now() - started
                in_flight = self._limiter.busy
                reply = await proceed()
        except (VeriscopeError, MissingReply) as error:
            record(error=error.info())
            raise
        except asyncio.CancelledError:
            record(error=CANCELLED)
            raise
        if isinstance(reply, Choice):
            record(choice=reply)
        else:
            record(generations=(reply,) if isinstance(reply, Generation) else reply)
        return reply


CANCELLED = ErrorInfo(
    code="cancelled", message="The call was stopped before it ended.", remedy="Run it again."
)
