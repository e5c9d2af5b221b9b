"""The server of an open page cannot be reached: what a visitor reads then, in either language."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language
from tests.app.public.conftest import Served
from tests.app.public.looking import looking, open_space


@pytest.mark.verify
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_server_that_is_gone_is_told_in_the_language_of_the_page(
    browser: Browser, served: Served, language: Language
) -> None:
    t = Catalogue(language)
    served.let_go()
    with looking(browser) as context:
        page = open_space(context, served.url, language)
        context.set_offline(True)
        page.get_by_role("textbox", name=t("ask.question"), exact=True).fill("Who?")
        # By the keyboard: the notice may lie over the button by now.
        page.get_by_role("button", name=t("action.run"), exact=True).press("Enter")
        told = page.get_by_test_id("toast-body")
        expect(told).to_contain_text(t("space.lost"))
        expect(told).to_contain_text(t("space.lost.help"))
        expect(told).not_to_contain_text("Connection to the server")
        expect(told.get_by_role("button", name=t("space.close"), exact=True)).to_be_visible()
        # The page is loaded anew by itself.
        context.set_offline(False)
        expect(told).to_have_count(0)
        first = page.locator("#pages").get_by_role("tab").first
        expect(first).to_have_text(t("nav.ask"))
