"""The tour in a browser: led from stop to stop by keyboard, on the real pages, and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from components.base.tour import STOPS
from components.base.words import Catalogue
from tests.app.conftest import Visit
from tests.app.serving import PHONE, fits, wait_until_drawn

EN, ZH = Catalogue("en"), Catalogue("zh")
INSIDE = """(card) => {
    const { left, top, right, bottom } = card.getBoundingClientRect();
    return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
}"""


def card(page: Page) -> Locator:
    return page.locator(".vs-tour-card")


def ring(page: Page) -> Locator:
    return page.locator(".vs-tour-ring")


def expect_stop(page: Page, place: int, t: Catalogue) -> None:
    """The card of a stop, with the focus on its title, the ring around a part of the page."""
    stop = STOPS[place]
    title = card(page).get_by_role("heading", name=t(f"tour.stop.{stop.id}.title"))
    expect(title).to_be_focused(timeout=30_000)
    expect(card(page)).to_contain_text(t("tour.place", number=place + 1, count=len(STOPS)))
    # The run goes on meanwhile: what the stop is about may still be to come.
    expect(ring(page)).to_be_visible(timeout=60_000)
    expect(page.locator(stop.targets[0]).first).to_be_in_viewport()
    assert card(page).evaluate(INSIDE)


def begin(page: Page, t: Catalogue) -> None:
    wait_until_drawn(page)
    page.get_by_role("button", name=t("tour.start"), exact=True).click()


@pytest.mark.verify
@pytest.mark.parametrize("t", [EN, ZH], ids=["en", "zh"])
def test_the_keyboard_leads_through_the_whole_tour(visit: Visit, t: Catalogue):
    page = visit().open(f"/?lang={t.language}")
    begin(page, t)
    for place in range(len(STOPS)):
        expect_stop(page, place, t)
        if STOPS[place].id == "calls":
            # As where the run goes on and its view is drawn anew.
            fold = page.locator("details", has=page.locator("#timeline"))
            fold.evaluate("(one) => { one.open = false; }")
            expect_stop(page, place, t)
        page.keyboard.press("ArrowRight")
    expect(card(page)).to_have_count(0)
    expect(page).to_have_url(re.compile("/drad"))


@pytest.mark.verify
def test_it_begins_goes_back_and_ends_where_it_was_begun(visit: Visit):
    page = visit().open("/")
    begin(page, EN)
    expect_stop(page, 0, EN)
    expect(page.get_by_role("button", name=EN("tour.back"))).to_be_disabled()
    page.get_by_role("button", name=EN("tour.next"), exact=True).press("Enter")
    expect_stop(page, 1, EN)
    page.keyboard.press("ArrowLeft")
    expect_stop(page, 0, EN)
    page.keyboard.press("Escape")
    expect(card(page)).to_have_count(0)
    expect(page.get_by_role("button", name=EN("tour.start"), exact=True)).to_be_focused()


@pytest.mark.verify
def test_a_phone_has_it_as_a_sheet_at_the_bottom(visit: Visit):
    page = visit(viewport=PHONE, touch=True).open("/?lang=zh")
    begin(page, ZH)
    expect_stop(page, 0, ZH)
    page.get_by_role("button", name=ZH("tour.next"), exact=True).tap()
    expect_stop(page, 1, ZH)
    assert fits(page)
    box = card(page).bounding_box()
    assert box is not None
    assert box["y"] > PHONE["height"] / 2


@pytest.mark.verify
def test_it_is_offered_once(visit: Visit):
    visitor = visit()
    page = visitor.open("/")
    expect(page.get_by_text(EN("tour.offer.title"))).to_be_visible()
    page.get_by_role("button", name=EN("tour.offer.decline")).click()
    expect(page.get_by_text(EN("tour.offer.title"))).to_have_count(0)
    again = visitor.open("/")
    wait_until_drawn(again)
    expect(again.get_by_text(EN("tour.offer.title"))).to_have_count(0)
    expect(again.get_by_role("button", name=EN("tour.start"), exact=True)).to_be_visible()
