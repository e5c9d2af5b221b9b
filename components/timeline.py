"""When each call was made: one lane a method, one bar a call, every call in words below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from components.calls import (
    Call,
    call_end,
    call_entry,
    call_fates,
    call_kind,
    call_look,
    call_title,
)
from components.elements import fold
from components.markup import Html, tag
from components.messages import Catalogue, duration, named
from pipelines.run.view import RunView, StepView

_NICE = (1, 2, 3, 5)
_TICKS = {"1": 5, "2": 4, "3": 3, "5": 5}
_SHORTEST_SHARE = 0.4


class CallBar(NamedTuple):
    """A call, the method that made it, and the name of the step that it was made in, if any."""

    method: str
    step: str
    call: Call


def call_bars(view: RunView) -> list[CallBar]:
    """Return every attempt and search so far by the time it began, with what is being
    written now.
    """
    bars: list[CallBar] = []
    for method in view.methods.values():
        steps = {step.span: step.name for step in method.steps}
        for call in (*method.calls, *method.searches):
            bars.append(CallBar(method.name, steps.get(call.span, ""), call))
        called = {call.span for call in method.calls}
        for step in method.steps:
            if not view.over and step.outcome is None and step.text and step.span not in called:
                bars.append(CallBar(method.name, step.name, step))
    return sorted(bars, key=lambda bar: bar.call.started)


def timeline(bars: Sequence[CallBar], t: Catalogue, *, now: float | None = None) -> str:
    """Return the calls of a run as HTML.

    `now` is the run's clock while it runs (seconds); calls under way reach up to it. The axis ends
    at a round number, so bars do not move until that is passed. Bars share one tab stop.
    """
    if not bars:
        return tag("p.vs-empty", t("timeline.none"), id="timeline", key="timeline")
    clock = max([now or 0.0, *(call_end(bar.call) or bar.call.started for bar in bars)])
    end = axis_end(clock)
    methods = dict.fromkeys(bar.method for bar in bars)
    axis = "div.vs-axis.vs-axis-long" if end > 60 else "div.vs-axis"
    lanes = tag(
        "div.vs-lanes",
        tag(axis, _ticks(end, t), aria_hidden=True),
        (_lane(method, bars, clock, end, t) for method in methods),
        role="group",
        aria_label=t("timeline.name"),
        data_roving="bars",
    )
    entries = (tag("li", _entry(bar, index, clock, t)) for index, bar in enumerate(bars))
    words = t("timeline.all", count=len(bars))
    listed = fold(words, tag("ol.vs-calls", entries), key="timeline-calls")
    legend = _legend([bar.call for bar in bars], t)
    return tag("section.vs-timeline", lanes, legend, listed, id="timeline", key="timeline")


def axis_end(seconds: float) -> float:
    """Return the smallest of 1, 2, 3, 5 times a power of ten that is not below `seconds` (0.1
    or more).
    """
    power = -1
    while True:
        for step in _NICE:
            if seconds <= (end := float(f"{step}e{power}")):
                return end
        power += 1


def pack_rows(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return a row for each span, counted from 0, so that no two in a row overlap.

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


def _lane(method: str, bars: Sequence[CallBar], clock: float, end: float, t: Catalogue) -> Html:
    mine = [(index, bar) for index, bar in enumerate(bars) if bar.method == method]
    shortest = end * _SHORTEST_SHARE / 100
    spans: list[tuple[float, float]] = []
    for _, bar in mine:
        start, ended = bar.call.started, call_end(bar.call)
        spans.append((start, max(clock if ended is None else ended, start + shortest)))
    rows = pack_rows(spans)
    drawn = (
        tag(
            f"button.vs-bar.{call_look(bar.call)}",
            type="button",
            style=f"left:{100 * a / end:.2f}%;width:{100 * (b - a) / end:.2f}%;--row:{row}",
            aria_label=call_title(bar.call, t, step=bar.step, now=clock),
            aria_controls=f"timeline-call-{index}",
            tabindex=0 if index == 0 else -1,
            data_i=index,
            key=f"timeline-bar-{_id(bar.call)}",
        )
        for (index, bar), row, (a, b) in zip(mine, rows, spans, strict=True)
    )
    lane = tag("div.vs-lane", drawn, style=f"--rows:{max(rows) + 1}")
    name = tag("div.vs-lane-name", named("method", method, t))
    return tag("div.vs-lane-row", name, lane, key=f"timeline-lane-{method}")


def _id(call: Call) -> str:
    return call.span if isinstance(call, StepView) else str(call.seq)


def _ticks(end: float, t: Catalogue) -> list[Html]:
    steps = _TICKS[f"{end:e}"[0]]
    times = ["0", *(duration(end * i / steps, t) for i in range(1, steps + 1))]
    return [tag("span", at, style=f"left:{100 * i / steps:.4g}%") for i, at in enumerate(times)]


def _legend(calls: Sequence[Call], t: Catalogue) -> Html:
    looks = {f"kind-{kind}": f"kind.{kind}" for kind in dict.fromkeys(map(call_kind, calls))}
    seen = {fate for call in calls for fate in call_fates(call)}
    fates = (fate for fate in ("cached", "retry", "failed") if fate in seen)
    looks |= {f"bar-{fate}": f"legend.{fate}" for fate in fates}
    items = (
        tag("li", tag(f"i.vs-swatch.vs-{look}"), t(f"timeline.{words}"))
        for look, words in looks.items()
    )
    return tag("ul.vs-legend.vs-timeline-legend", items)


def _entry(bar: CallBar, index: int, clock: float, t: Catalogue) -> Html:
    method = tag("span.vs-strong", named("method", bar.method, t))
    place = {"id": f"timeline-call-{index}", "key": f"timeline-call-{_id(bar.call)}"}
    title = call_title(bar.call, t, step=bar.step, now=clock)
    return call_entry(bar.call, title, t, method, " ", **place)
