"""A catalogue, and a page in a real browser for those that ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page

from components.base.words import Catalogue


@pytest.fixture
def t() -> Catalogue:
    """The English catalogue."""
    return Catalogue("en")


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
