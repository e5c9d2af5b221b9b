"""What only a browser can tell of layout, colours, motion, containment."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from components.base.html import tag
from components.base.theme import ASSETS, Theme, stylesheet
from components.base.words import Catalogue
from components.page import standalone
from tests.components.base.test_theme import contrast
from tests.components.opened import (
    heat,
    open_gallery,
    open_view,
    rgb,
    tip,
    token,
)
from tests.components.test_hostile import HOSTILE, everything


@pytest.mark.verify
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_screen(browser_page: Page, theme: Theme, width: int) -> None:
    browser_page.set_viewport_size({"width": width, "height": 844})
    open_gallery(browser_page, theme)
    for details in browser_page.locator("details").all():
        details.evaluate("details => { details.open = true }")
    assert browser_page.evaluate("document.documentElement.scrollWidth") == width


def test_text_of_models_is_never_smaller_than_the_interface(browser_page: Page) -> None:
    open_gallery(browser_page)
    sizes = browser_page.evaluate(
        """() => ['.vs-answer', '.vs-heat-text [data-i]', '.vs-turn-text', '.vs-score-name']
          .map(name => parseFloat(getComputedStyle(document.querySelector(name)).fontSize))"""
    )
    assert sizes == [16, 16, 14, 14]


@pytest.mark.verify
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rendered_text_has_enough_contrast(browser_page: Page, theme: Theme) -> None:
    open_gallery(browser_page, theme)
    for details in browser_page.locator("details").all():
        details.evaluate("details => { details.open = true }")
    pairs = browser_page.evaluate(
        """() => {
          const ground = node => {
            for (; node; node = node.parentElement) {
              const colour = getComputedStyle(node).backgroundColor;
              if (!/, 0\\)$/.test(colour)) return colour;
            }
          };
          const seen = {};
          for (const node of document.querySelectorAll('.vs-root *')) {
            const own = [...node.childNodes].some(n => n.nodeType === 3 && n.data.trim());
            if (!own || node.closest('.vs-sr') || !node.checkVisibility()) continue;
            const style = getComputedStyle(node);
            seen[[style.color, ground(node)]] = node.className || node.localName;
          }
          return Object.entries(seen);
        }"""
    )
    assert len(pairs) > 12
    poor = [
        (name, colours)
        for colours, name in pairs
        if contrast(*(rgb(part) for part in re.findall(r"rgba?\([^)]*\)", colours))) < 4.5
    ]
    assert poor == []


@pytest.mark.parametrize(("scheme", "ink"), [("light", "#17212b"), ("dark", "#e6ebf0")])
def test_without_a_choice_the_readers_preference_counts(
    browser_page: Page, scheme: Theme, ink: str
) -> None:
    browser_page.emulate_media(color_scheme=scheme)
    browser_page.set_content(standalone(tag("p", "x"), "x"))
    colour = "getComputedStyle(document.querySelector('p')).color"
    assert rgb(browser_page.evaluate(colour)) == ink
    browser_page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert rgb(browser_page.evaluate(colour)) == "#e6ebf0"


def test_motion_stops_on_request(browser_page: Page) -> None:
    open_gallery(browser_page)
    moving = (
        "getComputedStyle(document.querySelector('.vs-status-running > .vs-sign'), '::before')"
        ".animationName"
    )
    assert browser_page.evaluate(moving) == "vs-pulse"
    browser_page.emulate_media(reduced_motion="reduce")
    assert browser_page.evaluate(moving) == "none"


def test_it_works_inside_a_shadow_root(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page)
    browser_page.evaluate(
        """([css, html]) => {
          const host = document.body.appendChild(document.createElement('div'));
          host.style.colorScheme = 'dark';
          window.shadow = host.attachShadow({ mode: 'open' });
          shadow.innerHTML = `<style>${css}</style><div class="vs-root"></div>`;
          view.patch(shadow.querySelector('.vs-root'), html);
        }""",
        [stylesheet(), str(heat(t))],
    )
    token(browser_page, "Chicago").click()
    expect(tip(browser_page)).to_contain_text("0.18")
    browser_page.keyboard.press("ArrowRight")
    expect(tip(browser_page)).to_contain_text("0.88")
    colour = browser_page.evaluate("getComputedStyle(shadow.querySelector('.vs-root')).color")
    assert rgb(colour) == "#e6ebf0"


def test_the_modules_also_work_as_files(browser_page: Page, t: Catalogue) -> None:
    browser_page.route(
        "http://veriscope.test/**",
        lambda route: (
            route.fulfill(path=ASSETS / route.request.url.rsplit("/", 1)[1])
            if route.request.url.endswith(".js")
            else route.fulfill(body='<main class="vs-root"></main>', content_type="text/html")
        ),
    )
    browser_page.goto("http://veriscope.test/")
    browser_page.evaluate(
        """async html => {
          const { patch } = await import('http://veriscope.test/view.js');
          patch(document.querySelector('.vs-root'), html);
        }""",
        str(heat(t)),
    )
    token(browser_page, "Chicago").click()
    expect(tip(browser_page)).to_contain_text("0.18")


@pytest.mark.verify
@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_runs_nothing(browser_page: Page, t: Catalogue, text: str) -> None:
    open_view(browser_page, everything(text, t))
    for target in browser_page.locator("[data-roving] [data-i]").all():
        target.focus()
    assert tip(browser_page).count() == 1
    assert browser_page.evaluate("window.hacked === undefined")
    assert browser_page.locator("img, svg, main style, main script").count() == 0


def test_a_page_of_its_own_breaks_no_rule_of_its_own(browser_page: Page) -> None:
    complaints: list[str] = []
    browser_page.on("console", lambda message: complaints.append(message.text))
    open_gallery(browser_page)
    token(browser_page, "Chicago").hover()
    expect(tip(browser_page)).to_be_visible()
    assert complaints == []
