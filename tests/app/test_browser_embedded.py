"""The workbench as people start it: every method on the embedded model, asked from the page."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pipelines.methods.registry import standard_methods
from tests.app.conftest import Visit
from tests.app.serving import (
    ENDED,
    QUESTION,
    ROOT,
    WRITING,
    Workbench,
    ask,
    card,
    fits,
    leave_out,
    open_fold,
    run_of,
    serve_workbench,
    ticked_at_first,
    wait_for_end,
)
from tests.drawing import drawn_today

with (ROOT / "sample_data" / "questions.csv").open(encoding="utf-8", newline="") as file:
    ENGLISH = [row["question"] for row in csv.DictReader(file) if row["id"].startswith("en-")]

QUICK = ("direct", "rag", "drad")
"""Methods that answer within seconds on a busy machine."""

DONE = re.compile(r"\bvs-method-done\b")

QUESTIONS = drawn_today().sample(ENGLISH[:: len(ENGLISH) // 4][:4], 2)


@pytest.fixture(scope="module")
def workbench(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """The workbench as people start it, with the models that come with it."""
    folder = Path(tmp_path_factory.mktemp("embedded"))
    (folder / "index").symlink_to(sample_index)
    with serve_workbench(folder) as served:
        yield served


@pytest.mark.verify
def test_a_question_is_answered_checked_and_corrected(visit: Visit) -> None:
    page = visit().open()
    leave_out(page, *set(standard_methods()).difference(QUICK))
    ask(page)
    expect(page.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    run = wait_for_end(page)
    assert re.fullmatch("[0-9a-f]{32}", run)

    original = page.locator("#original")
    assert original.locator("[data-i]").count() > 5
    for method in QUICK:
        expect(card(page, method)).to_have_class(ENDED)
    # What is written, and so what is doubtful, depends on the processor.
    expect(card(page, "drad")).to_contain_text(re.compile(r"(Doubtful|Confident).*\d [<>] \d"))
    expect(page.locator(".vs-lane-row")).to_have_count(len(QUICK))
    open_fold(page, "evidence-fold")
    expect(page.locator(".vs-passage-card").first).to_be_visible()
    assert fits(page)


@pytest.mark.verify
def test_the_embedded_model_is_checked(visit: Visit) -> None:
    page = visit().open("/models")
    page.get_by_role("button", name="Check what it can do").first.click()
    # Tables of how judges were measured are on this page too.
    table = page.locator("table").filter(has_text="Token probabilities")
    expect(table).to_be_visible(timeout=WRITING)
    row = table.locator("tr").filter(has_text="Chinese")
    expect(row).to_contain_text("No")
    expect(row).to_contain_text("no scores are shown")


@pytest.mark.verify
def test_no_method_fails_on_two_of_four_questions(visit: Visit) -> None:
    page = visit().open()
    seen: set[str] = set()
    for question in QUESTIONS:
        ask(page, question)
        expect(page.get_by_role("heading", level=2, name=question)).to_be_visible(timeout=WRITING)
        page.wait_for_function(
            "(known) => !known.includes(new URLSearchParams(location.search).get('run'))",
            arg=["", *seen],
        )
        wait_for_end(page)
        for method in ticked_at_first():
            expect(card(page, method)).to_have_class(DONE)
        expect(page.locator(".vs-error, .vs-bar-error, [role='alert']")).to_have_count(0)
        assert fits(page)
        seen.add(run_of(page))
    assert len(seen) == len(QUESTIONS) == 2
