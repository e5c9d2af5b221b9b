"""A view that fails by a mistake of ours leaves the rest of the page as it is."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from components import run_pages
from components.messages import Catalogue
from components.run_pages import PANELS, page_html, safely, whole_run
from tests.components.recorded import ORIGINAL, Record, full_method


def broken(*_: Any, **__: Any) -> str:
    raise KeyError("a secret of the machine")


def run() -> Any:
    record = Record("direct", "drad", "ever")
    for method in ("direct", "drad", "ever"):
        full_method(record, method, "supported")
    return record.finish()


def test_what_can_be_drawn_is_drawn(t: Catalogue):
    assert safely("Ask", t, lambda: "as it is") == "as it is"


def test_a_page_says_which_view_failed_and_the_log_says_why(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(PANELS, "drad", broken)
    with caplog.at_level(logging.ERROR):
        html = page_html("drad", run(), t)
    assert t("page.view_failed", view=t("method.drad.title")) in html
    assert "Where was Ada born?" in html
    assert "a secret" not in html
    assert "a secret of the machine" in caplog.text
    caplog.clear()


def test_the_report_keeps_its_other_pages(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    for name in ("ask_view", "compare_view"):
        monkeypatch.setattr(run_pages, name, broken)
    html = whole_run(run(), t)
    for page in ("ask", "compare"):
        assert t("page.view_failed", view=t(f"nav.{page}")) in html
    assert ORIGINAL in html
    caplog.clear()
