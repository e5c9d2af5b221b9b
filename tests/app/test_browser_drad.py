"""The DRAD page in a browser: other thresholds without a call, choices, and the corrections."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import Visit
from tests.app.serving import (
    QUESTION,
    Finished,
    Workbench,
    choose,
    events_stored,
    expect_to_fit_everywhere,
    run_of,
)

# The run may be recorded anew.
CORRECTED = re.compile(r"corrections? (was|were) written")


def verdicts(page: Page) -> int:
    """How many entities of the table are doubtful."""
    return page.locator("#drad-entities-0 .vs-row-doubtful").count()


def move_theta_1(page: Page, key: str, times: int) -> None:
    slider = page.get_by_role("slider", name="θ₁, minimum P(E)")
    slider.focus()
    for _ in range(times):
        slider.press(key)


def switch(page: Page, words: str) -> None:
    page.locator(".st-key-settings-detector-drad label").filter(has_text=words).first.click()


@pytest.mark.verify
def test_the_page_shows_the_detector_and_the_corrections(visit: Visit, finished: Finished) -> None:
    page = visit(known=finished.browser).open(f"/drad?run={finished.run}")
    expect(page.get_by_role("heading", level=2, name=QUESTION)).to_be_visible()
    expect(page.get_by_text("the probabilities the model itself gave")).to_be_visible()
    expect(page.get_by_text("Entropies are lower bounds")).to_be_visible()
    doubtful = "#drad-heat-0-probability .vs-entity.vs-verdict-doubtful"
    expect(page.locator(doubtful).first).to_be_visible()
    assert verdicts(page) >= 1
    step = page.locator("[data-key='step-1']")
    expect(step).to_contain_text("Search query, without the doubtful entity")
    expect(step.locator("ins").first).to_be_visible()
    expect(step.locator(".vs-passage-card")).to_have_count(3)
    expect(page.locator(".vs-diff-sides")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    original = page.locator("#drad-heat-0-probability")
    page.get_by_role("radio", name="After correction 1").click()
    expect(original).to_be_hidden()
    corrected = page.locator("#drad-heat-1-probability")
    expect(corrected).to_contain_text("Bill")
    expect(page.locator("#drad-entities-1")).to_be_visible()
    corrected.locator("[data-i]").first.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Probability")
    expect_to_fit_everywhere(page)


@pytest.mark.verify
def test_a_threshold_decides_again_without_a_call_and_leads_to_another_run(
    visit: Visit, finished: Finished, workbench: Workbench
) -> None:
    page = visit(known=finished.browser).open(f"/drad?run={finished.run}")
    expect(page.get_by_text(CORRECTED)).to_be_visible()
    before, stored = verdicts(page), events_stored(workbench.data)
    assert before >= 1
    switch(page, "Entropy decides too")
    move_theta_1(page, "Home", 1)
    expect(page.locator("#drad-entities-0 .vs-row-doubtful")).to_have_count(0)
    expect(page.get_by_text("The original answer stays as it is.")).to_be_visible()
    move_theta_1(page, "End", 1)
    expect(page.locator("#drad-entities-0 .vs-row-doubtful").nth(before)).to_be_visible()
    again = page.get_by_role("button", name="Run again with these settings")
    expect(again).to_be_visible()
    assert events_stored(workbench.data) == stored
    assert run_of(page) == finished.run

    again.click()
    page.wait_for_url(lambda url: finished.run not in url and "run=" in url)
    expect(page.get_by_text("written").first).to_be_visible()
    assert run_of(page) != finished.run
    expect(page.get_by_role("slider", name="θ₁, minimum P(E)")).to_have_value("1")


@pytest.mark.verify
def test_entropy_decides_too(visit: Visit, finished: Finished) -> None:
    page = visit(known=finished.browser).open(f"/drad?run={finished.run}")
    expect(page.get_by_text("was calibrated on answers of SmolLM2")).to_be_visible()
    by_probability = page.locator("#drad-heat-0-probability")
    by_entropy = page.locator("#drad-heat-0-entropy")
    expect(by_probability).to_be_visible()
    expect(by_entropy).to_be_hidden()
    page.get_by_role("radio", name="Probability").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Entropy")).to_be_checked()
    expect(by_entropy).to_contain_text("Token entropy, nats")
    expect(by_probability).to_be_hidden()

    switch(page, "θ₂")
    slider = page.get_by_role("slider", name="θ₂, maximum H(E)")
    slider.focus()
    slider.press("Home")
    expect(page.locator("#drad-entities-0 .vs-row-confident")).to_have_count(0)
    # What was chosen to be looked at stays when a threshold moves.
    expect(by_entropy).to_be_visible()
    switch(page, "Entropy decides too")
    expect(page.locator("#drad-entities-0 .vs-row-confident").first).to_be_visible()


@pytest.mark.verify
def test_without_a_run_one_can_be_picked(visit: Visit, finished: Finished) -> None:
    page = visit(known=finished.browser).open("/drad")
    choose(page, "Choose a run", QUESTION)
    expect(page.locator("#drad-heat-0-probability")).to_be_visible()
    assert "run=" in page.url


@pytest.mark.verify
def test_a_browser_without_runs_is_sent_to_the_ask_page(visit: Visit) -> None:
    page = visit().open("/drad")
    expect(page.get_by_text("No run of this browser has used DRAD yet")).to_be_visible()
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Ask")).to_be_visible()


@pytest.mark.verify
def test_the_ask_page_leads_there(visit: Visit, finished: Finished) -> None:
    page = visit(known=finished.browser).open(f"/?run={finished.run}")
    page.get_by_role("button", name="Steps of DRAD").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("DRAD: detect")
    expect(page.locator("#drad-heat-0-probability")).to_be_visible()
    assert run_of(page) == finished.run
