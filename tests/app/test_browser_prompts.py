"""Prompts and profiles in a browser: a wording is written, saved, run with, and seen on the run."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from components.base.words import LANGUAGES
from tests.app.conftest import Visit
from tests.app.serving import (
    Workbench,
    ask,
    choose,
    expect_to_fit_everywhere,
    go_to,
    leave_out,
    ticked_at_first,
    wait_for_end,
    wait_until_drawn,
)

SHORT = "Answer in one word."
MARK = "A prompt of your own: direct/system (English)"
KEY = "never-to-be-stored-7731"


def write_own(page: Page, text: str) -> None:
    """Write a text for the direct answer's system prompt, and use it."""
    choose(page, "Method", "Direct")
    wait_until_drawn(page)
    field = page.get_by_role("textbox", name="Yours")
    field.fill(text)
    field.blur()
    expect(page.get_by_text("A draft: your next runs do not use it yet.")).to_be_visible()
    page.locator(".st-key-prompt-use button").click()
    expect(page.get_by_text("Your next runs use this text.")).to_be_visible()


@pytest.fixture
def stored(workbench: Workbench) -> Path:
    return workbench.data


@pytest.mark.verify
def test_a_wording_is_saved_in_a_profile_run_and_seen(visit: Visit, stored: Path) -> None:
    page = visit().open("/prompts")
    write_own(page, SHORT)
    expect(page.get_by_text(MARK).first).to_be_visible()
    page.get_by_role("button", name="Save in a new profile").click()
    expect(page.get_by_role("heading", level=1, name="Profiles")).to_be_visible()
    wait_until_drawn(page)
    page.get_by_role("textbox", name="Name").first.fill("One word")
    page.get_by_role("textbox", name="Name").first.blur()
    wait_until_drawn(page)
    page.locator(".st-key-profiles-save button").click()
    card = page.locator("[class*='st-key-card-profile-']")
    expect(card).to_contain_text("1 prompt that differs")
    card.get_by_role("button", name="Use for my next runs").click()
    expect(card).to_contain_text("in use")
    with page.expect_download() as exported:
        card.get_by_role("button", name="Export").click()
    body = json.loads(Path(exported.value.path()).read_text(encoding="utf-8"))
    assert body["prompts"] == {"direct": {"en": {"system": SHORT}}}

    go_to(page, "Ask")
    leave_out(page, *(name for name in ticked_at_first() if name != "direct"))
    ask(page)
    run = wait_for_end(page)
    expect(page.locator(".vs-notices").get_by_text(MARK)).to_be_visible()
    with sqlite3.connect(stored / "veriscope.db") as database:
        (spec,) = database.execute("select spec from runs where id = ?", (run,)).fetchone()
        sent = [
            body
            for (body,) in database.execute(
                "select body from events where run_id = ? and kind = 'model_called'", (run,)
            )
        ]
    assert json.loads(spec)["prompts"] == body["prompts"]
    assert any(SHORT in one for one in sent)

    # It is found among the runs, and its wording fills the prompt on a try.
    go_to(page, "Runs")
    page.get_by_text("Filters", exact=True).click()
    page.get_by_text("Only with prompts of their own").click()
    expect(page.locator("[class*='st-key-card-run-']")).to_have_count(1)
    go_to(page, "Prompts")
    expect(page.get_by_role("heading", level=1, name="Prompts")).to_be_visible()
    expect(page.get_by_role("textbox", name="Yours")).to_have_value(SHORT)
    expect(page.get_by_text("What the run sent").first).to_be_visible()
    page.locator(".st-key-prompts-begin button").click()
    expect(page.get_by_text(re.compile("Reply to your text")).first).to_be_visible()


@pytest.mark.verify
def test_a_missing_placeholder_is_said_beside_the_difference_and_the_text_is_not_used(
    visit: Visit,
) -> None:
    page = visit().open("/prompts")
    wait_until_drawn(page)
    choose(page, "Method", "Direct")
    choose(page, "Prompt", "(direct/question)")
    wait_until_drawn(page)
    field = page.get_by_role("textbox", name="Yours")
    expect(field).to_have_value(re.compile(r"\$question"))
    field.fill("Well?")
    field.blur()
    missing = page.get_by_role("alert").filter(has_text="The placeholder $question is missing.")
    expect(missing).to_be_visible()
    expect(page.get_by_role("region", name="Difference from the default")).to_be_visible()
    page.locator(".st-key-prompt-use button").click()
    refused = page.get_by_role("alert").filter(has_text="direct/question (en)")
    expect(refused).to_be_visible()
    # What was written stays, and no run uses it.
    expect(field).to_have_value("Well?")
    expect(page.get_by_text("Your next runs have the default prompts.")).to_be_visible()


@pytest.mark.verify
def test_two_visitors_see_neither_wording_nor_profiles_nor_keys(visit: Visit, stored: Path) -> None:
    mine, others = visit().open("/prompts"), visit().open("/prompts")
    write_own(mine, SHORT)
    write_own(others, "Answer in two words.")
    expect(mine.get_by_role("textbox", name="Yours")).to_have_value(SHORT)
    go_to(mine, "Profiles")
    wait_until_drawn(mine)
    mine.locator(".st-key-make-openai_qwen_max button").click()
    card = mine.locator("[class*='st-key-card-profile-']")
    expect(card).to_contain_text("OpenAI + Qwen-Max")
    expect(card).to_contain_text("needs a key")
    wait_until_drawn(mine)
    field = card.get_by_role("textbox", name="Key for GPT-4o mini")
    field.press_sequentially(KEY)
    expect(card.get_by_text("GPT-4o mini (main model) needs a key")).to_have_count(0)
    go_to(others, "Profiles")
    wait_until_drawn(others)
    expect(others.locator("[class*='st-key-card-profile-']")).to_have_count(0)
    expect(others.get_by_text(SHORT)).to_have_count(0)
    for path in stored.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


@pytest.mark.verify
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["prompts", "profiles"])
def test_the_pages_fit(visit: Visit, name: str, language: str) -> None:
    page = visit().open(f"/{name}?lang={language}")
    wait_until_drawn(page)
    expect_to_fit_everywhere(page)
