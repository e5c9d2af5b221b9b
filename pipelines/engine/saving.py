"""Stores a run while it happens, and what becomes of a run that cannot be stored."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from pipelines.errors import (
    NotFoundError,
    StorageDamagedError,
    StorageError,
    StorageLostError,
    VeriscopeError,
    failure,
)
from pipelines.run.events import CancelReason, Event, RunFailed, TerminalEvent
from pipelines.run.live import LiveRun
from pipelines.store import RunStore

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 30.0
"""Seconds between two attempts to store the same events; the pause doubles."""

_logger = logging.getLogger(__name__)


async def cancel(live: LiveRun, reason: CancelReason) -> bool:
    """End the calls of a run and wait until they have ended; False when they had ended already."""
    if live.task is None or live.task.done():
        return False
    if not live.task.cancelling():
        # A second cancellation would interrupt the recording of the run's end.
        live.cancel_reason = reason
        live.task.cancel()
    await asyncio.wait({live.task})
    return True


class Saver:
    """Stores the events of one run as they come from `queue`, several at a time.

    The end of the run is shown when it is stored. A database that cannot be reached is tried for
    `patience` seconds. After that, or where nothing can be written, the run ends with that error,
    unless it had ended by itself and can be stored after all. The error is stored as its end as
    soon as it can be, at the latest when `closing` is set. It is given up where the database is
    damaged, or refuses the events as such.
    """

    def __init__(
        self,
        store: RunStore,
        live: LiveRun,
        queue: asyncio.Queue[Event],
        patience: float,
        closing: asyncio.Event,
    ) -> None:
        self.live = live
        self._store = store
        self._queue = queue
        self._patience = patience
        self._closing = closing
        self._stored = 1
        """How many events are stored; the first was before the run began."""

    async def save(self) -> bool:
        """Store the run to its end; False if what is stored of it has no end."""
        try:
            while True:
                batch = [await self._queue.get(), *self._waiting()]
                try:
                    await self._append(batch)
                except VeriscopeError as error:
                    return await self._fail(batch, error)
                except Exception as error:
                    # Any error ends the run, or its readers would wait for ever.
                    _logger.error("Run %s is not stored.", self.live.run_id, exc_info=error)
                    return await self._fail(batch, failure("asking.unexpected"))
                if isinstance(end := batch[-1], TerminalEvent):
                    self.live.show_end(end)
                    return True
        finally:
            self.live.kept.set()

    async def _append(self, batch: Sequence[Event]) -> None:
        """Store `batch`, which is tried again as long as that may help."""
        deadline, pause, again = time.monotonic() + self._patience, _FIRST_PAUSE, False
        while True:
            try:
                await asyncio.to_thread(self._store.append, self.live.run_id, batch, again=again)
            except VeriscopeError as error:
                late = time.monotonic() + pause > deadline or self._closing.is_set()
                if late or not error.retryable:
                    raise
                # A connection that was lost may have stored them and not told.
                again = True
                await self._pause(pause)
                pause *= 2
            else:
                self._stored += len(batch)
                return

    async def _fail(self, batch: list[Event], error: VeriscopeError) -> bool:
        """End a run that cannot be stored; True once that is stored, or cannot be any more."""
        live = self.live
        live.unsaved = error.info()
        await cancel(live, "stopped")
        *events, end = [*batch, *self._waiting()]
        assert isinstance(end, TerminalEvent)
        # The cause may be over by now. A run that had ended by itself has its own end then.
        by_itself = not isinstance(end, RunFailed) or end.error != live.unsaved
        if by_itself and await self._try([*events, end]) == "stored":
            live.unsaved = None
            live.show_end(end)
            return True
        common = end.model_dump(include={"run", "span", "parent", "seq", "time"})
        failed = RunFailed(**common, error=live.unsaved)
        events.append(failed)
        outcome = await self._try(events)
        live.show_end(failed)
        live.kept.set()
        pause = _FIRST_PAUSE
        while outcome == "later" and not self._closing.is_set():
            await self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            outcome = await self._try(events)
        if outcome == "stored":
            return True
        # If there is no room for all events, there may be room for the last one.
        alone = failed.model_copy(update={"seq": self._stored})
        if await self._try([alone]) != "stored":
            _logger.warning("Run %s is not stored in full: %s", live.run_id, error)
        return False

    async def _try(self, events: Sequence[Event]) -> Literal["stored", "later", "never"]:
        """Store `events` now. "stored" also where they need not be, "never" if it is no use."""
        try:
            await asyncio.to_thread(self._store.append, self.live.run_id, events, again=True)
        except (StorageLostError, NotFoundError):
            return "stored"
        except StorageDamagedError:
            return "never"
        except StorageError:
            # It is logged where it is given up.
            return "later"
        except Exception as error:
            _logger.error("Run %s is not stored.", self.live.run_id, exc_info=error)
            return "never"
        return "stored"

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    def _waiting(self) -> list[Event]:
        """Return what is in the queue now."""
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]
