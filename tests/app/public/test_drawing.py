"""Pages are drawn beside the event loop, and those of a run that is over once for everybody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.engine import Watched
from app.public import events as drawing
from app.public.events import Drawing, Drawn
from components.base.words import Catalogue
from components.run.report import page_html
from pipelines.run.events import Event
from pipelines.run.live import Subscription
from pipelines.store.exchange import load_recording, recordings

RECORDED = recordings()[0].id


class Held:
    """Drawing that waits until it is let."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let = threading.Event()
        self.drawn: list[str] = []

    def __call__(self, view: Any, page: str, language: str, loading: Any) -> Drawn:
        self.begun.set()
        assert self.let.wait(60)
        self.drawn.append(f"{page} {language}")
        return Drawn("bar", page, view.over)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held()
    monkeypatch.setattr(drawing, "_drawn", held)
    return held


@pytest.fixture
def draws() -> Iterator[Drawing]:
    found = Drawing()
    yield found
    found.close()


def watched(events: tuple[Event, ...], looks: list[int] | None = None) -> Watched:
    looks = [] if looks is None else looks
    return Watched("a run", Subscription(events, lambda: looks.append(1)))


async def test_what_is_drawn_is_the_page(draws: Drawing):
    run = watched(load_recording(RECORDED).events)
    found = await draws.draw(run, "drad", "zh", ())
    assert found.over
    assert found.page == page_html("drad", run.view, Catalogue("zh"))


async def test_the_loop_goes_on_while_something_is_drawn(held: Held, draws: Drawing):
    drawn = asyncio.create_task(
        draws.draw(watched(load_recording(RECORDED).events), "ask", "en", ())
    )
    # Were it drawn on the loop, nobody could let it go on.
    assert await asyncio.to_thread(held.begun.wait, 60)
    held.let.set()
    assert (await drawn).page == "ask"


async def test_a_run_that_is_over_is_drawn_once_for_all_who_look(held: Held, draws: Drawing):
    run = watched(load_recording(RECORDED).events)
    many = [asyncio.create_task(draws.draw(run, "ask", "en", ())) for _ in range(20)]
    await asyncio.to_thread(held.begun.wait, 60)
    # Who does not wait any longer takes nothing from the others.
    many.pop(0).cancel()
    held.let.set()
    assert {one.page for one in await asyncio.gather(*many)} == {"ask"}
    await draws.draw(run, "ask", "en", ())
    assert held.drawn == ["ask en"]
    await draws.draw(run, "ask", "zh", ())
    assert held.drawn == ["ask en", "ask zh"]


async def test_only_so_many_drawings_are_kept(
    held: Held, draws: Drawing, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(drawing, "_KEPT", 2)
    held.let.set()
    run = watched(load_recording(RECORDED).events)
    for page in ("ask", "drad", "ever", "ask", "ask"):
        await draws.draw(run, page, "en", ())
    assert [one.split()[0] for one in held.drawn] == ["ask", "drad", "ever", "ask"]


async def test_a_run_that_goes_on_is_looked_at_while_it_is_drawn(
    held: Held, draws: Drawing, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(drawing, "_LOOK", 0.01)
    looks: list[int] = []
    run = watched(load_recording(RECORDED).events[:5], looks)
    drawn = asyncio.create_task(draws.draw(run, "ask", "en", ()))
    await asyncio.to_thread(held.begun.wait, 60)
    seen = len(looks)
    while len(looks) < seen + 3:  # noqa: ASYNC110 - nothing tells when somebody looks
        await asyncio.sleep(0.01)
    held.let.set()
    assert not (await drawn).over
    # It is drawn again each time: there is more to see.
    await draws.draw(run, "ask", "en", ())
    assert len(held.drawn) == 2
