"""The Models and Runs pages, and what all pages share, in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app.conftest import Visit
from tests.app.serving import (
    PHONE,
    QUESTION,
    Finished,
    card,
    expect_to_fit_everywhere,
    fits,
    go_to,
    run_of,
)

PAGES = {"/": "Ask", "/drad": "DRAD: detect", "/models": "Models", "/runs": "Runs"}


@pytest.mark.verify
def test_a_page_that_has_nothing_to_show_has_one_title_and_fits(visit: Visit) -> None:
    visitor = visit(viewport=PHONE)
    for address, title in PAGES.items():
        page = visitor.open(address)
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        assert fits(page)
        expect_to_fit_everywhere(page)
        page.close()


def test_the_language_can_be_switched_and_stays(visit: Visit) -> None:
    page = visit().open()
    page.get_by_role("radio", name="中文").click()
    expect(page.get_by_role("heading", level=1, name="提问")).to_be_visible()
    assert "lang=zh" in page.url
    go_to(page, "模型")
    expect(page.get_by_role("heading", level=1, name="模型")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1, name="模型")).to_be_visible()


@pytest.mark.verify
def test_a_model_without_a_name_is_refused_and_a_saved_one_can_be_deleted(visit: Visit) -> None:
    page = visit().open("/models")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("This input cannot be used")

    page.get_by_label("Name", exact=True).fill("short-lived")
    page.get_by_label("Model, as the server calls it").fill("m")
    page.get_by_label("Address").fill("http://localhost:1/v1")
    page.get_by_role("button", name="Save").click()
    names = page.locator(".vs-model-name").filter(has_text="short-lived")
    expect(names).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Delete short-lived?")).to_be_visible()
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Delete").click()
    expect(names).to_have_count(0)


@pytest.mark.verify
def test_a_run_is_found_and_carried_to_another_browser_which_takes_nothing_else(
    visit: Visit, finished: Finished, tmp_path: Path
) -> None:
    page = visit(known=finished.browser).open("/runs")
    search = page.get_by_label("Search questions, names and notes")
    search.fill("nothing like it")
    expect(page.get_by_text("No run matches.")).to_be_visible()
    search.fill("bill clinton")
    row = page.locator(f".st-key-card-run-{finished.run}")
    expect(row).to_contain_text(QUESTION)
    expect(row).to_contain_text("Direct, RAG, Rowen, DRAD, EVER, HAARAG, SLM check")
    row.get_by_role("button", name="Details").click()
    with page.expect_download() as download:
        page.get_by_test_id("stPopoverBody").get_by_role("button", name="Export").click()
    exported = tmp_path / download.value.suggested_filename
    download.value.save_as(exported)
    assert exported.suffix == ".jsonl"
    page.keyboard.press("Escape")
    row.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    assert run_of(page) == finished.run

    other = visit().open("/runs")
    expect(other.get_by_text("No runs yet")).to_be_visible()
    no_run = tmp_path / "other.jsonl"
    no_run.write_text('{"hello": "world"}\n')
    other.locator("input[type='file']").set_input_files(no_run)
    expect(other.get_by_role("alert")).to_contain_text("This input cannot be used")
    other.locator("input[type='file']").set_input_files(exported)
    expect(other.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    expect(card(other, "drad")).to_contain_text("Doubtful")
    imported = run_of(other)
    assert imported != finished.run

    other.get_by_role("link", name="Runs").click()
    row = other.locator(f".st-key-card-run-{imported}")
    row.get_by_role("button", name="Delete").click()
    other.get_by_test_id("stPopoverBody").get_by_role("button", name="Delete").click()
    expect(other.get_by_text("No runs yet")).to_be_visible()
