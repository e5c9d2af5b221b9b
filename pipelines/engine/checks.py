"""Checks of models that could not be carried out: made again by themselves, when a model is used.

A check of the capability probe that a busy, slow or absent service did not answer leaves an ability
"unknown", and the model is used as its kind usually is. The next run that uses the model asks
again, beside its own calls. So it does for whether a model can judge that was never checked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

from pipelines.concurrency import ended
from pipelines.errors import VeriscopeError
from pipelines.models.base import Model
from pipelines.models.probe import ProbeReport, probe_again
from pipelines.models.providers import ModelSpec, known_capabilities
from pipelines.store import RunStore

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
