"""Configured models, shared by every run that uses them and loaded when they are first asked."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from pipelines.aio import ended
from pipelines.base import Choice, Generation
from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Concession,
    GenerationRequest,
    Model,
    Progress,
    ScoreRequest,
    Watcher,
)
from pipelines.models.hosted import Limiter
from pipelines.models.probe import ProbeReport, probe_again
from pipelines.models.providers import (
    LOCAL_SLOTS,
    PROVIDERS,
    ModelSpec,
    build_model,
    known_capabilities,
    pinned,
)
from pipelines.run.calls import Cache, Slot
from pipelines.store import RunStore

_MOST_BROUGHT = 50
"""Models with somebody's own key or server that are kept, each with its connections: visitors
bring ever new ones."""

Build = Callable[[ModelSpec, str | None, Progress], Model]
Pin = Callable[[ModelSpec], ModelSpec]
"""Fills in what a run has to record of a model before it is loaded, as `pinned` does."""


@dataclass(frozen=True)
class Loading:
    """A model being loaded: what is happening, and how far it is in [0, 1]."""

    name: str
    stage: str
    fraction: float


@dataclass(eq=False)
class LazyModel(Model):
    """A model that is loaded by its first call, or by `prepare`; until then it says what is known.

    Loading goes on when the call that began it is cancelled: the next one needs the model too.
    A load that failed is tried again by the next call.
    """

    name: str
    known: Capabilities
    load: Callable[[], Awaitable[Model]]
    _loading: asyncio.Task[None] | None = None
    _loaded: Model | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do; before it is loaded, what its provider declares."""
        return self.known if self._loaded is None else self._loaded.capabilities

    async def prepare(self) -> None:
        """Load the model; raises what loading raises."""
        await self._model()

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await (await self._model()).generate(request, watch)

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await (await self._model()).choose(request)

    async def score(self, request: ScoreRequest) -> Generation:
        return await (await self._model()).score(request)

    async def aclose(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
        if self._loaded is not None:
            await self._loaded.aclose()

    async def _model(self) -> Model:
        async def begin() -> None:
            self._loaded = await self.load()

        while self._loaded is None:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.create_task(begin())
                # When every caller has gone, nobody else reads the result.
                self._loading.add_done_callback(lambda task: task.cancelled() or task.exception())
            await asyncio.shield(self._loading)
        return self._loaded


class ModelPool:
    """Keeps one slot for each configured model.

    A model is loaded when it is first asked; one of which nothing is known before is loaded at
    once. An illustration is loaded again for each run, because a run uses up its script.

    A key is part of what identifies a model here, hashed, so that two people with their own keys
    never share a slot, its replies or its connections. All slots keep their replies in one cache,
    so that its size bounds the memory of all.
    """

    def __init__(self, build: Build | None = None, pin: Pin | None = None) -> None:
        self._build = build or build_model
        self._pin = pin or pinned
        self._slots: dict[str, Slot] = {}
        self._cache = Cache()
        self._brought: OrderedDict[str, None] = OrderedDict()
        self._loading: dict[str, Loading] = {}

    def loading(self) -> list[Loading]:
        """Return what is being loaded right now; safe to call from any thread."""
        return list(self._loading.values())

    async def pin(self, spec: ModelSpec) -> ModelSpec:
        """Return the spec with what a run has to record; raises what `pinned` raises."""
        provider = PROVIDERS.get(spec.kind)
        if provider is None or provider.pin is None:
            return spec
        return await asyncio.to_thread(self._pin, spec)

    async def get(self, spec: ModelSpec, key: str | None = None, *, lazy: bool = False) -> Slot:
        """Return the slot of `spec`, its model loaded unless `lazy`; raises what loading raises."""
        identity = _identity(spec, key)
        known = known_capabilities(spec)
        slot = self._slots.get(identity)
        if slot is None:
            slot = self._new_slot(identity, spec, key, known or Capabilities())
            if known is not None:
                self._keep(identity, slot, spec, key)
        if identity in self._brought:
            self._brought.move_to_end(identity)
        if not lazy or known is None:
            await slot.model.prepare()
        return slot

    def learned(self, spec: ModelSpec, key: str | None = None) -> tuple[Concession, ...]:
        """Return what the server of a model in use does not take; safe from any thread."""
        slot = self._slots.get(_identity(spec, key))
        return () if slot is None else slot.model.capabilities.concessions

    async def aclose(self) -> None:
        """Release every model."""
        slots, self._slots = list(self._slots.values()), {}
        for slot in slots:
            await slot.model.aclose()

    def _keep(self, identity: str, slot: Slot, spec: ModelSpec, key: str | None) -> None:
        """Keep a slot; of those with somebody's own key or server, those that were used last."""
        self._slots[identity] = slot
        if not key and not spec.base_url:
            return
        self._brought[identity] = None
        while len(self._brought) > _MOST_BROUGHT:
            # A run that uses it keeps it; its connections go with the last of these.
            self._slots.pop(self._brought.popitem(last=False)[0], None)

    def _new_slot(
        self, identity: str, spec: ModelSpec, key: str | None, known: Capabilities
    ) -> Slot:
        def progress(stage: str, fraction: float) -> None:
            self._loading[identity] = Loading(spec.name, stage, fraction)

        async def load() -> Model:
            progress("load", 0.0)
            try:
                slot.model = await asyncio.to_thread(self._build, spec, key, progress)
            finally:
                self._loading.pop(identity, None)
            # A number of calls for all machines would leave a card that decodes more half idle.
            limiter.slots = slot.model.at_once or limiter.slots
            if slot.model.illustration:
                slot.cache = None
                self._slots.pop(identity, None)
            else:
                self._keep(identity, slot, spec, key)
            return slot.model

        provider = PROVIDERS.get(spec.kind)
        limiter = Limiter(provider.slots if provider else LOCAL_SLOTS)
        slot = Slot(LazyModel(spec.name, known, load), limiter, self._cache, identity)
        return slot


def _identity(spec: ModelSpec, key: str | None) -> str:
    """Return what tells a model, with somebody's key, from all others."""
    secret = sha256(key.encode()).hexdigest() if key else ""
    return f"{spec.without_price().model_dump_json()}:{secret}"


# A queue for runs where many visitors share a small machine.

_REMEMBERED = 20
"""How many of the last runs the expected wait is computed from."""


class Turn(NamedTuple):
    """A position in the queue: how many are before it, and the seconds that may take.

    `before` is 0 for the next one, and None after admission. `wait` is None while nothing is known
    of how long runs take here.
    """

    before: int | None
    wait: float | None = None


@dataclass(eq=False)
class Ticket:
    """One visitor's request for a run; made by `Admission.slot`."""

    visitor: str
    address: str | None = None
    admitted: asyncio.Event = field(default_factory=asyncio.Event)
    begun: float = 0.0


@dataclass
class Admission:
    """At most `slots` runs at once and `max_queue` that wait; of one visitor `per_visitor` of each.

    Of those that wait, `per_address` come from one address.

    Runs begin in the order of asking, but a visitor who has as many runs as allowed is skipped
    until one of them ends. All methods belong to one event loop.
    """

    slots: int
    per_visitor: int = 1
    max_queue: int = 100
    per_address: int = 100
    clock: Callable[[], float] = time.monotonic
    _queue: list[Ticket] = field(default_factory=list, init=False)
    _running: set[Ticket] = field(default_factory=set, init=False)
    _durations: deque[float] = field(default_factory=partial(deque, maxlen=_REMEMBERED), init=False)

    @asynccontextmanager
    async def slot(self, visitor: str, address: str | None = None) -> AsyncIterator[Ticket]:
        """Wait in the queue, and hold a slot from when `admitted` is set to the end of the block.

        Leaving early gives it up. Raises BusyError where the queue is full, or the address is in it
        as often as allowed (None for one that does not count), and QueuedAlreadyError where the
        visitor is.
        """
        if len(self._queue) >= self.max_queue:
            raise failure("asking.long_queue", waiting=self.max_queue)
        if sum(waiting.visitor == visitor for waiting in self._queue) >= self.per_visitor:
            raise failure("asking.queued_already", most=self.per_visitor)
        from_there = sum(waiting.address == address for waiting in self._queue)
        if address is not None and from_there >= self.per_address:
            raise failure("asking.address_queue", waiting=self.per_address)
        ticket = Ticket(visitor, address)
        self._queue.append(ticket)
        self._admit()
        try:
            yield ticket
        finally:
            if ticket in self._running:
                self._running.remove(ticket)
                self._durations.append(self.clock() - ticket.begun)
            else:
                self._queue.remove(ticket)
            self._admit()

    def turn(self, ticket: Ticket) -> Turn:
        """Return the position of `ticket` now."""
        if ticket not in self._queue:
            return Turn(None, 0.0)
        before = self._queue.index(ticket)
        if not self._durations:
            return Turn(before)
        usual = sum(self._durations) / len(self._durations)
        now = self.clock()
        # What is under way will be over sooner than what has yet to begin.
        left = sorted(max(0.0, usual - (now - running.begun)) for running in self._running)
        free = (left or [0.0])[: self.slots]
        for _ in range(before):
            first = free.index(min(free))
            free[first] += usual
        return Turn(before, min(free))

    def _admit(self) -> None:
        """Admit those who may run, the first in the queue first."""
        running = Counter(ticket.visitor for ticket in self._running)
        for ticket in list(self._queue):
            if len(self._running) == self.slots:
                return
            if running[ticket.visitor] < self.per_visitor:
                self._queue.remove(ticket)
                self._running.add(ticket)
                running[ticket.visitor] += 1
                ticket.begun = self.clock()
                ticket.admitted.set()


# Checks of models that could not be carried out: made again by themselves, when a model is used.
#
# A check of the capability probe that a busy, slow or absent service did not answer leaves an
# ability "unknown", and the model is used as its kind usually is. The next run that uses the model
# asks again, beside its own calls. So it does for whether a model can judge that was never
# checked.

CHECK_SECONDS = 120.0
"""How long one check may take. After one that takes longer, no other is made."""

MOST_TRIES = 3
"""How often a process makes the checks of one owner's model again."""

FindModel = Callable[[ModelSpec, str | None], Awaitable[Model]]
IsReproduced = Callable[[ModelSpec, str], bool]


class UnknownAbilities:
    """Finds out later what a check of a saved model could not, and saves it with the model.

    `model` builds the model of a spec with its key. `is_reproduced` tells whether a reproducible
    run of the owner uses it: such a run has the model to itself. To be used on one event loop.
    """

    def __init__(self, store: RunStore, model: FindModel, is_reproduced: IsReproduced) -> None:
        self._store = store
        self._model = model
        self._is_reproduced = is_reproduced
        self._tries: Counter[tuple[str, str]] = Counter()
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def ask_soon(self, spec: ModelSpec, key: str | None, *, owner: str) -> None:
        """Make the unknown checks of `spec` again, in the background and not too often."""
        place = owner, spec.name
        if not spec.unknown or place in self._tasks or self._tries[place] >= MOST_TRIES:
            return
        if self._is_reproduced(spec, owner):
            return
        self._tries[place] += 1
        task = self._tasks[place] = asyncio.create_task(self._ask(spec, key, owner))
        task.add_done_callback(lambda _: self._tasks.pop(place, None))

    async def keep(self, spec: ModelSpec, report: ProbeReport, *, owner: str) -> None:
        """Save what a check of the owner's model `spec` found, unless that was changed meanwhile.

        What it could not find out stays as it was found before.
        """
        found = spec.with_capabilities(report.capabilities, report.unknown)
        known = known_capabilities(spec)
        if spec.judges is not None and known is not None:
            left = tuple(key for key in report.unknown if key in spec.unknown)
            found = spec.with_capabilities(report.on(known), left)
        await asyncio.to_thread(self._save, spec, found, owner)

    async def aclose(self) -> None:
        """Stop what is under way."""
        await ended(*self._tasks.values())

    async def _ask(self, spec: ModelSpec, key: str | None, owner: str) -> None:
        known = known_capabilities(spec)
        # What fails stays unknown. The next run asks again.
        with suppress(VeriscopeError, TimeoutError):
            # Nothing is spent on a model that is not saved.
            if known is None or await asyncio.to_thread(self._saved, spec, owner) is None:
                return
            async with asyncio.timeout(CHECK_SECONDS) as limit:
                model = await self._model(spec.without_capabilities(), key)
                async with aclosing(probe_again(model, known, spec.unknown)) as reports:
                    async for report in reports:
                        found = _with(report, spec)
                        if not await asyncio.to_thread(self._save, spec, found, owner):
                            return
                        if self._is_reproduced(spec, owner):
                            return
                        spec = found
                        limit.reschedule(asyncio.get_running_loop().time() + CHECK_SECONDS)

    def _saved(self, spec: ModelSpec, owner: str) -> ModelSpec | None:
        """Return the owner's model as it is saved, None where it is another one by now."""
        models = self._store.models.list(owner)
        saved = next((one for one in models if one.name == spec.name), None)
        same = saved is not None and saved.without_price() == spec.without_price()
        return saved if same else None

    def _save(self, spec: ModelSpec, found: ModelSpec, owner: str) -> bool:
        """Save `found` in the place of `spec`; return whether that is still saved."""
        saved = self._saved(spec, owner)
        # If the owner changed or deleted the model meanwhile, nothing is saved.
        if saved is None:
            return False
        if found != spec:
            self._store.models.save(owner, found.model_copy(update={"price": saved.price}))
        return True


def _with(report: ProbeReport, spec: ModelSpec) -> ModelSpec:
    """Return `spec` with what `report` found."""
    known = {finding.key for finding in report.findings if finding.ok is not None}
    left = tuple(key for key in spec.unknown if key not in known)
    return spec.with_capabilities(report.capabilities, left) if left != spec.unknown else spec
