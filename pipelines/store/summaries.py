"""Summaries of runs: counts over their events, and the lines of the list of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import Row, Select, select

from pipelines.run.events import (
    CancelReason,
    Event,
    Judged,
    ModelCalled,
    Retrieved,
    RunCancelled,
    SpanEnded,
    TerminalEvent,
    Verdict,
)
from pipelines.store.filters import RunFilter, conditions
from pipelines.store.labels import OwnerLabels
from pipelines.store.tables import RunLabelRow, RunRow
from pipelines.types import Frozen, Language

Status = Literal["running", "finished", "failed", "cancelled"]


class EventCounts(Frozen):
    """Counts over the events of a run.

    `duration` is the time of the last event in seconds since the start. `model_calls` counts the
    attempts that reached a model, `cached_calls` those that the cache answered. `verdicts` counts
    judgements by verdict; `flags` are the remarks on the answers, each once, sorted. `reason` is
    why the run was cancelled, if it was.
    """

    methods: tuple[str, ...] = ()
    duration: float = 0.0
    model_calls: int = 0
    cached_calls: int = 0
    retrievals: int = 0
    verdicts: dict[Verdict, int] = Field(default_factory=dict)
    flags: tuple[str, ...] = ()
    reason: CancelReason | None = None


class RunSummary(EventCounts):
    """One line of the list of runs. `created` is when the run entered the store, in UTC.

    `name`, `note`, `starred` and `tags` are its owner's labels; `findings` are the methods that
    judged the answer, each with its last verdict.
    """

    id: str
    question: str
    language: Language
    status: Status
    created: datetime
    name: str = ""
    note: str = ""
    starred: bool = False
    tags: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Its name, or its question where it has none."""
        return self.name or self.question


_COLUMNS = ("id", "question", "language", "status", "created")
SUMMARY = (*(getattr(RunRow, name) for name in _COLUMNS), RunRow.writer, RunRow.summary)
"""The columns of which `summary_of` makes a line of the list."""


def runs_where(owner: str, where: RunFilter, columns: Sequence[Any]) -> Select[*tuple[Any, ...]]:
    """Return a query for these columns of the runs of `owner` that match `where`."""
    query = select(*columns).select_from(RunRow)
    if where.text or where.starred:
        query = query.outerjoin(RunLabelRow, RunLabelRow.run_id == RunRow.id)
    return query.where(*conditions(owner, where))


def summary_of(run: Row[Any], labels: OwnerLabels, *, alive: bool) -> RunSummary:
    """Return the line of a run, from its row with the columns SUMMARY.

    `alive` says whether the process that writes the run still lives: without it, a run that has not
    ended counts as cancelled.
    """
    told = run.summary | {name: getattr(run, name) for name in _COLUMNS} | labels._asdict()
    if run.status == "running" and not alive:
        told |= {"status": "cancelled", "reason": "interrupted"}
    return RunSummary.model_validate(told)


def tally(events: Sequence[Event], before: EventCounts) -> EventCounts:
    """Return the counts of `before` with `events`, which follow on it, added."""
    # An embedder compares texts; it is not asked anything.
    calls = [e for e in events if isinstance(e, ModelCalled) and e.role != "embedder"]
    cached = sum(call.cached for call in calls)
    verdicts: Counter[Verdict] = Counter(before.verdicts)
    verdicts.update(event.verdict for event in events if isinstance(event, Judged))
    answers = [e.answer for e in events if isinstance(e, SpanEnded) and e.answer is not None]
    flags = {flag for answer in answers for flag in answer.flags}
    return EventCounts(
        methods=before.methods,
        duration=max([before.duration, *(event.time for event in events)]),
        model_calls=before.model_calls + len(calls) - cached,
        cached_calls=before.cached_calls + cached,
        retrievals=before.retrievals + sum(isinstance(event, Retrieved) for event in events),
        verdicts=verdicts,
        flags=tuple(sorted(flags.union(before.flags))),
        reason=events[-1].reason if isinstance(events[-1], RunCancelled) else before.reason,
    )


def status_after(event: Event) -> str:
    """Return what a run is once `event` is its last: one of `Status`."""
    return event.kind.removeprefix("run_") if isinstance(event, TerminalEvent) else "running"
