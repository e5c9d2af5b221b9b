"""A run that was played ahead, as the pictures of its pages at one moment after another.

Pages are cut into pieces, and each different piece is kept once: from one moment to the next most
of a page stays as it is. Pure; `assets/player.js` puts the pictures together again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from components.ask import run_bar
from components.base.words import Catalogue, lang
from components.run.report import PAGES, page_html
from pipelines.run.events import Event, RunStarted
from pipelines.run.view import RunView, fold

PERIOD = 0.4
"""Seconds between two pictures of the line that ticks and of the page that is shown first."""

_LESS_OFTEN = 4
"""The other pages are drawn at every fourth moment."""

_PIECES = re.compile(
    r"(?=<(?:section|article|li|tr|div|p|h\d|button|details|ol|ul|table|span|svg|rect)\b)"
)
"""Where a page is cut: before an element, so that what changes is mostly a piece of its own."""


class Picture(NamedTuple):
    """What is to be seen from `at` on, in seconds since the start: HTML by the name of its view.

    Views that stay as they were are left out.
    """

    at: float
    views: dict[str, str]


def pictures(events: Sequence[Event], t: Catalogue, period: float = PERIOD) -> Iterator[Picture]:
    """Yield the line and every page of a run, from its beginning to its end.

    The last picture shows the whole run.
    """
    header = events[0]
    assert isinstance(header, RunStarted)
    view, shown, read, step, over = RunView(), dict[str, str](), 0, 0, False
    while not over:
        at = round(step * period, 3)
        news: list[Event] = []
        while read < len(events) and events[read].time <= at:
            news.append(events[read])
            read += 1
        view, over = fold(news, view), read == len(events)
        names = PAGES if over or step % _LESS_OFTEN == 0 else ("ask",)
        drawn = {"bar": run_bar(view, t, now=header.created + at)}
        for name in names:
            drawn[name] = page_html(name, view, t, now=header.created + at)
        changed = {name: html for name, html in drawn.items() if html != shown.get(name)}
        shown |= changed
        yield Picture(at, changed)
        step += 1


def packed(found: Sequence[Picture], t: Catalogue) -> dict[str, Any]:
    """Return the pictures as JSON: `pieces` of HTML, and what each view is made of from when on.

    A frame is its time and, for each view that changes, what stays of the view at its beginning and
    at its end, in pieces, and the numbers of the pieces between.
    """
    numbers: dict[str, int] = {}
    made: dict[str, list[int]] = {}
    frames: list[Any] = []
    for picture in found:
        changes: dict[str, Any] = {}
        for name, html in picture.views.items():
            before = made.get(name, [])
            now = [numbers.setdefault(piece, len(numbers)) for piece in _PIECES.split(html)]
            made[name] = now
            changes[name] = _difference(before, now)
        frames.append([picture.at, changes])
    return {"lang": lang(t.language), "pieces": list(numbers), "frames": frames}


def _difference(before: Sequence[int], now: Sequence[int]) -> list[Any]:
    """Return how many pieces stay at the beginning and at the end, and the numbers of those
    between.
    """
    most = min(len(before), len(now))
    first = next((i for i in range(most) if before[i] != now[i]), most)
    rest = most - first
    last = next((i for i in range(rest) if before[-1 - i] != now[-1 - i]), rest)
    return [first, last, list(now[first : len(now) - last])]
