"""A visitor's verdict on a shared run, in browsers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pipelines.annotation.leading import Lead
from pipelines.annotation.visitors import decide_verdict, visitor_verdicts
from pipelines.store import new_owner
from tests.app.public.conftest import Served, serving
from tests.app.public.moderated import share_recording, visitors_session
from tests.app.public.test_page import Open
from tests.app.public.test_page import open_page as open_page

pytestmark = pytest.mark.verify

TITLE = "Your verdict on this answer"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Space whose operator keeps verdicts."""
    folder = Path(tmp_path_factory.mktemp("moderated"))
    with serving(folder, verdicts=visitors_session(folder)) as found:
        yield found


@pytest.fixture(scope="module")
def shared(served: Served) -> str:
    """The address of a shared run."""
    return f"?run={share_recording(served.space.engine.service.store, new_owner())}"


@pytest.fixture
def lead(served: Served) -> Lead:
    return Lead(served.space.engine.service.store, served.space.limits.verdicts)


def unfold(page: Page, title: str = TITLE) -> None:
    part = page.locator("#verdict")
    expect(part).to_be_visible()
    if not part.get_by_role("radio").first.is_visible():
        part.get_by_role("button", name=title).click()
    expect(part.get_by_role("radio").first).to_be_visible()


def test_a_verdict_is_saved_and_accepted(
    browser: Browser, served: Served, open_page: Open, shared: str, lead: Lead
):
    page = open_page(f"{shared}&lang=en", viewport={"width": 390, "height": 844})
    unfold(page)
    part = page.locator("#verdict")
    part.get_by_role("button", name="Save my verdict").click()
    expect(part.get_by_text("Choose a verdict first.")).to_be_visible()
    part.get_by_role("radio", name="Wrong", exact=True).check()
    part.get_by_role("button", name="Save my verdict").click()
    expect(part.get_by_text("Saved: Wrong. It waits for the operator")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    (kept,) = visitor_verdicts(lead)
    assert kept.state == "waiting"
    # Nobody else sees it.
    other = open_page(f"{shared}&lang=en")
    unfold(other)
    expect(other.locator("#verdict").get_by_role("radio", checked=True)).to_have_count(0)
    expect(other.get_by_text("Saved:")).to_have_count(0)
    decide_verdict(lead, kept.number, accept=True)
    page.reload()
    unfold(page)
    expect(part.get_by_text("Saved: Wrong. The operator has accepted it.")).to_be_visible()
    expect(part.get_by_role("radio", name="Wrong", exact=True)).to_be_checked()
    # In the other language it is the same part.
    page.get_by_role("radio", name="中文").check()
    expect(part.get_by_text("已保存：错误。管理者已采纳。")).to_be_visible()


def test_it_is_there_for_shared_runs_alone(served: Served, open_page: Open, shared: str):
    page = open_page("?lang=en")
    expect(page.locator("#verdict")).to_be_hidden()
    shown = open_page(f"{shared}&lang=en")
    expect(shown.locator("#verdict")).to_be_visible()
    # Something else begins: the verdict would be on another run.
    shown.locator("#examples .gallery-item").first.click()
    expect(shown.locator("#verdict")).to_be_hidden()
