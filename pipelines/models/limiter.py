"""How many calls may be under way at once at something that callers share, and who is next."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import NamedTuple
from weakref import WeakKeyDictionary

PATIENCE = 0.5
"""Seconds that a call waits behind later ones for each further call its work needs."""


class Limiter:
    """`slots` calls at a time, None for any number; those whose work is short are let in first.

    `effort` says how many calls the work needs that a call belongs to. Of one effort it is first
    come, first served. A call is overtaken only by those that come within `PATIENCE` seconds times
    the difference of their efforts, so that every call has its turn.

    An exclusive call waits until no other is under way and then has all slots, so that nothing
    shares its batches. The limit holds among the callers of one event loop: calls from different
    loops do not see each other. `clock` gives seconds.

    >>> async with limiter.slot(exclusive=request.reproducible, effort=20):
    ...     reply = await model.generate(request)
    """

    def __init__(
        self, slots: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.slots = slots
        self._clock = clock
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    @property
    def busy(self) -> int:
        """Calls under way in the running event loop."""
        return self._queue().busy

    @asynccontextmanager
    async def slot(self, *, exclusive: bool = False, effort: int = 1) -> AsyncIterator[None]:
        """Wait for a slot and hold it inside the `async with` block."""
        queue = self._queue()
        await queue.take(self._clock() + effort * PATIENCE, exclusive)
        try:
            yield
        finally:
            queue.give_back()

    def _queue(self) -> _Queue:
        return self._queues.setdefault(asyncio.get_running_loop(), _Queue(self.slots))


class _Waiting(NamedTuple):
    """A call that waits. All grow older at the same rate, so that their order never changes."""

    due: float
    arrival: int
    turn: asyncio.Future[None]
    exclusive: bool


class _Queue:
    """The calls of one event loop, those under way counted and those waiting in order."""

    def __init__(self, slots: int | None) -> None:
        self.busy = 0
        self._slots = slots
        self._exclusive = False
        self._arrivals = count()
        self._waiting: list[_Waiting] = []

    async def take(self, due: float, exclusive: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, _Waiting(due, next(self._arrivals), turn, exclusive))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._admit()
            else:
                self.give_back()
            raise

    def give_back(self) -> None:
        self.busy -= 1
        # An exclusive call runs alone, so the call that ends while it runs is that call.
        self._exclusive = False
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            if not first.turn.done():
                full = self._slots is not None and self.busy >= self._slots
                if self._exclusive or full or (first.exclusive and self.busy):
                    return
                self.busy += 1
                self._exclusive = first.exclusive
                first.turn.set_result(None)
            heapq.heappop(self._waiting)
