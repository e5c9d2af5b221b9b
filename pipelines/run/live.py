"""A run while it happens: its limits, the recorder of its events, and the readers that watch it.

Every reader has its own queue and is never waited for; one that reads slowly sees pieces of text
merged. A reader that subscribes late is first given everything recorded so far.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import count
from math import inf
from typing import Any, NamedTuple, TypeVar

from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.run.events import (
    CancelReason,
    Event,
    EventBase,
    ModelCalled,
    RunStarted,
    TerminalEvent,
    TokenWritten,
    Trace,
)
from pipelines.run.ledger import Ledger

E = TypeVar("E", bound=EventBase)
Listener = Callable[[EventBase], None]


class Limits(NamedTuple):
    """Seconds a run may go on, and tokens it may have written."""

    seconds: float = inf
    tokens: float = inf


class Recorder:
    """The single writer of a run's events; lives on the engine's event loop.

    `listener` sees every event at once. Token events share the number of the stored event that
    follows them, since they are not stored themselves.
    """

    def __init__(
        self, run_id: str, listener: Listener, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.run_id = run_id
        self._listener = listener
        self._clock = clock
        self._began = clock()
        self._next = 0
        self._span_ids = count()

    def now(self) -> float:
        """Return seconds since the run started."""
        return self._clock() - self._began

    def new_span(self) -> str:
        """Return an id no other span of this run has."""
        return f"s{next(self._span_ids)}"

    def emit(self, event_type: type[E], *, span: str, parent: str | None, **fields: Any) -> E:
        """Create an event, number it, and give it to the listener."""
        event = event_type(
            run=self.run_id, span=span, parent=parent, seq=self._next, time=self.now(), **fields
        )
        if not isinstance(event, TokenWritten):
            self._next += 1
        self._listener(event)
        return event


class Subscription:
    """One reader's queue. `drain` may be called from any thread; `events` on the engine's loop."""

    def __init__(self, backlog: Iterable[Any], on_read: Callable[[], None]) -> None:
        self._queue: deque[Any] = deque(backlog)
        self._lock = threading.Lock()
        self._on_read = on_read
        self._woken = asyncio.Event()
        self.closed = False
        self.waiting = False

    def push(self, event: Any) -> None:
        """Append an event, merging it with a piece of the same text that nobody has read yet."""
        with self._lock:
            last = self._queue[-1] if self._queue else None
            if isinstance(event, TokenWritten) and isinstance(last, TokenWritten):
                merged = _merged(last, event)
                if merged:
                    self._queue[-1] = merged
                    return
            self._queue.append(event)
        self._woken.set()

    def drain(self) -> list[Event]:
        """Return everything since the last call, in order; an empty list when nothing happened."""
        self._on_read()
        with self._lock:
            events = list(self._queue)
            self._queue.clear()
        return events

    async def events(self) -> AsyncIterator[Event]:
        """Yield every event as it comes, ending after the terminal one."""
        while True:
            self._woken.clear()
            for event in self.drain():
                yield event
                if isinstance(event, TerminalEvent):
                    return
            self.waiting = True
            try:
                await self._woken.wait()
            finally:
                self.waiting = False

    def close(self) -> None:
        """Stop watching."""
        self.closed = True


def _merged(earlier: TokenWritten, later: TokenWritten) -> TokenWritten | None:
    if earlier.span != later.span or later.restart:
        return None
    return earlier.model_copy(
        update={
            "text": earlier.text + later.text,
            "tokens": earlier.tokens + later.tokens,
            "time": later.time,
        }
    )


class LiveRun:
    """A run under way. `store` receives every event that is to be kept.

    With `holds_end` the event that ends the run is given to `store` alone, and seen by readers when
    it comes back to `show_end`: so that who sees the end of a run knows that it is stored. `ledger`
    counts what its calls take.
    """

    def __init__(
        self,
        run_id: str,
        owner: str,
        store: Callable[[Any], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        holds_end: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        self.run_id = run_id
        self.owner = owner
        self.ledger = ledger or Ledger()
        self.recorder = Recorder(run_id, self._publish, clock)
        self.task: asyncio.Task[None] | None = None
        self.cancel_reason: CancelReason = "stopped"
        # Why it could not be recorded any more, if so.
        self.unsaved: ErrorInfo | None = None
        # Why it is not stored at all, if so.
        self.unstored: VeriscopeError | None = None
        # Set once nothing more is going to be stored, or it is known that it cannot be.
        self.kept = asyncio.Event()
        self._store = store
        self.holds_end = holds_end
        self._clock = clock
        self._lock = threading.Lock()
        self._events: list[Any] = []
        self._readers: list[Subscription] = []
        self._being_written: dict[str, TokenWritten] = {}
        self._begun = self._last_read = clock()
        self._written = 0

    @property
    def header(self) -> RunStarted:
        """What was asked for, once that is recorded."""
        return self._events[0]

    @property
    def over(self) -> bool:
        """Whether readers have seen its end."""
        return bool(self._events) and isinstance(self._events[-1], TerminalEvent)

    def subscribe(self) -> Subscription:
        """Return a new reader, given what happened so far; safe from any thread."""
        with self._lock:
            backlog = [*self._events, *self._being_written.values()]
            subscription = Subscription(backlog, self._note_read)
            self._readers.append(subscription)
        self._note_read()
        return subscription

    def trace(self) -> Trace:
        """Return what has been recorded so far."""
        return Trace(events=tuple(self._events))

    def unwatched_for(self) -> float:
        """Return seconds since a reader last looked; 0 while one waits for the next event."""
        if any(reader.waiting for reader in self._readers):
            return 0.0
        return self._clock() - self._last_read

    def spent(self, limits: Limits) -> CancelReason | None:
        """Return which of the limits the run has passed, if any; cached replies cost nothing."""
        with self._lock:
            writing = sum(len(event.tokens) for event in self._being_written.values())
        if self._clock() - self._begun > limits.seconds:
            return "time_limit"
        return "token_limit" if self._written + writing > limits.tokens else None

    def _note_read(self) -> None:
        self._last_read = self._clock()

    def show_end(self, event: TerminalEvent) -> None:
        """Give the event that ends the run to readers; see `holds_end`."""
        with self._lock:
            self._events.append(event)
            self._forward(event)

    def _publish(self, event: Any) -> None:
        with self._lock:
            if isinstance(event, TokenWritten):
                known = self._being_written.get(event.span)
                merged = _merged(known, event) if known else None
                self._being_written[event.span] = merged or event
            else:
                # The text written in this span is now part of a recorded call, or discarded.
                self._being_written.pop(event.span, None)
                if isinstance(event, ModelCalled) and not event.cached:
                    self._written += sum(g.usage.completion_tokens for g in event.generations)
                self._store(event)
                if self.holds_end and isinstance(event, TerminalEvent):
                    return
                self._events.append(event)
            self._forward(event)

    def _forward(self, event: Any) -> None:
        self._readers = [reader for reader in self._readers if not reader.closed]
        for reader in self._readers:
            reader.push(event)
