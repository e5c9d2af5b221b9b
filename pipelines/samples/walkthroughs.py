"""Illustrated walkthroughs: questions whose replies were written by hand, played for real.

Each file under `sample_data/walkthroughs` holds a question, the methods to run and, for every
role, the replies of a scripted model. The real methods run on them, at reading speed. A file
without models is run with the default ones.
`python -m pipelines.samples.walkthroughs` plays all of them without a pause and checks the results.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from functools import cache, partial
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from pipelines.aio import ended
from pipelines.base import SAMPLE_DATA, Frozen, Language, printable
from pipelines.engine.asking import make_plan
from pipelines.engine.checking import TextToCheck
from pipelines.engine.executor import execute, gather_materials, start_event
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.error_words import problem_at
from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import Model, Progress
from pipelines.models.providers import build_model
from pipelines.models.scripted import ScriptedModel
from pipelines.remote import RetryPolicy
from pipelines.run.events import Event, EvidenceSpec, MethodSpec, ModelSpec, RunSpec, default_models
from pipelines.run.live import LiveRun
from pipelines.run.view import MethodView, RunView, fold

FOLDER = SAMPLE_DATA / "walkthroughs"
"""Where the walkthroughs are kept."""

PREFIX = "walkthrough-"
"""How the address of a played walkthrough begins."""

_TWO_DIGITS = 0.005


class ExpectedOutcome(Frozen):
    """What a method has to come to: the verdict on its original answer and words of the final one.

    `drafts` is the number of drafts, the original included; `abstained` whether it gave none;
    `flags` are some of the remarks on it; `score` is what decided the verdict, to two digits.
    """

    verdict: str | None = None
    contains: tuple[str, ...] = ()
    drafts: int | None = None
    abstained: bool = False
    flags: tuple[str, ...] = ()
    score: float | None = None


class Named(BaseModel):
    """What a scripted model is called; `ScriptedModel` reads the rest of its entry."""

    name: str


class Walkthrough(Frozen):
    """A question, what it is run with, and what is to come of it.

    `title` and `shows` (what there is to see) are worded in every language of the interface;
    `models` maps a role to its scripted model; None for the default models.
    """

    id: str = ""
    title: dict[Language, str]
    shows: dict[Language, str]
    language: Language
    question: str
    methods: tuple[MethodSpec, ...]
    evidence: EvidenceSpec = EvidenceSpec(mode="bm25")
    models: dict[str, Named] | None = None
    expected: dict[str, ExpectedOutcome] = Field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """The address at which the played walkthrough is opened; no stored run has one like it."""
        return f"{PREFIX}{self.id}"

    def spec(self) -> RunSpec:
        """Return the run that plays it."""
        return RunSpec(
            question=self.question,
            methods=self.methods,
            models=default_models(self.language)
            if self.models is None
            else {
                role: ModelSpec(
                    kind="scripted", name=one.name, model=f"{FOLDER.name}/{self.id}.json#{role}"
                )
                for role, one in self.models.items()
            },
            evidence=self.evidence,
            language=self.language,
        )


@cache
def walkthroughs(folder: Path = FOLDER) -> tuple[Walkthrough, ...]:
    """Return every walkthrough of `folder`, in the order of their files' names.

    Raises InvalidInputError naming the file, and the entry in it, that is wrong.
    """
    return tuple(_read(path) for path in sorted(folder.glob("*.json")))


def walkthrough(name: str, folder: Path = FOLDER) -> Walkthrough:
    """Return the walkthrough of that id; raises NotFoundError."""
    found = next((one for one in walkthroughs(folder) if one.id == name), None)
    if found is None:
        raise failure("samples.no_walkthrough", name=name)
    return found


def _read(path: Path) -> Walkthrough:
    try:
        read = Walkthrough.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = problem_at(error)
        raise failure("samples.bad_walkthrough", file=path.name, problem=problem) from error
    return read.model_copy(update={"id": path.stem})


def build_unpaced(
    spec: ModelSpec, key: str | None, progress: Progress, *, folder: Path = FOLDER
) -> Model:
    """Return a model as it is always built, but that a scripted one, of `folder`, makes
    no pauses.
    """
    if spec.kind != "scripted":
        return build_model(spec, key, progress)
    path, _, role = spec.model.partition("#")
    return ScriptedModel.from_file(folder / Path(path).name, role=role, name=spec.name, pace=0.0)


async def check(
    sample: Walkthrough, folder: Path = FOLDER, libraries: Libraries | None = None
) -> list[str]:
    """Play `sample` without a pause; returns what is wrong with it, nothing when it is sound.

    Every call must have its reply, every method must end as expected, and offsets must match the
    texts they point into. Probabilities were checked when the replies were read. Its file lies in
    `folder`; `libraries` None has the shipped one indexed for it.
    """

    with TemporaryDirectory() as data:
        pool = ModelPool(partial(build_unpaced, folder=folder))
        service = Service(Path(data), pool=pool, libraries=libraries)
        async with aclosing(service):
            try:
                trace = await service.record(sample.spec(), owner="check")
            except VeriscopeError as error:
                return [f"{sample.id}: {error.message}"]
    return [f"{sample.id}: {problem}" for problem in problems(sample, fold(trace.events))]


def problems(sample: Walkthrough, view: RunView) -> list[str]:
    """Return what is wrong with a run of `sample` that is over; nothing when it is sound."""
    methods = view.methods.values()
    found = [
        f"{call.role} has no reply: {call.error.message}"
        for method in methods
        for call in method.calls
        if call.error and call.error.code != "cancelled"
    ]
    for method in methods:
        drafts = {draft.draft: draft.after for draft in method.drafts}
        found += [
            f"{event.what} {event.text!r} does not stand at {event.start}"
            for event in method.judged
            if event.what in ("entity", "sentence", "answer")
            and event.end > event.start
            and (text := drafts.get(event.draft))
            and text[event.start : event.end] != event.text
        ]
    if view.error is not None:
        return [*found, f"it failed: {view.error.message}"]
    if view.status != "finished":
        return [*found, "it did not finish"]
    for name, method in view.methods.items():
        found += _against(sample.expected.get(name, ExpectedOutcome()), method)
    return found


def _against(expected: ExpectedOutcome, method: MethodView) -> list[str]:
    name, answer, drafts = method.name, method.answer, len(method.drafts)
    if answer is None:
        return [f"{name} failed: {method.error.message if method.error else '?'}"]
    found = [
        f"{name} does not say {words!r} but {answer.text!r}"
        for words in expected.contains
        if words not in answer.text
    ]
    judged = [event for event in method.judged if event.what == "answer"]
    verdict = judged[-1].verdict if judged else None
    if expected.verdict not in (None, verdict):
        found.append(f"{name} finds {verdict}, not {expected.verdict}")
    score = judged[-1].scores[0].value if judged and judged[-1].scores else None
    if expected.score is not None and (score is None or abs(score - expected.score) > _TWO_DIGITS):
        found.append(f"{name} has a score of {score}, not {expected.score}")
    found += [f"{name} lacks {flag}" for flag in expected.flags if flag not in answer.flags]
    if expected.drafts not in (None, drafts):
        found.append(f"{name} has {drafts} drafts, not {expected.drafts}")
    if answer.abstained != expected.abstained:
        found.append(f"{name} abstained: {answer.abstained}")
    return found


async def _check_all(checked: Sequence[Walkthrough], folder: Path) -> list[str]:
    # The library is indexed once for all of them.
    with TemporaryDirectory() as indexes:
        libraries = Libraries(Path(indexes))
        return [problem for one in checked for problem in await check(one, folder, libraries)]


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Check every walkthrough, or those named; returns 1 when one is not sound."""
    chosen = list(sys.argv[1:] if arguments is None else arguments)
    try:
        checked = [walkthrough(one, folder) for one in chosen] or list(walkthroughs(folder))
    except VeriscopeError as error:
        print(printable(f"veriscope: {error}"), file=sys.stderr)
        return 1
    problems = asyncio.run(_check_all(checked, folder))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(checked)} walkthroughs, {len(problems)} problems")
    return 1 if problems else 0


# Short texts to check, written by hand: it is known which of their sentences are wrong.


class SampleText(Frozen):
    """A text of `sample_data`; `wrong` are the numbers of its wrong sentences, from 1.

    `about` says who wrote it, and what is wrong with it.
    """

    id: str
    language: Language
    title: str
    about: str
    wrong: tuple[int, ...]
    question: str
    text: str
    sources: tuple[str, ...]

    @property
    def given(self) -> TextToCheck:
        """What is to be checked."""
        return TextToCheck(text=self.text, question=self.question, sources=self.sources)


@cache
def sample_texts() -> tuple[SampleText, ...]:
    """Return the examples of the page, in the order of their file."""
    return _read_texts("checks.json")


@cache
def measured_texts() -> tuple[SampleText, ...]:
    """Return those on which detectors are measured, checked against the sample library."""
    return _read_texts("measured_checks.json")


def _read_texts(name: str) -> tuple[SampleText, ...]:
    rows = json.loads((SAMPLE_DATA / name).read_text(encoding="utf-8"))
    return tuple(SampleText.model_validate(row) for row in rows)


# A walkthrough played ahead, once for everybody who will watch it.
#
# The methods run on the scripted models as they always do, but nobody waits for the pauses of the
# text: they pass on a clock of its own, which moves on when everything waits for it. So the times
# of the events are those of an undisturbed machine, however busy this one is, and nothing is
# stored.

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


if __name__ == "__main__":
    sys.exit(main())
