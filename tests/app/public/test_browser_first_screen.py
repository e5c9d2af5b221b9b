"""What a visitor meets first, on a phone and on a desk: the question, Run, and the answer."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from pipelines.run import events
from pipelines.samples.walkthroughs import walkthroughs
from tests.app.public.conftest import Served
from tests.app.public.test_api import another
from tests.app.public.test_page import RECORDED, Open, ask, finished, seen
from tests.app.public.test_page import open_page as open_page

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
CHINESE = [one for one in walkthroughs() if one.language == "zh"]


def box(place: Locator) -> dict[str, float]:
    """Where something is seen, in pixels of the screen."""
    found = place.bounding_box()
    assert found is not None
    return {name: float(found[name]) for name in ("x", "y", "width", "height")}


def within(place: Locator, height: int = 844) -> None:
    """All of it is on the screen as it stands."""
    at = box(place)
    assert at["y"] >= 0, at
    assert at["y"] + at["height"] <= height, at


def scrolled(page: Page) -> float:
    return page.evaluate("scrollY")


def at_answer(page: Page) -> None:
    """The answer begins at the top of the screen, and has the focus."""
    expect(page.locator("#result")).to_be_focused()
    page.wait_for_function(
        "Math.abs(document.querySelector('#result').getBoundingClientRect().top) < 60"
        " || scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
    )


def test_on_a_phone_question_run_answer_and_verdict_are_on_the_first_screen(
    answering: Served, open_page: Open
):
    page = open_page(**PHONE)
    seen(page, "replies written by hand")
    question = page.get_by_role("textbox", name="Question")
    within(question)
    # Several lines, of more than thirty characters.
    assert box(question)["height"] >= 72
    assert box(question)["width"] >= 250
    within(page.get_by_role("button", name="Run", exact=True))
    within(page.get_by_role("button", name="Share"))
    within(page.get_by_role("button", name="Report"))
    within(page.get_by_role("button", name="Own model"))
    within(page.locator("#examples .gallery-item").first)
    within(page.locator("#view-ask .vs-heat-text").first)
    within(page.locator("#view-ask .vs-outcome .vs-strong").first)
    assert scrolled(page) == 0


@pytest.mark.verify
def test_the_first_tab_stops_skip_to_the_answer_and_reach_the_question(
    answering: Served, open_page: Open
):
    page = open_page()
    page.locator("body").focus()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the answer")
    expect(skip).to_be_focused()
    # Two languages lie between them at most.
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#asking textarea')"):
            break
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    skip.focus()
    page.keyboard.press("Enter")
    at_answer(page)
    expect(page.get_by_role("region", name="Answer and verdicts")).to_be_focused()


@pytest.mark.verify
def test_run_goes_to_the_answer_and_so_do_examples_and_what_is_far_below(
    answering: Served, open_page: Open
):
    page = open_page(**PHONE)
    seen(page, "replies written by hand")
    ask(page, another())
    at_answer(page)
    # Far from the question, the way back to it is in reach.
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.get_by_role("button", name="Ask a question").click()
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    expect(page.get_by_role("textbox", name="Question")).to_be_in_viewport()
    page.locator("#examples .gallery-item").filter(has_text=RECORDED).click()
    at_answer(page)
    expect(page.locator("#view-ask .vs-question")).to_have_text(RECORDED)


@pytest.mark.verify
def test_who_scrolls_is_not_taken_elsewhere(answering: Served, open_page: Open):
    page = open_page(viewport={"width": 1180, "height": 500})
    seen(page, "replies written by hand")
    page.evaluate("() => { dispatchEvent(new WheelEvent('wheel')); veriscopeSpace.toAnswer(); }")
    expect(page.locator("#result")).to_be_focused()
    assert scrolled(page) == 0


@pytest.mark.verify
def test_far_below_stop_is_in_reach(held: Served, open_page: Open):
    page = open_page(viewport={"width": 1180, "height": 500})
    ask(page, another())
    held.until(lambda: held.model.busy > 0)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_enabled()
    expect(stop).to_be_in_viewport()
    stop.click()
    seen(page, "The run was stopped")


@pytest.mark.verify
def test_a_link_is_shown_once_the_run_is_shared(answering: Served, open_page: Open):
    page = open_page()
    seen(page, "replies written by hand")
    link = page.get_by_label("Link to this run")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Share").click()
    expect(link).to_be_visible()
    # It would be that of another run.
    page.locator("#examples .gallery-item").filter(has_text=RECORDED).click()
    expect(link).to_be_hidden()


@pytest.mark.verify
def test_evidence_and_thresholds_are_chosen_and_stand_in_the_report(
    answering: Served, open_page: Open
):
    page = open_page()
    page.get_by_role("button", name="Settings").click()
    threshold = page.get_by_role("textbox", name="DRAD: θ₁, minimum P(E)")
    expect(page.get_by_text("From 0 to 1; left empty: 0.6.")).to_be_visible()
    threshold.fill("7")
    question = another()
    page.get_by_role("textbox", name="Question", exact=True).fill(question)
    page.get_by_role("button", name="Run", exact=True).click()
    seen(page, "must be a number from 0 to 1")
    threshold.fill("0.5")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#view-ask .vs-question")).to_have_text(question)
    finished(page)
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Report").click()
    report = opened.value
    expect(report.get_by_role("heading", level=1)).to_have_count(1)
    expect(report.get_by_text("1 differs from its default").first).to_be_attached()
    # Where windows are blocked it is a file.
    page.evaluate("window.open = () => null")
    with page.expect_download() as download:
        page.get_by_role("button", name="Report").click()
    assert "1 differs from its default" in download.value.path().read_text(encoding="utf-8")
    page.get_by_role("radio", name="None").check()
    seen(page, "Left out, because no evidence was chosen: RAG")


@pytest.mark.verify
def test_chinese_visitors_are_shown_what_there_is_in_chinese(
    answering: Served, open_page: Open, monkeypatch: pytest.MonkeyPatch
):
    # As where only the bundled model is installed: the small one of the default speaks Chinese.
    monkeypatch.setattr(events, "fetched_file", lambda name: None)
    page = open_page(**PHONE, locale="zh-CN")
    expect(page.get_by_text("内置模型只懂英文")).to_have_count(1)
    items = page.locator("#examples .gallery-item")
    expect(items.first).to_contain_text(CHINESE[0].question)
    items.filter(has_text=CHINESE[1].question).click()
    expect(page.locator("#view-ask .vs-question")).to_have_text(CHINESE[1].question)
    page.get_by_role("textbox", name="问题").fill("谁写了《红楼梦》？")
    page.get_by_role("button", name="运行", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="不懂这个问题的语言")).to_be_visible()
    expect(page.get_by_role("button", name="运行", exact=True)).to_be_enabled()
    assert answering.model.busy == 0


@pytest.mark.verify
def test_nothing_that_is_typed_is_written_into_a_file(served: Served, open_page: Open):
    page = open_page()
    link = f"{served.url}/gradio_api/deep_link?session_hash=any"
    assert page.request.get(link).status == 404
