"""The tab "Check a text" of the Space with real clicks: an example, a text of one's own, again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language
from pipelines.samples.walkthroughs import sample_texts
from tests.app.public.conftest import Served
from tests.app.public.looking import turn_to
from tests.app.public.test_page import Open
from tests.app.public.test_page import open_page as open_page

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def open_tab(page: Page, t: Catalogue) -> None:
    expect(page.locator("#pages").get_by_role("tab").first).to_have_text(t("nav.ask"))
    turn_to(page, "check", t)
    expect(page.locator("#check-run")).to_be_visible()


def sentences(page: Page) -> Any:
    return page.locator("#view-check .vs-check-sentences tbody tr")


@pytest.mark.verify
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_is_taken_estimated_checked_and_shared(
    answering: Served, open_page: Open, language: Language
):
    t = Catalogue(language)
    page = open_page(f"?lang={language}")
    open_tab(page, t)
    sample = [one for one in sample_texts() if one.language == language][1]
    page.locator("#texts .gallery-item").filter(has_text=sample.title).click()
    expect(page.get_by_label(t("check.text"))).to_have_value(sample.text)
    expect(page.get_by_label(t("check.sources"))).to_have_value("\n\n".join(sample.sources))
    expect(page.locator("#check-estimate")).to_contain_text(re.compile(r"\d"))
    page.locator("#check-run").click()
    expect(sentences(page)).to_have_count(4)
    expect(sentences(page).locator(".vs-badge").first).to_be_visible()
    expect(page.locator("#result")).to_be_focused()
    expect(page.get_by_role("button", name=t("action.stop"), exact=True)).to_be_disabled()
    with page.expect_popup() as opened:
        page.get_by_role("button", name=t("space.report"), exact=True).click()
    expect(opened.value.get_by_role("heading", level=2, name=t("check.title"))).to_be_visible()
    page.get_by_role("button", name=t("space.share"), exact=True).click()
    expect(page.locator("#link input, #link textarea").first).to_have_value(re.compile("run="))
    assert page.evaluate(FITS)


@pytest.mark.verify
def test_a_text_of_ones_own_is_checked_on_a_phone_and_what_is_wrong_is_said(
    answering: Served, open_page: Open
):
    t = Catalogue("en")
    page = open_page(**PHONE)
    open_tab(page, t)
    page.locator("#check-run").click()
    expect(page.get_by_role("alert").first).to_contain_text("There is no text to check.")
    field = page.get_by_label(t("check.text"))
    field.fill("Marie Curie was born in Warsaw. She died in Florida. She was a chemist.")
    field.blur()
    one = page.locator("#check-estimate")
    expect(one).to_contain_text("calls")
    page.locator("#check-run").click()
    expect(sentences(page)).to_have_count(3)
    expect(field).to_have_value(re.compile("^Marie Curie"))
    assert page.evaluate(FITS)


@pytest.mark.verify
def test_a_text_stays_when_the_language_changes(answering: Served, open_page: Open):
    page = open_page()
    open_tab(page, Catalogue("en"))
    told = page.locator("#check-estimate")
    expect(told).to_have_text(Catalogue("en")("check.estimate.none"))
    text = page.get_by_label(Catalogue("en")("check.text"))
    text.fill("Marie Curie was born in Warsaw.")
    text.blur()
    expect(told).to_contain_text("calls")
    page.get_by_text("中文", exact=True).click()
    expect(told).to_contain_text("次调用")
    field = page.get_by_label(Catalogue("zh")("check.text"))
    expect(field).to_have_value("Marie Curie was born in Warsaw.")
