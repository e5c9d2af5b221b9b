"""Continuous batching: one thread decodes what all callers of a model want, together.

Between two steps, waiting jobs are admitted in the order they came, their prompts are read in as
few passes as their lengths allow (equal prompts once), and their rows join the batch; finished
and cancelled rows leave it. A reproducible sequence waits for the batch to empty and then runs
by itself, on float32 weights.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import TYPE_CHECKING, Any

from pipelines.errors import RefusedRequestError, ServerFailedError, VeriscopeError
from pipelines.models.local.work import Job, Probe, Scoring, Sequence

if TYPE_CHECKING:
    from pipelines.models.local.engine import Engine, Rows

__all__ = ["Batcher", "JobThread", "closed_error", "fail", "settle"]


class JobThread(ABC):
    """A thread that computes what callers of one model submit. `load(exact)` is called there.

    `exact` asks for float32 weights; `max_rows` is the most sequences decoded together. `ready`
    holds the engine once it is loaded, or the error with which loading failed.
    """

    def __init__(
        self, load: Callable[[bool], Engine], *, name: str, max_rows: int | None = None
    ) -> None:
        self.ready: Future[Engine] = Future()
        # Running futures cannot be cancelled, so a caller that gives up does not stop the others.
        self.ready.set_running_or_notify_cancel()
        self._load = load
        self._name = name
        self._max_rows = max_rows
        self._queue: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"decode {name}", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether it takes no more work: closed, or the model could not be loaded."""
        return self._closed or (self.ready.done() and self.ready.exception() is not None)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue jobs, all at once so that equal prompts are read once; futures get the results."""
        with self._changed:
            if self._closed:
                fail(jobs, closed_error(self._name))
                return
            self._enqueue(jobs)
            self._changed.notify()

    def close(self) -> None:
        """End the thread after the work under way and free the weights; waiting jobs fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _enqueue(self, jobs: Iterable[Job]) -> None:
        self._queue.extend(jobs)

    @abstractmethod
    def _run(self) -> None:
        """Load the model, then compute jobs until closed."""


class Batcher(JobThread):
    """Decodes on this machine, in one batch of all callers."""

    def __init__(
        self, load: Callable[[bool], Engine], *, name: str, max_rows: int | None = None
    ) -> None:
        self._engines: dict[bool, Engine] = {}
        self._active: list[Sequence] = []
        self._rows: Rows | None = None
        super().__init__(load, name=name, max_rows=max_rows)

    def _run(self) -> None:
        try:
            self.ready.set_result(self._engine(exact=False))
        except BaseException as error:
            self.ready.set_exception(error)
            return
        while (admitted := self._next()) is not None:
            self._turn(admitted)
        fail([*self._queue, *self._active], closed_error(self._name))
        self._active, self._rows = [], None
        for engine in self._engines.values():
            engine.release()
        self._engines.clear()

    def _engine(self, *, exact: bool) -> Engine:
        main = self._engines.get(False)
        if exact and main is not None and main.exact:
            return main
        if exact not in self._engines:
            self._engines[exact] = self._load(exact)
        return self._engines[exact]

    def _next(self) -> list[Job] | None:
        """The jobs that join now; waits while there is nothing to do; None when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._queue or self._active)
            return None if self._closed else self._admit()

    def _admit(self) -> list[Job]:
        main = self._engines[False]
        room = 1 if main.max_rows == 1 else max(1, self._max_rows or main.max_rows)
        admitted: list[Job] = []
        running = list(self._active)
        while self._queue and len(admitted) < room:
            job = self._queue[0]
            if isinstance(job, Sequence) and not job.future.cancelled():
                alone = job.reproducible or any(other.reproducible for other in running)
                if len(running) >= (1 if alone else room):
                    break
                running.append(job)
            self._queue.popleft()
            admitted.append(job)
        return [job for job in admitted if not job.future.cancelled()]

    def _turn(self, admitted: list[Job]) -> None:
        for job in admitted:
            if isinstance(job, Scoring):
                self._attempt([job], partial(self._score, job))
            elif job.reproducible:
                self._attempt([job], partial(self._start, [job]))
        shared = [j for j in admitted if not (isinstance(j, Scoring) or j.reproducible)]
        for prompts in self._engine(exact=False).groups(list({job.prompt for job in shared})):
            group = [job for job in shared if job.prompt in prompts]
            self._attempt(group, partial(self._start, group))
        if self._active:
            self._attempt(self._active, self._step)

    def _attempt(self, jobs: Iterable[Job], work: Callable[[], None]) -> None:
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
        engine = self._engine(exact=job.reproducible)
        settle(job, engine.score(job.prompt, job.reply, job.top_k))

    def _start(self, jobs: list[Job]) -> None:
        """Read the jobs' prompts; probes are answered, sequences get a first token and join."""
        engine = self._engine(exact=jobs[0].reproducible)
        prompts = list(dict.fromkeys(job.prompt for job in jobs))
        logits, rows = engine.prefill(prompts)
        place = {prompt: row for row, prompt in enumerate(prompts)}
        sequences: list[Sequence] = []
        for job in jobs:
            if isinstance(job, Probe):
                settle(job, engine.look(logits[place[job.prompt]], job.tokens))
            elif isinstance(job, Sequence):
                sequences.append(job)
        if not sequences:
            return
        sources = [place[sequence.prompt] for sequence in sequences]
        going_on = self._advance(engine, sequences, logits[sources])
        if going_on:
            engine.keep(rows, [sources[index] for index in going_on])
            # From here on a failure leaves the joined cache unusable for all of them.
            self._active = [*self._active, *(sequences[index] for index in going_on)]
            self._rows = engine.join(self._rows, rows)

    def _step(self) -> None:
        engine = self._engine(exact=self._active[0].reproducible)
        alive = [i for i, job in enumerate(self._active) if not job.future.cancelled()]
        self._retain(engine, alive)
        if self._rows is None:
            return
        logits = engine.step(self._rows, [sequence.written[-1] for sequence in self._active])
        self._retain(engine, self._advance(engine, self._active, logits))

    def _advance(self, engine: Engine, sequences: list[Sequence], logits: Any) -> list[int]:
        """Give each sequence its next token; the indices of those that go on."""
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
            if sequence.accept(token, outcome, engine.stop_ids):
                settle(sequence, sequence.result())
            else:
                going_on.append(index)
        return going_on

    def _retain(self, engine: Engine, indices: list[int]) -> None:
        self._active = [self._active[index] for index in indices]
        if not self._active:
            self._rows = None
        elif self._rows is not None:
            engine.keep(self._rows, indices)

    def _explain(self, error: Exception) -> VeriscopeError:
        if isinstance(error, VeriscopeError):
            return error
        if type(error).__name__ == "OutOfMemoryError":
            return RefusedRequestError(
                f"{self._name} ran out of memory.",
                remedy="Ask for shorter texts, fewer samples, or lower the model's batch size.",
                provider=self._name,
            )
        return ServerFailedError(
            f"{self._name} failed while computing ({type(error).__name__}: {error}).",
            remedy="Ask again; if it happens again, choose another model or device.",
            provider=self._name,
        )


def closed_error(name: str) -> VeriscopeError:
    """What callers are told whose jobs were waiting when the model `name` was closed."""
    return ServerFailedError(
        f"{name} was closed before it had answered.",
        remedy="Ask again: the model is loaded anew.",
        provider=name,
    )


def settle(job: Job[Any], result: object) -> None:
    """Give a job its result, unless it was cancelled meanwhile."""
    try:
        job.future.set_result(result)
    except InvalidStateError:
        return


def fail(jobs: Iterable[Job[Any]], error: BaseException) -> None:
    """Give jobs an error, but those that were cancelled, or answered before."""
    for job in jobs:
        try:
            job.future.set_exception(error)
        except InvalidStateError:
            continue
