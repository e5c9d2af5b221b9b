"""A strict catalogue for every test here, and a page in a real browser for those that ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from components.messages import Catalogue
from tests.browser import require_chromium


@pytest.fixture(autouse=True)
def strict_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing text is an error, also in catalogues that components make themselves."""
    monkeypatch.setenv("VERISCOPE_STRICT_MESSAGES", "1")


@pytest.fixture
def t() -> Catalogue:
    """The English catalogue."""
    return Catalogue("en")


# One browser a module, not a session: while it is open its event loop counts as running, which
# would keep asynchronous tests of other modules from starting theirs.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=require_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    """An empty page, 1400 pixels wide; an error in a script or a dialog fails the test."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    faults: list[str] = []

    def refuse(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", refuse)
    yield page
    page.close()
    assert not faults, faults
