"""Work of the Annotate page in the background: reading items, making sessions.

Reading a thousand runs takes longer than drawing a page may take.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Generic, TypeVar

from app.engine import engine
from pipelines.annotation.sources import Collected, Step
from pipelines.errors import VeriscopeError
from pipelines.run.scope import unexpected

T = TypeVar("T")

_log = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds that a page waits before it says how far something is."""


class JobStoppedError(Exception):
    """The work was stopped: its result is not needed any more."""


class BackgroundJob(Generic[T]):
    """Work on a thread of the engine; `done` of `total` steps are over, 0 where none are known."""

    def __init__(self, do: Callable[[BackgroundJob[T]], T], total: int = 0) -> None:
        self.done = 0
        self.total = total
        self._stopped = threading.Event()
        self._future: Future[T] = engine().submit(self._carry_out(do))

    @property
    def over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def step(self) -> None:
        """Count one more step of the work as over. Raises JobStoppedError when it is to end."""
        self.done += 1
        if self._stopped.is_set():
            raise JobStoppedError

    def stop(self) -> None:
        """Stop the work at its next step; its result is lost."""
        self._stopped.set()
        self._future.cancel()

    def wait(self, seconds: float | None = PATIENCE) -> bool:
        """Wait at most this many seconds (None: without limit); returns whether it has ended."""
        with suppress(NotYet, CancelledError, Exception):
            self._future.result(seconds)
        return self.over

    def result(self) -> T:
        """Return the result of the work. Raises VeriscopeError where the work failed, for
        any reason.
        """
        try:
            return self._future.result()
        except VeriscopeError:
            raise
        except CancelledError:
            # It was stopped, or the server ends: nothing went wrong.
            raise unexpected() from None
        except Exception:
            _log.exception("Work beside the Annotate page ended unexpectedly")
            raise unexpected() from None

    async def _carry_out(self, do: Callable[[BackgroundJob[T]], T]) -> T:
        try:
            return await asyncio.to_thread(do, self)
        except asyncio.CancelledError:
            # The thread cannot be interrupted, but ends with its next step.
            self._stopped.set()
            raise


def collecting(steps: Callable[[], Iterable[Step]], total: int) -> BackgroundJob[Collected]:
    """Read items in `total` steps."""

    def do(work: BackgroundJob[Collected]) -> Collected:
        found = Collected()
        for one in steps():
            found.add(one)
            work.step()
        return found

    return BackgroundJob(do, total)
