"""Runs of an evaluation on a Ray cluster: workers carry them out, this process stores them.

The library Ray is no requirement of the application: requirements-ray.txt names it. The process
that keeps the evaluation is the only one that writes to its database. A worker that dies costs the
runs that it was carrying out, which others begin again with the replies that had arrived.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Self

from pipelines.aio import ended
from pipelines.base import ROOT
from pipelines.engine.asking import RunPlan
from pipelines.engine.library import Libraries
from pipelines.engine.service import PresenceRenewal, Service
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.plan import EvaluationSpec, code_version
from pipelines.evaluation.proof import differing, packages, proof_of
from pipelines.evaluation.runner import AnsweringBackend, KnownCalls, WorkerLostError
from pipelines.run.events import (
    Event,
    ModelCalled,
    RunSpec,
    RunStarted,
    TerminalEvent,
    TokenWritten,
    Trace,
    event_adapter,
)
from pipelines.store import RunStore
from pipelines.store.exchange import cancelled_after

# What a process of a Ray cluster does for an evaluation: runs, one service for all of them.
#
# It keeps nothing: every event goes to the process that keeps the evaluation.

_OWNER = "evaluation"
_LACKING = re.compile(r"(?:ModuleNotFoundError|ImportError)(?:: (?P<what>.*))?")
"""What Ray says of a worker that could not import its code."""


class RayWorker:
    """An actor with a service and a database of its own, which go with it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="veriscope-worker-")
        # Building an index takes longer than an answer: it is kept for the next evaluation.
        indexes = Path.home() / ".cache" / "veriscope" / "index"
        self._libraries = Libraries(indexes)
        self._service = Service(Path(self._folder.name), libraries=self._libraries)

    async def version(self) -> str:
        """Return the `code_version` of this machine; it answers when the service is ready."""
        return code_version()

    async def proof(self, spec: str, named: Sequence[str]) -> dict[str, str]:
        """Return what this machine has of all that decides the answers of `spec`, an
        EvaluationSpec as JSON, and its own name.
        """
        asked = EvaluationSpec.model_validate_json(spec)
        found = await asyncio.to_thread(proof_of, asked, named, self._libraries)
        return {**found, _MACHINE: socket.gethostname()}

    async def answer(
        self, run: str, run_id: str, cache: str, known: Sequence[bytes], keys: Mapping[str, str]
    ) -> AsyncIterator[list[bytes]]:
        """Carry a run out; yield its events as JSON, several at a time, as they come.

        `run` is a RunSpec as JSON, `known` are ModelCalled events as JSON. `keys` arrive with every
        call, from memory to memory, so that the cluster keeps none.
        """
        service = self._service
        calls = [event_adapter.validate_json(call) for call in known]
        await service.start(
            RunSpec.model_validate_json(run),
            owner=_OWNER,
            keys=keys,
            run_id=run_id,
            cache=cache,
            known=[call for call in calls if isinstance(call, ModelCalled)],
        )
        subscription = await service.watch(run_id, owner=_OWNER)
        waiting: list[bytes] = []
        async for event in subscription.events():
            # Pieces of text are not stored; they are in the event of the call.
            if isinstance(event, TokenWritten):
                continue
            waiting.append(event_adapter.dump_json(event))
            if isinstance(event, ModelCalled | TerminalEvent):
                yield waiting
                waiting = []
        await service.delete(run_id, owner=_OWNER)

    async def stop(self, run_id: str) -> None:
        """End a run: what it asks is cut off, and its last events are sent."""
        try:
            await self._service.stop(run_id, owner=_OWNER)
        except VeriscopeError:
            # It has ended, and is deleted.
            return


_BEGINNING = 300.0
"""Seconds that the first worker has to be ready, and another one where none is left."""

_MACHINE = "machine"

_PROVING = 60.0
"""Seconds that the others have, once the first worker is ready, to prove what they have."""

_CONNECTING = 10.0
"""Seconds in which the head of a cluster has to answer."""

_STOPPING = 20.0
"""Seconds that a worker has to end a run which is stopped."""

_NAMED = 6
"""Differences that are named."""

_SAID = 300
"""Characters of what Ray says."""

_LEFT_OUT = [".git", ".veriscope", "/.venv", "/app", "/components", "/docs", "/research", "/tests"]
"""What workers do not need of the project's folder."""


@dataclass(eq=False)
class _Worker:
    """A worker that is ready, and the runs that it has begun."""

    actor: Any
    begun: set[str] = field(default_factory=set)
    busy: Counter[str] = field(default_factory=Counter)
    """Runs under way by what they share replies with."""


class RayCluster(AnsweringBackend):
    """The workers of one evaluation of `owner`, whose runs are stored in `store`.

    Runs that can share replies go to one worker as long as any of them is under way. Example:

        cluster = await RayCluster.connect("auto", service.store, owner="me", keys={})
        async with aclosing(cluster):
            runner = Runner(service, evaluation, owner="me", answering=cluster)
    """

    def __init__(
        self,
        ray: Any,
        store: RunStore,
        *,
        owner: str,
        keys: Mapping[str, str],
        cpus: float = 1.0,
        gpus: float = 0.0,
        spec: EvaluationSpec | None = None,
    ) -> None:
        self._ray = ray
        self._spec = spec
        self._own: dict[str, str] = {}
        self._store = store
        self._owner = owner
        self._keys = dict(keys)
        # One that died is not started again under its name: what it had begun is given out anew.
        self._new = ray.remote(
            num_cpus=cpus,
            num_gpus=gpus,
            max_restarts=0,
            max_concurrency=1000,
            scheduling_strategy="SPREAD",
        )(RayWorker)
        self._workers: list[_Worker] = []
        self._beginning: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._refused: VeriscopeError | None = None
        self._renewal = PresenceRenewal(store, 1.0, lambda: True)

    @classmethod
    async def connect(
        cls,
        address: str,
        store: RunStore,
        *,
        owner: str,
        keys: Mapping[str, str],
        workers: int | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
        spec: EvaluationSpec | None = None,
    ) -> Self:
        """Connect to the cluster at `address` and begin `workers` of `cpus` and `gpus` each.

        "auto" is the cluster that this machine belongs to, "local" one of this machine alone that
        ends with the evaluation. Without `workers` there is one for each machine. Returns when the
        first is ready, and the others have proved that they have what this machine has of all that
        decides the answers of `spec`, or did not get ready in a minute. Raises InvalidInputError
        where Ray is not installed or cannot be used like that, or a machine lacks something, and
        UnreachableError where there is no cluster, or nothing in it gets ready.
        """
        ray = _ray()
        if address.startswith("ray://"):
            raise failure("ray.client_address")
        await asyncio.to_thread(_join, ray, address)
        if workers is None:
            machines = [one for one in ray.nodes() if one["Alive"]]
            able = [one for one in machines if one["Resources"].get("CPU", 0) >= cpus]
            workers = max(1, len(able))
        cluster = cls(ray, store, owner=owner, keys=keys, cpus=cpus, gpus=gpus, spec=spec)
        cluster._renewal.begin()
        for _ in range(workers):
            cluster._begin()
        try:
            await cluster._until_ready()
            if cluster._beginning:
                await asyncio.wait(cluster._beginning, timeout=_PROVING)
            await cluster._until_ready()
        except BaseException:
            await cluster.aclose()
            raise
        return cluster

    @property
    def workers(self) -> int:
        """Those that are ready or may become so."""
        return len(self._workers) + len(self._beginning)

    async def answer(self, plan: RunPlan, run_id: str, cache: str, known: KnownCalls) -> Trace:
        """See `AnsweringBackend`. Workers make their calls without asking here, so the budget
        bounds none: what is under way when a limit is reached is finished."""
        place = f"{cache}/{plan.spec.question}"
        await self._until_ready()
        worker = self._for(place)
        worker.busy[place] += 1
        try:
            # What this worker has asked is in its cache.
            calls = await known(worker.begun)
            worker.begun.add(run_id)
            return await self._carried_out(worker, plan.spec, run_id, cache, calls)
        finally:
            worker.busy[place] -= 1

    async def aclose(self) -> None:
        """End the workers and leave the cluster."""
        await ended(*self._beginning)
        for worker in self._workers:
            with suppress(Exception):
                self._ray.kill(worker.actor)
        self._workers.clear()
        await asyncio.to_thread(self._renewal.close)
        await asyncio.to_thread(self._ray.shutdown)

    async def _carried_out(
        self, worker: _Worker, run: RunSpec, run_id: str, cache: str, calls: Sequence[Event]
    ) -> Trace:
        sent = [event_adapter.dump_json(call) for call in calls]
        batches = worker.actor.answer.options(num_returns="streaming").remote(
            run.model_dump_json(), run_id, cache, sent, self._keys
        )
        recording = _Recording(self._store, self._owner, run_id)
        storing = asyncio.create_task(recording.store(batches))
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            with suppress(Exception):
                await asyncio.wait_for(worker.actor.stop.remote(run_id), _STOPPING)
                await asyncio.wait({storing}, timeout=_STOPPING)
            await ended(storing)
            await recording.end()
            raise
        except self._ray.exceptions.RayTaskError as error:
            await recording.end()
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            # It died, was killed for its memory, or its machine went with what it had said.
            self._lose(worker)
            await recording.end()
            raise WorkerLostError("A worker of the cluster was lost.") from error
        except BaseException:
            # It cannot be stored: nothing more is asked for it.
            with suppress(Exception):
                await asyncio.wait_for(worker.actor.stop.remote(run_id), _STOPPING)
            raise
        return await asyncio.to_thread(self._store.load, run_id, self._owner)

    def _for(self, place: str) -> _Worker:
        """Return the worker that shares replies with `place`, else the one that has least to do."""
        return min(self._workers, key=lambda one: (not one.busy[place], one.busy.total()))

    def _begin(self) -> None:
        task = asyncio.create_task(self._begun())
        self._beginning.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._beginning.discard(task)
        self._changed.set()

    async def _begun(self) -> None:
        """Begin a worker, and another one in its place while the cluster loses them."""
        while True:
            actor = self._new.remote()
            try:
                version = await actor.version.remote()
            except self._ray.exceptions.RayError as error:
                lacking = _LACKING.search(str(error))
                if lacking or isinstance(error, self._ray.exceptions.RuntimeEnvSetupError):
                    said = (lacking and lacking["what"]) or str(error).strip().partition("\n")[0]
                    self._refused = failure("ray.lacking", said=said[:200])
                    return
                await asyncio.sleep(1)
                continue
            if version != code_version():
                self._refused = failure("ray.other_version")
                return
            if self._spec is not None and (lacks := await self._lacking(actor, self._spec)):
                self._refused = lacks
                return
            # It is one of the workers now, and is counted once.
            if (task := asyncio.current_task()) is not None:
                self._beginning.discard(task)
            self._workers.append(_Worker(actor))
            self._changed.set()
            return

    async def _lacking(self, actor: Any, spec: EvaluationSpec) -> VeriscopeError | None:
        """Return the error that names what a worker has otherwise than this machine; else None."""
        named = packages()
        if not self._own:
            indexes = Path.home() / ".cache" / "veriscope" / "index"
            self._own = await asyncio.to_thread(proof_of, spec, named, Libraries(indexes))
        try:
            found = dict(await actor.proof.remote(spec.model_dump_json(), named))
        except self._ray.exceptions.RayError:
            return failure("ray.no_proof")
        machine = found.pop(_MACHINE, "?")
        other = differing(self._own, found)
        return failure("ray.differs", machine=machine, what=other[:_NAMED]) if other else None

    def _lose(self, worker: _Worker) -> None:
        """Forget a worker that died, and begin another one, which takes its turn when it can."""
        if worker in self._workers:
            self._workers.remove(worker)
            self._begin()

    async def _until_ready(self) -> None:
        """Wait until there is a worker."""
        try:
            async with asyncio.timeout(_BEGINNING):
                # One that differs ends the evaluation, also where another one is ready: what it
                # answers must not depend on which of them it is asked.
                while self._refused is not None or not self._workers:
                    if self._refused is not None:
                        raise self._refused
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise failure("ray.no_worker") from None


class _Recording:
    """Stores the events of one run as a worker sends them."""

    def __init__(self, store: RunStore, owner: str, run_id: str) -> None:
        self._store = store
        self._owner = owner
        self._run_id = run_id
        self._events: list[Event] = []

    async def store(self, batches: Any) -> None:
        """Store what comes, to the end. Raises what Ray raises where nothing more can come."""
        async for batch in batches:
            events = [event_adapter.validate_json(event) for event in await batch]
            await asyncio.to_thread(self._store_some, events)

    async def end(self) -> None:
        """End a run that was cut off, if anything of it is stored."""
        if self._events and not isinstance(self._events[-1], TerminalEvent):
            cut = cancelled_after(self._events, "interrupted")
            await asyncio.to_thread(self._store_some, [cut])

    def _store_some(self, events: Sequence[Event]) -> None:
        rest = list(events)
        if not self._events and rest and isinstance(first := rest[0], RunStarted):
            self._store.create(self._run_id, self._owner, first)
            self._events.append(rest.pop(0))
        self._store.append(self._run_id, rest)
        self._events += rest


def _ray() -> Any:
    """Return the library. Raises InvalidInputError where it is not installed."""
    # It reports home otherwise, and hides the graphics cards from workers without a share of them.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise failure("ray.no_library") from None


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2 begins, which the head of a cluster speaks (RFC 9113, section 3.4)."""


def _refuse_strangers(host: str, port: int) -> None:
    """Raise OSError unless what listens there speaks as the head of a cluster does.

    Its first frame is that of its settings.
    """
    with socket.create_connection((host, port), timeout=_CONNECTING) as connection:
        connection.sendall(_PREFACE)
        frame = b""
        while len(frame) < 9 and (part := connection.recv(9 - len(frame))):
            frame += part
    if len(frame) < 9 or frame[3] != 4:
        raise ConnectionError("Something else listens there.")


def _join(ray: Any, address: str) -> None:
    """Connect this process. Raises UnreachableError."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        options["include_dashboard"] = False
        # Without one Ray writes a token into the home folder, which the next cluster would find and
        # refuse.
        os.environ.setdefault("RAY_AUTH_TOKEN", token_hex(32))
    else:
        options["runtime_env"] = {"working_dir": str(ROOT), "excludes": _LEFT_OUT}
    host, _, port = address.rpartition(":")
    try:
        if host and port.isdecimal():
            # Ray itself tries for minutes.
            _refuse_strangers(host, int(port))
        ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError) as error:
        # It may be half connected, and would refuse the next cluster.
        ray.shutdown()
        if "ersion mismatch" in str(error):
            said = " ".join(str(error).split())
            raise failure("ray.mismatch", address=address, said=said[:_SAID]) from None
        raise failure("ray.no_cluster", address=address, problem=type(error).__name__) from None
