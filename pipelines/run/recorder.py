"""Numbers and times the events of one run and hands them on."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from pipelines.run.events import EventBase, TokenWritten

__all__ = ["Recorder"]

E = TypeVar("E", bound=EventBase)
Listener = Callable[[EventBase], None]


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
        """Seconds since the run started."""
        return self._clock() - self._began

    def new_span(self) -> str:
        """An id no other span of this run has."""
        return f"s{next(self._span_ids)}"

    def emit(self, event_type: type[E], *, span: str, parent: str | None, **fields: Any) -> E:
        """Create an event, number it, and hand it on."""
        event = event_type(
            run=self.run_id, span=span, parent=parent, seq=self._next, time=self.now(), **fields
        )
        if not isinstance(event, TokenWritten):
            self._next += 1
        self._listener(event)
        return event
