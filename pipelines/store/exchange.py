"""Runs as JSON lines, to be carried from one store to another.

The first line is a header, `{"format": "veriscope-run", "version": 2}`; each line after it is an
event as `pipelines.run.events` defines it, in order. A file from elsewhere is not trusted: every
line is checked before anything is stored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from pipelines.base import SAMPLE_DATA, Frozen, Language, printable_json
from pipelines.error_words import Fact, Phrase, phrase, problem_at
from pipelines.errors import VeriscopeError, failure
from pipelines.run.events import (
    CancelReason,
    Event,
    RunCancelled,
    RunStarted,
    SpanEnded,
    SpanStarted,
    TerminalEvent,
    TokenWritten,
    Trace,
    event_adapter,
)
from pipelines.run.view import RunView, reduce
from pipelines.store.tables import refuse_keys_in_run, to_json

LAST_SECOND = 253_402_300_799.0
"""Seconds since the epoch at the end of the year 9999, the last that a datetime can hold."""


class Header(Frozen):
    """The first line of an exported run."""

    format: Literal["veriscope-run"]
    version: Literal[2] = 2


MOST_IN_LINE = 8 * 2**20
MOST_IN_ALL = 64 * 2**20
MOST_EVENTS = 20_000
"""How large an imported run may be: characters of a line and in all, and events."""


def export_lines(trace: Trace) -> Iterator[str]:
    """Yield the lines of `trace`, each with its line end."""
    for value in (Header(format="veriscope-run"), *trace.events):
        yield printable_json(json.dumps(to_json(value), ensure_ascii=False)) + "\n"


def parse_lines(lines: str | Iterable[str]) -> tuple[Event, ...]:
    """Return the events of an exported run, checked; `lines` may be the whole text.

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
        raise _bad_line(number, phrase("run_file.no_header", wanted=wanted)) from error
    events: list[Event] = []
    spans: set[str] = set()
    view = RunView()
    for number, line in numbered:
        try:
            event = event_adapter.validate_json(line)
        except ValidationError as error:
            raise _bad_line(number, problem_at(error)) from error
        if problem := _problem(event, events, spans):
            raise _bad_line(number, problem)
        try:
            if isinstance(event, RunStarted):
                refuse_keys_in_run(event.spec)
            view = reduce(view, event)
        except VeriscopeError as error:
            raise _bad_line(number, error.phrase()) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise _bad_line(number, phrase("run_file.not_shown")) from error
        if isinstance(event, RunStarted | SpanStarted):
            spans.add(event.span)
        events.append(event)
    if not events:
        raise _bad_line(number + 1, phrase("run_file.no_start"))
    if not isinstance(events[-1], TerminalEvent):
        events.append(cancelled_after(events))
    return tuple(events)


def cancelled_after(events: Sequence[Event], reason: CancelReason = "shutdown") -> RunCancelled:
    """Return the event that ends a run of which only `events` exist, its process being gone.

    Its time is that of the last event, since nothing is known of what came after.
    """
    first, last = events[0], events[-1]
    return RunCancelled(
        run=first.run,
        span=first.span,
        parent=first.parent,
        seq=last.seq + 1,
        time=last.time,
        reason=reason,
    )


def _problem(event: Event, before: Sequence[Event], spans: Collection[str]) -> Phrase | None:
    """Return what is wrong with an event after `before`, in which `spans` were started."""
    if len(before) == MOST_EVENTS:
        return phrase("run_file.many_events", most=MOST_EVENTS)
    if isinstance(event, RunStarted) != (not before):
        return phrase("run_file.start_first")
    if isinstance(event, RunStarted) and "main" not in event.spec.models:
        return phrase("run_file.no_main")
    if event.seq != len(before):
        return phrase("run_file.other_seq", seq=event.seq, expected=len(before))
    if isinstance(event, TokenWritten):
        return phrase("run_file.tokens")
    if before and event.run != before[0].run:
        return phrase("run_file.other_run")
    if before and isinstance(before[-1], TerminalEvent):
        return phrase("run_file.ended")
    if isinstance(event, SpanStarted) and event.span in spans:
        return phrase("run_file.span_twice")
    if isinstance(event, SpanStarted) and event.parent not in spans:
        return phrase("run_file.no_parent")
    if isinstance(event, SpanEnded) and event.span not in spans:
        return phrase("run_file.no_span")
    if not (isfinite(event.time) and event.time >= 0):
        return phrase("run_file.bad_time")
    if isinstance(event, RunStarted) and not 0 <= event.created <= LAST_SECOND:
        return phrase("run_file.bad_created")
    return None


def _numbered(lines: str | Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    total = 0
    for number, line in enumerate(lines.split("\n") if isinstance(lines, str) else lines, start=1):
        total += len(line)
        if len(line) > MOST_IN_LINE:
            raise _bad_line(number, phrase("run_file.long_line", most=MOST_IN_LINE))
        if total > MOST_IN_ALL:
            raise _bad_line(number, phrase("run_file.long_file", most=MOST_IN_ALL))
        stripped = (line.removeprefix("\ufeff") if number == 1 else line).strip()
        if stripped:
            yield number, stripped


def _bad_line(number: int, problem: Fact) -> VeriscopeError:
    return failure("storage.bad_line", number=number, problem=problem)


# Recorded runs of the bundled model, shipped as samples that everybody can read.
#
# `python -m pipelines.samples.record` records them again.

FOLDER = SAMPLE_DATA / "runs"
"""Where the recorded runs are kept."""

PREFIX = "sample-"
"""How the address of a sample begins; other runs' have no hyphen."""


CHOSEN = "chosen.json"
"""The file beside the runs that says why they were chosen."""

Outcome = Literal[
    "corrects",
    "catches",
    "mends",
    "withholds",
    "spoils",
    "misses",
    "stays_wrong",
    "unchecked",
    "doubts",
    "confirms",
    "lucky",
]
"""What a method made of a question whose right answer is known.

A wrong original is doubted and comes out right (`corrects`), or wrong again (`stays_wrong`), or no
answer is given (`withholds`); a method that only judges it `catches` it. It is not noticed
(`misses`), could not be checked (`unchecked`), or comes out right all the same (`lucky`). A right
original is left alone (`confirms`), doubted without harm (`doubts`), or lost (`spoils`). The
original of a method that judges nothing is the answer without passages, which it `mends`.
"""


class ChosenRun(Frozen):
    """Why a run was chosen: the methods that do in it what they are for, and those that fail.

    `run` is the id of its question, `answer` the right one.
    """

    run: str
    answer: str = ""
    shows: dict[str, Outcome] = Field(default_factory=dict)
    fails: dict[str, Outcome] = Field(default_factory=dict)


class RecordingChoice(Frozen):
    """The runs that were chosen, and what every method made of every question recorded."""

    recorded: dict[str, dict[str, Outcome]] = Field(default_factory=dict)
    runs: tuple[ChosenRun, ...] = ()


class Recording(Frozen):
    """A recorded run as a list shows it. Its `id` is the address it is opened at."""

    id: str
    question: str
    language: Language
    methods: tuple[str, ...]
    chosen: ChosenRun


@cache
def choice(folder: Path = FOLDER) -> RecordingChoice:
    """Return why the runs of `folder` were chosen; where nothing says so, there are no reasons."""
    path = folder / CHOSEN
    return (
        RecordingChoice.model_validate_json(path.read_bytes())
        if path.exists()
        else RecordingChoice()
    )


@cache
def recordings(folder: Path = FOLDER) -> tuple[Recording, ...]:
    """Return every recorded run of `folder`, in the order of their files' names."""
    reasons = {one.run: one for one in choice(folder).runs}
    return tuple(
        Recording(
            id=f"{PREFIX}{path.stem}",
            question=header.spec.question,
            language=header.language,
            methods=tuple(method.name for method in header.spec.methods),
            chosen=reasons.get(path.stem, ChosenRun(run=path.stem)),
        )
        for path in sorted(folder.glob("*.jsonl"))
        for header in (_trace(path).header,)
    )


def recordings_with(language: str, methods: Collection[str]) -> list[Recording]:
    """Return the recorded runs in `language` that used one of `methods`."""
    return [
        one
        for one in recordings()
        if one.language == language and not set(methods).isdisjoint(one.methods)
    ]


def is_recording(run_id: str) -> bool:
    """Return whether a run of that id would be a sample."""
    return run_id.startswith(PREFIX)


def load_recording(run_id: str, folder: Path = FOLDER) -> Trace:
    """Return the recorded run of that id; raises NotFoundError."""
    path = folder / f"{run_id.removeprefix(PREFIX)}.jsonl"
    if run_id not in [one.id for one in recordings(folder)]:
        raise failure("storage.no_sample", name=run_id)
    return _trace(path)


def _trace(path: Path) -> Trace:
    return Trace(events=parse_lines(path.read_text(encoding="utf-8")))
