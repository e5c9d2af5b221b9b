"""What the labelling component asks of the server and says of it, alone in a browser.

Here the server is the test: it answers a request, refuses it, or says nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from components.annotate.labelling import LabellingProgress, label_data
from components.base.theme import labelling_code, stylesheet
from components.base.words import Catalogue
from pipelines.annotation.labelling import AssignedItem
from tests.pipelines.annotation.bench import item

LEASE = 300.0
"""Seconds for which an item is somebody's own."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
LOST = "Your time had run out."

SHOW = """async (data) => {
    globalThis.veriscopeLabelling ??= Promise.withResolvers();
    const { Labelling } = await veriscopeLabelling.promise;
    globalThis.posted ??= [];
    globalThis.labelling ??= new Labelling(document.querySelector('.vs-lab'));
    labelling.update(data, (request) => posted.push(request));
}"""


def shown(page: Page, t: Catalogue, number: int = 0, **more: Any) -> None:
    """The page hands over an item, with what became of the requests before."""
    given = AssignedItem(item=number, body=item("answer", number).body, expires=NOW)
    at = LabellingProgress(number + 1, 3)
    data = label_data(given, t, scope="session.0", progress=at, lease=LEASE, **more)
    page.evaluate(SHOW, data)


def opened(page: Page, t: Catalogue) -> None:
    """An empty page on which the first item is shown."""
    page.set_content(f'<style>{stylesheet()}</style><div class="vs-root vs-lab"></div>')
    page.add_script_tag(content=labelling_code(), type="module")
    shown(page, t)


@pytest.fixture
def still(browser_page: Page, t: Catalogue) -> Page:
    """An item on a page where time passes only as the test says."""
    browser_page.clock.install(time=NOW)
    browser_page.clock.pause_at(LATER)
    opened(browser_page, t)
    return browser_page


def posted(page: Page) -> list[dict[str, Any]]:
    """What was asked of the server so far."""
    return page.evaluate("posted")


def status(page: Page) -> Locator:
    return page.locator(".vs-lab-status")


def test_saved_is_said_of_what_was_acknowledged_and_of_nothing_else(
    browser_page: Page, t: Catalogue
) -> None:
    opened(browser_page, t)
    expect(status(browser_page)).to_be_empty()
    browser_page.keyboard.press("3")
    expect(status(browser_page)).to_contain_text(t("annotate.label.saving"))
    lost = posted(browser_page)[-1]
    assert (lost["action"], lost["item"], lost["value"]) == ("label", 0, {"verdict": "wrong"})

    # It came too late: the next item is there, and nothing is called saved.
    refused = {lost["client"]: LOST}
    shown(browser_page, t, 1, refused=refused, notice=LOST)
    notice = browser_page.locator(".vs-lab-notice")
    expect(notice).to_have_text(LOST)
    expect(status(browser_page)).to_be_empty()

    # The next label is saved, and what was refused before is past.
    browser_page.keyboard.press("1")
    kept = posted(browser_page)[-1]
    assert kept["client"] != lost["client"]
    shown(browser_page, t, 2, refused=refused, acknowledged=[kept["client"]])
    expect(status(browser_page)).to_contain_text(t("annotate.label.saved"))
    expect(notice).to_be_empty()


def test_a_label_is_sent_again_under_the_same_name_until_it_is_acknowledged(
    still: Page, t: Catalogue
) -> None:
    still.keyboard.press("3")
    # Nobody answers. Another key is no other label meanwhile.
    still.clock.run_for(7_000)
    still.keyboard.press("1")
    still.clock.run_for(3_500)
    sent = posted(still)
    assert len(sent) == 2
    assert len({one["client"] for one in sent}) == 1
    assert {one["value"]["verdict"] for one in sent} == {"wrong"}
    assert t("annotate.label.offline") in still.evaluate(
        "document.querySelector('.vs-lab-status').textContent"
    )
    shown(still, t, 1, acknowledged=[sent[0]["client"]])
    still.clock.run_for(30_000)
    assert len(posted(still)) == len(sent)


def test_the_lease_is_renewed_while_somebody_is_at_the_item(still: Page) -> None:
    # A third of the lease has not passed.
    still.clock.run_for(90_000)
    assert posted(still) == []
    # A key that labels nothing is a sign of somebody.
    still.keyboard.press("ArrowDown")
    still.clock.run_for(15_000)
    (renewal,) = posted(still)
    assert (renewal["action"], renewal["item"]) == ("renew", 0)
    # Without another sign the item is given up when the lease ends.
    still.clock.run_for(600_000)
    assert len(posted(still)) == 1
