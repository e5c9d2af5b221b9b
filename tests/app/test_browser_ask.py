"""The Ask page in a browser, from the question to the corrected text."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from pipelines.methods.registry import standard_methods
from tests.app.conftest import Visit
from tests.app.serving import (
    PATIENCE,
    QUESTION,
    Finished,
    Workbench,
    ask,
    card,
    events_stored,
    fits,
    leave_out,
    question_field,
    run_of,
    stop_button,
    wait_for_end,
)


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]
)
def test_a_question_is_answered_checked_and_corrected(
    visit: Visit, scheme: str, width: int
) -> None:
    page = visit(scheme=scheme, width=width).open()
    ask(page)
    expect(page.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    run = wait_for_end(page)
    assert re.fullmatch("[0-9a-f]{32}", run)

    original = page.locator("#original")
    assert original.locator("[data-i]").count() > 5
    expect(original.locator(".vs-entity.vs-verdict-doubtful").first).to_be_visible()
    for method in standard_methods():
        expect(card(page, method)).to_contain_text("Done")
    expect(card(page, "drad")).to_contain_text(re.compile(r"Doubtful.*\d [<>] \d"))
    # Which words change depends on what else was decoded together with them.
    expect(card(page, "drad").locator("del, ins").first).to_be_visible()
    expect(page.locator(".vs-lane-row")).to_have_count(len(standard_methods()))
    expect(page.locator(".vs-passage-card mark").first).to_be_visible()
    assert fits(page)


def test_the_tooltip_of_a_token_shows_what_else_could_have_been_written(
    visit: Visit, finished: Finished
) -> None:
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    page.locator("#original .vs-entity.vs-verdict-doubtful [data-i]").first.hover()
    tip = page.locator(".vs-tip")
    expect(tip).to_contain_text("Probability")
    expect(tip).to_contain_text("Entropy")
    assert tip.locator(".vs-tip-bar").count() > 3


def test_every_call_can_be_read(visit: Visit, finished: Finished) -> None:
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    page.locator(".vs-timeline summary").filter(has_text="calls as text").click()
    calls = page.locator("details.vs-call")
    assert calls.count() >= 6
    calls.first.locator("summary").click()
    expect(calls.first).to_contain_text(QUESTION)
    expect(calls.first.locator(".vs-turn-reply")).to_contain_text("Bill Clinton")


def test_a_reload_shows_the_same_run(
    visit: Visit, finished: Finished, workbench: Workbench
) -> None:
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    expect(card(page, "drad")).to_contain_text("Doubtful")
    text = page.locator("#original .vs-heat-text").inner_text()
    before = events_stored(workbench.data)
    page.reload()
    expect(card(page, "drad")).to_contain_text("Doubtful")
    assert page.locator("#original .vs-heat-text").inner_text() == text
    assert run_of(page) == finished.run
    expect(question_field(page)).to_have_value(QUESTION)
    assert events_stored(workbench.data) == before


def test_another_browser_cannot_open_it(visit: Visit, finished: Finished) -> None:
    page = visit().open(f"/?run={finished.run}")
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    expect(page.locator(".vs-run")).to_have_count(0)
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_text("No runs yet")).to_be_visible()


def test_an_address_that_names_no_run_says_so(visit: Visit) -> None:
    page = visit().open("/?run=0123456789abcdef0123456789abcdef")
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    ask(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    wait_for_end(page)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("", "Type a question first."),
        ("   ", "Type a question first."),
        ("why not " * 2500, "The question has 19,999 characters; at most 4,000 are allowed."),
    ],
    ids=["empty", "blank", "too long"],
)
def test_a_question_that_cannot_be_asked_is_kept(visit: Visit, question: str, said: str) -> None:
    page = visit().open()
    ask(page, question)
    expect(page.get_by_role("alert")).to_contain_text(said)
    expect(question_field(page)).to_have_value(question)
    assert "run=" not in page.url


def test_an_example_fills_the_question_in(visit: Visit) -> None:
    page = visit().open()
    page.get_by_role("radio", name="What is the capital of Australia?").click()
    expect(question_field(page)).to_have_value("What is the capital of Australia?")
    assert "run=" not in page.url


def test_methods_can_be_left_out(visit: Visit) -> None:
    page = visit().open()
    leave_out(page, "rag", "drad", "rowen", "ever", "haarag", "slm")
    ask(page)
    wait_for_end(page)
    expect(card(page, "direct")).to_contain_text("Done")
    expect(card(page, "rag")).to_have_count(0)


def test_two_runs_one_after_the_other(visit: Visit) -> None:
    page = visit().open()
    leave_out(page, "drad", "rowen", "ever", "haarag", "slm")
    ask(page)
    first = wait_for_end(page)
    ask(page, "What is the capital of Australia?")
    expect(page.get_by_role("heading", level=2, name="What is the capital")).to_be_visible(
        timeout=PATIENCE
    )
    assert wait_for_end(page) != first
    page.go_back()
    expect(page.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    assert run_of(page) == first
    expect(stop_button(page)).to_have_count(0)
