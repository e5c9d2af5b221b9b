"""The line that ticks while a run goes on: time, calls, searches, tokens."""

from __future__ import annotations

from components.markup import Child, Html, tag
from components.messages import Catalogue
from components.numbers import duration, integer
from components.verdict import Status, status_badge

__all__ = ["announcement", "counters"]

_CALLS_STEP = 10
_SECONDS_STEP = 15


def counters(
    t: Catalogue,
    *,
    status: Status,
    seconds: float,
    calls: int,
    retrievals: int,
    tokens: int,
    id: str = "counters",
) -> str:
    """Elapsed seconds and counts so far.

    What ticks is hidden from screen readers, which hear `announcement` instead: a sentence that
    changes only when something worth hearing has happened.
    """
    figures: list[Child] = [
        _figure("seconds", _clock(seconds, t, running=status == "running")),
        _figure("calls", t("counter.calls", count=integer(calls))),
        _figure("retrievals", t("counter.retrievals", count=integer(retrievals))),
        _figure("tokens", t("counter.tokens", count=integer(tokens))),
    ]
    return tag(
        "div",
        status_badge(status, t),
        tag("span", figures, class_="vs-counter-figures vs-num", aria_hidden="true"),
        tag(
            "span",
            announcement(t, status=status, seconds=seconds, calls=calls),
            class_="vs-sr",
            role="status",
            aria_live="polite",
        ),
        class_="vs-counters",
        id=id,
        data_key=id,
    )


def announcement(t: Catalogue, *, status: Status, seconds: float, calls: int) -> str:
    """What a screen reader says. While running it changes every 10 calls or 15 seconds."""
    if status != "running":
        return t(f"counter.announce.{status}", value=duration(seconds, t), count=calls)
    calls_so_far = calls - calls % _CALLS_STEP
    seconds_so_far = int(seconds) - int(seconds) % _SECONDS_STEP
    if not seconds_so_far:
        return t(
            "counter.announce.calls" if calls_so_far else "counter.announce.started",
            count=calls_so_far,
        )
    return t("counter.announce.running", value=duration(seconds_so_far, t), count=calls_so_far)


def _figure(name: str, content: Child) -> Html:
    return tag("span", content, class_=f"vs-counter vs-counter-{name}", data_key=name)


def _clock(seconds: float, t: Catalogue, *, running: bool) -> Html:
    """While running, `data-clock` lets the page go on counting between two updates."""
    if running and seconds < 59:
        number = tag("span", f"{seconds:.1f}", data_clock=f"{seconds:.2f}")
        before, _, after = t("unit.seconds", value="\0").partition("\0")
        return tag("span", before, number, after)
    return tag("span", duration(seconds, t))
