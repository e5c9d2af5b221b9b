"""When each call was made: one lane a method, one bar a call, every call in words below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from components.markup import Child, Html, tag
from components.messages import Catalogue, duration, integer, named
from pipelines.types import Message

__all__ = ["CallBar", "CallKind", "axis_end", "pack_rows", "timeline", "turn"]

CallKind = Literal["generate", "choose", "score", "retrieve", "compare"]

_NICE = (1, 2, 3, 5)
_TICKS = {"1": 5, "2": 4, "3": 3, "5": 5}
_SHORTEST_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class CallBar:
    """One attempt of a call. `start` and `end` are seconds since the run started.

    `end` None means that the call is under way. `error` is the sentence to show when it failed;
    `prompt` holds the messages sent (a query, as one user message, for a search).
    """

    method: str
    step: str
    role: str
    model: str
    start: float
    end: float | None
    kind: CallKind
    cached: bool = False
    attempt: int = 1
    error: str | None = None
    prompt: tuple[Message, ...] = ()
    reply: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    id: str = field(default="")


def timeline(
    calls: Sequence[CallBar], t: Catalogue, *, id: str = "timeline", now: float | None = None
) -> str:
    """The calls of a run as HTML.

    `now` is the run's clock while it runs (seconds); calls under way reach up to it. The axis ends
    at a round number, so bars keep their places until that is passed. Bars share one tab stop.
    """
    if not calls:
        return tag("p.vs-empty", t("timeline.none"), id=id, key=id)
    clock = max([now or 0.0, *(call.end or call.start for call in calls)])
    end = axis_end(clock)
    methods = list(dict.fromkeys(call.method for call in calls))
    lanes = (_lane(method, calls, clock, end, t, id) for method in methods)
    return tag(
        "section.vs-timeline",
        tag(
            "div.vs-lanes",
            tag(
                "div",
                _ticks(end, t),
                class_="vs-axis vs-axis-long" if end > 60 else "vs-axis",
                aria_hidden=True,
            ),
            lanes,
            role="group",
            aria_label=t("timeline.name"),
            data_roving="bars",
        ),
        _legend(calls, t),
        _list(calls, clock, t, id),
        id=id,
        key=id,
    )


def axis_end(seconds: float) -> float:
    """The smallest of 1, 2, 3, 5 times a power of ten that is not below `seconds` (0.1 or more)."""
    power = -1
    while True:
        for step in _NICE:
            if seconds <= (end := float(f"{step}e{power}")):
                return end
        power += 1


def pack_rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """A row for each span, counted from 0, so that no two in a row overlap.

    A span takes the first row that is free when it begins, so one that is still growing does not
    move those before it.
    """
    rows: list[int] = [0] * len(spans)
    free: list[float] = []
    for index in sorted(range(len(spans)), key=lambda i: (spans[i][0], i)):
        start, end = spans[index]
        row = next((r for r, until in enumerate(free) if until <= start), len(free))
        free[row : row + 1] = [end]
        rows[index] = row
    return rows


def _lane(
    method: str, calls: Sequence[CallBar], clock: float, end: float, t: Catalogue, prefix: str
) -> Html:
    mine = [(i, call) for i, call in enumerate(calls) if call.method == method]
    shortest = end * _SHORTEST_SHARE / 100
    spans = [(c.start, max(_end(c, clock), c.start + shortest)) for _, c in mine]
    rows = pack_rows(spans)
    bars = [
        _bar(call, index, row, span, end, clock, t, prefix)
        for (index, call), row, span in zip(mine, rows, spans, strict=True)
    ]
    return tag(
        "div.vs-lane-row",
        tag("div.vs-lane-name", named("method", method, t)),
        tag("div.vs-lane", bars, style=f"--rows:{max(rows) + 1}"),
        key=f"{prefix}-lane-{method}",
    )


def _bar(
    call: CallBar,
    index: int,
    row: int,
    span: tuple[float, float],
    end: float,
    clock: float,
    t: Catalogue,
    prefix: str,
) -> Html:
    left, width = 100 * span[0] / end, 100 * (span[1] - span[0]) / end
    return tag(
        f"button.vs-bar.{_look(call)}",
        type="button",
        style=f"left:{left:.2f}%;width:{width:.2f}%;--row:{row}",
        aria_label=_title(call, clock, t),
        aria_controls=f"{prefix}-call-{index}",
        tabindex=0 if index == 0 else -1,
        data_i=index,
        key=f"{prefix}-bar-{call.id or index}",
    )


def _look(call: CallBar) -> str:
    """The classes that distinguish kinds and outcomes of calls."""
    fates = {
        "cached": call.cached,
        "failed": call.error is not None,
        "retry": call.attempt > 1,
        "open": call.end is None,
    }
    marks = [f"vs-bar-{fate}" for fate, so in fates.items() if so]
    return " ".join([f"vs-kind-{call.kind}", *marks])


def _end(call: CallBar, clock: float) -> float:
    return clock if call.end is None else call.end


def _title(call: CallBar, clock: float, t: Catalogue) -> str:
    parts = [
        t(f"timeline.kind.{call.kind}"),
        named("step", call.step, t),
        call.model,
        duration(_end(call, clock) - call.start, t),
    ]
    return " · ".join([*filter(None, parts), *_remarks(call, t)])


def _remarks(call: CallBar, t: Catalogue) -> list[str]:
    remarks = [t("timeline.open")] if call.end is None else []
    remarks += [t("timeline.cached")] if call.cached else []
    remarks += [t("timeline.attempt", count=call.attempt)] if call.attempt > 1 else []
    return remarks + ([t("timeline.failed")] if call.error is not None else [])


def _ticks(end: float, t: Catalogue) -> list[Html]:
    steps = _TICKS[f"{end:e}"[0]]
    return [
        tag(
            "span", duration(end * i / steps, t) if i else "0", style=f"left:{100 * i / steps:.4g}%"
        )
        for i in range(steps + 1)
    ]


def _legend(calls: Sequence[CallBar], t: Catalogue) -> Html:
    kinds = dict.fromkeys(call.kind for call in calls)
    items: list[Child] = [
        tag("li", tag(f"i.vs-swatch.vs-kind-{kind}"), t(f"timeline.kind.{kind}")) for kind in kinds
    ]
    seen = {
        "cached": any(call.cached for call in calls),
        "retry": any(call.attempt > 1 for call in calls),
        "failed": any(call.error is not None for call in calls),
    }
    items += [
        tag("li", tag(f"i.vs-swatch.vs-bar-{name}"), t(f"timeline.legend.{name}"))
        for name, present in seen.items()
        if present
    ]
    return tag("ul.vs-legend.vs-timeline-legend", items)


def _list(calls: Sequence[CallBar], clock: float, t: Catalogue, prefix: str) -> Html:
    entries = (_entry(call, index, clock, t, prefix) for index, call in enumerate(calls))
    return tag(
        "details.vs-details",
        tag("summary", t("timeline.all", count=len(calls))),
        tag("ol.vs-calls", (tag("li", entry) for entry in entries)),
        key=f"{prefix}-calls",
    )


def _entry(call: CallBar, index: int, clock: float, t: Catalogue, prefix: str) -> Html:
    numbers = [t("timeline.at", value=duration(call.start, t))]
    if call.prompt_tokens is not None:
        numbers.append(t("timeline.prompt_tokens", count=integer(call.prompt_tokens)))
    if call.completion_tokens is not None:
        numbers.append(t("timeline.completion_tokens", count=integer(call.completion_tokens)))
    if call.role:
        numbers.append(t("timeline.role", value=named("role", call.role, t)))
    turns = [turn(t(f"timeline.turn.{m.role}"), _text(m.content)) for m in call.prompt]
    if call.reply:
        turns.append(turn(t(f"timeline.reply.{call.kind}"), _text(call.reply), css="vs-turn-reply"))
    if call.error is not None:
        turns.append(turn(t("timeline.error"), _text(call.error), css="vs-turn-error"))
    return tag(
        "details.vs-details.vs-call",
        tag(
            "summary",
            tag(f"i.vs-swatch.{_look(call)}"),
            tag("span.vs-strong", named("method", call.method, t)),
            " ",
            tag("span.vs-num", _title(call, clock, t)),
        ),
        tag("p.vs-note.vs-num", " · ".join(numbers)),
        turns,
        id=f"{prefix}-call-{index}",
        key=f"{prefix}-call-{call.id or index}",
    )


def turn(name: str, *content: Child, css: str = "") -> Html:
    """A part of what was sent or came back, under its name."""
    return tag("div", tag("div.vs-label", name), content, class_=f"vs-turn {css}".strip())


def _text(text: str) -> Html:
    return tag("pre.vs-turn-text", text, dir="auto")
