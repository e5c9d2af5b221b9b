"""Where things stand: the answer first, what decided in view, the rest folded."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.app.conftest import Visit
from tests.app.serving import DESKTOP, PHONE, leave_out, wait_for_end, wait_until_drawn

ENGLISH, CHINESE = "sample-en-001", "sample-zh-001"
TALLEST = 4_000
MOST_SHIFTED = 0.05

_SHIFTS = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({ type: "layout-shift" });
}"""
_HEIGHT = "() => document.querySelector('[data-testid=stMain]').scrollHeight"


def bottom(page: Page, what: str) -> float:
    """Where the last element of that kind ends, in pixels from the top of the screen."""
    box = page.locator(what).last.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.mark.parametrize(
    ("run", "language", "viewport", "screens"),
    [
        (ENGLISH, "en", DESKTOP, 1),
        (CHINESE, "zh", PHONE, 2),
        pytest.param(CHINESE, "zh", DESKTOP, 1, marks=pytest.mark.verify),
        pytest.param(ENGLISH, "en", PHONE, 2, marks=pytest.mark.verify),
    ],
)
def test_the_result_head_is_on_the_first_screen(
    visit: Visit, run: str, language: str, viewport: ViewportSize, screens: int
):
    page = visit(viewport=viewport).open(f"/?run={run}&lang={language}")
    wait_until_drawn(page)
    expect(page.locator(".vs-method")).to_have_count(7)
    assert bottom(page, ".vs-outcome") < screens * viewport["height"]
    assert bottom(page, ".vs-method") <= screens * viewport["height"]
    # A row leads to the page of its method.
    expect(page.locator(".vs-method-way")).to_have_count(5)
    for fold in ("evidence-fold", "timeline-fold"):
        assert page.locator(f"details[data-key={fold}]").get_attribute("open") is None
    expect(page.locator(".vs-passage-card").first).to_be_hidden()
    assert page.evaluate(_HEIGHT) <= (TALLEST if viewport == DESKTOP else 2 * TALLEST)


@pytest.mark.verify
@pytest.mark.parametrize(
    "address",
    [
        *("/", "/check", "/baselines", "/models", "/glossary", "/library", "/prompts", "/evaluate"),
        *(f"/{name}?run={ENGLISH}" for name in ("rowen", "drad", "ever", "compare", "grounding")),
    ],
)
def test_no_page_is_tall_before_something_is_unfolded(visit: Visit, address: str):
    page = visit().open(address)
    wait_until_drawn(page)
    assert page.evaluate(_HEIGHT) <= TALLEST


@pytest.mark.verify
def test_the_first_press_of_run_shows_the_run_and_nothing_moves(visit: Visit):
    page = visit().open()
    leave_out(page, "rag", "rowen", "drad", "ever", "haarag", "slm")
    expect(page.locator(".st-key-setup details[open]")).to_have_count(1)
    page.get_by_role("textbox", name="Question").fill("Where was Ada Lovelace born?")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".vs-question")).to_be_in_viewport()
    expect(page.locator(".st-key-setup details")).to_have_count(0)
    page.evaluate(_SHIFTS)
    wait_for_end(page)
    shifted: Any = page.evaluate("() => window.shifted")
    assert shifted <= MOST_SHIFTED
    assert bottom(page, ".vs-method") <= DESKTOP["height"]
