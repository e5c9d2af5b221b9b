"""What the page shows of a run, as the outputs of an event: the bar, the page in view, buttons."""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from typing import Any

import gradio as gr

from app.engine import Watched
from app.public.drawing import Drawing
from app.public.parts import view_of
from app.public.session import Runs, VisitorSession
from app.public.visitors import HOUR
from components.elements import error_note, notice
from components.markup import Html, join
from components.messages import Catalogue
from components.run_pages import PAGES
from pipelines.errors import TooOftenError, VeriscopeError

_MINUTES = 120
"""A longer time is told in hours."""

_BUTTONS = 4
"""Run, stop, share, report: the last outputs of every frame."""


class Frames:
    """Frames of the runs that visitors look at. A frame has one value for each of `Parts.frame`."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.drawing = Drawing()

    async def frame(self, visit: VisitorSession) -> list[Any]:
        """Return the bar, the page in view, and which buttons can be used.

        It changes nothing where the browser plays the walkthrough.
        """
        if not (visit.began or visit.watched or visit.away):
            return nothing()
        await self._take_up(visit)
        loading = self._runs.engine.service.loading()
        while True:
            page, language = visit.page, visit.language
            watched = visit.watched or self._runs.walkthroughs.ready(language)
            if watched is None:
                return [*nothing()[:-_BUTTONS], *_buttons(busy=visit.waiting, shown=False)]
            drawn = await self.drawing.draw(watched, page, language, loading)
            if (page, language) == (visit.page, visit.language) and visit.watched in (
                None,
                watched,
            ):
                break
        t = Catalogue(language)
        return [
            # Who waits reads in this line how many are before them.
            gr.skip() if visit.waiting else view_of(drawn.bar, t),
            *(view_of(drawn.page, t) if name == page else gr.skip() for name in PAGES),
            *_buttons(busy=visit.waiting or not drawn.over, shown=True),
        ]

    async def told(self, visit: VisitorSession, html: str) -> list[Any]:
        """Return a frame with something to know in place of the bar."""
        visit.began = True
        return [view_of(html, Catalogue(visit.language)), *(await self.frame(visit))[1:]]

    async def shown(self, visit: VisitorSession) -> Watched:
        """Return the run that the visitor sees: their own, or the walkthrough."""
        await self._take_up(visit)
        return visit.watched or (await self._runs.walkthroughs.get(visit.language)).watched

    async def _take_up(self, visit: VisitorSession) -> None:
        """Read again the run of a page that was gone for a while."""
        away, visit.away = visit.away, ""
        shown = visit.shown
        if away and visit.watched is None:
            # It may have been deleted meanwhile.
            with suppress(VeriscopeError):
                visit.show(await self._runs.open(away, visit.owner), shown)


def refusal(error: VeriscopeError, t: Catalogue) -> Html:
    """Return why something is not done; where that is over by itself, when."""
    note = error_note(error.info(), t)
    if not isinstance(error, TooOftenError) or error.retry_after is None:
        return note
    hours, minutes = ceil(error.retry_after / HOUR), ceil(error.retry_after / 60)
    when = t("space.often.minutes", count=minutes)
    if minutes > _MINUTES:
        when = t("space.often.hours", count=hours)
    return join([notice(when, "often"), note])


def nothing() -> list[Any]:
    """Return a frame that leaves everything as it is."""
    return [gr.skip() for _ in range(1 + len(PAGES) + _BUTTONS)]


def _buttons(*, busy: bool, shown: bool) -> list[Any]:
    """Return the buttons run, stop, share, report: while something goes on, and while a run
    is shown.
    """
    usable = (not busy, busy, shown and not busy, shown and not busy)
    return [gr.update(interactive=one) for one in usable]
