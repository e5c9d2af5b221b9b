"""The one door to the engine: start a run, watch it, stop it, and look at what was recorded.

Every screen, the command line and the tests go through `Service`. It lives on one event loop;
`pipelines.engine.Engine` runs it on a thread of its own for front ends that are not asynchronous.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.executor import Plan, execute, make_plan, start_event
from pipelines.libraries import Libraries
from pipelines.models.base import Model
from pipelines.recordings import is_recording, load_recording
from pipelines.run.events import CancelReason, Event, RunCancelled, RunFailed, RunFinished
from pipelines.run.limits import Limits
from pipelines.run.live import LiveRun, Subscription
from pipelines.run.materials import Materials
from pipelines.run.pool import Loading, ModelPool
from pipelines.run.replay import replay_materials
from pipelines.run.spec import EvidenceSpec, ModelSpec, RunSpec
from pipelines.run.trace import Trace
from pipelines.run.wrappers import RetryPolicy
from pipelines.store import RunStore, new_run_id

__all__ = ["Service"]

Keys = Mapping[str, str]
"""Keys by model name, or by "search:" and the name of a search of the web.

They live in memory for as long as the run, and are never recorded.
"""


class Service:
    """Runs, models and libraries of one installation.

    `unwatched_after` is how many seconds a run goes on with nobody looking, `limits` what one run
    may take; both are looked at every `look_every` seconds. All methods are to be called on the
    service's event loop, except `loading` and what a `Subscription` offers.
    """

    def __init__(
        self,
        data: Path,
        *,
        database_url: str | None = None,
        pool: ModelPool | None = None,
        libraries: Libraries | None = None,
        unwatched_after: float = 30.0,
        look_every: float = 1.0,
        retry: RetryPolicy | None = None,
        limits: Limits | None = None,
    ) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.store = RunStore(database_url or f"sqlite:///{data / 'veriscope.db'}")
        self.pool = pool or ModelPool()
        self.libraries = libraries or Libraries(data / "index")
        self._unwatched_after = unwatched_after
        self._look_every = look_every
        self._retry = retry or RetryPolicy()
        self._limits = limits or Limits()
        self._live: dict[str, LiveRun] = {}
        self._chores: set[asyncio.Task[None]] = set()

    async def start(self, spec: RunSpec, *, owner: str, keys: Keys | None = None) -> str:
        """Start a run and return its id; raises InvalidInputError when it cannot be."""
        plan = make_plan(spec)
        return await self._begin(plan, owner, keys or {}, source=None)

    async def replay(self, run_id: str, *, owner: str) -> str:
        """Run the methods again on the recorded replies, without a single call; a new run."""
        trace = await self.load(run_id, owner=owner)
        return await self._begin(make_plan(trace.header.spec), owner, {}, source=trace)

    async def stream(
        self, spec: RunSpec, *, owner: str, keys: Keys | None = None
    ) -> AsyncGenerator[Event]:
        """Start a run and yield its events to the last; leaving early stops the run."""
        run_id = await self.start(spec, owner=owner, keys=keys)
        async with aclosing(self.follow(run_id, owner=owner)) as events:
            async for event in events:
                yield event

    async def follow(self, run_id: str, *, owner: str) -> AsyncGenerator[Event]:
        """The events of a run, past and to come; leaving a live run early stops it."""
        subscription = await self.watch(run_id, owner=owner)
        try:
            async for event in subscription.events():
                yield event
        finally:
            subscription.close()
            await self.stop(run_id, owner=owner)

    async def watch(self, run_id: str, *, owner: str) -> Subscription:
        """A reader of a run, live or recorded, from its beginning."""
        live = self._live.get(run_id)
        if live is not None and live.owner == owner:
            return live.subscribe()
        trace = await self.load(run_id, owner=owner)
        return Subscription(trace.events, lambda: None)

    async def stop(
        self,
        run_id: str,
        *,
        owner: str,
        reason: CancelReason = "stopped",
    ) -> bool:
        """End a run's calls and wait until it has ended; False when it had ended already."""
        live = self._live.get(run_id)
        if live is None or live.owner != owner or live.task is None or live.task.done():
            return False
        if not live.task.cancelling():
            # A second time would cut short what the first one's end still has to record.
            live.cancel_reason = reason
            live.task.cancel()
        await asyncio.wait({live.task})
        return True

    async def load(self, run_id: str, *, owner: str) -> Trace:
        """What was recorded of a run, whether it has ended or not; samples are everybody's."""
        if is_recording(run_id):
            return await asyncio.to_thread(load_recording, run_id)
        live = self._live.get(run_id)
        if live is not None and live.owner == owner:
            return live.trace()
        return await asyncio.to_thread(self.store.load, run_id, owner)

    async def share(self, run_id: str, *, owner: str) -> str:
        """A copy of a finished run for everybody who has its id; the same run is copied once.

        Raises NotFoundError if this owner has no such run, InvalidInputError while it goes on.
        """
        live = self._live.get(run_id)
        if live is not None and live.over:
            await live.kept.wait()
        elif live is not None:
            raise InvalidInputError(
                "The run is still going on.", remedy="Wait until it is over, then share it."
            )
        if is_recording(run_id):
            return run_id
        return await asyncio.to_thread(self.store.share, run_id, owner)

    async def delete(self, run_id: str, *, owner: str) -> None:
        """Forget a run; one that is under way is stopped first."""
        await self.stop(run_id, owner=owner)
        if (live := self._live.get(run_id)) is not None and live.owner == owner:
            await live.kept.wait()
        await asyncio.to_thread(self.store.delete, run_id, owner)

    def is_live(self, run_id: str) -> bool:
        """Whether the run is still under way."""
        return run_id in self._live

    async def warm_up(self) -> None:
        """Load the default model and library before anybody asks; failures wait for who asks."""
        await self._open_library(EvidenceSpec())
        with suppress(VeriscopeError):
            await self.pool.get(ModelSpec())

    def loading(self) -> list[Loading]:
        """Models and libraries being prepared right now; safe from any thread."""
        return [*self.pool.loading(), *self.libraries.loading()]

    async def model(self, spec: ModelSpec, key: str | None = None) -> Model:
        """A configured model, loaded, for the capability probe."""
        return (await self.pool.get(spec, key)).model

    async def aclose(self) -> None:
        """Stop every run and release everything."""
        for run_id, live in list(self._live.items()):
            await self.stop(run_id, owner=live.owner, reason="shutdown")
        await asyncio.gather(*self._chores, return_exceptions=True)
        await self.pool.aclose()
        await self.libraries.aclose()
        await asyncio.to_thread(self.store.close)

    async def _begin(self, plan: Plan, owner: str, keys: Keys, source: Trace | None) -> str:
        run_id = new_run_id()
        kept: asyncio.Queue[Event] = asyncio.Queue()
        live = LiveRun(run_id, owner, kept.put_nowait)
        started = start_event(live, plan, time.time())
        await asyncio.to_thread(self.store.create, run_id, owner, started)
        kept.get_nowait()

        async def materials() -> Materials:
            if source is not None:
                return replay_materials(source)
            return await self._materials(plan, keys)

        live.task = asyncio.create_task(execute(live, plan, materials, self._retry))
        self._live[run_id] = live
        self._chore(self._keep(live, kept))
        self._chore(self._mind(live))
        # Let it begin: a task that is cancelled before it ran at all could not end its run.
        await asyncio.sleep(0)
        return run_id

    async def _materials(self, plan: Plan, keys: Keys) -> Materials:
        evidence, language = plan.spec.evidence, plan.question.language
        retriever = by_meaning = None
        if plan.needs_evidence:
            retriever = self.libraries.search_in(evidence, keys.get(f"search:{evidence.source}"))
            by_meaning = self.libraries.search_by_meaning(evidence, language)
            # The index is opened while the models are loaded and the first texts written.
            self._chore(self._open_library(evidence))
        roles = plan.spec.models
        models = list(dict.fromkeys(roles.values()))
        loaded = await asyncio.gather(
            *(self.pool.get(spec, keys.get(spec.name)) for spec in models)
        )
        slots = dict(zip(models, loaded, strict=True))
        return Materials(
            slots={role: slots[spec] for role, spec in roles.items()},
            retriever=retriever,
            by_meaning=by_meaning,
            similarity=self.libraries.similarity(language),
        )

    async def _open_library(self, evidence: EvidenceSpec) -> None:
        # What goes wrong is told by the first search, which runs into it again.
        if evidence.source == "library":
            with suppress(VeriscopeError):
                await self.libraries.retriever(evidence)

    async def _keep(self, live: LiveRun, kept: asyncio.Queue[Event]) -> None:
        """Store events as they come, several at a time, and let the run go after the last."""
        ended = False
        try:
            while not ended:
                batch = [await kept.get()]
                while not kept.empty():
                    batch.append(kept.get_nowait())
                ended = isinstance(batch[-1], RunFinished | RunFailed | RunCancelled)
                await asyncio.to_thread(self.store.append, live.run_id, batch)
        finally:
            del self._live[live.run_id]
            live.kept.set()

    async def _mind(self, live: LiveRun) -> None:
        """End a run that nobody watches any more, or that took all it may take."""
        assert live.task is not None
        while not live.task.done():
            await asyncio.wait({live.task}, timeout=self._look_every)
            reason: CancelReason | None = live.spent(self._limits)
            if live.unwatched_for() > self._unwatched_after:
                reason = "unwatched"
            if reason is not None:
                await self.stop(live.run_id, owner=live.owner, reason=reason)

    def _chore(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
