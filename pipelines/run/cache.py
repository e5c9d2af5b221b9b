"""What callers of one loaded model share: its free places, and what it has answered already."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pipelines.models.base import (
    Delta,
    GenerationRequest,
    ModelRequest,
    SimilarityRequest,
    Watcher,
)
from pipelines.types import Generation, Token

__all__ = ["Cache", "Gate", "request_key"]

T = TypeVar("T")
Generations = tuple[Generation, ...]


def request_key(request: ModelRequest | SimilarityRequest) -> str:
    """What two requests share exactly when they ask the same."""
    # A claim says what its prompt says, for those who read none.
    return f"{type(request).__name__}:{request.model_dump_json(exclude={'claim'})}"


class Gate:
    """A bounded number of places at a model. A caller that must be alone takes all of them."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.busy = 0
        self._free = places
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def place(self, *, alone: bool = False) -> AsyncIterator[None]:
        """Hold a place for the duration of the block; first come, first served."""
        wanted = self.places if alone else 1
        await self._take(wanted)
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
            self._free += wanted
            self._admit()

    async def _take(self, wanted: int) -> None:
        if not self._waiting and self._free >= wanted:
            self._free -= wanted
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free += wanted
            self._waiting = [entry for entry in self._waiting if entry[1] is not turn]
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._free >= self._waiting[0][0]:
            wanted, turn = self._waiting.pop(0)
            if not turn.done():
                self._free -= wanted
                turn.set_result(None)


class _Growing:
    """A generation under way: what was written so far, and who else wants to see it."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.followers: list[Callable[[Delta], None]] = []
        self.done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def share(self, delta: Delta) -> None:
        if delta.restart:
            self.deltas.clear()
        self.deltas.append(delta)
        for follower in list(self.followers):
            follower(delta)


class Cache:
    """Replies by request, the least recently used forgotten first; identical requests join.

    A reply that a watcher cut short is not the answer to the request and is never kept.
    """

    def __init__(self, size: int = 512) -> None:
        self._size = size
        self._replies: OrderedDict[str, Any] = OrderedDict()
        self._under_way: dict[str, _Growing] = {}

    async def value(self, request: ModelRequest, ask: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The reply and whether it was known or being asked for by somebody else."""
        return await self._join(request_key(request), None, lambda _: ask())

    async def generations(
        self,
        request: GenerationRequest,
        watch: Watcher | None,
        ask: Callable[[Watcher | None], Awaitable[Generations]],
    ) -> tuple[Generations, bool]:
        """Like `value`, for a text that can be watched while it grows, also by those who join."""
        return await self._join(request_key(request), watch, ask)

    async def _join(
        self,
        key: str,
        watch: Watcher | None,
        ask: Callable[[Watcher | None], Awaitable[Any]],
    ) -> tuple[Any, bool]:
        while True:
            if key in self._replies:
                self._replies.move_to_end(key)
                return self._replies[key], True
            growing = self._under_way.get(key)
            if growing is None:
                return await self._ask(key, watch, ask), False
            followed = await _follow(growing, watch)
            if followed is not None:
                return followed, True
            # Whoever asked first failed, was cancelled or stopped early: ask for ourselves.

    async def _ask(
        self,
        key: str,
        watch: Watcher | None,
        ask: Callable[[Watcher | None], Awaitable[Any]],
    ) -> Any:
        growing = self._under_way[key] = _Growing()

        def share(delta: Delta) -> bool | None:
            growing.share(delta)
            return watch(delta) if watch else None

        try:
            reply = await ask(share if watch else None)
            if not _was_cut(reply):
                self._keep(key, reply)
                growing.done.set_result(reply)
            return reply
        finally:
            del self._under_way[key]
            if not growing.done.done():
                growing.done.set_result(None)

    def _keep(self, key: str, reply: Any) -> None:
        self._replies[key] = reply
        while len(self._replies) > self._size:
            self._replies.popitem(last=False)


def _was_cut(reply: Any) -> bool:
    return isinstance(reply, tuple) and any(
        isinstance(item, Generation) and item.finish_reason == "watcher" for item in reply
    )


async def _follow(growing: _Growing, watch: Watcher | None) -> Any:
    """The reply somebody else asked for, None when they did not get it, or our own early stop."""
    if watch is None:
        return await asyncio.shield(growing.done)
    stopped: asyncio.Future[Generations] = asyncio.get_running_loop().create_future()
    seen: list[Delta] = []

    def see(delta: Delta) -> None:
        if stopped.done():
            return
        if delta.restart:
            seen.clear()
        seen.append(delta)
        if watch(delta) and not delta.restart:
            stopped.set_result((_joined(seen),))

    for delta in list(growing.deltas):
        see(delta)
    growing.followers.append(see)
    try:
        await asyncio.wait({growing.done, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            return stopped.result()
        reply = growing.done.result()
        if reply is None and seen:
            watch(Delta(text="", restart=True))
        return reply
    finally:
        growing.followers.remove(see)
        stopped.cancel()


def _joined(deltas: list[Delta]) -> Generation:
    tokens: list[Token] = [token for delta in deltas for token in delta.tokens]
    return Generation(
        text="".join(delta.text for delta in deltas),
        tokens=tuple(tokens) or None,
        finish_reason="watcher",
    )
