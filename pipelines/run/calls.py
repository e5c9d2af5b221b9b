"""Calls of models as the methods of a run make them: cached, tried again, limited, recorded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from pipelines.base import Choice, Generation, Language, Token
from pipelines.errors import LimitReached, MethodEnded, VeriscopeError, failure
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    ModelRequest,
    ScoreRequest,
    SimilarityRequest,
    Watcher,
)
from pipelines.models.error_texts import is_error_text
from pipelines.models.hosted import Limiter
from pipelines.models.providers import LOCAL_SLOTS
from pipelines.remote import RetryPolicy
from pipelines.retrieval.base import Retriever, Similarity
from pipelines.run.events import ModelCalled, TokenWritten
from pipelines.run.ledger import Ledger
from pipelines.text import Entity, EntityRecognizer

# The requests that models have answered, and those in flight; each scope sees its own only.

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
    """Return whether the same request may be answered differently: its reply is not kept."""
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
        self, key: str, watch: Watcher | None, ask: Callable[[Watcher | None], Awaitable[T]]
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
    """Return another caller's reply, None when it got none, or our own early stop."""
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


# What a run works with: loaded models by role, where to search, what compares texts.


@dataclass
class Slot:
    """A model with what its callers share: slots and answered requests.

    Without a cache every request is made: an illustration is played from the start each time.
    `identity` tells the model from others that share the cache.
    """

    model: Model
    limiter: Limiter = field(default_factory=lambda: Limiter(LOCAL_SLOTS))
    cache: Cache | None = field(default_factory=Cache)
    identity: str = ""


def cache_scope(owner: str, slot: Slot) -> str:
    """Return under which name the replies of this model are kept for an owner."""
    return f"{owner}:{slot.identity}"


class Recognizer(Protocol):
    """Finds named entities: what is installed here, or what a recorded run found."""

    def recognize(self, text: str, language: Language) -> list[Entity]:
        """Return the entities of `text`, in order and without overlaps; called from any thread."""
        ...

    def source_for(self, language: Language) -> str:
        """Return what finds them, for example "rules" or "spacy:en_core_web_sm 3.8.0"."""
        ...


@dataclass(frozen=True)
class Materials:
    """Models and evidence of one run.

    `retriever` searches the chosen evidence, None when no method needs any. `dense` searches
    the same evidence by vectors where that can be done in the question's language; otherwise the
    chosen search is used. `similarity` compares texts in the question's language; `recognizer`
    finds named entities. `owner` is whose run it is: replies are given again to the same owner
    only. `ledger` admits every call of the run, within its limits.
    """

    slots: Mapping[str, Slot]
    retriever: Retriever | None = None
    dense: Retriever | None = None
    similarity: Similarity | None = None
    recognizer: Recognizer = field(default_factory=EntityRecognizer)
    owner: str = ""
    ledger: Ledger = field(default_factory=Ledger)

    def remember(self, calls: Iterable[ModelCalled]) -> None:
        """Put what these calls were answered into the caches, as if this owner had made them."""
        for call in calls:
            slot = self.slots.get(call.role)
            if slot is None or slot.cache is None or call.error is not None:
                continue
            request = call.request
            if isinstance(request, SimilarityRequest):
                continue
            # What is not cached when it is asked is not found in the cache either.
            reply = call.choice if call.choice is not None else call.generations
            if isinstance(request, ScoreRequest):
                (reply,) = call.generations
            slot.cache.remember(request, reply, scope=cache_scope(self.owner, slot))


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
