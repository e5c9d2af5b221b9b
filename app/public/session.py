"""What visitors of the Space may take, who they are, and their runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from app.engine import PERIOD, Watched
from app.public.examples import ExampleQuestion
from app.public.visitors import HOUR, Caller, Rates, proxies_to_believe
from app.public.walkthrough import Walkthroughs
from pipelines.engine.admission import Admission, Turn
from pipelines.engine.asking import RunPlan
from pipelines.engine.thread import Engine
from pipelines.error_words import first_problem
from pipelines.errors import VeriscopeError, failure
from pipelines.run.trace import Trace
from pipelines.store.recordings import is_recording
from pipelines.types import Frozen, Language

T = TypeVar("T")

_MEGABYTE = 1_000_000

_PREFIX = "VERISCOPE_"

_LONGEST_KEPT = 24 * 365 * 10
"""Hours: ten years."""

_LOOK = 1.0
"""Seconds between two looks at the position in the queue."""


class VisitorLimits(Frozen):
    """Limits that keep a small machine usable by many. Each is set as VERISCOPE_<NAME>.

    `max_runs` runs go on at once, `max_runs_per_visitor` of one visitor, while up to `max_queue`
    wait, `address_queue` of them from one address. A visitor may begin `runs_per_hour`, all from
    one address `address_runs_per_hour`. A run may take `seconds` and write `tokens`; it is stopped
    when nobody has watched it for `idle_timeout` seconds, and deleted after `keep_hours`, or
    earlier where those of its visitor take more than `visitor_megabytes`, or all together more than
    `total_megabytes`. 0 lifts the limits of an hour and of megabytes. `trusted_proxies` are
    believed when they say who a visitor is (see `app.public.visitors`). `custom_servers` lets
    visitors name a model server of their own on the public internet.
    """

    max_runs: Annotated[int, Field(ge=1)] = 2
    max_runs_per_visitor: Annotated[int, Field(ge=1)] = 1
    max_queue: Annotated[int, Field(ge=0)] = 40
    address_queue: Annotated[int, Field(ge=1)] = 10
    seconds: Annotated[float, Field(gt=0)] = 240.0
    tokens: Annotated[int, Field(gt=0)] = 8000
    idle_timeout: Annotated[float, Field(gt=0)] = 10.0
    keep_hours: Annotated[float, Field(gt=0, le=_LONGEST_KEPT)] = 24.0
    runs_per_hour: Annotated[int, Field(ge=0)] = 60
    address_runs_per_hour: Annotated[int, Field(ge=0)] = 240
    visitor_megabytes: Annotated[float, Field(ge=0)] = 50.0
    total_megabytes: Annotated[float, Field(ge=0)] = 2000.0
    trusted_proxies: str = ""
    custom_servers: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> VisitorLimits:
        """Return the limits that `environment` sets; raises InvalidInputError naming what is
        wrong.
        """
        variables = {name: _PREFIX + name.upper() for name in cls.model_fields}
        values = {
            name: environment[variable]
            for name, variable in variables.items()
            if environment.get(variable)
        }
        named = values.get("trusted_proxies")
        values["trusted_proxies"] = proxies_to_believe(environment, named)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            name, problem = first_problem(error)
            raise failure(
                "environment.unusable", variable=variables[name], problem=problem
            ) from None


@dataclass
class VisitorSession:
    """One visitor, for as long as their page is open.

    `owner` is who the runs belong to; `page` is the open tab, the only one kept up to date.
    `began` says that the visitor started something themselves, so that nothing plays any more.
    The browser numbers their clicks, for those that follow each other may arrive in another order:
    `turn` is the number of the last one that started something, `stopped` that of the last one on
    Stop, `asking` that of the run that is asked for or goes on, or 0, `shown` that of the click
    whose run is `watched`. `waiting` says that their run has not begun yet; `ended` is set when the
    last run that was asked for has given up its place in the queue; `problem` why the run
    of the address is not shown; `away` is the id of the run that was watched when the page was
    closed. `examples` are those that the page shows. `chose` says that the visitor chose the
    language, `left` that the page was closed after the last click that started something; `cues`
    counts what the browser was told to play.
    """

    owner: str = ""
    language: Language = "en"
    page: str = "ask"
    watched: Watched | None = field(default=None, compare=False)
    began: bool = False
    turn: int = 0
    stopped: int = 0
    asking: int = 0
    shown: int = 0
    waiting: bool = False
    ended: asyncio.Event | None = field(default=None, compare=False)
    problem: VeriscopeError | None = field(default=None, compare=False)
    away: str = ""
    examples: tuple[ExampleQuestion, ...] = ()
    chose: bool = False
    cues: int = 0
    left: bool = False

    def number(self, clicked: int | None) -> int:
        """Return the number of a click; where the browser gives none, it is the next one."""
        return clicked or max(self.turn, self.stopped) + 1

    def begin(self, number: int) -> bool:
        """Begin what a click starts: what went on before gives way.

        False where it does not: something was started by a later click, or this one came twice.
        """
        self.began = True
        if number < self.turn or number == self.asking:
            return False
        self.turn, self.asking, self.waiting, self.left = number, 0, False, False
        return True

    def ended_by_visitor(self, number: int) -> bool:
        """Return whether the run of that click is over for the visitor: stopped, or the page
        is closed.
        """
        return self.stopped > number or self.left

    def show(self, watched: Watched, number: int) -> None:
        """Show the run of a click, unless that of a later one is shown."""
        if number >= self.shown:
            self.watched, self.shown = watched, number

    def put_away(self) -> None:
        """Put away the page, which is closed: of the run that was watched, keep only what it
        is called.

        What goes on ends. Gradio ends it too, but not where the page is closed before the browser
        has begun to listen to it.
        """
        self.left = True
        if self.watched is not None:
            self.away, self.watched = self.watched.run_id, None


class Runs:
    """Starts runs on the engine and follows them from the event loop that serves visitors."""

    def __init__(
        self, engine: Engine, admission: Admission, limits: VisitorLimits | None = None
    ) -> None:
        self.engine = engine
        self.walkthroughs = Walkthroughs(engine)
        self._admission = admission
        self._limits = limits = limits or VisitorLimits()
        self._rates = Rates(limits.runs_per_hour, limits.address_runs_per_hour)
        self._samples: dict[str, Watched] = {}

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the engine do `work` without blocking this loop."""
        return await asyncio.wrap_future(self.engine.submit(work))

    async def ask(
        self,
        plan: RunPlan,
        owner: str,
        keys: Mapping[str, str] | None = None,
        *,
        visitor: Caller | None = None,
    ) -> AsyncGenerator[Turn | Watched]:
        """Wait for a slot, then run; yields the position in the queue, then the run repeatedly.

        `visitor` is who takes the slot, if not the owner of the run. Closing the generator gives
        the slot up and ends the run. Raises TooOftenError, and BusyError as `Admission.slot`.
        """
        caller = visitor or Caller()
        caller = caller._replace(visitor=caller.visitor or owner)
        self._rates.check(caller)
        async with self._admission.slot(caller.visitor or owner, caller.queues_as) as ticket:
            # Only who has a place is counted: who was refused may try again.
            self._rates.count(caller)
            while not ticket.admitted.is_set():
                yield self._admission.turn(ticket)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ticket.admitted.wait(), _LOOK)
            try:
                async with aclosing(self._go(plan, owner, keys)) as stages:
                    async for watched in stages:
                        yield watched
            finally:
                # Not awaited: a client that hung up may have cancelled this task.
                self.engine.submit(self.make_room(owner))

    async def make_room(self, owner: str = "") -> None:
        """Delete the oldest runs where those of `owner`, or all together, take too much."""
        sizes = self.engine.service.store.sizes
        own, total = self._limits.visitor_megabytes, self._limits.total_megabytes
        with suppress(VeriscopeError):
            # What the database does not do now is done after the next run.
            if own and owner:
                await asyncio.to_thread(sizes.keep_within, owner, int(own * _MEGABYTE))
            if total:
                await asyncio.to_thread(sizes.keep_all_within, int(total * _MEGABYTE))

    async def _go(
        self, plan: RunPlan, owner: str, keys: Mapping[str, str] | None
    ) -> AsyncGenerator[Watched]:
        service = self.engine.service
        start = service.start(plan, owner=owner, keys=keys)
        run_id = await self._started(start, owner)
        watched = None
        try:
            watched = await self.open(run_id, owner)
            while not watched.pull().over:
                yield watched
                await asyncio.sleep(PERIOD)
            yield watched
        finally:
            if watched is None or not watched.view.over:
                # Not awaited: a client that hung up may have cancelled this task.
                self.engine.submit(service.stop(run_id, owner=owner))
            if watched is not None:
                watched.close()

    async def _started(self, start: Coroutine[Any, Any, str], owner: str) -> str:
        """Return the id of the run; who goes away meanwhile leaves none behind."""
        starting = asyncio.wrap_future(self.engine.submit(start))

        def end(started: asyncio.Future[str]) -> None:
            if not started.cancelled() and started.exception() is None:
                self.engine.submit(self.engine.service.stop(started.result(), owner=owner))

        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(end)
            raise

    async def open(self, run_id: str, owner: str) -> Watched:
        """Return a run of this owner, or one that was shared. Raises NotFoundError.

        A walkthrough or a sample is read once and the same for everybody.
        """
        known = self._samples.get(run_id) or await self.walkthroughs.open(run_id)
        if known is not None:
            return known
        subscription = await self.call(self.engine.service.watch(run_id, owner=owner))
        if not is_recording(run_id):
            return Watched(run_id, subscription)
        return self._samples.setdefault(run_id, Watched(run_id, subscription))

    async def load(self, run_id: str, owner: str) -> Trace:
        """Return what was recorded of a run of this owner, of a shared one, or of a walkthrough."""
        known = await self.walkthroughs.open(run_id)
        if known is not None:
            return known.trace
        return await self.call(self.engine.service.load(run_id, owner=owner))

    async def share(self, run_id: str, owner: str) -> str:
        """Return the id under which everybody may read the run.

        Raises TooOftenError where the owner's shared runs take as much as they may.
        """
        if await self.walkthroughs.open(run_id) is not None:
            return run_id
        most = self._limits.visitor_megabytes
        if most and not is_recording(run_id):
            stored = await asyncio.to_thread(self.engine.service.store.sizes.of, owner)
            shared = [one for one in stored if one.copied and one.id != run_id]
            if sum(one.copied for one in shared) >= most * _MEGABYTE:
                age = (datetime.now(UTC) - shared[0].created).total_seconds()
                after = max(60.0, self._limits.keep_hours * HOUR - age)
                error = failure("asking.shared_much", most=f"{most:g}", hours=ceil(after / HOUR))
                error.retry_after = after
                raise error
        return await self.call(self.engine.service.share(run_id, owner=owner))
