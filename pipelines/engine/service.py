"""The entry to the engine: start a run, watch it, stop it, and load what was recorded.

Every screen, the command line and the tests go through `Service`. It lives on one event loop;
`pipelines.engine.service.Engine` runs it on a thread of its own for front ends that are not async.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy.engine import URL

from pipelines.aio import make_data_folder
from pipelines.engine.asking import RunPlan, make_plan
from pipelines.engine.estimate import Account, EarlierRuns, RunBudget
from pipelines.engine.executor import Keys, execute, gather_materials, start_event
from pipelines.engine.library import Libraries
from pipelines.engine.pool import Loading, ModelPool, UnknownAbilities
from pipelines.engine.reevaluate import recorded_plan
from pipelines.errors import (
    MissingReply,
    NotFoundError,
    StorageDamagedError,
    StorageError,
    StorageLostError,
    VeriscopeError,
    failure,
    revived,
)
from pipelines.models import probe
from pipelines.models.base import Model
from pipelines.models.catalogue import CatalogueEntry
from pipelines.models.download import Downloads
from pipelines.models.llamacpp import EmbeddedModel
from pipelines.models.providers import model_spec, refuse_shared_names
from pipelines.remote import RetryPolicy
from pipelines.run.calls import Materials, RunModel
from pipelines.run.events import (
    JUDGES,
    CancelReason,
    Event,
    EvidenceSpec,
    ModelCalled,
    ModelSpec,
    RunFailed,
    RunSpec,
    TerminalEvent,
    Trace,
    default_models,
)
from pipelines.run.ledger import Ledger
from pipelines.run.live import Limits, LiveRun, Subscription
from pipelines.run.replay import replay_materials
from pipelines.store import RunStore, file_url, new_run_id
from pipelines.store.exchange import is_recording, load_recording
from pipelines.text import EntityRecognizer
from pipelines.text.bilingual_names import names_in_both

# Makes sure that other processes see this one as alive while its runs go on.


class PresenceRenewal:
    """Renews the presence of `store` every `seconds` while `needed` is true.

    A server that was started again has forgotten who is writing. It does so in a thread of its own:
    a server that does not answer keeps no other work waiting.
    """

    def __init__(self, store: RunStore, seconds: float, needed: Callable[[], bool]) -> None:
        self._store = store
        self._seconds = seconds
        self._needed = needed
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to renew, if that has not begun."""
        if self._thread is None:
            work = threading.Thread(target=self._renew, name="veriscope-presence", daemon=True)
            self._thread = work
            work.start()

    def close(self) -> None:
        """Stop. Blocks until a renewal that is under way has ended: it would take the lock."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _renew(self) -> None:
        while not self._closing.wait(self._seconds):
            if self._needed():
                with suppress(StorageError):
                    self._store.renew_presence()


# Stores a run while it happens, and what becomes of a run that cannot be stored.

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 30.0
"""Seconds between two attempts to store the same events; the pause doubles."""

_logger = logging.getLogger(__name__)


async def cancel(live: LiveRun, reason: CancelReason) -> bool:
    """End the calls of a run and wait until they have ended; False when they had ended already."""
    if live.task is None or live.task.done():
        return False
    if not live.task.cancelling():
        # A second cancellation would interrupt the recording of the run's end.
        live.cancel_reason = reason
        live.task.cancel()
    await asyncio.wait({live.task})
    return True


class Saver:
    """Stores the events of one run as they come from `queue`, several at a time.

    The end of the run is shown when it is stored. A database that cannot be reached is tried for
    `patience` seconds. After that, or where nothing can be written, the run ends with that error,
    unless it had ended by itself and can be stored after all. The error is stored as its end as
    soon as it can be, at the latest when `closing` is set. It is given up where the database is
    damaged, or refuses the events as such.
    """

    def __init__(
        self,
        store: RunStore,
        live: LiveRun,
        queue: asyncio.Queue[Event],
        patience: float,
        closing: asyncio.Event,
    ) -> None:
        self.live = live
        self._store = store
        self._queue = queue
        self._patience = patience
        self._closing = closing
        self._stored = 1
        """How many events are stored; the first was before the run began."""

    async def save(self) -> bool:
        """Store the run to its end; False if what is stored of it has no end."""
        try:
            while True:
                batch = [await self._queue.get(), *self._waiting()]
                try:
                    await self._append(batch)
                except VeriscopeError as error:
                    return await self._fail(batch, error)
                except Exception as error:
                    # Any error ends the run, or its readers would wait for ever.
                    _logger.error("Run %s is not stored.", self.live.run_id, exc_info=error)
                    return await self._fail(batch, failure("asking.unexpected"))
                if isinstance(end := batch[-1], TerminalEvent):
                    self.live.show_end(end)
                    return True
        finally:
            self.live.kept.set()

    async def _append(self, batch: Sequence[Event]) -> None:
        """Store `batch`, which is tried again as long as that may help."""
        deadline, pause, again = time.monotonic() + self._patience, _FIRST_PAUSE, False
        while True:
            try:
                await asyncio.to_thread(self._store.append, self.live.run_id, batch, again=again)
            except VeriscopeError as error:
                late = time.monotonic() + pause > deadline or self._closing.is_set()
                if late or not error.retryable:
                    raise
                # A connection that was lost may have stored them and not told.
                again = True
                await self._pause(pause)
                pause *= 2
            else:
                self._stored += len(batch)
                return

    async def _fail(self, batch: list[Event], error: VeriscopeError) -> bool:
        """End a run that cannot be stored; True once that is stored, or cannot be any more."""
        live = self.live
        live.unsaved = error.info()
        await cancel(live, "stopped")
        *events, end = [*batch, *self._waiting()]
        assert isinstance(end, TerminalEvent)
        # The cause may be over by now. A run that had ended by itself has its own end then.
        by_itself = not isinstance(end, RunFailed) or end.error != live.unsaved
        if by_itself and await self._try([*events, end]) == "stored":
            live.unsaved = None
            live.show_end(end)
            return True
        common = end.model_dump(include={"run", "span", "parent", "seq", "time"})
        failed = RunFailed(**common, error=live.unsaved)
        events.append(failed)
        outcome = await self._try(events)
        live.show_end(failed)
        live.kept.set()
        pause = _FIRST_PAUSE
        while outcome == "later" and not self._closing.is_set():
            await self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            outcome = await self._try(events)
        if outcome == "stored":
            return True
        # If there is no room for all events, there may be room for the last one.
        alone = failed.model_copy(update={"seq": self._stored})
        if await self._try([alone]) != "stored":
            _logger.warning("Run %s is not stored in full: %s", live.run_id, error)
        return False

    async def _try(self, events: Sequence[Event]) -> Literal["stored", "later", "never"]:
        """Store `events` now. "stored" also where they need not be, "never" if it is no use."""
        try:
            await asyncio.to_thread(self._store.append, self.live.run_id, events, again=True)
        except (StorageLostError, NotFoundError):
            return "stored"
        except StorageDamagedError:
            return "never"
        except StorageError:
            # It is logged where it is given up.
            return "later"
        except Exception as error:
            _logger.error("Run %s is not stored.", self.live.run_id, exc_info=error)
            return "never"
        return "stored"

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    def _waiting(self) -> list[Event]:
        """Return what is in the queue now."""
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]


_ANY_TEXT = "London is a city."


class Service:
    """Runs, models and libraries of one installation.

    `data` is the folder of the indexes and, unless `database` names another, of the database. Runs
    that dead processes left are ended when it is opened. A run that nobody watches for
    `unwatched_after` seconds is stopped, and so is one that passes `limits`; both are checked every
    `look_every` seconds. A database that cannot be reached is tried for `storage_patience` seconds
    before the run that it should keep ends with that error. All methods are to be called on the
    service's event loop, except `loading`, `download`, `add_downloaded` and what a `Subscription`
    offers; `store`, `earlier` and `downloads` may be used in any thread.

    Example:
        service = Service(Path(".veriscope"))
        request = RunRequest("Who wrote Hamlet?", methods=(MethodSpec(name="drad"),))
        async for event in service.stream(plan_run(request), owner="me"):
            print(event.kind)
        await service.aclose()
    """

    def __init__(
        self,
        data: Path,
        *,
        database: str | URL | None = None,
        pool: ModelPool | None = None,
        libraries: Libraries | None = None,
        unwatched_after: float = 30.0,
        look_every: float = 1.0,
        retry: RetryPolicy | None = None,
        limits: Limits | None = None,
        storage_patience: float = 20.0,
    ) -> None:
        make_data_folder(data)
        self.store = RunStore(database or file_url(data))
        with suppress(StorageError):
            # What cannot be ended now, because nothing can be written, is ended another time.
            self.store.recover()
        self.earlier = EarlierRuns(self.store)
        self.unknown = UnknownAbilities(self.store, self.model, self._is_reproduced)
        self.pool = pool or ModelPool()
        self.libraries = libraries or Libraries(data / "index")
        self.collections = self.libraries.own(self.store.collections, data / "collections")
        with suppress(StorageError, OSError):
            self.collections.sweep()
        self.downloads = Downloads(data / "models")
        self._models = data / "models"
        self._unwatched_after = unwatched_after
        self._look_every = look_every
        self._retry = retry or RetryPolicy()
        self._limits = limits or Limits()
        self._patience = storage_patience
        self._closing = asyncio.Event()
        self._live: dict[str, LiveRun] = {}
        self._accounts: dict[str, Account] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._renewal = PresenceRenewal(self.store, look_every, lambda: bool(self._live))

    async def start(
        self,
        run: RunPlan | RunSpec,
        *,
        owner: str,
        keys: Keys | None = None,
        run_id: str | None = None,
        cache: str = "",
        known: Sequence[ModelCalled] = (),
        budget: RunBudget | None = None,
    ) -> str:
        """Start a run and return its id.

        What was recorded, a `RunSpec`, is planned first: raises InvalidInputError when it cannot
        be. `run_id` is the id it gets, one that no run has. Runs of one owner share the replies
        that were cached, but for those with another `cache`. What `known` calls were answered is in
        the cache from the beginning. `budget`, else that of the plan, says what it may use: at a
        limit it ends with what it has by then.
        """
        plan = await self._pinned(run if isinstance(run, RunPlan) else make_plan(run), owner)
        keys, models = keys or {}, plan.spec.models.values()
        refuse_shared_names(one for one in models if one.name in keys)
        scope = f"{owner}/{cache}" if cache else owner
        account = (budget or plan.budget).opened()
        gather = partial(
            gather_materials,
            *(plan, keys, self.pool, self.libraries, scope),
            ledger=account.ledger,
            known=known,
        )
        run_id = await self._begin(plan, owner, gather, run_id=run_id, account=account)
        for model in models:
            self.unknown.ask_soon(model, keys.get(model.name), owner=owner)
        return run_id

    async def replay(self, run_id: str, *, owner: str) -> str:
        """Run the methods again on the recorded replies, without a single call; a new run.

        It has the settings and the language that the recorded run had. It fails with
        `missing_reply` where a method asks for what was not recorded. Where nothing can be written
        it is not stored, and can be read until the process ends; see `why_not_stored`.
        """
        trace = await self.load(run_id, owner=owner)

        async def gather() -> Materials:
            return await asyncio.to_thread(replay_materials, trace, repeated=True)

        # What was tried again is recorded with its last outcome.
        once = RetryPolicy(attempts=1)
        return await self._begin(recorded_plan(trace), owner, gather, once, optional=True)

    def why_not_stored(self, run_id: str, *, owner: str) -> VeriscopeError | None:
        """Return why a replay is not stored; None for one that is, and for every other run."""
        live = self._live_of(run_id, owner)
        return live.unstored if live is not None else None

    def account(self, run_id: str, *, owner: str) -> Account | None:
        """Return the account of a run that is running; None for one that has ended, and for
        a replay.

        It may be called from any thread.
        """
        return self._accounts.get(run_id) if self._live_of(run_id, owner) else None

    async def stream(
        self,
        run: RunPlan | RunSpec,
        *,
        owner: str,
        keys: Keys | None = None,
        budget: RunBudget | None = None,
    ) -> AsyncGenerator[Event]:
        """Start a run and yield its events to the last; leaving early stops the run."""
        run_id = await self.start(run, owner=owner, keys=keys, budget=budget)
        async with aclosing(self.follow(run_id, owner=owner)) as events:
            async for event in events:
                yield event

    async def record(self, run: RunPlan | RunSpec, *, owner: str) -> Trace:
        """Run to the end; return what was recorded of it."""
        events = [event async for event in self.stream(run, owner=owner)]
        return await self.load(events[0].run, owner=owner)

    async def follow(self, run_id: str, *, owner: str) -> AsyncGenerator[Event]:
        """Yield the events of a run, past and to come; leaving a live run early stops it."""
        subscription = await self.watch(run_id, owner=owner)
        try:
            async for event in subscription.events():
                yield event
        finally:
            subscription.close()
            await self.stop(run_id, owner=owner)

    async def watch(self, run_id: str, *, owner: str) -> Subscription:
        """Return a reader of a run, live or recorded, from its beginning."""
        if live := self._live_of(run_id, owner):
            return live.subscribe()
        trace = await self.load(run_id, owner=owner)
        return Subscription(trace.events, lambda: None)

    async def stop(self, run_id: str, *, owner: str, reason: CancelReason = "stopped") -> bool:
        """End a run's calls and wait until its end is stored; False when it had ended by itself."""
        live = self._live_of(run_id, owner)
        if live is None:
            return False
        stopped = await cancel(live, reason)
        await live.kept.wait()
        return stopped

    async def load(self, run_id: str, *, owner: str) -> Trace:
        """Return what was recorded of a run, ended or not; everybody may read samples."""
        if is_recording(run_id):
            return await asyncio.to_thread(load_recording, run_id)
        if live := self._live_of(run_id, owner):
            return live.trace()
        return await asyncio.to_thread(self.store.load, run_id, owner)

    async def share(self, run_id: str, *, owner: str) -> str:
        """Make a copy of a finished run for everybody who has its id; the same run is copied once.

        Raises NotFoundError if this owner has no such run, InvalidInputError while it goes on or
        where it is a replay that is not stored.
        """
        if live := self._live_of(run_id, owner):
            if not live.over:
                raise failure("asking.still_running")
            if live.unsaved is not None:
                raise revived(live.unsaved)
            if live.unstored is not None:
                raise failure(
                    "asking.not_stored", why=live.unstored.phrase(), remedy=live.unstored.phrase(1)
                )
        if is_recording(run_id):
            return run_id
        return await asyncio.to_thread(self.store.share, run_id, owner)

    async def delete(self, run_id: str, *, owner: str) -> None:
        """Delete a run; one that is under way is stopped first."""
        await self.stop(run_id, owner=owner)
        if live := self._live_of(run_id, owner):
            self._live.pop(run_id, None)
            self._accounts.pop(run_id, None)
            if not live.holds_end:
                return
        await asyncio.to_thread(self.store.delete, run_id, owner)

    async def delete_many(self, run_ids: Sequence[str], *, owner: str) -> int:
        """Delete those of these runs that are the owner's, each as `delete`; return how many."""
        live = [run_id for run_id in run_ids if self._live_of(run_id, owner)]
        gone = 0
        for run_id in live:
            with suppress(NotFoundError):
                await self.delete(run_id, owner=owner)
                gone += 1
        rest = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in set(live)]
        return gone + await asyncio.to_thread(self.store.delete_many, rest, owner)

    async def warm_up(self) -> None:
        """Load early what a first question needs: library, default models, encoder, recogniser.

        One after the other, so that who asks meanwhile is answered; judges first, which are there
        soon, and are all that an answer needs that is checked while it is written. Errors are
        raised to the first who asks.
        """
        models = default_models("en")
        await self.libraries.open_soon(EvidenceSpec())
        for role in sorted(models, key=lambda role: role not in JUDGES):
            with suppress(VeriscopeError):
                await self.pool.get(models[role])
        with suppress(VeriscopeError):
            await self.libraries.similarity("en").compare([_ANY_TEXT], [_ANY_TEXT])
        await asyncio.to_thread(EntityRecognizer().recognize, _ANY_TEXT, "en")
        # Rowen's dictionary takes seconds, in which no run would go on.
        await asyncio.to_thread(names_in_both, _ANY_TEXT, "en")

    @property
    def at_work(self) -> bool:
        """Whether a run goes on; safe from any thread."""
        return any(not live.over for live in list(self._live.values()))

    def loading(self) -> list[Loading]:
        """Return models and libraries being prepared right now; safe from any thread."""
        return [*self.pool.loading(), *self.libraries.loading()]

    async def model(
        self, spec: ModelSpec, key: str | None = None, ledger: Ledger | None = None
    ) -> Model:
        """Return a loaded model for the probe, tried again, never cached; `ledger` counts calls."""
        slot = replace(await self.pool.get(spec, key), cache=None)

        def emit(*_: object, **__: object) -> None:
            return None

        return RunModel("main", slot, self._retry, emit, time.monotonic, ledger=ledger)

    async def pinned(self, spec: ModelSpec) -> ModelSpec:
        """Return the model with what a run records of it, see `models.providers.pinned`."""
        return await self.pool.pin(spec)

    async def _pinned(self, plan: RunPlan, owner: str) -> RunPlan:
        """Return the plan with what a run records of its models and of its collection."""
        models = {role: await self.pool.pin(model) for role, model in plan.spec.models.items()}
        evidence = plan.spec.evidence
        if evidence.collection is not None:
            evidence = await asyncio.to_thread(self.collections.pinned, evidence, owner)
        pinned = {"models": models, "evidence": evidence}
        return replace(plan, spec=plan.spec.model_copy(update=pinned))

    def download(self, entry: CatalogueEntry, *, owner: str) -> None:
        """Download a model of the catalogue, or continue that; then it is one of the owner's.

        Returns at once, and may be called from any thread.
        """
        self.downloads.start(entry, lambda: self.add_downloaded(entry, owner=owner))

    def add_downloaded(self, entry: CatalogueEntry, *, owner: str) -> ModelSpec:
        """Make a model of the catalogue one of the owner's, if it is not, and return it.

        It may be called from any thread.
        Another model that the owner has under this name keeps it.
        """
        spec = model_spec(entry).to_be_checked()
        saved = self.store.models.list(owner)
        if known := next(
            (one for one in saved if (one.kind, one.model) == (spec.kind, spec.model)), None
        ):
            return known
        if any(one.name == spec.name for one in saved):
            spec = spec.model_copy(update={"name": f"{spec.name} (downloaded)"})
        self.store.models.save(owner, spec)
        return spec

    async def measured_speed(self) -> float | None:
        """Return how many bytes of weights a model on this machine reads per second while
        it writes.

        It is measured once, by the embedded model, and kept. None where that model cannot tell.
        """
        known = await asyncio.to_thread(probe.kept_speed, self._models)
        if known is not None:
            return known
        try:
            model = (await self.pool.get(ModelSpec())).model
            if not isinstance(model, EmbeddedModel):
                return None
            size = (await asyncio.to_thread(model.server.loaded.stat)).st_size
            found = await probe.measure(model, size)
        except (VeriscopeError, MissingReply):
            return None
        if found is not None:
            # Where it cannot be kept it is measured again.
            with suppress(OSError):
                await asyncio.to_thread(probe.keep_speed, self._models, found)
        return found

    async def aclose(self) -> None:
        """Stop every run and release everything."""
        self._closing.set()
        for run_id, live in list(self._live.items()):
            await self.stop(run_id, owner=live.owner, reason="shutdown")
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.unknown.aclose()
        await self.pool.aclose()
        await asyncio.to_thread(self.collections.close)
        await self.libraries.aclose()
        await asyncio.to_thread(self.downloads.close)
        await asyncio.to_thread(self._renewal.close)
        await asyncio.to_thread(self.store.close)

    async def _begin(
        self,
        plan: RunPlan,
        owner: str,
        gather: Callable[[], Awaitable[Materials]],
        retry: RetryPolicy | None = None,
        *,
        optional: bool = False,
        run_id: str | None = None,
        account: Account | None = None,
    ) -> str:
        """Begin a run, and begin to store it; with `optional` also where it cannot be stored."""
        run_id = run_id or new_run_id()
        unsaved: asyncio.Queue[Event] = asyncio.Queue()
        ledger = account.ledger if account is not None else None
        live = LiveRun(run_id, owner, unsaved.put_nowait, holds_end=True, ledger=ledger)
        started = start_event(live, plan)
        try:
            await asyncio.to_thread(self.store.create, run_id, owner, started)
        except StorageError as error:
            passes = error.retryable and self.store.refusal is None
            if passes or not optional:
                raise
            live.unstored, live.holds_end = error, False
        unsaved.get_nowait()
        live.task = asyncio.create_task(execute(live, plan, gather, retry or self._retry))
        self._live[run_id] = live
        if account is not None:
            self._accounts[run_id] = account
        self._renewal.begin()
        saver = Saver(self.store, live, unsaved, self._patience, self._closing)
        for work in (_unkept(live) if live.unstored else self._keep(saver), self._supervise(live)):
            task = asyncio.create_task(work)
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        # Let it begin: a task that is cancelled before it ran at all could not end its run.
        await asyncio.sleep(0)
        return run_id

    def _is_reproduced(self, spec: ModelSpec, owner: str) -> bool:
        """Return whether a reproducible run of `owner` that goes on uses the model of that name."""
        return any(
            run.reproducible and any(one.name == spec.name for one in run.models.values())
            for live in self._live.values()
            if live.owner == owner and not live.over
            for run in [live.header.spec]
        )

    def _live_of(self, run_id: str, owner: str) -> LiveRun | None:
        live = self._live.get(run_id)
        return live if live is not None and live.owner == owner else None

    async def _keep(self, saver: Saver) -> None:
        """Have a run stored, and let it go when it is; without that it can be read from here."""
        if await saver.save():
            self._live.pop(saver.live.run_id, None)
            self._accounts.pop(saver.live.run_id, None)

    async def _supervise(self, live: LiveRun) -> None:
        """End a run that nobody watches any more, or that passed one of the limits."""
        assert live.task is not None
        left = False
        while not live.task.done():
            await asyncio.wait({live.task}, timeout=self._look_every)
            reason = live.spent(self._limits)
            # Where the whole process stood still (while a model loads), readers could not look
            # either: they get until the next look.
            was_left, left = left, live.unwatched_for() > self._unwatched_after
            if was_left and left:
                reason = "unwatched"
            if reason is not None:
                await self.stop(live.run_id, owner=live.owner, reason=reason)


async def _unkept(live: LiveRun) -> None:
    """Wait for the end of a run that is not stored: it has nothing to wait for once it is over."""
    assert live.task is not None
    await asyncio.wait({live.task})
    live.kept.set()


# A `Service` on a thread of its own, for front ends whose code is not asynchronous.

T = TypeVar("T")


class Engine:
    """Owns the event loop that all runs of this process live on, and the service on it."""

    def __init__(self, data: Path, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="veriscope-engine", daemon=True
        )
        self._thread.start()
        self.service = self.call(self._open(data, options))

    async def _open(self, data: Path, options: dict[str, Any]) -> Service:
        return Service(data, **options)

    async def _finish(self) -> None:
        await self.service.aclose()
        begun = asyncio.all_tasks() - {asyncio.current_task()}
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the engine's loop and wait for it; never call this on that loop."""
        return self.submit(work).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` on the engine's loop, without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop every run and the thread."""
        self.call(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
