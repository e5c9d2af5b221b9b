"""What a screen knows of a run, folded from its events: `reduce(view, event) -> view`.

Pure and the same for every reader. Live and stored runs give the same view, except that a live
one also shows the text being written.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal

from pipelines.errors import ErrorInfo, limit_in
from pipelines.models.base import Capabilities
from pipelines.run.events import (
    EntitiesFound,
    Event,
    Judged,
    ModelCalled,
    Outcome,
    Place,
    Retrieved,
    Revised,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    SpanEnded,
    SpanStarted,
    StepName,
    TokenWritten,
)
from pipelines.run.findings import MethodStarted, StepDetail
from pipelines.run.ledger import LIMIT_NAMES, LimitName
from pipelines.types import Answer, Passage, Token

Status = Literal["waiting", "running", "finished", "failed", "cancelled"]
MethodStatus = Literal["running", "done", "failed", "cancelled"]
"""How far a method is that has begun."""


@dataclass(frozen=True)
class StepView:
    """A step of a method: what it is, what it is writing, and how it ended (None: under way)."""

    span: str
    name: StepName
    started: float
    at: Place = field(default_factory=Place)
    detail: StepDetail | None = None
    parent: str | None = None
    ended: float | None = None
    outcome: Outcome | None = None
    text: str = ""
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class MethodView:
    """One method of a run: its steps, drafts, verdicts, searches and calls, in order.

    `settings` are those it ran with, `embedder` names the model whose cosines it used and
    `recognizer` what found its entities ("" where none were looked for).
    """

    name: str
    span: str
    started: float
    models: dict[str, Capabilities] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    embedder: str | None = None
    recognizer: str = ""
    ended: float | None = None
    outcome: Outcome | None = None
    answer: Answer | None = None
    error: ErrorInfo | None = None
    steps: tuple[StepView, ...] = ()
    drafts: tuple[Revised, ...] = ()
    judged: tuple[Judged, ...] = ()
    searches: tuple[Retrieved, ...] = ()
    calls: tuple[ModelCalled, ...] = ()

    @property
    def writing(self) -> StepView | None:
        """The step that is writing right now, if any."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and last.outcome is None and last.text else None

    @property
    def made(self) -> tuple[ModelCalled, ...]:
        """Calls that reached a language model: not from the cache, and not an embedder's.

        One that a limit of the run refused was never under way.
        """
        return tuple(
            c for c in self.calls if not c.cached and c.role != "embedder" and c.in_flight > 0
        )

    @property
    def tokens(self) -> int:
        """Tokens written for this method, cached replies left out."""
        return sum(g.usage.completion_tokens for call in self.made for g in call.generations)


@dataclass(frozen=True)
class RunView:
    """A run as far as it has come. `methods` keeps the order in which they were asked for."""

    run: str = ""
    status: Status = "waiting"
    header: RunStarted | None = None
    time: float = 0.0
    methods: dict[str, MethodView] = field(default_factory=dict)
    error: ErrorInfo | None = None
    reason: str | None = None
    spans: dict[str, str] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ("finished", "failed", "cancelled")

    @property
    def limit(self) -> LimitName | None:
        """The limit of the run that ended a method of it, or all; None where none was reached."""
        errors = [method.error for method in self.methods.values()]
        names = {limit_in(error.code) for error in (*errors, self.error) if error is not None}
        return next((name for name in LIMIT_NAMES if name in names), None)


def method_status(view: RunView, method: MethodView) -> MethodStatus:
    """Return how far a method of the run is; one that the run left without an end was cancelled."""
    if method.outcome is None:
        return "cancelled" if view.over else "running"
    return "done" if method.outcome == "ok" else method.outcome


def number_setting(method: MethodView, name: str) -> float | None:
    """Return a number among the settings that the method ran with; None where there is none.

    A run from elsewhere may hold anything under that name.
    """
    value = method.settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A whole number may be too large for one that is not.
    with suppress(OverflowError):
        return value if isfinite(value) else None
    return None


def whole_setting(method: MethodView, name: str, default: int, *, most: int = 1000) -> int:
    """Return a count among the settings that the method ran with, from 0 to `most`; else
    `default`.
    """
    value = number_setting(method, name)
    return default if value is None or value < 0 else int(min(value, most))


def passages_found(methods: Iterable[MethodView]) -> list[tuple[Passage, str]]:
    """Return every passage that `methods` found, each once, in the order in which it was found,
    with the query that found it first.
    """
    found: dict[str, tuple[Passage, str]] = {}
    for method in methods:
        for search in method.searches:
            for passage in search.passages:
                found.setdefault(passage.id, (passage, search.query))
    return list(found.values())


def fold(events: Iterable[Event], view: RunView | None = None) -> RunView:
    """Return all `events` reduced into `view`, from the beginning when there is none."""
    view = view or RunView()
    for event in events:
        view = reduce(view, event)
    return view


def reduce(view: RunView, event: Event) -> RunView:
    """Return the view after `event`. An event of a span nobody announced changes only the clock."""
    view = replace(view, time=max(view.time, event.time))
    match event:
        case RunStarted():
            return replace(view, run=event.run, status="running", header=event)
        case RunFinished():
            return replace(view, status="finished")
        case RunFailed():
            return replace(view, status="failed", error=event.error)
        case RunCancelled():
            return replace(view, status="cancelled", reason=event.reason)
        case SpanStarted() if event.name == "method":
            return _open_method(view, event)
        case _:
            return _within_method(view, event)


def _open_method(view: RunView, event: SpanStarted) -> RunView:
    ran_with = event.detail if isinstance(event.detail, MethodStarted) else MethodStarted()
    method = MethodView(
        name=event.method,
        span=event.span,
        started=event.time,
        models=ran_with.models,
        settings=dict(ran_with.settings),
        embedder=ran_with.embedder,
    )
    return replace(
        view,
        methods={**view.methods, event.method: method},
        spans={**view.spans, event.span: event.method},
    )


def _within_method(view: RunView, event: Event) -> RunView:
    spans = view.spans
    if isinstance(event, SpanStarted) and event.parent in spans:
        spans = {**spans, event.span: spans[event.parent]}
    if event.span not in spans:
        return view
    method = view.methods[spans[event.span]]
    changed = _reduce_method(method, event)
    return replace(view, spans=spans, methods={**view.methods, method.name: changed})


def _reduce_method(method: MethodView, event: Event) -> MethodView:
    match event:
        case SpanStarted():
            step = StepView(
                span=event.span,
                name=event.name,
                started=event.time,
                at=event.at,
                detail=event.detail,
                parent=event.parent,
            )
            return replace(method, steps=(*method.steps, step))
        case SpanEnded() if event.span == method.span:
            return replace(
                method,
                ended=event.time,
                outcome=event.outcome,
                answer=event.answer,
                error=event.error,
            )
        case SpanEnded():
            return _in_step(method, event.span, ended=event.time, outcome=event.outcome)
        case TokenWritten():
            return _write(method, event)
        case ModelCalled():
            return replace(method, calls=(*method.calls, event))
        case Retrieved():
            return replace(method, searches=(*method.searches, event))
        case EntitiesFound():
            return replace(method, recognizer=event.recognizer)
        case Judged():
            return replace(method, judged=(*method.judged, event))
        case Revised():
            # The draft now holds what was being written.
            cleared = _in_step(method, event.span, text="", tokens=())
            return replace(cleared, drafts=(*method.drafts, event))
        case _:
            return method


def _write(method: MethodView, event: TokenWritten) -> MethodView:
    step = next((step for step in method.steps if step.span == event.span), None)
    if step is None:
        return method
    text, tokens = ("", ()) if event.restart else (step.text, step.tokens)
    return _in_step(method, event.span, text=text + event.text, tokens=tokens + event.tokens)


def _in_step(method: MethodView, span: str, **changes: object) -> MethodView:
    steps = tuple(
        replace(step, **changes) if step.span == span else step  # pyright: ignore[reportArgumentType]
        for step in method.steps
    )
    return replace(method, steps=steps)
