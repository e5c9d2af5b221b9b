"""Continuous batching: one thread decodes what all callers of a model want, together.

Between two steps, waiting jobs are admitted in the order they came, as far as memory goes; a piece
of their prompts is read (equal prompts once), and when all of it is, their rows join the batch;
finished and cancelled rows leave it. A reproducible sequence waits for the batch to empty and then
runs by itself, on float32 weights.
"""

from __future__ import annotations

import importlib
import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import Delta
from pipelines.models.devices import in_gigabytes, is_out_of_memory, release_memory
from pipelines.models.transformers.work import (
    PASS_TOKENS,
    DecodingJob,
    Probe,
    Scoring,
    Shortlist,
    TokenScore,
    TokenSequence,
    Wish,
)
from pipelines.models.transformers.work import TokenSequence as Text

if TYPE_CHECKING:
    from pipelines.models.transformers.engine import InferenceEngine, Rows


_LOG = logging.getLogger(__name__)


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


class ReadingPace:
    """Tokens of prompts read at once: at most one piece's, so that texts being written go on."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._rate = FIRST_PIECE / PIECE_SECONDS

    def tokens(self, *, watched: bool) -> int:
        """Return how many to read next; `watched` says that texts are being written."""
        most = PIECE_SECONDS * self._rate if watched else inf
        return int(max(LEAST_PIECE, min(most, PASS_TOKENS)))

    @contextmanager
    def measured(self, tokens: Callable[[], int]) -> Iterator[None]:
        """Learn from what is read in the block, `tokens` in all, how fast reading is."""
        begun = self._clock()
        yield
        took = self._clock() - begun
        # A piece of few tokens says more about what any pass takes.
        if took > 0 and (read := tokens()) >= LEAST_PIECE:
            self._rate += (read / took - self._rate) / 2


PIECE_SECONDS = 0.06
"""Seconds that a piece of a prompt may take while texts are written: with the step after it they
stand still for less than 0.1 s."""

FIRST_PIECE, LEAST_PIECE = 512, 32
"""Tokens of a piece before anything was measured, and at least."""


class PromptReading(NamedTuple):
    """Jobs whose prompts are being read: every step of `work` reads a piece."""

    jobs: tuple[DecodingJob[Any], ...]
    work: Iterator[None]


class Batcher(JobThread):
    """Decodes on this machine, in one batch of all callers.

    A job is admitted when the cache that it may come to fits into the memory that is free beside
    those under way, in the order of asking. Prompts are read in pieces, and the batch makes a step
    after each. Where memory is short all the same, the batch is halved: the jobs are put back, and
    what they had written is read again with their prompts. What does not fit alone fails.
    """

    def __init__(
        self,
        load: Callable[[bool], InferenceEngine],
        *,
        name: str,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._exact: InferenceEngine | None = None
        self._active: list[TokenSequence] = []
        self._rows: Rows | None = None
        self._readings: deque[PromptReading] = deque()
        self._held: dict[int, int] = {}
        self._most: float | None = None
        self._put_back: set[DecodingJob[Any]] = set()
        self._pace = ReadingPace(clock)
        super().__init__(load, name=name)

    def _begin(self) -> None:
        # What fails here fails again, and is told, with the first job.
        with suppress(Exception):
            _ = self._engine.bytes_per_column

    def _end(self) -> None:
        self._refuse(self._running())
        self._active, self._rows = [], None
        self._readings.clear()
        if self._exact is not None:
            self._exact.release()
        super()._end()

    def _running(self) -> list[DecodingJob[Any]]:
        return [*self._active, *(job for reading in self._readings for job in reading.jobs)]

    def _engine_for(self, job: DecodingJob[Any]) -> InferenceEngine:
        if not job.reproducible or self._engine.exact:
            return self._engine
        if self._exact is None:
            needs, has = self._engine.exact_size, self._engine.memory()
            if needs > has:
                sizes = {"needs": in_gigabytes(needs), "has": in_gigabytes(has)}
                raise failure("computing.no_exact_copy", self._name, name=self._name, **sizes)
            _LOG.warning(
                "Reproducible: a second copy of %s, in 32 bits, takes %s of %s",
                self._name,
                in_gigabytes(needs),
                in_gigabytes(has),
            )
            self._exact = self._load(True)
        return self._exact

    def _next(self) -> list[DecodingJob[Any]] | None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._queue or self._active or self._readings
            )
            return None if self._closed else self._admit()

    def _admit(self) -> list[DecodingJob[Any]]:
        running = [job for job in self._running() if not job.future.cancelled()]
        if not running and not self._put_back:
            self._most = None
        room = int(min(self._engine.max_rows, self._most or inf))
        admitted: list[DecodingJob[Any]] = []
        while self._queue:
            job = self._queue[0]
            if not job.future.cancelled():
                exclusive = job.reproducible or any(other.reproducible for other in running)
                if len(running) >= (1 if exclusive else room):
                    break
                if not self._fits(running, job):
                    break
                running.append(job)
                admitted.append(job)
            self._queue.popleft()
            self._put_back.discard(job)
        return admitted

    def _fits(self, running: list[DecodingJob[Any]], job: DecodingJob[Any]) -> bool:
        """Return whether the cache of `job` fits beside those of `running`, all of one width.

        Alone a job is tried: its text may end early, and what fails says what it needs.
        """
        if not running:
            return True
        columns = max(one.columns for one in (*running, job))
        try:
            need = (len(running) + 1) * columns * self._engine.bytes_per_column
            return need <= self._engine.room + self.cache_bytes
        except Exception:
            # A device that does not answer: the job under way meets the same, and tells it.
            return False

    @property
    def cache_bytes(self) -> int:
        """Bytes that caches take now."""
        return (0 if self._rows is None else self._rows.size) + sum(self._held.values())

    def _compute(self, jobs: list[DecodingJob[Any]]) -> None:
        for job in jobs:
            if isinstance(job, Scoring):
                self._readings.append(PromptReading((job,), self._score(job)))
            elif job.reproducible:
                self._read((job,))
        shared = [job for job in jobs if not (isinstance(job, Scoring) or job.reproducible)]
        for prompts in self._engine.groups(list({job.read for job in shared})):
            self._read([job for job in shared if job.read in prompts])
        if self._readings:
            self._read_piece()
        if self._active:
            try:
                self._step()
            except Exception as error:
                failed, self._active, self._rows = self._active, [], None
                self._give_up(failed, error)

    def _read(self, jobs: Iterable[DecodingJob[Any]], *, first: bool = False) -> None:
        jobs = tuple(jobs)
        reading = PromptReading(jobs, self._start(jobs))
        if first:
            self._readings.appendleft(reading)
        else:
            self._readings.append(reading)

    def _read_piece(self) -> None:
        """Read one piece of the prompts whose turn it is."""
        reading = self._readings[0]
        if all(job.future.cancelled() for job in reading.jobs):
            self._drop(reading)
            return
        joined = self._rows
        try:
            next(reading.work)
        except StopIteration:
            self._drop(reading)
        except Exception as error:
            self._drop(reading)
            failed = list(reading.jobs)
            if self._rows is not joined or {*failed} & {*self._active}:
                # The caches were being joined, and neither can be used.
                failed = [*self._active, *(job for job in failed if job not in self._active)]
                self._active, self._rows = [], None
            self._give_up(failed, error)

    def _drop(self, reading: PromptReading) -> None:
        self._readings.remove(reading)
        self._held.pop(id(reading.jobs), None)

    def _give_up(self, jobs: Sequence[DecodingJob[Any]], error: Exception) -> None:
        """Fail the jobs; where memory did not suffice, go on with fewer at a time instead."""
        waiting = [job for job in jobs if not job.future.done()]
        others = len(self._running())
        if not is_out_of_memory(error) or len(waiting) + others < 2:
            fail(waiting, self._explain(error, waiting))
            return
        # Without the traceback, whose frames hold what did not fit.
        error.__traceback__ = None
        release_memory()
        self._most = max(1, (len(waiting) + others) // 2)
        with self._changed:
            self._queue.extendleft(reversed(waiting))
            self._put_back.update(waiting)

    def _score(self, job: Scoring) -> Iterator[None]:
        engine = self._engine_for(job)
        scores: list[TokenScore] = []
        parts = engine.score_parts(job.prompt, job.reply, job.top_k, self._piece)
        for part in parts:
            scores += part
            yield
        succeed(job, scores)

    def _piece(self) -> int:
        return self._pace.tokens(watched=bool(self._active))

    def _start(self, jobs: tuple[DecodingJob[Any], ...]) -> Iterator[None]:
        """Read the jobs' prompts; probes are answered, sequences get a first token and join."""
        engine = self._engine_for(jobs[0])
        prompts = list(dict.fromkeys(job.read for job in jobs))
        if len(prompts) == 1 and len(prompts[0]) * engine.bytes_per_column > engine.room:
            raise MemoryError
        prefill = engine.begin(prompts)
        logits = None
        while logits is None:
            before = prefill.done

            def read(before: int = before) -> int:
                return (prefill.done - before) * len(prompts)

            with self._pace.measured(read):
                logits = engine.read_on(prefill, self._piece())
                engine.wait()
            self._held[id(jobs)] = prefill.rows.size
            if logits is None:
                yield
        rows = prefill.rows
        row_of = {prompt: row for row, prompt in enumerate(prompts)}
        for job in jobs:
            if isinstance(job, Probe):
                succeed(job, engine.look(logits[row_of[job.prompt]], job.tokens))
        sequences = [
            job for job in jobs if isinstance(job, TokenSequence) and not job.future.cancelled()
        ]
        if not sequences:
            return
        sources = [row_of[sequence.read] for sequence in sequences]
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
        wishes = [Wish(one.temperature, one.uniform(), one.top_k) for one in sequences]
        going_on = []
        for index, (token, measured) in enumerate(engine.decide(logits, wishes)):
            sequence = sequences[index]
            sequence.batch_size = max(sequence.batch_size, len(sequences))
            score = None
            if measured is not None:
                best = Shortlist(engine.vocabulary.text, *measured.best)
                score = TokenScore(measured.logprob, measured.entropy, best)
            piece, ends = engine.vocabulary.piece(token), token in engine.stop_ids
            if sequence.accept(token, piece, score, ends=ends):
                succeed(sequence, sequence.result())
            else:
                going_on.append(index)
        return going_on

    def _retain(self, indices: list[int]) -> None:
        if self._most is not None:
            # One more whenever as many as there may be have left.
            self._most += (len(self._active) - len(indices)) / self._most
        self._active = [self._active[index] for index in indices]
        if not self._active:
            self._rows = None
        elif self._rows is not None:
            self._rows.keep(indices)

    def _explain(self, error: Exception, jobs: Sequence[DecodingJob[Any]]) -> VeriscopeError:
        if isinstance(error, VeriscopeError):
            return error
        if is_out_of_memory(error) and jobs:
            engine = self._exact if jobs[0].reproducible and self._exact else self._engine
            with suppress(Exception):
                needs = max(job.columns for job in jobs) * engine.bytes_per_column + engine.working
                sizes = {"needs": in_gigabytes(needs), "has": in_gigabytes(engine.memory())}
                return failure("computing.does_not_fit", self._name, name=self._name, **sizes)
        said = f"{type(error).__name__}: {error}"
        return failure("computing.failed", self._name, name=self._name, said=said)


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
    """Return `run` with a GPU, for the `seconds` of its jobs, from the platform's own package."""
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
    """Return what runs in the copy; its batcher is made there and stays as long as it does."""
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
