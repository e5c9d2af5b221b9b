"""Decoding on a GPU that is lent for moments, as Hugging Face's ZeroGPU does.

There the process has no GPU of its own: a function wrapped by the platform's `spaces.GPU` runs in a
copy of the process that has one, and what it yields comes back. So all jobs that wait are handed
over together, decoded there by an ordinary `Batcher`, and told of piece by piece.
"""

from __future__ import annotations

import importlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.errors import BusyError, VeriscopeError
from pipelines.models.base import Delta
from pipelines.models.local.batcher import Batcher, closed_error, fail, settle
from pipelines.models.local.work import Job, Order
from pipelines.models.local.work import Sequence as Text

if TYPE_CHECKING:
    from pipelines.models.local.engine import Engine

__all__ = ["Lend", "LentBatcher", "is_lent", "lend_gpu"]

_BEAT = 0.2
"""Seconds after which the copy is heard of even if it has nothing to tell: jobs may be over."""

_OVER = object()

_TO_BEGIN, _A_TOKEN, _LONGEST = 5.0, 0.05, 120.0
"""Seconds that are asked for: to wake up, for every token of the longest text, and at most."""


class Report(NamedTuple):
    """What became of the order at `place`: a piece of text, a result, or a failure."""

    place: int
    piece: tuple[Delta, int] | None = None
    result: Any = None
    failure: BaseException | None = None


Burst = Callable[[Sequence[Order]], Generator[Report | None]]
"""Decodes orders; None is a sign of life."""

Lend = Callable[[Burst, Callable[[Sequence[Order]], float]], Burst]
"""Makes of a burst one that has a GPU, for the seconds that the second argument says."""


def is_lent() -> bool:
    """Whether this process runs where GPUs are lent."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def lend_gpu(burst: Burst, seconds: Callable[[Sequence[Order]], float]) -> Burst:
    """The platform's way; its package is there where GPUs are lent."""
    return importlib.import_module("spaces").GPU(burst, duration=seconds)


def _seconds(orders: Sequence[Order]) -> float:
    return min(_LONGEST, _TO_BEGIN + _A_TOKEN * max(order.tokens for order in orders))


class LentBatcher:
    """To callers what `Batcher` is. What is asked while others are decoded waits for the next time.

    The one who has waited longest is who the GPU is lent to: the platform knows visitors by their
    context.
    """

    def __init__(
        self,
        load: Callable[[bool], Engine],
        *,
        name: str,
        max_rows: int | None = None,
        lend: Lend = lend_gpu,
    ) -> None:
        self.ready: Future[Engine] = Future()
        self.ready.set_running_or_notify_cancel()
        self._load = load
        self._name = name
        self._max_rows = max_rows
        self._lend = lend
        self._queue: deque[tuple[Context, Job[Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"lend {name}", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether this batcher takes no more work: closed, or the model could not be loaded."""
        return self._closed or (self.ready.done() and self.ready.exception() is not None)

    def submit(self, jobs: Iterable[Job[Any]]) -> None:
        """Queue jobs; futures get the results."""
        context = copy_context()
        with self._changed:
            if self._closed:
                fail(jobs, closed_error(self._name))
                return
            self._queue.extend((context, job) for job in jobs)
            self._changed.notify()

    def close(self) -> None:
        """End the thread after the burst under way; waiting jobs fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            engine = self._load(False)
            burst = self._lend(_burst_of(engine, self._load, self._name, self._max_rows), _seconds)
            self.ready.set_result(engine)
        except BaseException as error:
            self.ready.set_exception(error)
            return
        while waiting := self._next():
            context, _ = waiting[0]
            self._hand_over(context, [job for _, job in waiting], burst)
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

    def _hand_over(self, context: Context, jobs: list[Job[Any]], burst: Burst) -> None:
        reports = context.run(burst, [job.order() for job in jobs])
        try:
            # Every step in the context: the platform asks whose it is at the first.
            for report in iter(partial(context.run, next, reports, _OVER), _OVER):
                if isinstance(report, Report):
                    _tell(jobs[report.place], report)
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
            f"{self._name} was not lent a GPU ({said}).",
            remedy="Ask again in a minute, sign in on the platform, or choose another model.",
            provider=self._name,
        )


def _burst_of(
    engine: Engine, load: Callable[[bool], Engine], name: str, max_rows: int | None
) -> Burst:
    """What runs in the copy. Its batcher is made there, and stays for as long as the copy does."""
    made: list[Batcher] = []

    def again(exact: bool) -> Engine:
        return load(True) if exact and not engine.exact else engine

    def burst(orders: Sequence[Order]) -> Generator[Report | None]:
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
                    report = news.get(timeout=_BEAT)
                except queue.Empty:
                    yield None
                    continue
                left -= report.piece is None
                yield report
        finally:
            for job in jobs:
                job.future.cancel()

    return burst


def _piece(news: queue.SimpleQueue[Report], place: int, delta: Delta, written: int) -> None:
    news.put(Report(place, piece=(delta, written)))


def _done(news: queue.SimpleQueue[Report], place: int, future: Future[Any]) -> None:
    if not future.cancelled():
        failure = future.exception()
        result = None if failure else future.result()
        news.put(Report(place, result=result, failure=failure))


def _tell(job: Job[Any], report: Report) -> None:
    """The job as it would be told of by a batcher of this process."""
    if report.piece is not None:
        if isinstance(job, Text) and not job.future.done():
            job.hand_on(*report.piece)
    elif report.failure is not None:
        fail([job], report.failure)
    else:
        settle(job, report.result)
