"""Updates in place: what stays, what changes, what goes."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from components.base.elements import Status, counters
from components.base.html import tag
from components.base.words import Catalogue
from components.run.calls import timeline
from components.run.text import heatmap
from tests.components import samples as s
from tests.components.opened import (
    focused,
    heat,
    open_view,
    patch,
    tip,
    token,
)


def test_streaming_keeps_focus_and_tooltip(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t, 6))
    token(browser_page, "born").click()
    browser_page.evaluate("window.before = document.activeElement")
    for count in (7, 8, 15, None):
        patch(browser_page, heat(t, count))
        assert browser_page.evaluate("document.activeElement === before")
        expect(tip(browser_page)).to_contain_text("Probability0.91")
    assert browser_page.locator("#heat [data-i][tabindex='0']").count() == 1
    browser_page.keyboard.press("ArrowRight")
    assert focused(browser_page) == "in"


def test_a_token_that_is_boxed_later_keeps_the_focus(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heatmap(s.TEXT, s.TOKENS, [], t=t, id="heat"))
    token(browser_page, "Chicago").click()
    patch(browser_page, heat(t))
    assert focused(browser_page) == "Chicago"
    assert browser_page.evaluate("!!document.activeElement.closest('.vs-entity')")
    expect(tip(browser_page)).to_contain_text("Doubtful")


def test_a_token_that_is_gone_takes_its_tooltip_along(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    token(browser_page, "January").click()
    patch(browser_page, heat(t, 6))
    expect(tip(browser_page)).to_have_count(0)
    assert browser_page.locator("#heat [data-i][tabindex='0']").count() == 1


def test_updates_keep_details_open_and_scrolled(browser_page: Page, t: Catalogue) -> None:
    calls = s.calls()
    open_view(browser_page, timeline(calls[:4], t))
    browser_page.get_by_text("All 4 calls as text").click()
    browser_page.locator("#timeline-call-1 > summary").click()
    open_now = "[...document.querySelectorAll('details[open]')].map(d => d.dataset.key)"
    assert browser_page.evaluate(open_now) == ["timeline-calls", "timeline-call-1"]
    browser_page.locator("#timeline-call-1 > summary").focus()
    patch(browser_page, timeline(calls, t, now=2.4))
    assert browser_page.evaluate(open_now) == ["timeline-calls", "timeline-call-1"]
    assert browser_page.evaluate("document.activeElement.parentElement.id") == "timeline-call-1"
    expect(browser_page.get_by_text("All 9 calls as text")).to_be_visible()


def test_only_what_changed_is_touched(browser_page: Page) -> None:
    def items(*keys: str) -> str:
        return tag("ul", (tag("li", key, data_key=key) for key in keys))

    open_view(browser_page, items("a", "b", "c", "d"))
    browser_page.evaluate("for (const li of document.querySelectorAll('li')) li.old = true")
    patch(browser_page, items("d", "b", "x", "c"))
    assert browser_page.evaluate(
        "[...document.querySelectorAll('li')].map(li => [li.textContent, !!li.old])"
    ) == [["d", True], ["b", True], ["x", False], ["c", True]]
    browser_page.evaluate(
        """() => { window.changes = 0;
          new MutationObserver(list => { changes += list.length })
            .observe(document.body, { subtree: true, childList: true, attributes: true,
                                      characterData: true }) }"""
    )
    patch(browser_page, items("d", "b", "x", "c"))
    assert browser_page.evaluate("new Promise(done => setTimeout(() => done(changes)))") == 0


def test_attributes_and_text_follow(browser_page: Page) -> None:
    open_view(browser_page, '<p class="a" title="t">one <b>two</b></p>')
    patch(browser_page, '<p class="b">one <i>three</i> four</p>')
    html = browser_page.locator(".vs-root").inner_html()
    assert html == '<p class="b">one <i>three</i> four</p>'
    patch(browser_page, "")
    assert browser_page.locator(".vs-root").inner_html() == ""


def test_the_clock_runs_on_between_updates_and_stops_with_the_run(
    browser_page: Page, t: Catalogue
) -> None:
    def line(status: Status, seconds: float) -> str:
        return counters(t, status=status, seconds=seconds, calls=1, retrievals=0, tokens=5)

    open_view(browser_page, line("running", 4.1))
    figure = browser_page.locator(".vs-counter-seconds")
    expect(figure).not_to_have_text("4.1 s")
    expect(figure).to_have_text(re.compile(r"^4\.\d s$|^[5-9]\.\d s$"))
    patch(browser_page, line("done", 4.9))
    expect(figure).to_have_text("4.9 s")
