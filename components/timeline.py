"""When each call was made: one lane a method, one bar a call, every call in words below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from components.elements import fold
from components.markup import Content, Html, tag
from components.messages import Catalogue, duration, integer, named
from pipelines.types import Message

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


def timeline(calls: Sequence[CallBar], t: Catalogue, *, now: float | None = None) -> str:
    """The calls of a run as HTML.

    `now` is the run's clock while it runs (seconds); calls under way reach up to it. The axis ends
    at a round number, so bars do not move until that is passed. Bars share one tab stop.
    """
    if not calls:
        return tag("p.vs-empty", t("timeline.none"), id="timeline", key="timeline")
    clock = max([now or 0.0, *(call.end or call.start for call in calls)])
    end = axis_end(clock)
    methods = dict.fromkeys(call.method for call in calls)
    axis = "div.vs-axis.vs-axis-long" if end > 60 else "div.vs-axis"
    lanes = tag(
        "div.vs-lanes",
        tag(axis, _ticks(end, t), aria_hidden=True),
        (_lane(method, calls, clock, end, t) for method in methods),
        role="group",
        aria_label=t("timeline.name"),
        data_roving="bars",
    )
    entries = (tag("li", _entry(call, index, clock, t)) for index, call in enumerate(calls))
    words = t("timeline.all", count=len(calls))
    listed = fold(words, tag("ol.vs-calls", entries), key="timeline-calls")
    return tag(
        "section.vs-timeline", lanes, _legend(calls, t), listed, id="timeline", key="timeline"
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


def _lane(method: str, calls: Sequence[CallBar], clock: float, end: float, t: Catalogue) -> Html:
    mine = [(index, call) for index, call in enumerate(calls) if call.method == method]
    shortest = end * _SHORTEST_SHARE / 100
    spans = [(c.start, max(_end(c, clock), c.start + shortest)) for _, c in mine]
    rows = pack_rows(spans)
    bars = (
        tag(
            f"button.vs-bar.{_look(call)}",
            type="button",
            style=f"left:{100 * a / end:.2f}%;width:{100 * (b - a) / end:.2f}%;--row:{row}",
            aria_label=_title(call, clock, t),
            aria_controls=f"timeline-call-{index}",
            tabindex=0 if index == 0 else -1,
            data_i=index,
            key=f"timeline-bar-{call.id or index}",
        )
        for (index, call), row, (a, b) in zip(mine, rows, spans, strict=True)
    )
    lane = tag("div.vs-lane", bars, style=f"--rows:{max(rows) + 1}")
    name = tag("div.vs-lane-name", named("method", method, t))
    return tag("div.vs-lane-row", name, lane, key=f"timeline-lane-{method}")


def _look(call: CallBar) -> str:
    """The classes that distinguish kinds and outcomes of calls."""
    fates = {
        "cached": call.cached,
        "failed": call.error is not None,
        "retry": call.attempt > 1,
        "open": call.end is None,
    }
    return ".".join([f"vs-kind-{call.kind}", *(f"vs-bar-{fate}" for fate in fates if fates[fate])])


def _end(call: CallBar, clock: float) -> float:
    return clock if call.end is None else call.end


def _title(call: CallBar, clock: float, t: Catalogue) -> str:
    parts = [
        t(f"timeline.kind.{call.kind}"),
        named("step", call.step, t),
        call.model,
        duration(_end(call, clock) - call.start, t),
    ]
    open_call = [t("timeline.open")] if call.end is None else []
    return " · ".join([*filter(None, parts), *open_call, *remarks(call, t)])


def remarks(call: CallBar, t: Catalogue) -> list[str]:
    """How a call came out, where that is not as usual."""
    found = [t("timeline.cached")] if call.cached else []
    found += [t("timeline.attempt", count=call.attempt)] if call.attempt > 1 else []
    return found + ([t("timeline.failed")] if call.error is not None else [])


def token_counts(call: CallBar, t: Catalogue) -> list[str]:
    """How many tokens were read and written, where that is known."""
    counts = {"prompt": call.prompt_tokens, "completion": call.completion_tokens}
    return [
        t(f"timeline.{name}_tokens", count=integer(count))
        for name, count in counts.items()
        if count is not None
    ]


def _ticks(end: float, t: Catalogue) -> list[Html]:
    steps = _TICKS[f"{end:e}"[0]]
    times = ["0", *(duration(end * i / steps, t) for i in range(1, steps + 1))]
    return [tag("span", at, style=f"left:{100 * i / steps:.4g}%") for i, at in enumerate(times)]


def _legend(calls: Sequence[CallBar], t: Catalogue) -> Html:
    looks = {f"kind-{call.kind}": f"kind.{call.kind}" for call in calls}
    seen = {
        "cached": any(call.cached for call in calls),
        "retry": any(call.attempt > 1 for call in calls),
        "failed": any(call.error is not None for call in calls),
    }
    looks |= {f"bar-{name}": f"legend.{name}" for name, present in seen.items() if present}
    items = (
        tag("li", tag(f"i.vs-swatch.vs-{look}"), t(f"timeline.{words}"))
        for look, words in looks.items()
    )
    return tag("ul.vs-legend.vs-timeline-legend", items)


def _entry(call: CallBar, index: int, clock: float, t: Catalogue) -> Html:
    numbers = [t("timeline.at", value=duration(call.start, t)), *token_counts(call, t)]
    if call.role:
        numbers.append(t("timeline.role", value=named("role", call.role, t)))
    turns = [turn(t(f"timeline.turn.{m.role}"), turn_text(m.content)) for m in call.prompt]
    if call.reply:
        turns.append(turn(t(f"timeline.reply.{call.kind}"), turn_text(call.reply), "reply"))
    if call.error is not None:
        turns.append(turn(t("timeline.error"), turn_text(call.error), "error"))
    summary = [
        tag(f"i.vs-swatch.{_look(call)}"),
        tag("span.vs-strong", named("method", call.method, t)),
        " ",
        tag("span.vs-num", _title(call, clock, t)),
    ]
    line = tag("p.vs-note.vs-num", " · ".join(numbers))
    at, key = f"timeline-call-{index}", f"timeline-call-{call.id or index}"
    return fold(summary, line, turns, css="vs-call", id=at, key=key)


def turn(name: str, content: Content, kind: Literal["", "reply", "error"] = "") -> Html:
    """A part of what was sent or came back, under its name."""
    css = f"div.vs-turn.vs-turn-{kind}" if kind else "div.vs-turn"
    return tag(css, tag("div.vs-label", name), content)


def turn_text(text: str) -> Html:
    """A text that was sent or came back, with its own line breaks."""
    return tag("pre.vs-turn-text", text, dir="auto")
