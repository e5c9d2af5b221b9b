"""Continuous batching: one thread decodes what all callers of a model want, together.

Between two steps, waiting jobs are admitted in the order they came, their prompts are read in as
few passes as their lengths allow (equal prompts once), and their rows join the batch; finished
and cancelled rows leave it. A reproducible sequence waits for the batch to empty and then runs
by itself, on float32 weights.
"""

from __future__ import annotations

import importlib
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import Delta
from pipelines.models.devices import is_out_of_memory
from pipelines.models.transformers.work import DecodingJob, Probe, Scoring, TokenSequence
from pipelines.models.transformers.work import TokenSequence as Text

if TYPE_CHECKING:
    from pipelines.models.transformers.engine import InferenceEngine, Rows


class JobThread(ABC):
    """A thread that computes what callers of one model submit. `load(exact)` is called there.

    `exact` asks for float32 weights. `ready` holds the engine once it is loaded, or the error with
    which loading failed.
    """

    _engine: InferenceEngine

    def __init__(self, load: Callable[[bool], InferenceEngine], *, name: str) -> None:
        self.ready: Future[InferenceEngine] = Future()
        # Running futures cannot be cancelled, so a caller that gives up does not stop the others.
        self.ready.set_running_or_notify_cancel()
        self._load = load
        self._name = name
        self._queue: deque[DecodingJob[Any]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"decode {name}", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether it takes no more work: closed, or the model could not be loaded."""
        return self._closed or (self.ready.done() and self.ready.exception() is not None)

    def submit(self, jobs: Iterable[DecodingJob[Any]]) -> None:
        """Queue jobs, all at once so that equal prompts are read once; futures get the results."""
        with self._changed:
            if self._closed:
                self._refuse(jobs)
                return
            self._queue.extend(jobs)
            self._changed.notify()

    def close(self) -> None:
        """End the thread after the work under way and free the weights; waiting jobs fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._engine = self._load(False)
            self._begin()
        except BaseException as error:
            self.ready.set_exception(error)
            return
        self.ready.set_result(self._engine)
        while (jobs := self._next()) is not None:
            self._compute(jobs)
        self._refuse(self._queue)
        self._end()

    def _begin(self) -> None:  # noqa: B027 - one kind has something to do
        """Begin; called when the weights are loaded."""

    @abstractmethod
    def _next(self) -> list[DecodingJob[Any]] | None:
        """Return the jobs to begin now; waits while there is nothing to do; None when closed."""

    @abstractmethod
    def _compute(self, jobs: list[DecodingJob[Any]]) -> None:
        """Begin the jobs, and continue what was begun before."""

    def _end(self) -> None:
        """Free the weights."""
        self._engine.release()

    def _refuse(self, jobs: Iterable[DecodingJob[Any]]) -> None:
        fail(jobs, failure("computing.closed", self._name, name=self._name))


class Batcher(JobThread):
    """Decodes on this machine, in one batch of all callers."""

    def __init__(self, load: Callable[[bool], InferenceEngine], *, name: str) -> None:
        self._exact: InferenceEngine | None = None
        self._active: list[TokenSequence] = []
        self._rows: Rows | None = None
        super().__init__(load, name=name)

    def _end(self) -> None:
        self._refuse(self._active)
        self._active, self._rows = [], None
        if self._exact is not None:
            self._exact.release()
        super()._end()

    def _engine_for(self, job: DecodingJob[Any]) -> InferenceEngine:
        if not job.reproducible or self._engine.exact:
            return self._engine
        self._exact = self._exact or self._load(True)
        return self._exact

    def _next(self) -> list[DecodingJob[Any]] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._queue or self._active)
            return None if self._closed else self._admit()

    def _admit(self) -> list[DecodingJob[Any]]:
        room = self._engine.max_rows
        admitted: list[DecodingJob[Any]] = []
        running = list(self._active)
        while self._queue and len(admitted) < room:
            job = self._queue[0]
            if isinstance(job, TokenSequence) and not job.future.cancelled():
                exclusive = job.reproducible or any(other.reproducible for other in running)
                if len(running) >= (1 if exclusive else room):
                    break
                running.append(job)
            self._queue.popleft()
            admitted.append(job)
        return [job for job in admitted if not job.future.cancelled()]

    def _compute(self, jobs: list[DecodingJob[Any]]) -> None:
        for job in jobs:
            if isinstance(job, Scoring):
                self._attempt([job], partial(self._score, job))
            elif job.reproducible:
                self._attempt([job], partial(self._start, [job]))
        shared = [job for job in jobs if not (isinstance(job, Scoring) or job.reproducible)]
        for prompts in self._engine.groups(list({job.prompt for job in shared})):
            group = [job for job in shared if job.prompt in prompts]
            self._attempt(group, partial(self._start, group))
        if self._active:
            self._attempt(self._active, self._step)

    def _attempt(self, jobs: Iterable[DecodingJob[Any]], work: Callable[[], None]) -> None:
        """Do `work` for `jobs`; if it fails they fail, and the batch too if they are part of it."""
        try:
            work()
        except Exception as error:
            failed = set(jobs)
            if failed.intersection(self._active):
                failed.update(self._active)
                self._active, self._rows = [], None
            fail(failed, self._explain(error))

    def _score(self, job: Scoring) -> None:
        succeed(job, self._engine_for(job).score(job.prompt, job.reply, job.top_k))

    def _start(self, jobs: list[DecodingJob[Any]]) -> None:
        """Read the jobs' prompts; probes are answered, sequences get a first token and join."""
        engine = self._engine_for(jobs[0])
        prompts = list(dict.fromkeys(job.prompt for job in jobs))
        logits, rows = engine.prefill(prompts)
        row_of = {prompt: row for row, prompt in enumerate(prompts)}
        for job in jobs:
            if isinstance(job, Probe):
                succeed(job, engine.look(logits[row_of[job.prompt]], job.tokens))
        sequences = [job for job in jobs if isinstance(job, TokenSequence)]
        if not sequences:
            return
        sources = [row_of[sequence.prompt] for sequence in sequences]
        going_on = self._advance(engine, sequences, logits[sources])
        if going_on:
            rows.keep([sources[index] for index in going_on])
            # From here on a failure leaves the joined cache unusable for all of them.
            self._active = [*self._active, *(sequences[index] for index in going_on)]
            self._rows = rows if self._rows is None else self._rows.join(rows)

    def _step(self) -> None:
        engine = self._engine_for(self._active[0])
        self._retain([i for i, job in enumerate(self._active) if not job.future.cancelled()])
        if self._rows is None:
            return
        logits = engine.step(self._rows, [sequence.written[-1] for sequence in self._active])
        self._retain(self._advance(engine, self._active, logits))

    def _advance(
        self, engine: InferenceEngine, sequences: list[TokenSequence], logits: Any
    ) -> list[int]:
        """Give each sequence its next token; return the indices of those that go on."""
        temperatures = [sequence.temperature for sequence in sequences]
        tokens = engine.draw(logits, temperatures, [sequence.uniform() for sequence in sequences])
        measured = [i for i, sequence in enumerate(sequences) if sequence.top_k is not None]
        outcomes = {}
        if measured:
            top_k = max(sequences[i].top_k or 0 for i in measured)
            values = engine.measure(logits[measured], [tokens[i] for i in measured], top_k)
            outcomes = dict(zip(measured, values, strict=True))
        going_on = []
        for index, (sequence, token) in enumerate(zip(sequences, tokens, strict=True)):
            sequence.batch_size = max(sequence.batch_size, len(sequences))
            outcome = outcomes.get(index)
            if outcome is not None:
                outcome = outcome._replace(alternatives=outcome.alternatives[: sequence.top_k])
            piece, ends = engine.vocabulary.piece(token), token in engine.stop_ids
            if sequence.accept(token, piece, outcome, ends=ends):
                succeed(sequence, sequence.result())
            else:
                going_on.append(index)
        return going_on

    def _retain(self, indices: list[int]) -> None:
        self._active = [self._active[index] for index in indices]
        if not self._active:
            self._rows = None
        elif self._rows is not None:
            self._rows.keep(indices)

    def _explain(self, error: Exception) -> VeriscopeError:
        if isinstance(error, VeriscopeError):
            return error
        kind = "no_memory" if is_out_of_memory(error) else "failed"
        said = f"{type(error).__name__}: {error}"
        return failure(f"computing.{kind}", self._name, name=self._name, said=said)


def succeed(job: DecodingJob[Any], result: object) -> None:
    """Give a job its result, unless it was cancelled meanwhile."""
    with suppress(InvalidStateError):
        job.future.set_result(result)


def fail(jobs: Iterable[DecodingJob[Any]], error: BaseException) -> None:
    """Give jobs an error, but those that were cancelled, or answered before."""
    for job in jobs:
        with suppress(InvalidStateError):
            job.future.set_exception(error)


# Decoding on a GPU that the process has for moments only: Hugging Face's ZeroGPU.
#
# There the process has no GPU of its own: a function wrapped by the platform's `spaces.GPU` runs
# in a copy of the process that has one, and what it yields comes back. So all jobs that wait are
# sent there together, decoded by an ordinary `Batcher`, and reported piece by piece.

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
