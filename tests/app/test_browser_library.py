"""The Library page in a browser: documents added, looked at, searched, and asked about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.base import Language
from pipelines.retrieval.reading.files import read_file
from tests.app.conftest import Visit
from tests.app.serving import (
    DESKTOP,
    FITS,
    PHONE,
    WRITING,
    ask,
    choose,
    expect_to_fit_everywhere,
    leave_out,
    open_setup,
    stop_button,
    ticked_at_first,
    wait_for_end,
    wait_until_drawn,
)
from tests.pipelines.retrieval.reading.made import PAGE, encrypted_pdf, pdf

WHALES = pdf(
    ["Whales swim in the sea. They are mammals.", "They breathe air at the surface."],
    title="On whales",
)


def press(page: Page, name: str) -> None:
    wait_until_drawn(page)
    page.get_by_role("button", name=name, exact=True).click()


def add(page: Page, *files: tuple[str, bytes]) -> None:
    given: Any = [
        {"name": name, "mimeType": "application/octet-stream", "buffer": data}
        for name, data in files
    ]
    wait_until_drawn(page)
    page.locator("input[type='file']").set_input_files(given)


def state(page: Page, words: str) -> None:
    expect(page.locator(".vs-library-progress")).to_contain_text(words)


@pytest.mark.verify
def test_documents_are_added_looked_at_searched_asked_and_deleted(visit: Visit) -> None:
    visitor = visit()
    page = visitor.open("/library")
    expect(page.get_by_text("No collections yet.")).to_be_visible()
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)
    page.get_by_role("textbox", name="Name of the collection").fill("Sea")
    press(page, "Create")
    page.wait_for_url(re.compile(r"[?&]collection="))
    address = page.url

    # Three files, one of which cannot be used, and says so.
    add(page, ("whales.pdf", WHALES), ("tides.html", PAGE.encode()),
        ("locked.pdf", encrypted_pdf("x")))  # fmt: skip
    state(page, "Indexed: can be chosen as evidence")
    documents = page.get_by_role("table", name="Documents of the collection")
    expect(documents).to_contain_text("On whales")
    expect(documents).to_contain_text("It needs a password.")
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)

    # The same passage is linked across the columns.
    field = page.get_by_role("textbox", name="What to search for")
    field.fill("where whales swim")
    field.press("Enter")
    expect(page.locator(".vs-library-column").first).to_contain_text("On whales")
    page.locator("[data-goto^='hit-hybrid-']").first.click()
    expect(page.locator("[id^='hit-hybrid-']").first).to_be_focused()
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)
    page.locator(".vs-library-hit").first.get_by_role("button", name="Open in document").click()
    expect(page.locator(".vs-library-document")).to_contain_text("Page 1")
    expect(page.locator(".vs-cut-marked").first).to_contain_text("Whales swim")
    expect_to_fit_everywhere(page)
    page.set_viewport_size(DESKTOP)
    # What was searched for is still there.
    press(page, "All documents")
    expect(page.locator(".vs-library-hit").first).to_be_visible()

    # It is found after a reload, and is evidence on Ask.
    page.reload()
    state(page, "Indexed")
    assert page.url == address
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
    open_setup(page)
    choose(page, "Evidence", "Sea")
    leave_out(page, *(name for name in ticked_at_first() if name != "rag"))
    ask(page, "Where do whales swim?")
    wait_for_end(page)
    expect(page.locator(".vs-passage-card").first).to_contain_text("On whales")

    # Deleted, it is nobody's; it never was a stranger's.
    stranger = visit().open(address.removeprefix(visitor.url))
    expect(stranger.get_by_role("alert")).to_contain_text("There is no such collection.")
    page.goto(address)
    press(page, "Delete")
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No collections yet.")).to_be_visible()


@pytest.mark.verify
def test_an_indexing_is_watched_stopped_and_continued_and_the_collection_renamed(
    visit: Visit,
) -> None:
    page = visit().open("/library")
    page.get_by_role("textbox", name="Name of the collection").fill("Rows")
    press(page, "Create")
    page.wait_for_url(re.compile(r"[?&]collection="))
    words = "It was seen at noon beside the river, and again in the evening near the old bridge."
    rows = "\n".join(f'{{"text": "Animal number {at}. {words}"}}' for at in range(4_000))
    add(page, ("notes.txt", b"Whales swim in the sea."), ("rows.jsonl", rows.encode()))
    expect(page.locator(".vs-library-progress progress")).to_be_visible()
    stop_button(page).click()
    state(page, "Stopped. What is done is kept")
    press(page, "Continue")
    expect(page.locator(".vs-library-progress")).to_contain_text(
        "Indexed: can be chosen as evidence", timeout=WRITING
    )
    documents = page.get_by_role("table", name="Documents of the collection")
    expect(documents).to_contain_text("4,000")

    # One of the documents goes, and the collection gets another name.
    documents.get_by_role("row").filter(has_text="notes").get_by_role("button").first.click()
    expect(page.locator(".vs-library-document")).to_contain_text("Whales swim")
    page.locator(".st-key-library-document-head").get_by_role("button", name="Delete").click()
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Delete").click()
    expect(documents).not_to_contain_text("notes")
    press(page, "Rename")
    body = page.get_by_test_id("stPopoverBody")
    body.get_by_role("textbox").fill("Animals")
    body.get_by_role("textbox").blur()
    wait_until_drawn(page)
    body.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=2, name="Animals")).to_be_visible()


@pytest.mark.verify
def test_what_a_browser_prints_is_read(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    page.set_content(PAGE)
    printed = tmp_path / "original"
    printed.write_bytes(page.pdf(format="A5"))
    page.close()
    reading = read_file(printed, "tides.pdf")
    (part,) = reading.parts
    assert (reading.kind, reading.title, reading.remarks) == (
        "pdf",
        "Tides - The Sea Journal",
        (),
    )
    assert "most coasts see high water twice a day, a little later every time." in part.text


@pytest.mark.verify
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_whole_page_in_both_languages_and_themes(
    visit: Visit, language: Language, scheme: str, size: ViewportSize
) -> None:
    t = Catalogue(language)
    page = visit(scheme=scheme, viewport=size).open(f"/library?lang={language}")
    press(page, t("library.try"))
    state(page, t("library.state.current"))
    page.wait_for_function(FITS)
    expect(page.get_by_role("table", name=t("library.documents.caption"))).to_be_visible()
    field = page.get_by_role("textbox", name=t("library.search.query"))
    field.fill("Marie Curie" if language == "en" else "大熊猫吃什么")
    field.press("Enter")
    expect(page.locator(".vs-library-hit").first).to_be_visible()
    page.wait_for_function(FITS)
    page.locator(".vs-library-hit button[data-action='passage']").first.click()
    expect(page.locator(".vs-cut-marked").first).to_be_visible()
    page.wait_for_function(FITS)
    press(page, t("library.document.back"))
    wait_until_drawn(page)
    page.locator(".st-key-library-embedder summary").click()
    expect(page.get_by_text(t("library.embedder.note"))).to_be_visible()
    page.wait_for_function(FITS)
