"""The page of the Space in a browser: what plays, asking, stopping, sharing, waiting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from components.ask import examples
from components.base.words import Catalogue
from components.run.report import PAGES
from pipelines.store.exchange import recordings
from pipelines.store.runs import SHARED
from tests.app.public.conftest import Served
from tests.app.public.looking import turn_to
from tests.app.public.test_api import another
from tests.browser import PATIENCE
from tests.network import watch_pages

ILLUSTRATION = "replies written by hand"
RECORDED = next(one for one in recordings() if one.language == "en").question

Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, served: Served) -> Iterator[Open]:
    """Opens pages in browsers of their own; errors in them fail the test."""
    faults: list[str] = []
    with ExitStack() as stack:

        def visit(query: str = "", **options: Any) -> Page:
            context = browser.new_context(**{"reduced_motion": "reduce", **options})
            stack.callback(context.close)
            watch_pages(context, faults.append)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(f"{served.url}/{query}")
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
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
    expect(page.get_by_text(text).first).to_be_visible()


def finished(page: Page) -> None:
    expect(page.get_by_role("button", name="Share")).to_be_enabled()


def test_who_comes_sees_who_answers_examples_and_a_walkthrough_on_every_page(
    answering: Served, open_page: Open
):
    page = open_page()
    seen(page, ILLUSTRATION)
    seen(page, "SmolLM2-135M-Instruct answers here")
    expect(page.locator("#examples .gallery-item").first).to_be_visible()
    shown = page.locator("#examples .gallery-item").all_inner_texts()
    # Below a recorded one stands what is to be seen in it.
    assert set(examples("en")) <= {text.strip().splitlines()[0] for text in shown}
    for name in ("Rowen", "EVER", "Grounding", "DRAD"):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("tabpanel").locator(".vs-question").first).to_be_visible()


@pytest.mark.verify
def test_the_walkthrough_moves_until_it_is_stopped_and_is_shared_as_the_run_that_it_is(
    answering: Served, open_page: Open
):
    page = open_page(reduced_motion="no-preference")
    bar, stop = page.locator("#bar"), page.get_by_role("button", name="Stop")
    expect(bar.get_by_text("Running", exact=True)).to_be_visible()
    expect(bar.get_by_text(re.compile(r"^[1-9]\d* calls?$"))).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    stop.click()
    expect(bar.get_by_text("Done", exact=True)).to_be_visible()
    expect(stop).to_be_disabled()
    page.get_by_role("button", name="Share").click()
    link = page.get_by_label("Link to this run")
    expect(link).to_have_value(re.compile(r"\?run=walkthrough-1-en-curie$"))
    assert answering.space.engine.service.store.sizes.of(SHARED) == []


@pytest.mark.verify
@pytest.mark.parametrize("width", [390, 1180])
def test_nothing_is_wider_than_the_screen(answering: Served, open_page: Open, width: int):
    page = open_page(viewport={"width": width, "height": 844})
    seen(page, ILLUSTRATION)
    for fold in ("Methods", "Settings", "Own model"):
        page.get_by_role("button", name=fold).click()
    for tab in PAGES:
        turn_to(page, tab, Catalogue("en"))
        expect(page.locator(f"#view-{tab} .vs-run").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_question_replaces_the_walkthrough_and_its_run_is_seen_by_others_when_it_is_shared(
    answering: Served, open_page: Open
):
    page = open_page()
    seen(page, ILLUSTRATION)
    question = another()
    ask(page, question)
    expect(page.get_by_role("heading", name=question)).to_be_visible()
    seen(page, "In Hope, Arkansas.")
    finished(page)
    expect(page.get_by_text(ILLUSTRATION)).to_have_count(0)

    with page.expect_popup() as opened:
        page.get_by_role("button", name="Report").click()
    report = opened.value
    expect(report.get_by_role("heading", name=question).first).to_be_visible()

    page.get_by_role("button", name="Share").click()
    link = page.get_by_label("Link to this run")
    expect(link).to_have_value(re.compile(r"\?run=\w+"))
    query = link.input_value().partition("?")[2]
    other = open_page(f"?{query}")
    expect(other.get_by_role("heading", name=question)).to_be_visible()
    nobody = open_page("?run=20260101-000000-abcdef")
    seen(nobody, "Not found")


@pytest.mark.verify
def test_an_example_is_shown_as_it_was_recorded_and_its_buttons_open_its_pages(
    answering: Served, open_page: Open
):
    page = open_page()
    page.get_by_text(RECORDED).first.click()
    expect(page.get_by_role("textbox", name="Question")).to_have_value(RECORDED)
    expect(page.get_by_role("heading", name=RECORDED)).to_be_visible()
    for button, tab in (("Steps of DRAD", "DRAD"), ("Compare the answers", "Compare")):
        page.get_by_role("tab", name="Ask").click()
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("region", name="Answers side by side")).to_be_visible()


@pytest.mark.verify
def test_stop_ends_the_calls(held: Served, open_page: Open):
    page = open_page()
    ask(page, another())
    held.until(lambda: held.model.busy > 0)
    page.get_by_role("button", name="Stop").click()
    held.until(lambda: held.model.busy == 0)
    assert held.model.cancelled > 0
    seen(page, "The run was stopped")


@pytest.mark.verify
def test_closing_the_tab_ends_the_calls(held: Served, open_page: Open):
    page = open_page()
    ask(page, another())
    held.until(lambda: held.model.busy > 0)
    page.close()
    held.until(lambda: held.model.busy == 0)
    assert held.model.cancelled > 0


@pytest.mark.verify
def test_who_waits_is_told_and_may_leave(held: Served, open_page: Open):
    first, second = open_page(), open_page()
    ask(first, another())
    held.until(lambda: held.model.busy > 0)
    ask(second, another())
    seen(second, "You are next.")
    second.get_by_role("button", name="Stop").click()
    seen(second, "You have left the queue.")
    assert held.model.busy > 0


@pytest.mark.verify
def test_chinese_visitors_read_chinese(answering: Served, open_page: Open):
    page = open_page(locale="zh-CN")
    seen(page, "看清大语言模型的幻觉如何被检测与修正")
    page.get_by_text("EN", exact=True).click()
    seen(page, "See how a language model's hallucinations")


@pytest.mark.verify
def test_a_model_of_ones_own_wants_a_key_and_no_server_is_asked_for(
    answering: Served, open_page: Open
):
    page = open_page()
    page.get_by_role("button", name="Own model").click()
    page.get_by_role("textbox", name="Model", exact=True).fill("some-model")
    expect(page.get_by_role("textbox", name="Server")).to_have_count(0)
    ask(page, another())
    seen(page, "Your own model needs a key.")
