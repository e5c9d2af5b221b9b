"""The workbench never shows Streamlit's own error screen in place of a page."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import page as live
from app.screens import ask, compare, methods
from components.base.elements import error_title
from components.base.words import Catalogue
from pipelines.engine.service import Engine
from tests.app.playing import opened, seen
from tests.app.test_screens import MAIN, ME

T = Catalogue("en")


def broken(*_: Any, **__: Any) -> str:
    raise KeyError("a secret of the machine")


def failed(test: AppTest, view: str) -> bool:
    assert not test.exception
    assert "a secret" not in seen(test)
    return T("page.view_failed", view=view) in seen(test)


@pytest.mark.parametrize(
    ("page", "module", "name", "view"),
    [
        ("rowen", methods, "panel_of", "method.rowen.title"),
        ("ask", ask, "ask_view", "nav.ask"),
        ("compare", compare, "compare_view", "nav.compare"),
    ],
)
def test_a_view_that_cannot_be_drawn_is_named(
    played: Engine,
    wall: str,
    page: str,
    module: Any,
    name: str,
    view: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr(module, name, broken)
    assert failed(opened(page, wall), T(view))
    assert "a secret of the machine" in caplog.text
    caplog.clear()


def test_a_page_that_cannot_be_drawn_at_all_is_named_too(
    played: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(ask, "draw_setup", broken)
    test = AppTest.from_file(MAIN, default_timeout=60)
    test.session_state["_owner"] = ME
    assert failed(test.run(), T("nav.ask"))
    caplog.clear()


def test_a_callback_that_fails_says_so(
    played: Engine, wall: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    test = opened("runs", wall)
    monkeypatch.setattr(live, "open_run", broken)
    test.button(key=f"open-{wall}").click().run()
    assert not test.exception
    assert error_title("unexpected", T) in seen(test)
    caplog.clear()
