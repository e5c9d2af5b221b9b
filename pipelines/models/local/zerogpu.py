"""Decoding on a GPU that the process has for moments only: Hugging Face's ZeroGPU.

There the process has no GPU of its own: a function wrapped by the platform's `spaces.GPU` runs in a
copy of the process that has one, and what it yields comes back. So all jobs that wait are sent
there together, decoded by an ordinary `Batcher`, and reported piece by piece.
"""

from __future__ import annotations

import importlib
import os
import queue
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.errors import failure
from pipelines.models.base import Delta
from pipelines.models.local.batcher import Batcher, JobThread, fail, succeed
from pipelines.models.local.work import DecodingJob
from pipelines.models.local.work import Sequence as Text

if TYPE_CHECKING:
    from pipelines.models.local.engine import InferenceEngine

POLL_SECONDS = 0.2
"""Seconds after which the copy yields even if it has nothing to report: jobs may be over."""

STARTUP_SECONDS, TOKEN_SECONDS, MAX_SECONDS = 5.0, 0.05, 120.0
"""Seconds that are asked for: to wake up, for every token of the longest text, and at most."""

_OVER = object()


class Report(NamedTuple):
    """What became of the job at `number`: a piece of text, a result, or a failure."""

    number: int
    piece: tuple[Delta, int] | None = None
    result: Any = None
    failure: BaseException | None = None


BatchFn = Callable[[Sequence[DecodingJob[Any]]], Generator[Report | None]]
"""Decodes jobs; None is a sign of life."""


def is_zerogpu() -> bool:
    """Return whether this process runs on ZeroGPU."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def spaces_gpu(run: BatchFn, seconds: Callable[[Sequence[DecodingJob[Any]]], float]) -> BatchFn:
    """Return `run` with a GPU, for the `seconds` that its jobs take, from the platform's own
    package.
    """
    return importlib.import_module("spaces").GPU(run, duration=seconds)


def _seconds(jobs: Sequence[DecodingJob[Any]]) -> float:
    longest = max(job.limit if isinstance(job, Text) else 1 for job in jobs)
    return min(MAX_SECONDS, STARTUP_SECONDS + TOKEN_SECONDS * longest)


class ZeroGpuBatcher(JobThread):
    """Decodes in copies of the process that have a GPU for a moment.

    What is asked while others are decoded waits for the next batch. The GPU is requested in the
    context of the caller who has waited longest: the platform knows visitors by their context.
    """

    _decode: BatchFn

    def _begin(self) -> None:
        self._decode = spaces_gpu(_batch_fn(self._engine, self._load, self._name), _seconds)

    def _next(self) -> list[DecodingJob[Any]] | None:
        """Return everything that waits, the first first."""
        waiting: list[DecodingJob[Any]] = []
        with self._changed:
            while not (waiting or self._closed):
                self._changed.wait_for(lambda: self._closed or self._queue)
                waiting = [job for job in self._queue if not job.future.cancelled()]
                if not self._closed:
                    self._queue.clear()
            return None if self._closed else waiting

    def _compute(self, jobs: list[DecodingJob[Any]]) -> None:
        context = jobs[0].context
        reports = context.run(self._decode, [copy(job) for job in jobs])
        try:
            # Every step in the context: the platform asks whose it is at the first.
            for report in iter(partial(context.run, next, reports, _OVER), _OVER):
                if isinstance(report, Report):
                    _report(jobs[report.number], report)
                if self._closed or all(job.future.done() for job in jobs):
                    break
        except Exception as error:
            # The platform's own words: it tells whose share is used up, and until when.
            said = str(getattr(error, "message", "") or error) or type(error).__name__
            fail(jobs, failure("computing.no_gpu", self._name, name=self._name, said=said))
        finally:
            with suppress(Exception):
                context.run(reports.close)
        self._refuse(jobs)


def _batch_fn(
    engine: InferenceEngine, load: Callable[[bool], InferenceEngine], name: str
) -> BatchFn:
    """Return what runs in the copy. Its batcher is made there, and stays for as long as the
    copy does.
    """
    made: list[Batcher] = []

    def run(jobs: Sequence[DecodingJob[Any]]) -> Generator[Report | None]:
        if not made:
            made.append(Batcher(lambda exact: load(True) if exact else engine, name=name))
        news: queue.SimpleQueue[Report] = queue.SimpleQueue()
        for number, job in enumerate(jobs):
            if isinstance(job, Text) and job.watched:
                job.on_delta = partial(_piece, news, number)
            job.future.add_done_callback(partial(_done, news, number))
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


def _piece(news: queue.SimpleQueue[Report], number: int, delta: Delta, written: int) -> None:
    news.put(Report(number, piece=(delta, written)))


def _done(news: queue.SimpleQueue[Report], number: int, future: Future[Any]) -> None:
    if not future.cancelled():
        failure = future.exception()
        result = None if failure else future.result()
        news.put(Report(number, result=result, failure=failure))


def _report(job: DecodingJob[Any], report: Report) -> None:
    """Report to the job as a batcher of this process would."""
    if report.piece is not None:
        if isinstance(job, Text) and job.on_delta is not None and not job.future.done():
            job.on_delta(*report.piece)
    elif report.failure is not None:
        fail([job], report.failure)
    else:
        succeed(job, report.result)
