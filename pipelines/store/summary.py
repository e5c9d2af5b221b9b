"""What a list of runs shows of each, kept up to date while events arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from pipelines.run.events import (
    Event,
    Judged,
    ModelCalled,
    Retrieved,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SpanEnded,
    Verdict,
)
from pipelines.types import Frozen, Language

Status = Literal["running", "finished", "failed", "cancelled"]


class Tally(Frozen):
    """Counts over the events of a run.

    `duration` is the time of the last event in seconds since the start. `model_calls` counts the
    attempts that reached a model, `cached_calls` those that the cache answered. `verdicts` counts
    judgements by verdict; `flags` are the remarks on the answers, each once, sorted.
    """

    methods: tuple[str, ...] = ()
    duration: float = 0.0
    model_calls: int = 0
    cached_calls: int = 0
    retrievals: int = 0
    verdicts: dict[Verdict, int] = Field(default_factory=dict)
    flags: tuple[str, ...] = ()


class RunSummary(Tally):
    """One line of the list of runs. `created` is when the run entered the store, in UTC."""

    id: str
    question: str
    language: Language
    status: Status
    created: datetime


def tally(events: Sequence[Event], before: Tally | None = None) -> Tally:
    """The counts of `before` with `events`, which follow on it, added."""
    before = before or Tally()
    # An embedder compares texts; it is not asked anything.
    calls = [e for e in events if isinstance(e, ModelCalled) and e.role != "embedder"]
    cached = sum(call.cached for call in calls)
    verdicts: Counter[Verdict] = Counter(before.verdicts)
    verdicts.update(event.verdict for event in events if isinstance(event, Judged))
    flags = set(before.flags)
    methods = before.methods
    for event in events:
        if isinstance(event, RunStarted):
            methods = tuple(method.name for method in event.spec.methods)
        elif isinstance(event, SpanEnded) and event.answer is not None:
            flags.update(event.answer.flags)
        elif isinstance(event, RunFinished):
            flags.update(flag for answer in event.answers.values() for flag in answer.flags)
    return Tally(
        methods=methods,
        duration=max([before.duration, *(event.time for event in events)]),
        model_calls=before.model_calls + len(calls) - cached,
        cached_calls=before.cached_calls + cached,
        retrievals=before.retrievals + sum(isinstance(event, Retrieved) for event in events),
        verdicts=dict(verdicts),
        flags=tuple(sorted(flags)),
    )


def status_after(event: Event) -> Status:
    """What a run is once `event` is its last."""
    if isinstance(event, RunFinished):
        return "finished"
    if isinstance(event, RunFailed):
        return "failed"
    if isinstance(event, RunCancelled):
        return "cancelled"
    return "running"
