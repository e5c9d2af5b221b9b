"""How many calls may be under way at once at something that callers share."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary


class Limiter:
    """`slots` calls at a time, None for any number; first come, first served.

    An exclusive call waits until no other is under way and then has all slots, so that nothing
    shares its batches. The limit holds among the callers of one event loop: calls from different
    loops do not see each other.

    >>> async with limiter.slot(exclusive=request.reproducible):
    ...     reply = await model.generate(request)
    """

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    @property
    def busy(self) -> int:
        """Calls under way in the running event loop."""
        return self._queue().busy

    @asynccontextmanager
    async def slot(self, *, exclusive: bool = False) -> AsyncIterator[None]:
        """Wait for a slot and hold it inside the `async with` block."""
        queue = self._queue()
        await queue.take(exclusive)
        try:
            yield
        finally:
            queue.give_back()

    def _queue(self) -> _Queue:
        return self._queues.setdefault(asyncio.get_running_loop(), _Queue(self.slots))


class _Queue:
    """The calls of one event loop, those under way counted and those waiting in order."""

    def __init__(self, slots: int | None) -> None:
        self.busy = 0
        self._slots = slots
        self._exclusive = False
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    async def take(self, exclusive: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, exclusive))
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
            turn, exclusive = self._waiting[0]
            if not turn.done():
                full = self._slots is not None and self.busy >= self._slots
                if self._exclusive or full or (exclusive and self.busy):
                    return
                self.busy += 1
                self._exclusive = exclusive
                turn.set_result(None)
            self._waiting.popleft()
