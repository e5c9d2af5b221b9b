"""The requests that models have answered, and those in flight; each scope sees its own only."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, TypeVar

from pipelines.models.base import (
    Delta,
    GenerationRequest,
    ModelRequest,
    SimilarityRequest,
    Watcher,
)
from pipelines.types import Generation, Token

T = TypeVar("T")

_LEAST = 8
"""Tokens that any reply counts for: one without token data takes memory too."""


def request_key(request: ModelRequest | SimilarityRequest) -> str:
    """Return what two requests share exactly when they ask the same."""
    # A claim says what its prompt says, for those who read none; what a message was made of changes
    # nothing in what is asked.
    unread = {"claim": True, "messages": {"__all__": {"filled"}}}
    return f"{type(request).__name__}:{request.model_dump_json(exclude=unread)}"


def is_random(request: object) -> bool:
    """Return whether the same request may be answered differently each time: its reply is
    not kept.
    """
    return isinstance(request, GenerationRequest) and request.is_random


class _InFlight:
    """A call in flight: what was written so far, and who else wants to see it."""

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
    """Replies by scope and request; identical requests of one scope join.

    A scope is a visitor, who must not learn what others asked, and a model: a reply of another
    scope is never given, and no request of another scope is joined. `size` is in tokens, over all
    scopes (about 4 KB each, with their alternatives); what was not used for longest is forgotten
    first.
    A reply that a watcher cut short is not the answer to the request and is never kept.
    """

    def __init__(self, size: int = 32_000) -> None:
        self._size = size
        self._held = 0
        self._replies: OrderedDict[str, Any] = OrderedDict()
        self._in_flight: dict[str, _InFlight] = {}

    async def reply(
        self,
        request: ModelRequest,
        watch: Watcher | None,
        ask: Callable[[Watcher | None], Awaitable[T]],
        *,
        scope: str = "",
    ) -> tuple[T, bool]:
        """Return the reply, and whether it was known or already requested by a caller of
        this scope.

        `watch` sees a text grow, also where another caller asked for it.
        """
        key = _key(request, scope)
        while True:
            if key in self._replies:
                self._replies.move_to_end(key)
                return self._replies[key], True
            in_flight = self._in_flight.get(key)
            if in_flight is None:
                return await self._ask(key, watch, ask), False
            followed = await _follow(in_flight, watch)
            if followed is not None:
                return followed, True
            # The first caller failed, was cancelled or stopped early: make the request again.

    def remember(self, request: ModelRequest, reply: Any, *, scope: str = "") -> None:
        """Keep a reply that was given elsewhere, in place of one that is here; a whole one."""
        texts = reply if isinstance(reply, tuple) else ()
        if all(text.finish_reason != "watcher" for text in texts):
            self._keep(_key(request, scope), reply)

    async def _ask(
        self,
        key: str,
        watch: Watcher | None,
        ask: Callable[[Watcher | None], Awaitable[T]],
    ) -> T:
        in_flight = self._in_flight[key] = _InFlight()

        def share(delta: Delta) -> bool | None:
            in_flight.share(delta)
            return watch(delta) if watch else None

        try:
            reply = await ask(share if watch else None)
            texts = reply if isinstance(reply, tuple) else ()
            if all(text.finish_reason != "watcher" for text in texts):
                self._keep(key, reply)
                in_flight.done.set_result(reply)
            return reply
        finally:
            del self._in_flight[key]
            if not in_flight.done.done():
                in_flight.done.set_result(None)

    def _keep(self, key: str, reply: Any) -> None:
        if key in self._replies:
            self._held -= _weight(self._replies.pop(key))
        self._replies[key] = reply
        self._held += _weight(reply)
        while self._held > self._size:
            _, forgotten = self._replies.popitem(last=False)
            self._held -= _weight(forgotten)


def _key(request: ModelRequest, scope: str) -> str:
    return sha256(f"{scope}\n{request_key(request)}".encode()).hexdigest()


def _weight(reply: Any) -> int:
    """Return about how many tokens' worth of memory a reply takes."""
    texts = reply if isinstance(reply, tuple) else (reply,)
    tokens = sum(len(text.tokens or ()) for text in texts if isinstance(text, Generation))
    return max(_LEAST, tokens)


async def _follow(in_flight: _InFlight, watch: Watcher | None) -> Any:
    """Return the reply that another caller requested, None when it got none, or our own
    early stop.
    """
    if watch is None:
        return await asyncio.shield(in_flight.done)
    stopped: asyncio.Future[tuple[Generation, ...]] = asyncio.get_running_loop().create_future()
    seen: list[Delta] = []

    def see(delta: Delta) -> None:
        if stopped.done():
            return
        if delta.restart:
            seen.clear()
        seen.append(delta)
        if watch(delta) and not delta.restart:
            stopped.set_result((_joined(seen),))

    for delta in list(in_flight.deltas):
        see(delta)
    in_flight.followers.append(see)
    try:
        await asyncio.wait({in_flight.done, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            return stopped.result()
        reply = in_flight.done.result()
        if reply is None and seen:
            watch(Delta(text="", restart=True))
        return reply
    finally:
        in_flight.followers.remove(see)
        stopped.cancel()


def _joined(deltas: list[Delta]) -> Generation:
    tokens: list[Token] = [token for delta in deltas for token in delta.tokens]
    return Generation(
        text="".join(delta.text for delta in deltas),
        tokens=tuple(tokens) or None,
        finish_reason="watcher",
    )
