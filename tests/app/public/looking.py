"""The Space's page in a browser, one tab after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as PatienceEnded

from components.base.words import Catalogue
from pipelines.base import Language
from tests.app.serving import DESKTOP
from tests.browser import PATIENCE

PREPARING = 300_000
"""Milliseconds until the walkthrough plays: its library may have to be indexed first."""

_OVER = re.compile("Done|Failed|Stopped|完成|失败|停止")

PAGE_FITS = "() => document.scrollingElement.scrollWidth <= innerWidth"
"""Whether nothing has to be scrolled sideways, for the browser to find out."""


@contextmanager
def looking(browser: Browser, scheme: str = "light") -> Iterator[BrowserContext]:
    """A browser of its own, in which walkthroughs are shown as they end.

    It does not mind which scripts a page allows: one of ours looks for barriers on it.
    """
    context = browser.new_context(
        viewport=DESKTOP,
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-US",
        reduced_motion="reduce",
        bypass_csp=True,
    )
    try:
        yield context
    finally:
        context.close()


def open_space(context: BrowserContext, url: str, language: Language, run: str = "") -> Page:
    """The page as soon as what it shows is over: the walkthrough, or a run of that address."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{url}/?lang={language}" + (f"&run={run}" if run else ""))
    expect(page.locator("#bar")).to_contain_text(_OVER, timeout=PREPARING)
    # The server's words come before the run, but a browser may show them after it.
    first = page.locator("#pages").get_by_role("tab").first
    expect(first).to_have_text(Catalogue(language)("nav.ask"))
    return page


def turn_to(page: Page, tab: str, t: Catalogue) -> None:
    """Turn to the tab of that name in the catalogue, which a narrow screen has in a menu."""
    direct = page.locator(f"#pages [role=tab][data-tab-id={tab}]")
    more = page.locator("#pages .overflow-menu > button")
    listed = page.locator("#pages .overflow-dropdown").get_by_role("button", name=t(f"nav.{tab}"))
    # What there is room for is found out anew with every change of words: a tab may just be moving.
    for _ in range(5):
        expect(direct.or_(more).filter(visible=True).first).to_be_visible()
        with suppress(PatienceEnded):
            for one in [direct] if direct.is_visible() else [more, listed]:
                one.click(timeout=PATIENCE / 10)
            return
    raise AssertionError(f"There is no tab {tab!r}.")


def each_tab(page: Page) -> Iterator[str]:
    """Turn to every tab of the page; its number and label, once it is drawn."""
    page.set_viewport_size(DESKTOP)
    labels = page.locator("#pages").get_by_role("tab").all_inner_texts()
    for number, label in enumerate(labels):
        page.set_viewport_size(DESKTOP)
        tab = page.locator("#pages").get_by_role("tab", name=label, exact=True).first
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("tabpanel").filter(visible=True).first).to_be_visible()
        # What was asked of the server for this tab has been drawn.
        page.wait_for_load_state("load")
        expect(page.locator(".pending, .generating")).to_have_count(0)
        yield f"{number}-{re.sub(r'[^a-z]+', '-', label.lower()).strip('-') or 'tab'}"
