"""Limits in a browser: a run that would pass one is not started, goes to it anyway, and says so."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.app.conftest import Visit
from tests.app.serving import (
    DESKTOP,
    ask,
    expect_to_fit_everywhere,
    run_of,
    wait_for_end,
    wait_until_drawn,
)


@pytest.mark.verify
def test_a_limit_is_set_held_against_the_estimate_and_reached(visit: Visit) -> None:
    page = visit().open("/")
    page.get_by_text("Settings", exact=True).click()
    page.get_by_role("tab", name="This run").click()
    field = page.get_by_role("spinbutton", name="Limit of calls")
    field.fill("2")
    field.press("Enter")
    estimate = page.locator(".st-key-estimate")
    expect(estimate).to_contain_text("limit: 2 calls")
    ask(page)
    over = page.locator(".st-key-over-limit")
    expect(over).to_contain_text("more than the limit of 2")
    expect(page).not_to_have_url(re.compile("run="))
    expect_to_fit_everywhere(page)
    page.get_by_role("button", name="Start anyway, up to the limit").click()
    wait_for_end(page)
    spent = page.locator(".vs-spending")
    expect(spent).to_contain_text(re.compile(r"Calls: [12] of about \d+, limit 2"))
    expect(spent.get_by_role("progressbar")).to_have_attribute(
        "aria-label", re.compile("of those expected")
    )
    expect(page.locator(".vs-notices")).to_contain_text("The run stopped at the limit of calls")
    expect_to_fit_everywhere(page)
    first = run_of(page)

    # Compare says of the run what it took of what it was allowed.
    page.set_viewport_size(DESKTOP)
    page.get_by_role("link", name="Compare", exact=True).click()
    bar = page.locator(".st-key-run-bar-1")
    expect(bar).to_contain_text(re.compile(r"Calls: [12] of about \d+, limit 2"))
    expect(bar.get_by_role("progressbar").first).to_be_visible()
    expect_to_fit_everywhere(page)

    # With a higher limit it is tried again, to its end.
    page.set_viewport_size(DESKTOP)
    page.get_by_role("link", name="Ask", exact=True).click()
    wait_until_drawn(page)
    if not field.is_visible():
        page.get_by_text("Settings", exact=True).click()
        page.get_by_role("tab", name="This run").click()
    field.fill("2000")
    field.press("Enter")
    expect(estimate).to_contain_text("limit: 2,000 calls")
    page.locator(".vs-notices").get_by_role("button", name="Try again").click()
    page.wait_for_url(lambda url: first not in url)
    wait_for_end(page)
    expect(page.get_by_text("The run stopped at the limit")).to_have_count(0)
    expect(spent).to_contain_text("limit 2,000")
