"""Checks of models that could not be carried out: made again by themselves, when a model is used.

A check of the capability probe that a busy, slow or absent service did not answer leaves an ability
"unknown", and the model is used as its kind usually is. The next run that uses the model asks
again, beside its own calls.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pipelines.concurrency import ended
from pipelines.errors import VeriscopeError
from pipelines.models.base import Model
from pipelines.models.probe import probe_again
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.store import RunStore

LONGEST_SECONDS = 120.0
"""How long the checks of one model may take together."""

MOST_TRIES = 3
"""How often a process makes the checks of one owner's model again."""

FindModel = Callable[[ModelSpec, str | None], Awaitable[Model]]


class UnknownAbilities:
    """Finds out later what a check of a saved model could not, and saves it with the model.

    `model` builds the model of a spec with its key. To be used on one event loop.
    """

    def __init__(self, store: RunStore, model: FindModel) -> None:
        self._store = store
        self._model = model
        self._tries: Counter[tuple[str, str]] = Counter()
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def ask_soon(self, spec: ModelSpec, key: str | None, *, owner: str) -> None:
        """Make the unknown checks of `spec` again, in the background and not too often."""
        place = owner, spec.name
        if not spec.unknown or place in self._tasks or self._tries[place] >= MOST_TRIES:
            return
        self._tries[place] += 1
        task = self._tasks[place] = asyncio.create_task(self._ask(spec, key, owner))
        task.add_done_callback(lambda _: self._tasks.pop(place, None))

    async def settled(self) -> None:
        """Wait until no check is under way."""
        await asyncio.gather(*self._tasks.values())

    async def aclose(self) -> None:
        """Stop what is under way."""
        await ended(*self._tasks.values())

    async def _ask(self, spec: ModelSpec, key: str | None, owner: str) -> None:
        known = known_capabilities(spec)
        if known is None:
            return
        # What fails stays unknown. The next run asks again.
        with suppress(VeriscopeError, TimeoutError):
            async with asyncio.timeout(LONGEST_SECONDS):
                model = await self._model(spec.without_capabilities(), key)
                report = await probe_again(model, known, spec.unknown)
            found = spec.with_capabilities(report.capabilities, report.unknown)
            await asyncio.to_thread(self._save, spec, found, owner)

    def _save(self, spec: ModelSpec, found: ModelSpec, owner: str) -> None:
        models = self._store.models
        saved = next((one for one in models.list(owner) if one.name == spec.name), None)
        # Who changed or deleted it meanwhile is not contradicted.
        if saved is not None and saved.without_price() == spec.without_price():
            models.save(owner, found.model_copy(update={"price": saved.price}))
