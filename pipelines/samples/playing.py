"""A walkthrough played ahead, once for everybody who will watch it.

The methods run on the scripted models as they always do, but nobody waits for the pauses of the
text: they pass on a clock of its own, which moves on when everything waits for it. So the times of
the events are those of an undisturbed machine, however busy this one is, and nothing is stored.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any

from pipelines.concurrency import ended
from pipelines.engine.asking import make_plan
from pipelines.engine.executor import execute, gather_materials, start_event
from pipelines.engine.libraries import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.errors import failure
from pipelines.models.base import Model, Progress
from pipelines.models.providers import build_model
from pipelines.models.scripted import ScriptedModel
from pipelines.remote.retry import RetryPolicy
from pipelines.run.events import Event
from pipelines.run.live import LiveRun
from pipelines.run.spec import ModelSpec
from pipelines.samples.walkthroughs import FOLDER, Walkthrough

_TURNS = 20
"""Turns of the event loop in which everything that can go on does."""


_STUCK_SECONDS = 10.0
"""So long a run may wait for something else than the clock. Its own work is not counted."""

_PAUSE = 0.01


def play(
    sample: Walkthrough, libraries: Libraries, closing: threading.Event | None = None
) -> tuple[Event, ...]:
    """Return every event of `sample`, also each piece of text, with the time at which it is to
    be seen.

    Blocks while it is computed, less once `closing` is set; to be called where no event loop runs.
    `libraries` belong to this call, which closes them. The run's id is that of the walkthrough.
    Raises VeriscopeError where the run does not go on.
    """
    executor = _AtOnce()
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(executor)
        return runner.run(_played(sample, libraries, closing or threading.Event()))


class _AtOnce(ThreadPoolExecutor):
    """Does its work where it is asked to, without a thread.

    What several threads finish comes in another order each time.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class _Clock:
    """Time in seconds that passes only in pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has moved on by that much."""
        until = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (self.now + seconds, next(self._order), until))
        await until

    def advance(self) -> bool:
        """Move on to the next moment that something waits for; return whether there is one."""
        if not self._waiting:
            return False
        self.now = self._waiting[0][0]
        while self._waiting and self._waiting[0][0] <= self.now:
            _, _, until = heappop(self._waiting)
            if not until.done():
                until.set_result(None)
        return True


async def _played(
    sample: Walkthrough, libraries: Libraries, closing: threading.Event
) -> tuple[Event, ...]:
    clock, events = _Clock(), list[Event]()
    plan = make_plan(sample.spec())
    live = LiveRun(sample.run_id, "", lambda _: None, clock=lambda: clock.now)
    start_event(live, plan)
    watching = live.subscribe()
    async with aclosing(libraries), aclosing(ModelPool(partial(_build, clock.sleep))) as pool:
        gather = partial(gather_materials, plan, {}, pool, libraries, "")
        running = asyncio.create_task(execute(live, plan, gather, RetryPolicy()))
        idle = 0.0
        try:
            while not running.done() and not closing.is_set():
                await _settled()
                seen = watching.drain()
                events += seen
                if clock.advance() or seen:
                    idle = 0.0
                elif idle > _STUCK_SECONDS:
                    raise failure("asking.unexpected")
                else:
                    # What it waits for is no pause of a text. Waiting must not take a whole core.
                    await asyncio.sleep(_PAUSE)
                    idle += _PAUSE
        finally:
            await ended(running)
        if not running.cancelled():
            running.result()
    return (*events, *watching.drain())


async def _settled() -> None:
    """Wait until nothing goes on any more but pauses."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _build(
    sleep: Callable[[float], Awaitable[None]], spec: ModelSpec, key: str | None, progress: Progress
) -> Model:
    """Return a model as it is always built; a scripted one makes its pauses on the clock."""
    if spec.kind != "scripted":
        return build_model(spec, key, progress)
    path, _, role = spec.model.partition("#")
    file = FOLDER / Path(path).name
    return ScriptedModel.from_file(file, role=role, name=spec.name, sleep=sleep)
