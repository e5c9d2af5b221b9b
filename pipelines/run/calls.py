"""Calls of models as the methods of a run make them: cached, tried again, limited, recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pipelines.errors import LimitReached, MethodEnded, VeriscopeError, failure
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
from pipelines.models.error_texts import is_error_text
from pipelines.remote.retry import RetryPolicy
from pipelines.run.cache import Cache
from pipelines.run.events import ModelCalled, TokenWritten
from pipelines.run.ledger import Ledger
from pipelines.run.materials import Slot, cache_scope
from pipelines.types import Choice, Generation

T = TypeVar("T")
Emit = Callable[..., Any]
Ask = Callable[[Watcher | None], Awaitable[T]]

CANCELLED = failure("call.cancelled").info()


@contextmanager
def recorded(
    record: Callable[..., Any], late: Callable[[], LimitReached | None] = lambda: None
) -> Iterator[dict[str, Any]]:
    """Call `record` with what the block put into the dictionary, or with the `error` that ended it.

    `late` returns the error of the time limit that cancelled the block, None where a user stopped
    the run.
    """
    outcome: dict[str, Any] = {}
    try:
        yield outcome
    except (VeriscopeError, MethodEnded) as error:
        record(error=error.info())
        raise
    except asyncio.CancelledError:
        limit = late()
        record(error=CANCELLED if limit is None else limit.info())
        raise
    record(**outcome)


class RunModel(Model):
    """The model in `slot` as it serves the role `role`.

    A request of `owner` that was answered before, or is being answered, is served from the slot's
    cache. A reply above temperature 0 is random: it is cached only where the request has a sample
    index. After rate limits, timeouts, lost connections and server errors, also those that come as
    the text of a reply, a call is tried again.
    Every attempt has to be admitted by `ledger`, waits for a free slot and is given to `emit`, and
    so is all text that a watched call writes, before the watcher sees it. `now` is the time in the
    run; `effort` is that of the method that asks, as `Limiter` has it.
    """

    def __init__(
        self,
        role: str,
        slot: Slot,
        retry: RetryPolicy,
        emit: Emit,
        now: Callable[[], float],
        effort: int = 1,
        owner: str = "",
        ledger: Ledger | None = None,
    ) -> None:
        self.name = slot.model.name
        self._role = role
        self._slot = slot
        self._model = slot.model
        self._retry = retry
        self._emit = emit
        self._now = now
        self._effort = effort
        self._cache_scope = cache_scope(owner, slot)
        self._ledger = ledger or Ledger()

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        def show(delta: Delta) -> bool | None:
            self._emit(TokenWritten, text=delta.text, tokens=delta.tokens, restart=delta.restart)
            return watch(delta) if watch else None

        cache = None if request.is_random else self._slot.cache
        ask = partial(self._model.generate, request)
        return await self._reply(request, ask, cache, show if watch else None)

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await self._reply(request, lambda _: self._model.choose(request), self._slot.cache)

    async def score(self, request: ScoreRequest) -> Generation:
        return await self._reply(request, lambda _: self._model.score(request), self._slot.cache)

    async def _reply(
        self, request: ModelRequest, ask: Ask[T], cache: Cache | None, watch: Watcher | None = None
    ) -> T:
        try_it = partial(self._tried, request, ask)
        if cache is None:
            return await try_it(watch)
        reply, hit = await cache.reply(request, watch, try_it, scope=self._cache_scope)
        if hit:
            self._record(request, cached=True, started=self._now(), **_as_fields(reply))
        return reply

    async def _tried(self, request: ModelRequest, ask: Ask[T], watch: Watcher | None) -> T:
        async def attempt(number: int) -> T:
            if watch and number > 1:
                # Whatever the attempt before has written is forgotten.
                watch(Delta(text="", restart=True))
            return await self._attempt(request, number, partial(ask, watch))

        return await self._retry.run(attempt)

    async def _attempt(
        self, request: ModelRequest, number: int, call: Callable[[], Awaitable[T]]
    ) -> T:
        started = self._now()
        # A call that waits for its model, or that the ledger refuses, is recorded as never begun.
        wait = {"queued": 0.0, "in_flight": 0}

        def record(**outcome: Any) -> None:
            self._record(request, attempt=number, started=started, **wait, **outcome)

        def late() -> LimitReached | None:
            return self._ledger.late(self._now())

        with recorded(record, late) as outcome:
            # Not in a slot: others may be loaded and answer meanwhile.
            await self._model.prepare()
            limiter, alone = self._slot.limiter, request.reproducible
            writes = self._model.capabilities.writes
            async with self._ledger.admitted(self._role, request, writes=writes) as settle:
                async with limiter.slot(exclusive=alone, effort=self._effort):
                    wait["queued"] = self._now() - started
                    wait["in_flight"] = limiter.busy
                    reply = await call()
                self._refuse_error_text(request, reply)
                outcome |= _as_fields(reply)
                settle(outcome.get("generations", ()))
        return reply

    def _refuse_error_text(self, request: ModelRequest, reply: object) -> None:
        """Raise ServerFailedError where the text of an error came in the place of a text."""
        if not isinstance(request, GenerationRequest) or not isinstance(reply, tuple):
            return
        asked = next((one.content for one in reversed(request.messages) if one.role == "user"), "")
        if any(is_error_text(one.text, asked) for one in reply):
            raise failure("asking.error_text", name=self.name)

    def _record(self, request: ModelRequest, *, attempt: int = 1, **fields: Any) -> None:
        named = {"role": self._role, "model": self.name, "request": request}
        self._emit(ModelCalled, **named, attempt=attempt, **fields)


def _as_fields(reply: object) -> dict[str, Any]:
    """Return the field of a `ModelCalled` that holds `reply`."""
    if isinstance(reply, Choice):
        return {"choice": reply}
    return {"generations": (reply,) if isinstance(reply, Generation) else reply}
