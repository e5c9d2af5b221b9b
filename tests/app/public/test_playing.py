"""What plays for who comes without a run gives way to what they ask, however early they ask it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from app.engine import Watched
from app.public.models import ModelCatalog
from app.public.page import SpacePage
from app.public.session import Runs, VisitorLimits, VisitorSession
from pipelines.engine.admission import Admission
from pipelines.engine.thread import Engine
from pipelines.methods.registry import standard_methods
from pipelines.run.view import fold
from pipelines.store.recordings import load_recording, recordings
from tests.components.html_tree import read

if TYPE_CHECKING:
    import gradio as gr


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


async def test_a_line_says_what_the_chosen_methods_take(tmp_path: Path):
    async with playing(tmp_path) as (page, _):
        visit = VisitorSession(owner="me")

        async def line(methods: list[str], *own: str) -> str:
            update = await page.expect(visit, methods, *own)
            return read(update["value"]).one("p").text()

        one, both = await line(["direct"]), await line(["direct", "ever"])
        assert one.startswith("About 1 call · ")
        assert one.endswith(" · free")
        assert both != one
        own = await line(["direct"], "openai", "gpt", "a key", "")
        assert own.endswith("time: known after the first run of this model · price: not known")
        # A model that is only half described is not counted yet.
        assert await line(["direct"], "openai", "gpt", "", "") == one
        assert await line([]) == "Choose at least one method."
        visit.language = "zh"
        assert (await line(["direct"])).startswith("约 1 次调用")


async def test_the_methods_that_were_left_out_are_run_too(tmp_path: Path):
    async with playing(tmp_path) as (page, _):
        view = fold(load_recording(recordings()[0].id).events)
        assert view.header is not None
        asked = view.header.spec.model_copy(update={"methods": view.header.spec.methods[:1]})
        view = replace(view, header=view.header.model_copy(update={"spec": asked}))
        visit = VisitorSession(owner="me")
        visit.watched = cast("Watched", SimpleNamespace(view=view, spec=asked, methods=["direct"]))
        seen: list[tuple[str, list[str]]] = []

        async def answer(visit: Any, question: str, methods: list[str], *own: Any):
            seen.append((question, methods))
            yield ["frame"]

        page.answer = answer  # type: ignore[method-assign]
        pressed = cast("gr.EventData", SimpleNamespace(action="complete", value="standard"))
        frames = [frame async for frame in page.act(visit, pressed)]
        assert len(frames) == 1
        assert seen == [(asked.question, standard_methods())]
