"""The page of the Space in a browser: what plays, asking, stopping, sharing, waiting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from components.ask import examples
from tests.app.public.conftest import Served
from tests.app.public.test_api import another

PATIENCE = 60_000
ILLUSTRATION = "replies written by hand"

Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, served: Served) -> Iterator[Open]:
    """Opens pages in browsers of their own; errors in them fail the test."""
    faults: list[str] = []
    with ExitStack() as stack:

        def visit(query: str = "", **options: Any) -> Page:
            context = browser.new_context(**options)
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(f"{served.url}/{query}")
            expect(page.get_by_role("heading", level=1)).to_have_count(1, timeout=PATIENCE)
            return page

        yield visit
    assert not faults


def ask(page: Page, question: str) -> None:
    """Ask with the method that makes a single call."""
    page.get_by_role("button", name="Methods").click()
    for name in ("RAG", "Rowen", "DRAD", "EVER", "HAARAG", "SLM check"):
        page.get_by_role("checkbox", name=name, exact=True).uncheck()
    page.get_by_role("textbox", name="Question").fill(question)
    page.get_by_role("textbox", name="Question").press("Enter")


def seen(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible(timeout=PATIENCE)


def finished(page: Page) -> None:
    expect(page.get_by_role("button", name="Share")).to_be_enabled(timeout=PATIENCE)


def test_a_walkthrough_is_playing_above_an_input_that_works(answering: Served, open_page: Open):
    page = open_page()
    seen(page, ILLUSTRATION)
    question = another()
    ask(page, question)
    expect(page.get_by_role("heading", name=question)).to_be_visible(timeout=PATIENCE)
    seen(page, "In Hope, Arkansas.")
    finished(page)
    expect(page.get_by_text(ILLUSTRATION)).to_have_count(0)


def test_one_line_says_who_answers_and_how_good_it_is(answering: Served, open_page: Open):
    page = open_page()
    seen(page, "SmolLM2-135M-Instruct answers here")


def test_every_method_has_its_page(answering: Served, open_page: Open):
    page = open_page()
    seen(page, ILLUSTRATION)
    for name in ("Rowen", "EVER", "Grounding", "DRAD"):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tabpanel").locator(".vs-question").first).to_be_visible(
            timeout=PATIENCE
        )


def test_buttons_in_a_run_open_its_pages(answering: Served, open_page: Open):
    page = open_page()
    page.get_by_text("Where was Bill Clinton born and raised?").first.click()
    for button, tab in (("DRAD step by step", "DRAD"), ("Compare the answers", "Compare")):
        page.get_by_role("tab", name="Ask").click()
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("region", name="Answers side by side")).to_be_visible()


def test_stop_ends_the_calls(held: Served, open_page: Open):
    page = open_page()
    ask(page, another())
    held.until(lambda: held.model.busy > 0)
    page.get_by_role("button", name="Stop").click()
    held.until(lambda: held.model.busy == 0)
    assert held.model.cancelled > 0
    seen(page, "The run was stopped")


def test_closing_the_tab_ends_the_calls(held: Served, open_page: Open):
    page = open_page()
    ask(page, another())
    held.until(lambda: held.model.busy > 0)
    page.close()
    held.until(lambda: held.model.busy == 0)
    assert held.model.cancelled > 0


def test_who_waits_is_told_and_may_leave(held: Served, open_page: Open):
    first, second = open_page(), open_page()
    ask(first, another())
    held.until(lambda: held.model.busy > 0)
    ask(second, another())
    seen(second, "You are next.")
    second.get_by_role("button", name="Stop").click()
    seen(second, "You have left the queue.")
    assert held.model.busy > 0


def test_a_run_is_seen_by_others_only_when_it_is_shared(answering: Served, open_page: Open):
    page = open_page()
    question = another()
    ask(page, question)
    seen(page, "In Hope, Arkansas.")
    finished(page)
    page.get_by_role("button", name="Share").click()
    link = page.get_by_label("Link to this run")
    expect(link).to_have_value(re.compile(r"\?run=\w+"), timeout=PATIENCE)
    query = link.input_value().partition("?")[2]
    other = open_page(f"?{query}")
    expect(other.get_by_role("heading", name=question)).to_be_visible(timeout=PATIENCE)
    nobody = open_page("?run=20260101-000000-abcdef")
    seen(nobody, "Not found")


def test_the_whole_run_opens_as_a_report(answering: Served, open_page: Open):
    page = open_page()
    question = another()
    ask(page, question)
    seen(page, "In Hope, Arkansas.")
    finished(page)
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Open as a report").click()
    report = opened.value
    expect(report.get_by_role("heading", name=question).first).to_be_visible(timeout=PATIENCE)


def test_an_example_is_shown_as_it_was_recorded(answering: Served, open_page: Open):
    page = open_page()
    page.get_by_text("Where was Bill Clinton born and raised?").first.click()
    expect(page.get_by_role("textbox", name="Question")).to_have_value(
        "Where was Bill Clinton born and raised?", timeout=PATIENCE
    )
    heading = page.get_by_role("heading", name="Where was Bill Clinton born and raised?")
    expect(heading).to_be_visible(timeout=PATIENCE)


def test_chinese_visitors_read_chinese(answering: Served, open_page: Open):
    page = open_page(locale="zh-CN")
    seen(page, "看清大语言模型的幻觉如何被检测与纠正")
    page.get_by_text("EN", exact=True).click()
    seen(page, "See how a language model's hallucinations")


def test_examples_are_not_cut_short(answering: Served, open_page: Open):
    page = open_page()
    expect(page.locator("#examples .gallery-item").first).to_be_visible(timeout=PATIENCE)
    shown = page.locator("#examples .gallery-item").all_inner_texts()
    assert set(examples("en")) <= {text.strip() for text in shown}


def test_nothing_is_wider_than_a_phone(answering: Served, open_page: Open):
    page = open_page(viewport={"width": 390, "height": 844})
    seen(page, ILLUSTRATION)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_model_of_ones_own_wants_a_key_and_no_server_is_asked_for(
    answering: Served, open_page: Open
):
    page = open_page()
    page.get_by_role("button", name="Your own model").click()
    page.get_by_role("textbox", name="Model", exact=True).fill("some-model")
    expect(page.get_by_role("textbox", name="Server")).to_have_count(0)
    ask(page, another())
    seen(page, "Your own model needs a key.")
