"""Decoding on a GPU that the process has for moments only: Hugging Face's ZeroGPU.

There the process has no GPU of its own: a function wrapped by the platform's `spaces.GPU` runs in a
copy of the process that has one, and what it yields comes back. So all jobs that wait are sent
there together, decoded by an ordinary `Batcher`, and reported piece by piece.
"""

from __future__ import annotations

import importlib
import os
import queue
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.errors import BusyError, VeriscopeError
from pipelines.models.base import Delta
from pipelines.models.local.batcher import Batcher, JobThread, closed_error, fail, settle
from pipelines.models.local.work import Job, Order
from pipelines.models.local.work import Sequence as Text

if TYPE_CHECKING:
    from pipelines.models.local.engine import Engine

__all__ = ["GpuDecorator", "ZeroGpuBatcher", "is_zerogpu", "spaces_gpu"]

POLL_SECONDS = 0.2
"""Seconds after which the copy yields even if it has nothing to report: jobs may be over."""

_OVER = object()

STARTUP_SECONDS, TOKEN_SECONDS, MAX_SECONDS = 5.0, 0.05, 120.0
"""Seconds that are asked for: to wake up, for every token of the longest text, and at most."""


class Report(NamedTuple):
    """What became of the order at `place`: a piece of text, a result, or a failure."""

    place: int
    piece: tuple[Delta, int] | None = None
    result: Any = None
    failure: BaseException | None = None


BatchFn = Callable[[Sequence[Order]], Generator[Report | None]]
"""Decodes orders; None is a sign of life."""

GpuDecorator = Callable[[BatchFn, Callable[[Sequence[Order]], float]], BatchFn]
"""Makes of a `BatchFn` one that has a GPU, for the seconds that the second argument returns."""


def is_zerogpu() -> bool:
    """Whether this process runs on ZeroGPU."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def spaces_gpu(run: BatchFn, seconds: Callable[[Sequence[Order]], float]) -> BatchFn:
    """The platform's decorator, from the package that is installed there."""
    return importlib.import_module("spaces").GPU(run, duration=seconds)


def _seconds(orders: Sequence[Order]) -> float:
    return min(MAX_SECONDS, STARTUP_SECONDS + TOKEN_SECONDS * max(order.tokens for order in orders))


class ZeroGpuBatcher(JobThread):
    """Decodes in copies of the process that have a GPU for a moment.

    What is asked while others are decoded waits for the next batch. The GPU is requested in the
    context of the caller who has waited longest: the platform knows visitors by their context.
    """

    def __init__(
        self,
        load: Callable[[bool], Engine],
        *,
        name: str,
        max_rows: int | None = None,
        decorate: GpuDecorator = spaces_gpu,
    ) -> None:
        self._decorate = decorate
        super().__init__(load, name=name, max_rows=max_rows)

    def _enqueue(self, jobs: Iterable[Job[Any]]) -> None:
        context = copy_context()
        self._queue.extend((context, job) for job in jobs)

    def _run(self) -> None:
        try:
            engine = self._load(False)
            run = self._decorate(
                _batch_fn(engine, self._load, self._name, self._max_rows), _seconds
            )
            self.ready.set_result(engine)
        except BaseException as error:
            self.ready.set_exception(error)
            return
        while waiting := self._next():
            context, _ = waiting[0]
            self._run_batch(context, [job for _, job in waiting], run)
        fail((job for _, job in self._queue), closed_error(self._name))
        engine.release()

    def _next(self) -> list[tuple[Context, Job[Any]]]:
        """Everything that waits, the first first; nothing when closed."""
        waiting: list[tuple[Context, Job[Any]]] = []
        with self._changed:
            while not (waiting or self._closed):
                self._changed.wait_for(lambda: self._closed or self._queue)
                waiting = [one for one in self._queue if not one[1].future.cancelled()]
                if not self._closed:
                    self._queue.clear()
            return [] if self._closed else waiting

    def _run_batch(self, context: Context, jobs: list[Job[Any]], run: BatchFn) -> None:
        reports = context.run(run, [job.order() for job in jobs])
        try:
            # Every step in the context: the platform asks whose it is at the first.
            for report in iter(partial(context.run, next, reports, _OVER), _OVER):
                if isinstance(report, Report):
                    _report(jobs[report.place], report)
                if self._closed or all(job.future.done() for job in jobs):
                    break
        except Exception as error:
            fail(jobs, self._explain(error))
        finally:
            with suppress(Exception):
                context.run(reports.close)
        fail(jobs, closed_error(self._name))

    def _explain(self, error: Exception) -> VeriscopeError:
        """The platform's own words: it tells whose share is used up, and until when."""
        said = str(getattr(error, "message", "") or error) or type(error).__name__
        return BusyError(
            f"{self._name} got no GPU ({said}).",
            remedy="Ask again in a minute, sign in on the platform, or choose another model.",
            provider=self._name,
        )


def _batch_fn(
    engine: Engine, load: Callable[[bool], Engine], name: str, max_rows: int | None
) -> BatchFn:
    """What runs in the copy. Its batcher is made there, and stays for as long as the copy does."""
    made: list[Batcher] = []

    def again(exact: bool) -> Engine:
        return load(True) if exact and not engine.exact else engine

    def run(orders: Sequence[Order]) -> Generator[Report | None]:
        if not made:
            made.append(Batcher(again, name=name, max_rows=max_rows))
        news: queue.SimpleQueue[Report] = queue.SimpleQueue()
        jobs = [
            order.job(engine.vocabulary, partial(_piece, news, place))
            for place, order in enumerate(orders)
        ]
        for place, job in enumerate(jobs):
            job.future.add_done_callback(partial(_done, news, place))
        made[0].submit(jobs)
        left = len(jobs)
        try:
            while left:
                try:
                    report = news.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    yield None
                    continue
                left -= report.piece is None
                yield report
        finally:
            for job in jobs:
                job.future.cancel()

    return run


def _piece(news: queue.SimpleQueue[Report], place: int, delta: Delta, written: int) -> None:
    news.put(Report(place, piece=(delta, written)))


def _done(news: queue.SimpleQueue[Report], place: int, future: Future[Any]) -> None:
    if not future.cancelled():
        failure = future.exception()
        result = None if failure else future.result()
        news.put(Report(place, result=result, failure=failure))


def _report(job: Job[Any], report: Report) -> None:
    """Report to the job as a batcher of this process would."""
    if report.piece is not None:
        if isinstance(job, Text) and not job.future.done():
            job.forward(*report.piece)
    elif report.failure is not None:
        fail([job], report.failure)
    else:
        settle(job, report.result)
