"""The Space in a real browser, on shared runs with hostile text in every field."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from components.run.report import PAGES
from tests.app.public.conftest import Served
from tests.browser import PATIENCE
from tests.components.imported import runs
from tests.components.injections import Injected
from tests.components.sentinel import Sentinel

OWNER = "d" * 48


def shared(served: Served) -> dict[str, str]:
    """Shared runs, one of every method: method to id."""
    store = served.space.engine.service.store
    found: dict[str, str] = {}
    for number, trace in enumerate(runs()):
        lines = Injected(trace).spread(31 + number * 17)
        method = trace.header.spec.methods[0].name
        found[method] = store.share(store.import_run(lines, OWNER), OWNER)
    return found


@pytest.mark.verify
def test_nothing_in_the_space_is_executed_or_asked_for(
    browser: Browser, served: Served, monkeypatch: pytest.MonkeyPatch
):
    # What has no words is shown by its name, as people see it.
    monkeypatch.setenv("VERISCOPE_STRICT_MESSAGES", "0")
    context = browser.new_context(reduced_motion="reduce")
    sentinel = Sentinel(context)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        for method, run in shared(served).items():
            page.goto(f"{served.url}/?run={run}")
            expect(page.locator("#view-ask .vs-run").first).to_be_visible()
            sentinel.look(page)
            names = [page_ for page_, shown in PAGES.items() if method in shown or not shown]
            for name in names:
                number = list(PAGES).index(name)
                page.get_by_role("tab").nth(number).click()
                expect(page.locator(f"#view-{name} .vs-run").first).to_be_visible()
                sentinel.look(page)
        sentinel.assert_quiet()
        print(f"{sentinel.pages} pages, {sentinel.requests} requests")
    finally:
        context.close()
