"""The Space shows the rest of a page where a view cannot be drawn, and no error of Gradio's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.public import events
from app.public.page import SpacePage
from app.public.visitors import VisitorLimits, VisitorSession
from components.base.words import Catalogue
from components.run.report import PAGES, PANELS
from tests.components.test_broken_views import broken, run

T = Catalogue("en")


async def frame(page: str) -> list[str]:
    """What a visitor is shown who turns to `page`: the bar, then every page that is drawn."""
    view = run()
    watched: Any = SimpleNamespace(pull=lambda: view, view=view)
    engine = SimpleNamespace(service=SimpleNamespace(loading=list))
    runs: Any = SimpleNamespace(engine=engine)
    watched.run_id = "a run"
    catalog: Any = None
    it = SpacePage(runs, catalog, VisitorLimits())
    updates = await it.turn_to(page, VisitorSession(watched=watched))
    return [update["value"] for update in updates[: 1 + len(PAGES)] if "value" in update]


async def test_a_method_that_cannot_be_drawn_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(PANELS, "drad", broken)
    bar, page = await frame("drad")
    assert "vs-counters" in bar
    assert T("page.view_failed", view=T("method.drad.title")) in page
    assert "Where was Ada born?" in page
    caplog.clear()


async def test_a_bar_that_cannot_be_drawn_leaves_the_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(events, "run_bar", broken)
    bar, page = await frame("ask")
    assert T("page.view_failed", view=T("nav.ask")) in bar
    assert "vs-run" in page
    caplog.clear()
