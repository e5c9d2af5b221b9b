"""What a screen knows of a run, folded from its events: `reduce(view, event) -> view`.

Pure and the same for every reader. Live and stored runs give the same view, except that a live
one also shows the text being written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import isfinite
from typing import Any, Literal

from pipelines.base import Answer, Passage, Token, UnsupportedSpan
from pipelines.errors import ErrorInfo, limit_in
from pipelines.models.base import Capabilities, ChoiceRequest
from pipelines.run.events import (
    DOUBTS,
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
    """Return a count among the method's settings, from 0 to `most`; else `default`."""
    value = number_setting(method, name)
    return default if value is None or value < 0 else int(min(value, most))


def passages_found(methods: Iterable[MethodView]) -> list[tuple[Passage, str]]:
    """Return each passage that `methods` found once, as found, with the query that was first."""
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


# Which words of a text the judges behind a verdict do not find supported by what they read.

_Pieces = Sequence[UnsupportedSpan]


class UnsupportedWords:
    """What the judges of a method, as far as it has come, said about single words."""

    def __init__(self, method: MethodView) -> None:
        self._parents = {step.span: step.parent for step in method.steps}
        self._calls: dict[str, list[ModelCalled]] = {}
        for call in method.calls:
            asked = call.request
            looked = call.choice is not None and call.choice.unsupported is not None
            if looked and isinstance(asked, ChoiceRequest) and asked.claim is not None:
                self._calls.setdefault(asked.claim.statement.strip(), []).append(call)

    def of(self, event: Judged, text: str = "") -> tuple[UnsupportedSpan, ...]:
        """Return the pieces of `text` that are unsupported, with offsets in it; by default the
        event's.

        There are none where neither the verdict nor a score behind it is a doubt, and where no
        judge that looks at single words was asked about exactly this text. Judges, and answers of
        one judge, have to agree.
        """
        text = text or event.text
        calls = self._calls.get(text.strip(), ())
        doubted = event.verdict in DOUBTS or any(score.flagged for score in event.scores)
        if not doubted or not calls:
            return ()
        behind = {event.span, *(span for score in event.scores for span in score.behind)}
        said = [_pieces(call, text) for call in calls if behind & {*self._around(call.span)}]
        return tuple(_common(said)) if said else ()

    def _around(self, span: str | None) -> Iterator[str]:
        """Yield a span, the one that contains it, and so on."""
        seen: set[str] = set()
        while span is not None and span not in seen:
            seen.add(span)
            yield span
            span = self._parents.get(span)


def _pieces(call: ModelCalled, text: str) -> _Pieces:
    """Return what a call says, with offsets in `text`; runs from elsewhere hold any numbers."""
    assert isinstance(call.request, ChoiceRequest)
    assert call.request.claim is not None
    assert call.choice is not None
    statement = call.request.claim.statement
    shift = _indent(text) - _indent(statement)
    said = call.choice.unsupported or ()
    moved = ((one.start + shift, one.end + shift, one.doubt) for one in said)
    return [
        UnsupportedSpan(start=max(0, start), end=min(end, len(text)), doubt=doubt)
        for start, end, doubt in moved
        if max(0, start) < min(end, len(text))
    ]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _common(said: Sequence[_Pieces]) -> Iterator[UnsupportedSpan]:
    """Yield the pieces that are in all of `said`; of the doubts about each the lowest counts."""
    doubts = [
        {at: one.doubt for one in pieces for at in range(one.start, one.end)} for pieces in said
    ]
    shared = sorted(set.intersection(*(set(one) for one in doubts)))
    for _, run in groupby(enumerate(shared), lambda pair: pair[1] - pair[0]):
        places = [place for _, place in run]
        doubt = min(max(one[at] for at in places) for one in doubts)
        yield UnsupportedSpan(start=places[0], end=places[-1] + 1, doubt=doubt)
