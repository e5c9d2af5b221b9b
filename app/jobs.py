"""What the workbench does in the background, each as a job that is found again by its key.

A job goes on when the page is left and when the tab that began it is closed, until it ends, is
stopped, or the server ends. What is computed from evaluations is in `app.results`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from copy import copy
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from app.engine import engine
from components.run.check_many import CheckOutcome
from pipelines.engine.checking import checked_text, text_of, title_of
from pipelines.engine.estimate import RunBudget, excess_error
from pipelines.engine.service import Engine
from pipelines.errors import VeriscopeError
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.opening import HubAddress, read_hub
from pipelines.evaluation.judging.runner import JudgeRunner, JudgingProgress
from pipelines.evaluation.judging.spec import JudgeSpec
from pipelines.evaluation.plan import Budget
from pipelines.evaluation.runner import EvaluationProgress, Runner
from pipelines.evaluation.studies.grid import Axis
from pipelines.evaluation.studies.replays import Replays, replay_points
from pipelines.evaluation.studies.running import replayed_study
from pipelines.evaluation.studies.table import Study
from pipelines.jobs import Job, Jobs
from pipelines.run.events import RunSpec
from pipelines.run.scope import unexpected
from pipelines.run.view import RunView, reduce

P = TypeVar("P")
R = TypeVar("R")

PATIENCE = 1.0
"""Seconds that a page waits for a job before it says how far it is."""

_PATIENCE_WITH_HUB = 5.0
_KEPT_STUDIES = 16
_KEPT_DATA_SETS = 2
"""One can have 200,000 rows."""

_log = logging.getLogger(__name__)


def _on_loop(
    on: Engine,
    job: Job[Any, Any],
    work: Coroutine[Any, Any, R],
    stop: Callable[[], object] | None = None,
) -> R:
    """Return what `work` returns on the engine's loop. Stopping the job calls `stop` there, or
    cancels the work.
    """

    async def watched() -> R:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        job.when_stopped(partial(loop.call_soon_threadsafe, stop or task.cancel))
        return await work

    return on.call(watched())


async def _follow(job: Job[P | None, None], steps: AsyncGenerator[P]) -> None:
    async with aclosing(steps):
        async for progress in steps:
            # The runner goes on to change its own.
            job.progress = copy(progress)


# Evaluations, and the judging of their answers

evaluations: Jobs[EvaluationProgress | None, None] = Jobs()
"""By owner and evaluation; the progress is None until the first look at the store."""

judgings: Jobs[JudgingProgress | None, None] = Jobs()
"""By owner and evaluation. What was judged stays, so that it can be continued."""


def start_evaluation(
    evaluation: str,
    *,
    owner: str,
    keys: Mapping[str, str],
    at_once: int,
    most: int | None = None,
) -> Job[EvaluationProgress | None, None]:
    """Carry an evaluation out within its limits, or find the job that is at it already.

    `most` answers at most are asked for. Stopping it lets the runs under way be stored.
    """
    on = engine()

    def carry_out(job: Job[EvaluationProgress | None, None]) -> None:
        runner = Runner(on.service, evaluation, owner=owner, keys=keys, at_once=at_once)
        _on_loop(on, job, _follow(job, runner.run(most)), runner.stop)

    return evaluations.start((owner, evaluation), carry_out, None)


def start_judging(
    evaluation: str, spec: JudgeSpec, *, owner: str, key: str | None, budget: Budget, at_once: int
) -> Job[JudgingProgress | None, None]:
    """Have the answers of an evaluation judged, or find the job that is at it already.

    A call that is under way when it is stopped is made again when it is continued.
    """
    on = engine()

    def judge(job: Job[JudgingProgress | None, None]) -> None:
        runner = JudgeRunner(
            on.service, evaluation, spec, owner=owner, key=key, budget=budget, at_once=at_once
        )
        _on_loop(on, job, _follow(job, runner.run()))

    return judgings.start((owner, evaluation), judge, None)


def forget_evaluation(evaluation: str, owner: str) -> None:
    """Stop all work on an evaluation that is about to be deleted, and remember nothing of it."""
    for job in (evaluations.forget((owner, evaluation)), judgings.forget((owner, evaluation))):
        if job is not None:
            job.wait()


# Studies


class StudySubject(NamedTuple):
    """What is studied: the settings `axes` of `system` in the evaluation."""

    evaluation: str
    system: str
    axes: tuple[Axis, ...]


class StudyProgress(NamedTuple):
    """What is studied, and that `done` of `total` answers are replayed."""

    subject: StudySubject
    done: int = 0
    total: int = 0


StudyJob = Job[StudyProgress, Replays]

studies: Jobs[StudyProgress, Replays] = Jobs(kept=_KEPT_STUDIES, in_turn=True)
"""By owner. A study takes milliseconds for each point and answer: of many, that is minutes."""


def start_study(owner: str, subject: StudySubject) -> StudyJob:
    """Study this, in place of what the visitor studied before."""
    store = engine().service.store

    def replay(job: StudyJob) -> Replays:
        def tell(done: int, total: int) -> None:
            job.tell(StudyProgress(subject, done, total))

        asked = (subject.evaluation, owner, subject.system, subject.axes)
        return replay_points(store, *asked, progress=tell)

    studies.forget(owner)
    return studies.start(owner, replay, StudyProgress(subject))


def study_of(owner: str, evaluation: str) -> StudyJob | None:
    """Return the visitor's study, where it is of this evaluation."""
    job = studies.get(owner)
    return job if job is not None and job.progress.subject.evaluation == evaluation else None


@lru_cache(maxsize=_KEPT_STUDIES)
def study_by(job: StudyJob, choose: str | None, prefer: tuple[str, ...] = ()) -> Study:
    """Return the study of a job that is done, with the point that is best by `choose`.

    Raises InvalidInputError for a metric that it has not.
    """
    asked = job.progress.subject
    stored = engine().service.store.evaluations.get(asked.evaluation, str(job.key))
    return replayed_study(
        stored, asked.system, asked.axes, job.result(), choose=choose, prefer=prefer
    )


# The texts of a file


class TextCheck(NamedTuple):
    """A text of the file under its name: the run that checks it, or why it cannot be checked."""

    id: str
    text: str
    spec: RunSpec | None = None
    budget: RunBudget = RunBudget()
    error: VeriscopeError | None = None


class FileChecks(NamedTuple):
    """What has come of the `total` texts of a file so far, in their order."""

    name: str
    total: int
    outcomes: tuple[CheckOutcome, ...] = ()


checks: Jobs[FileChecks, None] = Jobs()
"""By owner: one file at a time. Every text is a run of its own, which Runs lists."""


def check_texts(
    name: str, asked: Iterable[TextCheck], keys: Mapping[str, str], owner: str
) -> Job[FileChecks, None]:
    """Check the texts of a file one after the other; every run is tagged with `name`.

    Stopping it ends the run under way; what is there stays.
    """
    on, texts = engine(), list(asked)

    def check(job: Job[FileChecks, None]) -> None:
        for one in texts:
            outcome = on.call(_outcome(job, on, one, keys, owner))
            job.tell(job.progress._replace(outcomes=(*job.progress.outcomes, outcome)))

    return checks.start(owner, check, FileChecks(name, len(texts)))


async def _outcome(
    job: Job[FileChecks, None], on: Engine, asked: TextCheck, keys: Mapping[str, str], owner: str
) -> CheckOutcome:
    try:
        return await _checked(job, on, asked, keys, owner)
    except VeriscopeError as error:
        return CheckOutcome(asked.id, asked.text, error=error.info())
    except Exception:
        # The other texts are checked all the same.
        _log.exception("A text of a file could not be checked")
        return CheckOutcome(asked.id, asked.text, error=unexpected().info())


async def _checked(
    job: Job[FileChecks, None], on: Engine, asked: TextCheck, keys: Mapping[str, str], owner: str
) -> CheckOutcome:
    if asked.error is not None:
        raise asked.error
    assert asked.spec is not None
    if (error := excess_error(asked.budget)) is not None:
        raise error
    service, view = on.service, RunView()
    run = await service.start(asked.spec, owner=owner, keys=keys, budget=asked.budget)
    job.when_stopped(lambda: on.submit(service.stop(run, owner=owner)))
    # A text that looks like a key cannot be a name.
    with suppress(VeriscopeError):
        given = text_of(asked.spec)
        name = title_of(given) if not given.asked else ""
        tags = [job.progress.name]
        await asyncio.to_thread(
            service.store.labels.save, run, owner, name=name, note="", tags=tags
        )
    async for event in service.follow(run, owner=owner):
        view = reduce(view, event)
    return CheckOutcome(asked.id, asked.text, run, view.status, checked_text(view))


# Data sets of the hub

_data_sets: Jobs[None, DataTable] = Jobs(kept=_KEPT_DATA_SETS, in_turn=True)


def fetched(address: HubAddress) -> DataTable:
    """Return the rows of a data set of the hub, read once.

    Raises NotYet while it is being read for longer than a page can wait, and what `read_hub`
    raises; who asks again after an error tries again.
    """
    return _data_sets.made(address, lambda: read_hub(address), patience=_PATIENCE_WITH_HUB)
