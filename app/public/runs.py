"""Runs of many visitors: in turn, watched, and over when nobody is there any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from app.watching import PERIOD, Watched
from pipelines.admission import Admission, Turn
from pipelines.engine import Engine
from pipelines.run.spec import RunSpec

__all__ = ["Runs"]

T = TypeVar("T")

_LOOK = 1.0
"""Seconds between two looks at one's place in the queue."""


class Runs:
    """Starts runs on the engine and follows them from the event loop that serves visitors."""

    def __init__(self, engine: Engine, admission: Admission) -> None:
        self.engine = engine
        self._admission = admission

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the engine do `work` without blocking this loop."""
        return await asyncio.wrap_future(self.engine.submit(work))

    async def ask(
        self,
        spec: RunSpec,
        owner: str,
        keys: Mapping[str, str] | None = None,
        *,
        visitor: str | None = None,
    ) -> AsyncGenerator[Turn | Watched]:
        """Wait for a place, then run; yields where one stands, then the run again and again.

        `visitor` is who takes the place, if not the owner of the run.
        Whoever stops reading gives the place up and ends the run.
        """
        async with self._admission.place(visitor or owner) as ticket:
            while not ticket.admitted.is_set():
                yield self._admission.turn(ticket)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ticket.admitted.wait(), _LOOK)
            async for watched in self.play(spec, owner, keys):
                yield watched

    async def play(
        self, spec: RunSpec, owner: str, keys: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Watched]:
        """Run without waiting for a place: for what costs next to nothing."""
        service = self.engine.service
        run_id = await self.call(service.start(spec, owner=owner, keys=keys))
        watched = None
        try:
            watched = await self.open(run_id, owner)
            while not watched.pull().over:
                yield watched
                await asyncio.sleep(PERIOD)
            yield watched
        finally:
            if watched is None or not watched.view.over:
                # Not awaited: whoever hung up may have taken this task with them.
                self.engine.submit(service.stop(run_id, owner=owner))
            if watched is not None:
                watched.subscription.close()

    async def open(self, run_id: str, owner: str) -> Watched:
        """A run of this owner, or one that was shared. Raises NotFoundError."""
        subscription = await self.call(self.engine.service.watch(run_id, owner=owner))
        watched = Watched(run_id, subscription)
        watched.pull()
        return watched

    async def stop(self, run_id: str, owner: str) -> None:
        """End a run; what it has stays."""
        await self.call(self.engine.service.stop(run_id, owner=owner))

    async def share(self, run_id: str, owner: str) -> str:
        """The id under which everybody may read the run."""
        return await self.call(self.engine.service.share(run_id, owner=owner))
