"""Runs as JSON lines, to be carried from one store to another.

The first line is a header, `{"format": "veriscope-run", "version": 2}`; each line after it is an
event as `pipelines.run.events` defines it, in order. Files of version 1, whose events are those of
release 0.1 (see `pipelines.run.older`), can be read too. A file from elsewhere is not trusted:
every line is checked before anything is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Literal

from pydantic import ValidationError

from pipelines.errors import InvalidInputError, first_problem
from pipelines.run.events import (
    Event,
    RunCancelled,
    RunStarted,
    SpanEnded,
    SpanStarted,
    TerminalEvent,
    TokenWritten,
    event_adapter,
)
from pipelines.run.trace import Trace
from pipelines.run.view import RunView, reduce
from pipelines.store.tables import refuse_keys_in_run, to_json
from pipelines.types import Frozen

LAST_SECOND = 253_402_300_799.0
"""Seconds since the epoch at the end of the year 9999, the last that a datetime can hold."""

# JSON allows these inside a string, but some programs read them as line ends.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class Header(Frozen):
    """The first line of an exported run."""

    format: Literal["veriscope-run"]
    version: Literal[1, 2] = 2


MOST_IN_LINE = 8 * 2**20
MOST_IN_ALL = 64 * 2**20
MOST_EVENTS = 20_000
"""How large an imported run may be: characters of a line and in all, and events."""


def export_lines(trace: Trace) -> Iterator[str]:
    """The lines of `trace`, each with its line end."""
    for value in (Header(format="veriscope-run"), *trace.events):
        yield json.dumps(to_json(value), ensure_ascii=False).translate(_LINE_ENDS) + "\n"


def parse_lines(lines: str | Iterable[str]) -> tuple[Event, ...]:
    """The events of an exported run, checked; `lines` may be the whole text.

    Required are the header, one `run_started` first, sequence numbers from 0 without a gap, one
    run id throughout, times that are not negative, spans that were started, details a screen can
    show, no key in a model's address, and nothing after the event that ended the run. Blank lines
    are passed over. A run exported while it was still going has no such event; it gets
    `run_cancelled` with the reason "shutdown".

    Raises InvalidInputError, whose message names the line (from 1), at the first that is wrong.
    """
    numbered = _numbered(lines)
    number, first = next(numbered, (1, ""))
    try:
        Header.model_validate_json(first)
    except ValidationError as error:
        wanted = '{"format": "veriscope-run", "version": 2}'
        raise _bad_line(number, f"the header {wanted} is missing") from error
    reader = _Reader()
    for number, line in numbered:
        reader.add(number, line)
    return reader.finish(number)


def cancelled_after(events: tuple[Event, ...]) -> RunCancelled:
    """The event that ends a run of which only `events` exist, its process being gone.

    Its time is that of the last event, since nothing is known of what came after.
    """
    first, last = events[0], events[-1]
    return RunCancelled(
        run=first.run,
        span=first.span,
        parent=first.parent,
        seq=last.seq + 1,
        time=last.time,
        reason="shutdown",
    )


class _Reader:
    """Takes the events of a file one by one and compares each with those before."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._spans: set[str] = set()
        self._view = RunView()

    def add(self, number: int, line: str) -> None:
        try:
            event = event_adapter.validate_json(line)
        except ValidationError as error:
            raise _bad_line(number, ": ".join(filter(None, first_problem(error)))) from error
        if len(self._events) == MOST_EVENTS:
            raise _bad_line(number, f"a run may have at most {MOST_EVENTS} events")
        problem = self._order_problem(event) or self._span_problem(event) or _time_problem(event)
        if problem:
            raise _bad_line(number, problem)
        if isinstance(event, RunStarted):
            try:
                refuse_keys_in_run(event.spec)
            except InvalidInputError as error:
                raise _bad_line(number, error.message) from error
        try:
            self._view = reduce(self._view, event)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise _bad_line(number, "its details cannot be shown") from error
        self._events.append(event)

    def finish(self, number: int) -> tuple[Event, ...]:
        if not self._events:
            raise _bad_line(number + 1, "run_started is missing, the file ends after the header")
        events = tuple(self._events)
        if isinstance(events[-1], TerminalEvent):
            return events
        return (*events, cancelled_after(events))

    def _order_problem(self, event: Event) -> str | None:
        expected = len(self._events)
        if isinstance(event, RunStarted) != (expected == 0):
            return "run_started must be the first event and only there"
        if event.seq != expected:
            return f"seq is {event.seq}, expected {expected}"
        if isinstance(event, TokenWritten):
            return "token events are shown live and are no part of a stored run"
        if self._events and event.run != self._events[0].run:
            return "the event belongs to another run"
        if self._events and isinstance(self._events[-1], TerminalEvent):
            return "the run had already ended"
        return None

    def _span_problem(self, event: Event) -> str | None:
        if isinstance(event, RunStarted):
            self._spans.add(event.span)
        elif isinstance(event, SpanStarted):
            if event.span in self._spans:
                return "the span was started before"
            if event.parent not in self._spans:
                return "the span's parent was never started"
            self._spans.add(event.span)
        elif isinstance(event, SpanEnded) and event.span not in self._spans:
            return "the span was never started"
        return None


def _numbered(lines: str | Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    total = 0
    for number, line in enumerate(lines.split("\n") if isinstance(lines, str) else lines, start=1):
        total += len(line)
        if len(line) > MOST_IN_LINE:
            raise _bad_line(number, f"it is longer than {MOST_IN_LINE} characters")
        if total > MOST_IN_ALL:
            raise _bad_line(number, f"the file is longer than {MOST_IN_ALL} characters")
        stripped = (line.removeprefix("\ufeff") if number == 1 else line).strip()
        if stripped:
            yield number, stripped


def _time_problem(event: Event) -> str | None:
    if not (isfinite(event.time) and event.time >= 0):
        return "time must be a number of seconds, 0 or more"
    if isinstance(event, RunStarted) and not 0 <= event.created <= LAST_SECOND:
        return "created must be a time in seconds since 1970"
    return None


def _bad_line(number: int, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"Line {number} of the run cannot be used: {problem.rstrip('.')}.",
        remedy="Nothing was imported. Export the run again, or correct that line.",
    )
