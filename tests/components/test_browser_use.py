"""Keys, pointer and touch: tokens, tooltips, bars and buttons."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from components.base.html import tag
from components.base.words import Catalogue
from components.methods.drad import drad_view
from components.run.calls import timeline
from pipelines.run.view import RunView
from tests.components import samples as s
from tests.components.opened import (
    PHONE,
    focused,
    heat,
    open_gallery,
    open_view,
    patch,
    tip,
    token,
)
from tests.scripted.recorded import Record


def test_hovering_shows_a_token(browser_page: Page) -> None:
    open_gallery(browser_page)
    expect(tip(browser_page)).to_have_count(0)
    token(browser_page, "Chicago").hover()
    expect(tip(browser_page)).to_contain_text("Probability0.18")
    expect(tip(browser_page)).to_contain_text("Entropy≥ 2.7 nats")
    expect(tip(browser_page)).to_contain_text(
        "only the 5 most probable tokens were reported; all others together have 0.26"
    )
    expect(tip(browser_page)).to_contain_text("Chicago · place! DoubtfulP(E) 0.18 · H(E) 2.7")
    expect(tip(browser_page).locator(".vs-tip-written")).to_have_text("Chicago0.18 ◂ written")
    bars = tip(browser_page).locator(".vs-tip-bar > i")
    assert [bar.evaluate("bar => bar.style.width") for bar in bars.all()][:2] == ["31%", "18%"]
    browser_page.mouse.move(0, 0)
    expect(tip(browser_page)).to_have_count(0)


def test_merged_tokens_are_explained(browser_page: Page) -> None:
    open_gallery(browser_page)
    browser_page.locator("#heat-zh [data-i='7']").hover()
    expect(tip(browser_page)).to_contain_text("\\xe6 0.50 · \\x9d 0.40 · \\xad 0.90")


def test_arrow_keys_move_from_token_to_token(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    browser_page.keyboard.press("Tab")
    assert focused(browser_page) == "Bill"
    expect(tip(browser_page)).to_contain_text("Probability0.97")
    current = browser_page.locator("#heat [data-i='0']")
    expect(current).to_have_attribute("aria-describedby", re.compile("vs-tip-"))
    for key, text in [
        ("ArrowRight", "Clinton"),
        ("ArrowRight", "was"),
        ("ArrowLeft", "Clinton"),
        ("End", "."),
        ("ArrowRight", "."),
        ("Home", "Bill"),
        ("ArrowLeft", "Bill"),
    ]:
        browser_page.keyboard.press(key)
        assert focused(browser_page) == text
    assert browser_page.locator("#heat [data-i][tabindex='0']").count() == 1
    assert browser_page.locator("#heat [data-i][role]").count() == 1


def test_up_and_down_follow_the_lines(browser_page: Page, t: Catalogue) -> None:
    browser_page.set_viewport_size(PHONE)
    open_view(browser_page, heat(t))
    browser_page.keyboard.press("Tab")
    top = "document.activeElement.getBoundingClientRect().top"
    first = browser_page.evaluate(top)
    browser_page.keyboard.press("ArrowDown")
    second = browser_page.evaluate(top)
    assert second > first
    browser_page.keyboard.press("ArrowDown")
    assert browser_page.evaluate(top) > second
    browser_page.keyboard.press("ArrowUp")
    assert browser_page.evaluate(top) == second


def test_escape_closes_the_tooltip_and_keeps_the_place(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    browser_page.keyboard.press("Tab")
    expect(tip(browser_page)).to_be_visible()
    browser_page.keyboard.press("Escape")
    expect(tip(browser_page)).to_have_count(0)
    assert focused(browser_page) == "Bill"
    browser_page.keyboard.press("Enter")
    expect(tip(browser_page)).to_be_visible()
    browser_page.keyboard.press("Tab")
    expect(tip(browser_page)).to_have_count(0)


@pytest.mark.verify
@pytest.mark.parametrize("name", ["Bill", "January", "1993"])
def test_the_tooltip_stays_on_a_small_screen(browser_page: Page, t: Catalogue, name: str) -> None:
    browser_page.set_viewport_size({"width": 390, "height": 420})
    open_view(browser_page, heat(t))
    token(browser_page, name).click()
    box = tip(browser_page).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] + box["height"] <= 420


@pytest.mark.verify
def test_a_tap_shows_and_a_tap_elsewhere_hides(browser_page: Page, t: Catalogue) -> None:
    context = browser_page.context.browser.new_context(viewport=PHONE, has_touch=True)  # type: ignore[union-attr]
    page = context.new_page()
    open_view(page, heat(t) + '<p style="margin-top: 30rem">elsewhere</p>')
    token(page, "Chicago").tap()
    expect(tip(page)).to_contain_text("0.18")
    page.get_by_text("elsewhere").tap()
    expect(tip(page)).to_have_count(0)
    context.close()


def test_bars_show_and_open_their_call(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, timeline(s.calls(), t, now=2.4))
    browser_page.keyboard.press("Tab")
    expect(tip(browser_page)).to_contain_text(s.QUESTION)
    expect(tip(browser_page)).to_contain_text(s.TEXT)
    browser_page.keyboard.press("ArrowRight")
    expect(tip(browser_page)).to_contain_text("from the cache")
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("#timeline-call-1")).to_have_attribute("open", "")
    expect(browser_page.locator("#timeline-call-1 pre").first).to_be_visible()


def test_buttons_report_what_is_asked_for(browser_page: Page) -> None:
    button = tag("button", "Try again", data_action="retry", data_value="drad")
    open_view(browser_page, button)
    browser_page.evaluate(
        "window.asked = []; document.addEventListener('vs-action', e => asked.push(e.detail))"
    )
    browser_page.get_by_role("button").click()
    assert browser_page.evaluate("asked") == [{"action": "retry", "value": "drad"}]


def two_drafts(corrected: str) -> RunView:
    """A run of DRAD with its original and a corrected draft."""
    record = Record("drad").begin("drad").draft("drad", s.TEXT)
    record.draft("drad", corrected, 1, s.TEXT)
    return record.end("drad", corrected, s.TEXT).finish()


def test_draft_and_measure_are_chosen_by_keys_and_stay_when_the_page_changes(
    browser_page: Page, t: Catalogue
) -> None:
    open_view(browser_page, drad_view(two_drafts("Hope."), t))

    def seen() -> list[str | None]:
        heats = browser_page.locator(".vs-heat").all()
        return [one.get_attribute("id") for one in heats if one.is_visible()]

    assert seen() == ["drad-heat-0-probability"]
    browser_page.get_by_role("radio", name="Probability").focus()
    browser_page.keyboard.press("ArrowRight")
    assert seen() == ["drad-heat-0-entropy"]
    browser_page.locator("#drad-draft-0").focus()
    browser_page.keyboard.press("ArrowRight")
    assert seen() == ["drad-heat-1-entropy"]
    patch(browser_page, drad_view(two_drafts("Hope, Arkansas."), t))
    expect(browser_page.locator("#drad-heat-1-entropy")).to_contain_text("Hope, Arkansas.")
    assert seen() == ["drad-heat-1-entropy"]


def test_nothing_listens_after_it_was_stopped(browser_page: Page, t: Catalogue) -> None:
    open_view(browser_page, heat(t))
    browser_page.evaluate("view.mount(document.querySelector('.vs-root'))()")
    token(browser_page, "Chicago").click()
    expect(browser_page.locator(".vs-tip")).to_have_count(0)
