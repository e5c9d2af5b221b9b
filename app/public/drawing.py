"""Draws the pages of runs beside the event loop; those of a run that is over only once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from app.engine import Watched
from components.ask import run_bar
from components.messages import Catalogue
from components.run_pages import page_html, safely
from pipelines.engine.pool import Loading
from pipelines.run.view import RunView
from pipelines.types import Language

_KEPT = 64
"""Drawings that are kept; one has up to 400,000 characters."""

_LOOK = 1.0
"""Seconds between two looks at a run while it is drawn: one that nobody looks at is stopped."""


class Drawn(NamedTuple):
    """The line that ticks and the page in view, as HTML, and whether the run is over."""

    bar: str
    page: str
    over: bool


class Drawing:
    """One thread that draws for all visitors, in the order of asking.

    More would be no faster, since they share one interpreter, and would leave less of it to the
    event loop.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="drawing")
        # By the id of a run, which nobody can guess; one that is over does not change.
        self._kept: OrderedDict[tuple[str, str, Language], asyncio.Future[Drawn]] = OrderedDict()

    async def draw(
        self, watched: Watched, page: str, language: Language, loading: Sequence[Loading]
    ) -> Drawn:
        """Return the page of the run as far as it has come."""
        view = watched.pull()
        if not view.over:
            drawing = self._begin(view, page, language, loading)
            while not drawing.done():
                await asyncio.wait({drawing}, timeout=_LOOK)
                watched.pull()
            return drawing.result()
        key = (watched.run_id, page, language)
        if key not in self._kept:
            self._kept[key] = self._begin(view, page, language, ())
        self._kept.move_to_end(key)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        # Who waits may go away; the others go on waiting.
        return await asyncio.shield(self._kept[key])

    def close(self) -> None:
        """Draw nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(
        self, view: RunView, page: str, language: Language, loading: Sequence[Loading]
    ) -> asyncio.Future[Drawn]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._thread, _drawn, view, page, language, loading)


def _drawn(view: RunView, page: str, language: Language, loading: Sequence[Loading]) -> Drawn:
    t, now = Catalogue(language), time.time()
    bar = safely(t("nav.ask"), t, partial(run_bar, view, t, now=now))
    return Drawn(bar, page_html(page, view, t, now=now, loading=loading), view.over)
