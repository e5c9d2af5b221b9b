"""The Ask page in a browser: what is asked, and what can be looked at in a run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.app.conftest import Visit
from tests.app.serving import (
    ENDED,
    QUESTION,
    Finished,
    Workbench,
    ask,
    card,
    events_stored,
    expect_to_fit_everywhere,
    leave_out,
    open_fold,
    question_field,
    run_of,
    stop_button,
    ticked_at_first,
    wait_for_end,
)


@pytest.mark.verify
def test_what_stands_behind_a_run_can_be_looked_at(visit: Visit, finished: Finished) -> None:
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    page.locator("#original .vs-entity.vs-verdict-doubtful [data-i]").first.hover()
    tip = page.locator(".vs-tip")
    expect(tip).to_contain_text("Probability")
    expect(tip).to_contain_text("Entropy")
    assert tip.locator(".vs-tip-bar").count() > 3

    open_fold(page, "timeline-fold")
    page.locator(".vs-timeline summary").filter(has_text="calls as text").click()
    calls = page.locator("details.vs-call")
    assert calls.count() >= 6
    calls.first.locator("summary").click()
    expect(calls.first).to_contain_text(QUESTION)
    expect(calls.first.locator(".vs-turn-reply")).to_contain_text("Bill Clinton")


@pytest.mark.verify
def test_every_method_shows_its_verdict_and_its_corrections(
    visit: Visit, finished: Finished
) -> None:
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    expect(page.locator("#original .vs-entity.vs-verdict-doubtful").first).to_be_visible()
    for method in ticked_at_first():
        expect(card(page, method)).to_have_class(ENDED)
    expect(card(page, "drad")).to_contain_text(re.compile(r"Doubtful.*\d [<>] \d"))
    card(page, "drad").locator("summary").first.click()
    expect(card(page, "drad").locator("del, ins").first).to_be_visible()
    expect(page.locator(".vs-lane-row")).to_have_count(len(ticked_at_first()))
    open_fold(page, "evidence-fold")
    expect(page.locator(".vs-passage-card").first).to_be_visible()
    expect_to_fit_everywhere(page)


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


@pytest.mark.verify
def test_another_browser_cannot_open_it(visit: Visit, finished: Finished) -> None:
    page = visit().open(f"/?run={finished.run}")
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    expect(page.locator(".vs-run")).to_have_count(0)
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_text("No runs yet")).to_be_visible()


@pytest.mark.verify
def test_an_address_that_names_no_run_says_so(visit: Visit) -> None:
    page = visit().open("/?run=0123456789abcdef0123456789abcdef")
    expect(page.get_by_role("alert")).to_contain_text("Not found")
    ask(page)
    expect(page.get_by_role("alert")).to_have_count(0)
    wait_for_end(page)


@pytest.mark.verify
def test_a_question_that_cannot_be_asked_is_kept(visit: Visit) -> None:
    page = visit().open()
    long = "why not " * 2500
    for question, said in (
        ("   ", "Type a question first."),
        (long, "The question has 19,999 characters; at most 4,000 are allowed."),
        ("", "Type a question first."),
    ):
        ask(page, question)
        expect(page.get_by_role("alert")).to_contain_text(said)
        expect(question_field(page)).to_have_value(question)
        assert "run=" not in page.url


@pytest.mark.verify
def test_an_example_can_be_asked_after_another_question(visit: Visit) -> None:
    page = visit().open()
    leave_out(page, "rag", "drad", "rowen", "ever", "haarag", "slm")
    ask(page)
    first = wait_for_end(page)
    expect(card(page, "direct")).to_have_class(ENDED)
    expect(card(page, "rag")).to_have_count(0)
    page.get_by_role("button", name="Watch an example").click()
    page.get_by_role("radio", name="What is the capital of Australia?").click()
    expect(question_field(page)).to_have_value("What is the capital of Australia?")
    assert run_of(page) == first
    question_field(page).press("Enter")
    expect(page.get_by_role("heading", level=2, name="What is the capital")).to_be_visible()
    assert wait_for_end(page) != first
    page.go_back()
    expect(page.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    assert run_of(page) == first
    expect(stop_button(page)).to_have_count(0)
