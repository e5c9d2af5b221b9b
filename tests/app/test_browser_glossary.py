"""The glossary in a browser: from a score to its entry, anchors, and Streamlit's words."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import Response, expect

from components.base.words import Catalogue, entries
from tests.app.conftest import Visit
from tests.app.serving import Finished, card, expect_to_fit_everywhere, wait_until_drawn

EN, ZH = Catalogue("en"), Catalogue("zh")


def note_failure(missing: list[str], got: Response) -> None:
    if got.status >= 400:
        missing.append(got.url)


@pytest.mark.verify
def test_a_score_leads_to_its_entry(visit: Visit, finished: Finished):
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    drad = card(page, "drad")
    drad.locator("summary").first.click()
    drad.locator("summary", has_text="What does this mean").first.click()
    score = drad.locator("[data-means]").first.get_attribute("data-means")
    assert score is not None
    words = entries()[score].en
    expect(drad).to_contain_text(words.weakness)
    drad.locator(".vs-means-more").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(EN("glossary.title"))
    expect(page.locator(f"#{score}")).to_be_in_viewport()
    expect(page.locator(f"#{score}")).to_be_focused()
    expect_to_fit_everywhere(page)


def test_an_anchor_is_an_address_and_a_search_narrows_the_page(visit: Visit):
    page = visit().open("/glossary#alpha")
    expect(page.locator("#alpha")).to_be_in_viewport()
    page.get_by_role("textbox", name=EN("glossary.search")).fill("semantic entropy")
    expect(page.locator("#alpha")).to_have_count(0)
    expect(page.locator("#semantic_entropy")).to_be_visible()


@pytest.mark.verify
def test_a_nested_page_asks_for_nothing_that_is_not_there(visit: Visit):
    visitor = visit()
    for address in ("/evaluate", "/drad/", "/drad/more"):
        page = visitor.context.new_page()
        missing: list[str] = []
        page.on("response", partial(note_failure, missing))
        page.goto(visitor.url + address)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        wait_until_drawn(page)
        assert missing == [], address
        page.close()


@pytest.mark.verify
def test_streamlits_own_words_are_in_the_language_of_the_page(visit: Visit):
    page = visit().open("/evaluate?lang=zh")
    page.get_by_text(ZH("evaluate.data.file"), exact=True).click()
    upload = page.get_by_test_id("stFileUploader").first
    expect(upload).to_contain_text("上传")
    expect(upload).not_to_contain_text("Upload")
    page.get_by_text("EN", exact=True).click()
    expect(upload).to_contain_text("Upload")
    expect(upload).not_to_contain_text("上传")


@pytest.mark.verify
def test_its_menus_dates_and_buttons_too(visit: Visit):
    page = visit().open("/runs?lang=zh")
    wait_until_drawn(page)
    page.get_by_text(ZH("runs.filters"), exact=True).click()
    dates = page.get_by_test_id("stDateInput").first
    expect(dates.get_by_role("button", name="选择日期")).to_be_visible()
    page.get_by_test_id("stMainMenuButton").click()
    menu = page.get_by_test_id("stMainMenuPopover")
    expect(menu).to_be_visible()
    # Icons are written as words too, in small letters.
    words = re.findall(r"[A-Z][a-z]{2,}", menu.inner_text())
    assert set(words) <= {"Streamlit"}, words
