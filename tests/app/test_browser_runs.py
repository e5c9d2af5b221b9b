"""The Runs page in a browser: found, named, compared, saved, carried and deleted."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Download, Locator, Page, expect

from tests.app.conftest import Visit
from tests.app.serving import (
    DESKTOP,
    PHONE,
    Visitor,
    choose,
    expect_to_fit_everywhere,
    fits,
    run_of,
    wait_until_drawn,
)
from tests.app.test_browser_compare import bring_in, exported

NAMES = ("one", "two", "three")


def question(name: str) -> str:
    return f"Where was Ada born ({name})?"


def with_runs(visitor: Visitor, folder: Path) -> Page:
    """The Runs page of a browser with three runs, the last one on top."""
    page = visitor.open("/runs")
    for name in NAMES:
        bring_in(page, exported(folder, name, question(name)), question(name))
    page.get_by_role("link", name="Runs").click()
    expect(rows(page)).to_have_count(len(NAMES))
    wait_until_drawn(page)
    return page


def rows(page: Page) -> Locator:
    return page.locator("[class*='st-key-card-run-']")


def row(page: Page, name: str) -> Locator:
    return rows(page).filter(has_text=question(name))


def pick(page: Page, *names: str) -> None:
    for name in names:
        row(page, name).locator("[class*='st-key-pick-'] label").click()
        wait_until_drawn(page)


def details(page: Page, name: str) -> Locator:
    row(page, name).get_by_role("button", name="Details").click()
    body = page.get_by_test_id("stPopoverBody")
    expect(body.get_by_label("Name", exact=True)).to_be_visible()
    wait_until_drawn(page)
    return body


def saved(download: Download, folder: Path) -> Path:
    file = folder / download.suggested_filename
    download.save_as(file)
    return file


@pytest.mark.verify
def test_runs_are_named_and_found_and_the_address_keeps_what_is_listed(
    visit: Visit, tmp_path: Path
) -> None:
    page = with_runs(visit(), tmp_path)
    body = details(page, "two")
    body.get_by_label("Name", exact=True).fill("The second")
    body.get_by_label("Note", exact=True).fill("Look again.")
    tags = body.get_by_role("combobox", name="Tags")
    tags.click()
    tags.press_sequentially("paper")
    # The list is there with what was typed before Enter takes it.
    expect(page.get_by_role("option", name="Add: paper")).to_be_visible()
    tags.press("Enter")
    expect(body.get_by_text("paper", exact=True)).to_be_visible()
    body.get_by_role("button", name="Save").click()
    expect(rows(page).nth(1)).to_contain_text("The second")
    for words in (question("two"), "Look again.", "paper", "Doubtful"):
        expect(rows(page).nth(1)).to_contain_text(words)
    page.keyboard.press("Escape")

    row(page, "one").get_by_role("button", name="Star").click()
    expect(row(page, "one").get_by_role("button", name="Starred")).to_be_visible()
    page.get_by_label("Search questions, names and notes").fill("look")
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_text("1 of 3 runs")).to_be_visible()
    expect(page).to_have_url(re.compile(r"runs\.text=look"))
    page.reload()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Clear the filters").click()
    expect(rows(page)).to_have_count(3)

    page.locator(".st-key-runs-filters summary").click()
    page.get_by_text("Only with a star").click()
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text(question("one"))
    # A list closes where the page grows or shrinks under it, as one does that lists fewer runs.
    choose(page, "Verdicts", "Doubtful")
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile(r"runs\.verdicts=doubtful"))
    # What the controls write into the address and what is written by hand stay together.
    expect(page).to_have_url(re.compile(r"runs\.starred=true"))
    page.keyboard.press("Escape")
    expect_to_fit_everywhere(page)
    page.reload()
    # An address with a filter shows that filter.
    expect(page.get_by_text("Only with a star")).to_be_visible()
    expect(rows(page)).to_have_count(1)
    assert fits(page)
    # It is still chosen after a look at another page.
    page.set_viewport_size(DESKTOP)
    row(page, "one").get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
    page.get_by_role("link", name="Runs").click()
    expect(rows(page)).to_have_count(1)


@pytest.mark.verify
def test_two_runs_are_compared_and_all_are_carried_and_deleted(
    visit: Visit, tmp_path: Path
) -> None:
    visitor = visit()
    page = with_runs(visitor, tmp_path)
    changed = page.get_by_role("button", name="What changed")
    expect(changed).to_be_disabled()
    pick(page, "one", "two")
    changed.click()
    expect(page.get_by_role("heading", level=1, name="Compare")).to_be_visible()
    expect(page.get_by_role("heading", name="What differs in the conditions")).to_be_visible()
    expect(page.get_by_text("answer different questions")).to_be_visible()
    expect(page).to_have_url(re.compile("view=changes"))
    expect_to_fit_everywhere(page)
    page.reload()
    expect(page.get_by_role("heading", name="What differs in the results")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_text("Answers side by side", exact=True).first.click()
    expect(page.locator(".vs-column").first).to_be_visible()
    expect(page).not_to_have_url(re.compile("view=changes"))

    page.get_by_role("link", name="Runs").click()
    # A reload forgets what was picked.
    expect(page.get_by_role("button", name="Compare", exact=True)).to_be_disabled()
    wait_until_drawn(page)
    pick(page, "one", "two")
    expect(page.get_by_role("button", name="Compare 2 runs")).to_be_enabled()
    with page.expect_download() as download:
        page.locator(".st-key-export-picked button").first.click()
    archive = saved(download.value, tmp_path)
    with zipfile.ZipFile(archive) as file:
        assert len(file.namelist()) == 2
    page.get_by_role("button", name="Pick this page").click()
    expect(page.get_by_role("button", name="Compare 3 runs")).to_be_visible()
    wait_until_drawn(page)
    page.locator(".st-key-delete-picked button").click()
    body = page.get_by_test_id("stPopoverBody")
    expect(body).to_contain_text("Delete 3 picked runs permanently?")
    body.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No runs yet")).to_be_visible()

    page.locator("input[type='file']").set_input_files(archive)
    expect(page.get_by_text("2 runs were imported.")).to_be_visible()
    expect(rows(page)).to_have_count(2)


@pytest.mark.verify
def test_a_run_has_an_address_a_report_and_a_replay(visit: Visit, tmp_path: Path) -> None:
    visitor = visit()
    page = with_runs(visitor, tmp_path)
    body = details(page, "one")
    address = body.locator("code").inner_text().strip()
    assert re.fullmatch(rf"{visitor.url}/\?run=[0-9a-f]{{32}}", address)
    with page.expect_download() as download:
        body.get_by_role("button", name="Report").click()
    report = saved(download.value, tmp_path)
    assert report.suffix == ".html"
    assert question("one") in report.read_text(encoding="utf-8")
    with page.expect_popup() as opened:
        body.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_role("heading", level=1, name=question("one"))).to_be_visible()
    opened.value.close()

    page.goto(address)
    expect(page.get_by_role("heading", level=2, name=question("one"))).to_be_visible()
    run = run_of(page)
    assert address.endswith(run)
    # On the Ask page too, and on a phone.
    page.set_viewport_size(PHONE)
    expect(page.locator(".st-key-run-kept").get_by_role("button", name="Report")).to_be_visible()
    assert fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    # The pages of methods keep the run in their address, and open it from there.
    page.goto(f"{visitor.url}/drad?run={run}")
    expect(page.get_by_role("heading", level=2, name=question("one"))).to_be_visible()

    page.get_by_role("link", name="Runs").click()
    wait_until_drawn(page)
    details(page, "one").get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
    page.wait_for_function(f"() => !location.search.includes('{run}')")
    assert run_of(page) != run
