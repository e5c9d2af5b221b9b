"""Every method on the embedded model, asked from the page as a visitor would."""

from __future__ import annotations

import csv

import pytest
from playwright.sync_api import expect

from pipelines.methods.registry import standard_methods
from tests.app.conftest import Visit
from tests.app.serving import PATIENCE, ROOT, ask, card, fits, run_of, stop_button

with (ROOT / "sample_data" / "questions.csv").open(encoding="utf-8", newline="") as file:
    ENGLISH = [row["question"] for row in csv.DictReader(file) if row["id"].startswith("en-")]

QUESTIONS = ENGLISH[:: len(ENGLISH) // 10][:10]


@pytest.mark.verify
def test_no_method_fails_on_any_of_ten_questions(visit: Visit) -> None:
    page = visit().open()
    seen: set[str] = set()
    for question in QUESTIONS:
        ask(page, question)
        expect(page.get_by_role("heading", level=2, name=question)).to_be_visible(timeout=PATIENCE)
        page.wait_for_function(
            "(known) => !known.includes(new URLSearchParams(location.search).get('run'))",
            arg=["", *seen],
        )
        for method in standard_methods():
            expect(card(page, method)).to_contain_text("Done", timeout=3 * PATIENCE)
        expect(stop_button(page)).to_have_count(0, timeout=PATIENCE)
        expect(page.locator(".vs-counters")).to_contain_text("Done")
        expect(page.locator(".vs-error, .vs-bar-error, [role='alert']")).to_have_count(0)
        assert fits(page)
        seen.add(run_of(page))
    assert len(seen) == len(QUESTIONS) == 10
