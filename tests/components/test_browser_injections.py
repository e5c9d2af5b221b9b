"""The report, opened from disk in a real browser, with hostile text in every field."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from components.base.words import Catalogue
from components.run.report import report_html
from pipelines.run.view import fold
from pipelines.store.exchange import parse_lines
from tests.components.imported import runs
from tests.components.injections import Injected
from tests.components.sentinel import Sentinel

_SHIFTS = 3


@pytest.mark.verify
def test_nothing_in_a_report_is_executed_or_asked_for(browser: Browser, tmp_path: Path):
    t = Catalogue("en", strict=False)
    context = browser.new_context(reduced_motion="reduce")
    sentinel = Sentinel(context)
    page = context.new_page()
    try:
        for number, trace in enumerate(runs()):
            for shift in range(_SHIFTS):
                view = fold(parse_lines(Injected(trace).spread(shift * 71 + number)))
                assert view.header is not None
                report = tmp_path / f"report-{number}-{shift}.html"
                report.write_text(report_html(view, t), encoding="utf-8")
                page.goto(report.as_uri())
                sentinel.look(page)
        sentinel.assert_quiet()
    finally:
        context.close()
