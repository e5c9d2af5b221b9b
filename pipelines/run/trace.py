"""A recorded run: its header and its events, in order."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.run.events import Event, RunStarted, SpanStarted, TerminalEvent
from pipelines.types import Frozen


class Trace(Frozen):
    """The stored events of one run. The first is `run_started`, the last terminal once it ended."""

    events: tuple[Event, ...]

    @property
    def header(self) -> RunStarted:
        """What was asked for and what it ran on."""
        first = self.events[0]
        if not isinstance(first, RunStarted):
            raise ValueError("A trace begins with run_started.")
        return first

    @property
    def terminal(self) -> TerminalEvent | None:
        """The event that ended the run, or None while it runs."""
        last = self.events[-1]
        return last if isinstance(last, TerminalEvent) else None

    def of_method(self, method: str) -> tuple[Event, ...]:
        """Return the events inside the span of one method, the span's own included."""
        return tuple(self._within(method))

    def _within(self, method: str) -> Iterator[Event]:
        inside: set[str] = set()
        for event in self.events:
            if isinstance(event, SpanStarted):
                is_root = event.name == "method" and event.method == method
                if is_root or event.parent in inside:
                    inside.add(event.span)
            if event.span in inside:
                yield event
