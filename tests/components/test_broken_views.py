"""A view that fails by a mistake of ours leaves the rest of the page as it is."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from components.base.words import Catalogue
from components.run import report
from components.run.report import PANELS, page_html, report_html, safely
from tests.scripted.recorded import ORIGINAL, Record, full_method


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


def test_the_report_keeps_its_other_parts_and_names_those_that_failed(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(report, "compare_view", broken)
    monkeypatch.setattr(report, "timeline", broken)
    monkeypatch.setitem(PANELS, "drad", broken)
    html = report_html(run(), t)
    parts = [t("method.drad.title"), t("nav.compare"), t("report.calls", count=0)]
    for part in parts:
        assert t("page.view_failed", view=part) in html
    listed = t("list.separator").join(parts)
    assert t("report.failed", count=len(parts), list=listed) in html
    assert ORIGINAL in html
    caplog.clear()


def test_a_report_without_its_head_is_still_a_report(
    t: Catalogue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(report, "report_head", broken)
    html = report_html(run(), t)
    assert t("page.view_failed", view=t("report.kind")) in html
    assert t("report.failed", count=1, list=t("report.kind")) in html
    assert html.count("<h1") == 1
    assert ORIGINAL in html
    caplog.clear()
