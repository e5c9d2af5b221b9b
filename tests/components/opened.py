"""Opens components in a browser page and finds their parts."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, ViewportSize

from components.base.theme import Theme, script, stylesheet
from components.base.words import Catalogue
from components.page import standalone
from components.run.text import heatmap
from tests.components import samples as s
from tests.components.gallery import gallery

PHONE: ViewportSize = {"width": 390, "height": 844}


def open_gallery(page: Page, theme: Theme = "light") -> None:
    page.set_content(standalone(gallery(), "Gallery", theme))


def open_view(page: Page, html: str = "") -> None:
    """An empty page whose `view` holds the functions of the module."""
    page.set_content(f'<style>{stylesheet()}</style><main class="vs-root"></main>')
    page.add_script_tag(content=f"{script()}\nwindow.view = {{ mount, patch }};", type="module")
    page.wait_for_function("window.view")
    patch(page, html)


def patch(page: Page, html: str) -> None:
    page.evaluate("html => view.patch(document.querySelector('.vs-root'), html)", str(html))


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.textContent")


def token(page: Page, text: str) -> Locator:
    return page.locator("#heat [data-i]").filter(has_text=re.compile(f"^{text}$")).first


def heat(t: Catalogue, count: int | None = None) -> str:
    tokens = s.TOKENS[:count]
    text = "".join(token.text for token in tokens)
    marks = [mark for mark in s.ENTITIES if mark.end <= len(text)]
    return heatmap(text, tokens, marks, t=t, id="heat")


def tip(page: Page) -> Locator:
    return page.get_by_role("tooltip")


def rgb(value: str) -> str:
    red, green, blue = (round(float(part)) for part in re.findall(r"[\d.]+", value)[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"
