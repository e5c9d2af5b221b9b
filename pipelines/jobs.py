"""Work in the background: a `Job` is one piece of it, and `Jobs` finds it again by its key.

A job goes on when the page is left. It says how far it is (`progress`), and ends because it is
done (`result`), failed (`error`) or was stopped. Example:

    def add_up(job: Job[Steps, int]) -> int:
        total = 0
        for number in range(100):
            total += number
            job.tell(Steps(number + 1, 100))
        return total

    sums: Jobs[Steps, int] = Jobs()
    job = sums.start("ann", add_up, Steps())
    job.progress.done, job.state, job.result()
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pipelines.errors import ErrorInfo, VeriscopeError, failure

P = TypeVar("P")
R = TypeVar("R")

JobState = Literal["waiting", "running", "done", "stopped", "failed"]
"""`waiting` for its turn, at work, or how it ended."""

_KEPT = 1000
"""Jobs of a kind that are remembered after their end, where nothing else is said."""

_log = logging.getLogger(__name__)

_going_on: set[Job[Any, Any]] = set()
"""Every job of this process that has not ended."""


class JobStoppedError(Exception):
    """The work ends here because somebody stopped it."""


class NotYet(Exception):  # noqa: N818 - nothing went wrong
    """The result is still being made; `job` says whether it is there by now."""

    def __init__(self, job: Job[Any, Any]) -> None:
        super().__init__()
        self.job = job


class Steps(NamedTuple):
    """A progress: `done` of `total` steps, 0 where their number is not known."""

    done: int = 0
    total: int = 0


class Job(Generic[P, R]):
    """The work `do` under a key. All of it may be called and read in any thread.

    `do` is called with the job, in a daemon thread: an interpreter that ends does not wait for it.
    `progress` is replaced and never changed, so that who reads it has one moment of it.
    """

    def __init__(self, key: Hashable, do: Callable[[Job[P, R]], R], progress: P) -> None:
        self.key = key
        self.progress = progress
        self._do: Callable[[Job[P, R]], R] | None = do
        self._end: Future[R] = Future()
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._when_stopped: Callable[[], object] | None = None

    # Looking at it

    @property
    def going_on(self) -> bool:
        """Whether it still works, or waits for its turn."""
        return not self._end.done()

    @property
    def stopped(self) -> bool:
        """Whether somebody has asked it to end."""
        return self._stop.is_set()

    @property
    def state(self) -> JobState:
        """How it stands. What was asked to end, and came to its end all the same, is `done`."""
        if self._end.running():
            return "running"
        if not self._end.done():
            return "waiting"
        raised = JobStoppedError() if self._end.cancelled() else self._end.exception()
        if raised is None:
            return "done"
        return "stopped" if isinstance(raised, JobStoppedError) else "failed"

    @property
    def error(self) -> ErrorInfo | None:
        """Why it failed; None as long as it has not."""
        raised = self._end.exception() if self.state == "failed" else None
        return raised.info() if isinstance(raised, VeriscopeError) else None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, for so many seconds at most; return whether it has."""
        with suppress(CancelledError, TimeoutError):
            self._end.exception(seconds)
        return self._end.done()

    def result(self) -> R:
        """Wait for the result and return it. Raises VeriscopeError where there is none."""
        try:
            return self._end.result()
        except (CancelledError, JobStoppedError):
            raise failure("asking.unexpected") from None

    def stop(self) -> None:
        """Ask it to end. One that waits for its turn ends at once, another at its next step."""
        with self._guard:
            if self._stop.is_set():
                return
            self._stop.set()
            act = self._when_stopped
        if self._end.cancel():
            _going_on.discard(self)
        elif act is not None:
            act()

    # Doing it

    def start(self) -> Job[P, R]:
        """Begin it in a thread of its own, and return it."""
        _going_on.add(self)
        threading.Thread(target=self.carry_out, name="veriscope-job", daemon=True).start()
        return self

    def carry_out(self) -> None:
        """Do it in this thread, unless it was stopped before."""
        do, self._do = self._do, None
        if do is None or not self._end.set_running_or_notify_cancel():
            return
        try:
            result = do(self)
        except (JobStoppedError, CancelledError):
            # An engine that is closed cancels what waits for its loop.
            self._end.set_exception(JobStoppedError())
        except VeriscopeError as error:
            self._end.set_exception(error)
        except BaseException:
            # Whatever it is: who waits for the job, or for its turn, would wait for ever.
            _log.exception("Work in the background ended unexpectedly")
            self._end.set_exception(failure("asking.unexpected"))
        else:
            self._end.set_result(result)
        finally:
            self._when_stopped = None
            _going_on.discard(self)

    def tell(self, progress: P) -> None:
        """Say how far it is. Raises JobStoppedError where it is to end: the work lets that pass."""
        self.progress = progress
        self.go_on()

    def go_on(self, after: float = 0.0) -> None:
        """Raise JobStoppedError where it is to end; until then, wait for `after` seconds."""
        if self._stop.wait(after):
            raise JobStoppedError

    def when_stopped(self, act: Callable[[], object]) -> None:
        """Have `act` called when it is stopped, at once where it is; no longer what was set before.

        That is for work which waits for something else, and takes no steps of its own.
        """
        with self._guard:
            self._when_stopped = act
            stopped = self._stop.is_set()
        if stopped:
            act()


class Jobs(Generic[P, R]):
    """The jobs of one kind by their keys, one at a time for each.

    Of those that have ended the last `kept` are remembered. With `in_turn` one is carried out after
    the other, in the order in which they were started.
    """

    def __init__(self, *, kept: int = _KEPT, in_turn: bool = False) -> None:
        self._kept = kept
        self._in_turn = in_turn
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, Job[P, R]] = OrderedDict()
        self._queue: deque[Job[P, R]] = deque()
        self._working = False

    def get(self, key: Hashable) -> Job[P, R] | None:
        """Return the job of `key` that goes on, or was the last; None where none is remembered."""
        with self._lock:
            return self._known.get(key)

    def start(self, key: Hashable, do: Callable[[Job[P, R]], R], progress: P) -> Job[P, R]:
        """Begin the work of `key`, or return the job that is at it already."""
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.going_on:
                return known
            return self._begin(Job(key, do, progress))

    def made(self: Jobs[None, R], key: Hashable, make: Callable[[], R], *, patience: float) -> R:
        """Return the result of `key`, made once as long as it is remembered.

        Raises NotYet where it is not there after `patience` seconds, and at once for who asked
        before; VeriscopeError where it cannot be made: the next one who asks has it tried again.
        """
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            job = known or self._begin(Job(key, lambda _: make(), None))
        if not job.wait(0.0 if known else patience):
            raise NotYet(job)
        if job.state != "done":
            with self._lock:
                if self._known.get(key) is job:
                    del self._known[key]
        return job.result()

    def forget(self, key: Hashable) -> Job[P, R] | None:
        """Stop the job of `key`, remember nothing of it, and return it where there was one."""
        with self._lock:
            job = self._known.pop(key, None)
        if job is not None:
            job.stop()
        return job

    def clear(self, seconds: float | None = None) -> None:
        """Stop and forget every job, and wait for all of them for so many seconds at most."""
        with self._lock:
            jobs = list(self._known.values())
            self._known.clear()
        _stop_all(jobs, seconds)

    def _begin(self, job: Job[P, R]) -> Job[P, R]:
        self._known[job.key] = job
        self._known.move_to_end(job.key)
        over = [key for key, one in self._known.items() if not one.going_on]
        for key in over[: max(0, len(self._known) - self._kept)]:
            del self._known[key]
        if not self._in_turn:
            return job.start()
        _going_on.add(job)
        self._queue.append(job)
        if not self._working:
            self._working = True
            threading.Thread(target=self._work_off, name="veriscope-jobs", daemon=True).start()
        return job

    def _work_off(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._working = False
                    return
                job = self._queue.popleft()
            job.carry_out()


def stop_jobs(seconds: float = 10.0) -> None:
    """Stop every job of this process, and wait for all of them for so many seconds at most."""
    _stop_all(list(_going_on), seconds)


def _stop_all(jobs: Sequence[Job[Any, Any]], seconds: float | None) -> None:
    until = None if seconds is None else time.monotonic() + seconds
    for job in jobs:
        job.stop()
    for job in jobs:
        job.wait(None if until is None else max(0.0, until - time.monotonic()))
