"""The Compare page in a browser: runs are picked, laid side by side, and kept in the address."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pipelines.run.events import Trace
from pipelines.store.exchange import export_lines
from tests.app.conftest import Visit
from tests.app.serving import DESKTOP, FITS, PHONE, fits, wait_until_drawn
from tests.scripted.recorded import CORRECTED, ORIGINAL, Record, passage


def exported(folder: Path, name: str, question: str) -> Path:
    """A run in which DRAD corrects what Direct and RAG leave, as a file to be imported."""
    record = Record("direct", "rag", "drad", question=question)
    for method in ("direct", "rag"):
        record.begin(method).draft(method).end(method, ORIGINAL)
    record.begin("drad").draft("drad")
    record.judge("drad", "confident", "Ada", "sentence")
    record.search("drad", passage("a"))
    record.judge("drad", "doubtful")
    record.end("drad", CORRECTED).finish()
    path = folder / f"{name}.jsonl"
    path.write_text("".join(export_lines(Trace(events=tuple(record.events)))), encoding="utf-8")
    return path


def bring_in(page: Page, run: Path, question: str) -> None:
    page.get_by_role("link", name="Runs").click()
    # A page that is drawn again forgets a file that it was just given.
    wait_until_drawn(page)
    page.locator("input[type=file]").set_input_files(run)
    expect(page.get_by_role("heading", level=2, name=question)).to_be_visible()


@pytest.mark.verify
def test_two_runs_are_picked_and_laid_side_by_side(visit: Visit, tmp_path: Path) -> None:
    visitor = visit()
    page = visitor.open("/runs")
    for name in ("one", "two"):
        question = f"Where was Ada born ({name})?"
        bring_in(page, exported(tmp_path, name, question), question)
    page.get_by_role("link", name="Runs").click()
    boxes = page.locator("[class*=st-key-pick-] label")
    expect(boxes).to_have_count(2)
    boxes.nth(0).click()
    expect(page.get_by_role("button", name="Compare 1 run")).to_be_enabled()
    boxes.nth(1).click()
    expect(page.get_by_role("button", name="Compare 2 runs")).to_be_enabled()
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page.get_by_role("heading", level=1, name="Compare")).to_be_visible()
    columns = page.locator(".vs-column")
    # Of each run the same three methods, the one that judges before the two that do not.
    expect(columns).to_have_count(6)
    expect(columns.first.locator("h3")).to_have_text("1 DRAD")
    expect(columns.first.locator("del").first).to_contain_text("Paris")
    expect(page.locator(".vs-notices")).to_contain_text("answer different questions")
    # All at once: the page may still move between two measurements.
    tops = page.locator(".vs-part-costs").evaluate_all(
        "(parts) => parts.map((part) => Math.round(part.getBoundingClientRect().y))"
    )
    assert len(set(tops)) == 1
    for width in (DESKTOP["width"], 1180):
        page.set_viewport_size({"width": width, "height": DESKTOP["height"]})
        page.wait_for_function(FITS)
    page.set_viewport_size(DESKTOP)

    page.get_by_text("the first column", exact=True).click()
    expect(columns.nth(2).locator("del").first).to_contain_text("London")
    page.get_by_role("combobox", name="Columns").press("Backspace")
    expect(columns).to_have_count(5)
    assert "runs=" in page.url
    address = page.url.removeprefix(visitor.url)

    page.set_viewport_size(PHONE)
    page.goto(visitor.url + address)
    expect(columns).to_have_count(5)
    first, second = columns.nth(0).bounding_box(), columns.nth(1).bounding_box()
    assert first is not None
    assert second is not None
    assert second["y"] >= first["y"] + first["height"]
    assert fits(page)


@pytest.mark.verify
def test_a_browser_without_runs_is_sent_to_the_ask_page(visit: Visit) -> None:
    page = visit().open("/compare")
    expect(page.get_by_text("There is nothing to compare yet")).to_be_visible()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()
