"""Carries an evaluation out: several answers at a time, stopped and continued at any moment.

Before a run is begun, its id is stored; when it is over, its answer and its cost are, in one
transaction. So after a process was killed, the runs that it had begun are known: what they spent is
counted, and the replies that they recorded are not asked for again.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import ValidationError

from pipelines.aio import ended
from pipelines.base import Frozen, Language
from pipelines.engine.asking import RunPlan
from pipelines.engine.estimate import RunBudget
from pipelines.engine.service import Service
from pipelines.errors import ErrorInfo, NotFoundError, StorageError, UnreadableRunError, failure
from pipelines.evaluation.beginning import (
    Limit,
    ledger_within,
    limit_of,
    limit_reached,
    spent_so_far,
)
from pipelines.evaluation.outcomes import Cost, Outcome, outcome_of, paid_in
from pipelines.evaluation.plan import Budget, EvaluationSpec, Item, plan_of
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.scoring import (
    OVERVIEW,
    found_right,
    has_declined,
    keep_scores,
    read_results,
    scoring_version,
)
from pipelines.models.providers import ModelSpec
from pipelines.run.events import ModelCalled, Trace
from pipelines.run.ledger import Ledger
from pipelines.run.view import fold
from pipelines.store import new_run_id
from pipelines.store.evaluations import AnswerTask, EvaluationStore
from pipelines.store.tables import to_json

# Where the runs of an evaluation are carried out, one after the other or many at a time.
#
# However they are carried out, what they record is in the evaluation's own database when it is
# over.

KnownCalls = Callable[[Collection[str]], Awaitable[Sequence[ModelCalled]]]
"""Gives the calls whose replies are known already, but for those of the runs with these ids."""


class WorkerLostError(Exception):
    """The process that carried out a run died. What it had recorded is stored; others can go on."""


class AnsweringBackend(ABC):
    """Carries out runs. `workers` processes do so, each with a service of its own."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many there are right now."""

    @abstractmethod
    async def answer(self, plan: RunPlan, run_id: str, cache: str, known: KnownCalls) -> Trace:
        """Carry `plan` out under this id, to its end, and return what was recorded and stored.

        Runs with the same `cache` share replies as far as they are carried out in one process. The
        plan's budget has to admit every call as far as calls are made in this process. Being
        cancelled stops the run. Raises WorkerLostError, and what starting a run raises.
        """


class OwnService(AnsweringBackend):
    """Runs of `owner` in this process, by `service`. `keys` are those of the models, by name."""

    def __init__(self, service: Service, owner: str, keys: Mapping[str, str]) -> None:
        self._service = service
        self._owner = owner
        self._keys = keys
        self._begun: set[str] = set()

    @property
    def workers(self) -> int:
        """This process."""
        return 1

    async def answer(self, plan: RunPlan, run_id: str, cache: str, known: KnownCalls) -> Trace:
        """See `AnsweringBackend`."""
        # What this process has asked is in the cache.
        calls = await known(self._begun)
        self._begun.add(run_id)
        await self._service.start(
            plan, owner=self._owner, keys=self._keys, run_id=run_id, cache=cache, known=calls
        )
        async for _ in self._service.follow(run_id, owner=self._owner):
            pass
        return await self._service.load(run_id, owner=self._owner)


# The answers that came last while an evaluation is carried out, and whether they are right.

LATEST = 5
"""So many answers are shown while an evaluation goes on."""

_SHOWN = 300
"""Characters of a question or an answer that are kept."""


class LatestAnswer(Frozen):
    """One answer that has just come: task `number` by `system` on an item, recorded as `run`.

    `right` is None where nothing tells whether it is right; who `declined` is not right, and gave
    no wrong answer. `error` is the code of what failed.
    """

    number: int
    system: str
    question: str
    answer: str
    run: str
    right: bool | None = None
    declined: bool = False
    error: str = ""


def latest_answer(
    spec: EvaluationSpec, task: AnswerTask, item: Item, run: str, outcome: Outcome
) -> LatestAnswer:
    """Return what is shown of an outcome. Of a text that was checked, the text and not the
    question.
    """
    return LatestAnswer(
        number=task.number,
        system=spec.systems[task.system].name,
        question=(item.text if spec.checks == "texts" else item.question)[:_SHOWN],
        answer=outcome.answer[:_SHOWN],
        run=run,
        right=found_right(spec, item, outcome),
        declined=spec.checks == "questions" and has_declined(item, outcome),
        error=outcome.error,
    )


# What results show at first, computed once for what an evaluation has answered, and stored.

_LANGUAGES: tuple[Language, ...] = get_args(Language)


class Overview(Frozen):
    """The table of all metrics and items, and the tags and languages to choose items by.

    Tags are sorted, languages in the order of the program.
    """

    table: ResultsTable
    tags: tuple[str, ...]
    languages: tuple[Language, ...]


def overview(store: EvaluationStore, evaluation: str, owner: str) -> Overview:
    """Return the overview of what is answered and judged.

    A stored one is read without the scores, which takes a fraction of the time. Raises
    NotFoundError, and InvalidInputError where nothing is answered.
    """
    code = _code(store, evaluation, owner)
    for body in store.scores(evaluation, owner, code):
        # One that another release wrote is computed anew.
        with suppress(ValidationError):
            return Overview.model_validate(body)
    found = read_results(store, evaluation, owner)[1]
    items = found.items.values()
    spoken = {item.language for item in items}
    made = Overview(
        table=results_table(found),
        tags=tuple(sorted({tag for item in items for tag in item.tags})),
        languages=tuple(language for language in _LANGUAGES if language in spoken),
    )
    with suppress(StorageError, NotFoundError):
        # What was answered meanwhile may be in it or not.
        if _code(store, evaluation, owner) == code:
            store.keep_scores(evaluation, code, {OVERVIEW: to_json(made)})
    return made


def _code(store: EvaluationStore, evaluation: str, owner: str) -> str:
    """Return what everything comes to that decides an overview.

    Answers are only ever added, so that their number says which there are.
    """
    stored = store.get(evaluation, owner)
    judged = store.judgements.stamp(evaluation, owner)
    asked = {name: value for name, value in stored.spec.items() if name != "limits"}
    whole = [stored.name, stored.created.isoformat(), asked, stored.done, judged]
    digest = sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return scoring_version(("overview", digest))


def keep_overview(store: EvaluationStore, evaluation: str, owner: str) -> None:
    """Compute and store all that results show at first, if anything is answered.

    Raises NotFoundError.
    """
    if store.get(evaluation, owner).done:
        overview(store, evaluation, owner)


T = TypeVar("T")

Reason = Literal["done", "budget", "stopped", "failing"]
"""Why it ended: everything is answered; a limit is reached; it was stopped; too many runs failed
one after the other for a reason that may pass, such as a server that cannot be reached."""

_PATIENCE = 5
"""So many answers in a row may fail for a passing reason."""

_MENDABLE = frozenset(
    {
        *("missing_key", "authentication", "gated", "unknown_model"),
        *("storage_full", "storage_read_only", "disk_full", "unwritable"),
    }
)
"""Errors that say nothing of the item: when a person has mended what they name, it is answered."""

_ATTEMPTS = 4
"""So often an answer is begun whose worker is lost before it is there."""

_LARGE = 1_000
"""Tasks of an evaluation whose results are computed while it is carried out."""

_SCORED = 500
"""After so many more answers their scores are computed."""

_SPEEDS = 40
"""Of so many answers the mean time is taken for the time that is left."""


@dataclass
class EvaluationProgress:
    """How far an evaluation has come, and what it has spent in all attempts.

    `answered` of `total` tasks are done; `failed` counts those of this process that stayed open.
    It stops by itself at `goal` answers. `seconds` is the time that this process has worked; `left`
    the seconds that are left at this pace, None until something was answered. `limit` is the one
    that was reached. `latest` are the answers that came last, the newest first.
    """

    total: int
    answered: int
    goal: int | None = None
    spent: Cost = field(default_factory=Cost)
    failed: int = 0
    seconds: float = 0.0
    left: float | None = None
    last_error: ErrorInfo | None = None
    reason: Reason | None = None
    limit: Limit | None = None
    latest: tuple[LatestAnswer, ...] = ()


class _Answered(NamedTuple):
    """The answer to a task, None where it may be tried again; what was asked; and the error.

    `limited` says that it ended early because a limit of the evaluation refused a call.
    """

    answer: LatestAnswer | None
    paid: Cost
    error: ErrorInfo | None = None
    limited: bool = False


class Runner:
    """One evaluation of `owner`, carried out on `service`; `at_once` answers at a time.

    `keys` are those of the models, by name. `budget` None: the limits that are kept with the
    evaluation. `answering` carries the runs out, by default the service itself. `worked` seconds
    before this count towards the limit of hours. Example:

        runner = Runner(service, evaluation, owner="me", budget=Budget(money=5))
        async for progress in runner.run():
            print(progress.answered, progress.total)
    """

    def __init__(
        self,
        service: Service,
        evaluation: str,
        *,
        owner: str,
        keys: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        at_once: int = 2,
        answering: AnsweringBackend | None = None,
        worked: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._store = service.store.evaluations
        self._evaluation = evaluation
        self._owner = owner
        self._answering = answering or OwnService(service, owner, dict(keys or {}))
        self._budget = budget
        self._at_once = at_once
        self._worked = worked
        self._clock = clock
        self._ends: deque[float] = deque(maxlen=_SPEEDS)
        self._failing = 0
        self._ledger = Ledger()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End the runs under way; what they have recorded is used when it is continued."""
        self._stopping.set()

    async def run(self, most: int | None = None) -> AsyncGenerator[EvaluationProgress]:
        """Answer what is missing, `most` answers at most; yield progress after each of them.

        Leaving early stops it. Raises NotFoundError where there is no such evaluation.
        """
        stored = await self._call(self._store.get, self._evaluation, self._owner)
        spec = EvaluationSpec.model_validate(stored.spec)
        missing = stored.tasks - stored.done
        goal = stored.done + (missing if most is None else min(missing, most))
        progress = EvaluationProgress(stored.tasks, stored.done, goal)
        await self._count_what_died(spec)
        progress.spent = await self._call(spent_so_far, self._store, self._evaluation)
        limits = spec.limits if self._budget is None else self._budget
        self._ledger = ledger_within(limits, progress.spent)
        began = self._clock()
        tasks, scored = self._missing(most), stored.done
        working: set[asyncio.Task[_Answered]] = set()
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            yield progress
            while True:
                while len(working) < self._at_once and progress.reason is None:
                    self._end_where_due(progress, limits, began)
                    task = None if progress.reason else await anext(tasks, None)
                    if task is None:
                        break
                    working.add(asyncio.create_task(self._answer(spec, task)))
                if not working:
                    break
                await asyncio.wait({*working, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    progress.reason = "stopped"
                    break
                for one in [one for one in working if one.done()]:
                    working.discard(one)
                    self._take(progress, one.result())
                progress.seconds = self._clock() - began
                progress.left = self._left(progress, began)
                yield progress
                if progress.total >= _LARGE and progress.answered - scored >= _SCORED:
                    scored = progress.answered
                    await self._call(keep_scores, self._store, self._evaluation, self._owner)
        finally:
            await ended(stopped, *working)
        # What was stopped has spent something too.
        progress.spent += await self._count_what_died(spec)
        if progress.answered == progress.total:
            progress.reason, progress.limit = "done", None
        if progress.total >= _LARGE and progress.answered > stored.done:
            await self._call(keep_overview, self._store, self._evaluation, self._owner)
        progress.seconds = self._clock() - began
        yield progress

    def _take(self, progress: EvaluationProgress, answered: _Answered) -> None:
        progress.spent += answered.paid
        if answered.limited:
            return
        self._ends.append(self._clock())
        if answered.answer is None:
            progress.failed += 1
            progress.last_error = answered.error
            self._failing += 1
            return
        self._failing = 0
        progress.answered += 1
        progress.latest = (answered.answer, *progress.latest)[:LATEST]

    def _end_where_due(self, progress: EvaluationProgress, limits: Budget, began: float) -> None:
        hours = (self._worked + self._clock() - began) / 3600
        reached = limit_reached(limits, progress.spent, hours)
        progress.limit = reached or limit_of(self._ledger)
        if progress.limit is not None:
            progress.reason = "budget"
        elif self._failing >= _PATIENCE:
            progress.reason = "failing"

    def _left(self, progress: EvaluationProgress, began: float) -> float | None:
        first = self._ends[0] if len(self._ends) == _SPEEDS else began
        answers = len(self._ends) - (len(self._ends) == _SPEEDS)
        if not answers:
            return None
        pace = (self._clock() - first) / answers
        return pace * (progress.total - progress.answered)

    async def _missing(self, most: int | None) -> AsyncGenerator[AnswerTask]:
        """Yield the open tasks, each once, in their order."""
        after, given = -1, 0
        while some := await self._call(self._store.open_tasks, self._evaluation, after):
            for task in some:
                if most is not None and given >= most:
                    return
                after, given = task.number, given + 1
                yield task

    async def _answer(self, spec: EvaluationSpec, task: AnswerTask, attempt: int = 1) -> _Answered:
        system = spec.systems[task.system]
        body = await self._call(self._store.item, self._evaluation, task.position)
        item = Item.model_validate(body)
        # Another item that asks the same, or another evaluation, may have been answered meanwhile.
        answered = await self._call(self._store.take_answered, self._evaluation, self._owner, task)
        if answered is not None:
            run, body = answered
            outcome = Outcome.model_validate(body)
            return _Answered(latest_answer(spec, task, item, run, outcome), Cost())
        run = new_run_id()

        plan = plan_of(spec, system, item, task.repeat)

        async def known(begun: Collection[str]) -> list[ModelCalled]:
            return await self._replies_so_far(spec, task, plan.spec.models, begun)

        await self._call(self._store.attempt, self._evaluation, task.number, run)
        prices = {role: one.price for role, one in system.models.items() if one.price is not None}
        plan = replace(plan, budget=RunBudget(prices=prices, within=self._ledger))
        try:
            cache = f"{self._evaluation}/{task.repeat}"
            trace = await self._answering.answer(plan, run, cache, known)
        except WorkerLostError:
            recorded = await self._recorded(run)
            lost = paid_in(recorded, system.models) if recorded is not None else Cost()
            await self._call(self._store.count, run, to_json(lost))
            if attempt == _ATTEMPTS:
                return _Answered(None, lost, failure("evaluation.worker_lost").info())
            again = await self._answer(spec, task, attempt + 1)
            return again._replace(paid=lost + again.paid)
        outcome = outcome_of(trace, system.method.name, system.models)
        paid = paid_in(trace, system.models)
        # What it has by then is no answer: the rest is asked for when it is continued.
        limited = fold(trace.events).limit is not None
        passing = None if limited else _passing_error(trace)
        if limited or passing:
            outcome = None
        kept = None if outcome is None else to_json(outcome)
        await self._call(
            self._store.finish, self._evaluation, self._owner, task, run, kept, to_json(paid)
        )
        if outcome is None:
            return _Answered(None, paid, passing, limited)
        return _Answered(latest_answer(spec, task, item, run, outcome), paid)

    async def _replies_so_far(
        self,
        spec: EvaluationSpec,
        task: AnswerTask,
        asking: Mapping[str, ModelSpec],
        begun: Collection[str],
    ) -> list[ModelCalled]:
        """Return what models have replied on this item in this repeat, to any system that has
        them too, in the same role: `asking` are those of the run that is to come, with those that
        its plan has added, such as a verifier.

        That of the runs `begun` is in the cache already.
        """
        first = task.number - task.system
        last = first + len(spec.systems) - 1
        calls: list[ModelCalled] = []
        for _, run in await self._call(
            self._store.runs_at, self._evaluation, self._owner, first, last
        ):
            trace = None if run in begun else await self._recorded(run)
            if trace is None:
                continue
            asked = trace.header.spec.models
            shared = {role for role in asked if _same_model(asked[role], asking.get(role))}
            calls += [
                one for one in trace.events if isinstance(one, ModelCalled) and one.role in shared
            ]
        return calls

    async def _count_what_died(self, spec: EvaluationSpec) -> Cost:
        """Count what the attempts have spent whose process died, or that were stopped."""
        total = Cost()
        for attempt in await self._call(self._store.attempts, self._evaluation, counted=False):
            trace = await self._recorded(attempt.run)
            system = spec.systems[attempt.number % len(spec.systems)]
            paid = paid_in(trace, system.models) if trace is not None else Cost()
            await self._call(self._store.count, attempt.run, to_json(paid))
            total += paid
        return total

    async def _recorded(self, run: str) -> Trace | None:
        try:
            return await self._service.load(run, owner=self._owner)
        except (NotFoundError, UnreadableRunError):
            # It was killed before the run was stored, the run was deleted, or another release with
            # another format recorded it.
            return None

    async def _call(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Ask the store in another thread, because it blocks."""
        return await asyncio.to_thread(work, *arguments, **named)


def _same_model(one: ModelSpec, other: ModelSpec | None) -> bool:
    """Return whether two systems mean the same model, whatever they say that it costs."""
    return other is not None and one.without_price() == other.without_price()


def _passing_error(trace: Trace) -> ErrorInfo | None:
    """Return why an answer may be tried again, None where there is no use in that."""
    view = fold(trace.events)
    if view.status == "cancelled":
        return failure("evaluation.run_stopped").info()
    errors = filter(None, [view.error, *(method.error for method in view.methods.values())])
    passing = (error for error in errors if error.retryable or error.code in _MENDABLE)
    return next(passing, None)
