"""Lets a call have a server to itself, so that nothing else shares its batches."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

__all__ = ["CallGate"]


class CallGate:
    """Either any number of ordinary calls at once, or a single one alone; first come, first served.

    Holds among the callers of one event loop: calls from different loops do not see each other.
    """

    def __init__(self) -> None:
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    @asynccontextmanager
    async def enter(self, *, alone: bool) -> AsyncIterator[None]:
        """Wait for a place and keep it inside the `async with` block."""
        queue = self._queues.setdefault(asyncio.get_running_loop(), _Queue())
        await queue.acquire(alone)
        try:
            yield
        finally:
            queue.release(alone)


class _Queue:
    def __init__(self) -> None:
        self._inside = 0
        self._alone = False
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    async def acquire(self, alone: bool) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, alone))
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.release(alone)
            else:
                self._admit()
            raise

    def release(self, alone: bool) -> None:
        self._inside -= 1
        self._alone = self._alone and not alone
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            place, alone = self._waiting[0]
            if not place.done():
                if self._alone or (alone and self._inside):
                    return
                self._inside += 1
                self._alone = alone
                place.set_result(None)
            self._waiting.popleft()
