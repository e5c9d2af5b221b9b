"""What a browser shows where there is no walkthrough to play: what the page says of it must end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from app.public.walkthrough import Walkthroughs
from tests.app.public.conftest import Served
from tests.browser import PATIENCE

PREPARING = "The walkthrough is being prepared"
PLAYED: dict[str, Any] = {
    "lang": "en",
    "pieces": ["<p>It plays.</p>"],
    "frames": [[0, {"bar": [0, 0, [0]]}]],
}
"""A file of one picture, in which there is something in the bar alone."""


@pytest.fixture
def page(browser: Browser, served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The page of a server that has prepared nothing yet."""
    monkeypatch.setattr(Walkthroughs, "ready", lambda self, language: None)
    context = browser.new_context(locale="en")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()


@pytest.mark.verify
def test_the_note_goes_when_there_is_no_file_and_the_next_cue_is_followed(
    page: Page, served: Served
):
    asked: list[Route] = []
    page.route("**/walkthrough/en", lambda route: asked.append(route))
    page.goto(served.url)
    bar = page.locator("#bar")
    expect(bar).to_contain_text(PREPARING)
    (first,) = asked
    first.fulfill(status=404)
    expect(bar).not_to_contain_text(PREPARING)
    # The same language once more, of which nothing is remembered.
    cue = json.dumps({"language": "en", "lang": "en", "wait": "<p>Wait.</p>"})
    with page.expect_request("**/walkthrough/en"):
        page.evaluate("(cue) => veriscopePlayer.play(cue)", cue)
    expect(bar).to_contain_text("Wait.")
    asked[1].fulfill(json=PLAYED)
    expect(bar).to_contain_text("It plays.")
    expect(bar).not_to_contain_text("Wait.")


@pytest.mark.verify
def test_the_note_goes_when_the_server_shows_another_view(page: Page, served: Served):
    page.route("**/walkthrough/en", lambda _: None)
    page.goto(served.url)
    expect(page.locator("#bar")).to_contain_text(PREPARING)
    page.evaluate("veriscopePlayer.serverShows('ask')")
    expect(page.locator("#bar")).not_to_contain_text(PREPARING)
