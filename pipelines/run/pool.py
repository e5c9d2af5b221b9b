"""Loaded models, shared by every run that uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pipelines.models import build_model
from pipelines.models.base import Model
from pipelines.run.cache import Cache, Gate
from pipelines.run.spec import ModelSpec

__all__ = ["Loading", "ModelPool", "Slot", "build_of"]

Build = Callable[[ModelSpec, str | None, Callable[[str, float], None]], Model]


@dataclass
class Slot:
    """A loaded model with what its callers share: places and answered requests.

    Without a cache every request is made: an illustration is played from the start each time.
    """

    model: Model
    gate: Gate = field(default_factory=lambda: Gate(16))
    cache: Cache | None = field(default_factory=Cache)


@dataclass(frozen=True)
class Loading:
    """A model being loaded: what is happening, and how far it is in [0, 1]."""

    name: str
    stage: str
    fraction: float


class ModelPool:
    """Loads each configured model once and keeps it.

    An illustration is loaded anew each time: what is left of its script belongs to one run.

    A key is part of what identifies a model here, hashed, so that two people with their own keys
    never share a slot, its cache or its connections.
    """

    def __init__(self, build: Build | None = None) -> None:
        self._build = build or build_of
        self._slots: dict[str, Slot] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._loading: dict[str, Loading] = {}

    def loading(self) -> list[Loading]:
        """What is being loaded right now; safe to call from any thread."""
        return list(self._loading.values())

    async def get(self, spec: ModelSpec, key: str | None = None) -> Slot:
        """The slot of `spec`, loaded first if need be; raises what loading raises."""
        identity = self._identity(spec, key)
        async with self._locks.setdefault(identity, asyncio.Lock()):
            slot = self._slots.get(identity) or await self._load(identity, spec, key)
            if not slot.model.illustration:
                self._slots[identity] = slot
            return slot

    def identities(self) -> list[str]:
        """What tells the loaded models apart; holds no key."""
        return list(self._slots)

    async def aclose(self) -> None:
        """Release every model."""
        slots, self._slots = list(self._slots.values()), {}
        for slot in slots:
            await slot.model.aclose()

    async def _load(self, identity: str, spec: ModelSpec, key: str | None) -> Slot:
        def progress(stage: str, fraction: float) -> None:
            self._loading[identity] = Loading(spec.name, stage, fraction)

        progress("load", 0.0)
        try:
            model = await asyncio.to_thread(self._build, spec, key, progress)
            return Slot(model, cache=None) if model.illustration else Slot(model)
        finally:
            self._loading.pop(identity, None)

    @staticmethod
    def _identity(spec: ModelSpec, key: str | None) -> str:
        secret = sha256(key.encode()).hexdigest() if key else ""
        return f"{spec.model_dump_json()}:{secret}"


def build_of(
    spec: ModelSpec, key: str | None, progress: Callable[[str, float], None], **more: Any
) -> Model:
    """The model that `spec` describes; `more` is what only its kind takes. See `build_model`."""
    return build_model(
        spec.kind,
        name=spec.name,
        model=spec.model,
        base_url=spec.base_url,
        key=key,
        top_logprobs=spec.top_logprobs,
        prefill=spec.prefill,
        structured_output=spec.structured_output,
        languages=frozenset(spec.languages) if spec.languages else None,
        progress=progress,
        **more,
    )
