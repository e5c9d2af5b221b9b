"""Configured models, shared by every run that uses them and loaded when they are first asked."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    GenerationRequest,
    Model,
    Progress,
    ScoreRequest,
    Watcher,
)
from pipelines.models.limiter import Limiter
from pipelines.models.providers import (
    LOCAL_SLOTS,
    PROVIDERS,
    ModelSpec,
    build_model,
    known_capabilities,
    pinned,
)
from pipelines.run.cache import Cache
from pipelines.run.materials import Slot
from pipelines.types import Choice, Generation

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
        secret = sha256(key.encode()).hexdigest() if key else ""
        identity = f"{spec.without_price().model_dump_json()}:{secret}"
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
