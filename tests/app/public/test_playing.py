"""What plays for who comes without a run gives way to what they ask, however early they ask it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from app.engine import Watched
from app.public.models import ModelCatalog
from app.public.page import SpacePage
from app.public.session import Runs, VisitorLimits, VisitorSession
from pipelines.engine.admission import Admission
from pipelines.engine.thread import Engine
from pipelines.store.recordings import recordings


class Playing:
    """Stands for the runs: plays a recorded one, over and over, and says whether it was ended."""

    def __init__(self, engine: Engine) -> None:
        self.runs = Runs(engine, Admission(1))
        self.engine = engine
        self.ended = False

    async def play(self, *_: Any) -> AsyncGenerator[Watched]:
        try:
            while True:
                yield await self.runs.open(recordings()[0].id, "me")
        finally:
            self.ended = True


@asynccontextmanager
async def playing(folder: Path) -> AsyncIterator[tuple[SpacePage, Playing]]:
    engine = Engine(folder)
    try:
        runs = Playing(engine)
        yield SpacePage(cast("Runs", runs), ModelCatalog(), VisitorLimits()), runs
    finally:
        engine.close()


def changes(frame: list[Any]) -> list[Any]:
    return [one for one in frame if "value" in one]


async def test_who_asked_while_the_page_was_loaded_sees_nothing_play(tmp_path: Path):
    async with playing(tmp_path) as (page, _):
        assert [frame async for frame in page.play(VisitorSession(owner="me", began=True))] == []


async def test_who_asks_while_something_plays_ends_it_and_keeps_what_they_see(tmp_path: Path):
    async with playing(tmp_path) as (page, runs):
        visit = VisitorSession(owner="me")
        frames = page.play(visit)
        assert changes(await anext(frames))
        visit.began, visit.watched = True, None
        left = [frame async for frame in frames]
        # The last frame of an event is sent twice, so it has to be one that changes nothing.
        assert [changes(frame) for frame in left] == [[]]
        assert visit.watched is None
        assert runs.ended


async def test_who_asks_before_they_are_known_is_somebody(tmp_path: Path):
    async with playing(tmp_path) as (page, _):
        first, second = VisitorSession(), VisitorSession()
        for visit in (first, second):
            # There is no question, which is said; what matters is who asked.
            assert [frame async for frame in page.answer(visit, "", ["direct"])]
        assert first.owner
        assert second.owner
        assert first.owner != second.owner
        assert first.began
