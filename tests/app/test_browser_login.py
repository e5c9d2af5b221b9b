"""Joining a session by logging in, in browsers, with an identity provider that speaks for real."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from pipelines.annotation.sessions import Lead
from pipelines.store import RunStore, file_url
from tests.app.oidc import Provider, provided
from tests.app.serving import SCRIPTED, Workbench, serve_workbench, visiting
from tests.pipelines.annotation.bench import lead_session

pytestmark = pytest.mark.verify

PEOPLE = {
    "Ann": {
        "sub": "1",
        "name": "Ann Lee",
        "email": "ann@example.org",
        "email_verified": True,
    },
    "Bo": {"sub": "2", "name": "bo@example.org", "email": "bo@example.org"},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with provided(PEOPLE) as found:
        yield found


@pytest.fixture(scope="module")
def workbench(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A workbench whose operator has named the provider."""
    data = tmp_path_factory.mktemp("login")
    file = data / "secrets.toml"
    file.write_text(provider.secrets(), encoding="utf-8")
    with serve_workbench(data, SCRIPTED, STREAMLIT_SECRETS_FILES=str(file)) as served:
        yield served


@pytest.fixture
def store(workbench: Workbench) -> Iterator[RunStore]:
    with closing(RunStore(file_url(workbench.data))) as found:
        yield found


def log_in(page: Page, person: str, button: str = "Log in") -> None:
    """Log in as somebody, and come back to the session."""
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("link", name=f"Continue as {person}").click()
    page.wait_for_url(re.compile(r"/annotate\?.*link="))


def join(page: Page, link: str) -> None:
    page.get_by_role("button", name="Join the session").click()
    # The personal link takes the place of the one that was shared.
    page.wait_for_url(lambda url: "link=" in url and link not in url)


def names(lead: Lead) -> list[str]:
    return [one.name for one in lead.annotators()]


def test_who_logs_in_joins_once_from_every_device(
    browser: Browser, workbench: Workbench, store: RunStore
):
    lead = lead_session(store, login=True)
    link = lead.invite("join")
    with visiting(browser, workbench) as visitor:
        page = visitor.open(f"/annotate?link={link}&lang=en")
        # Nobody joins by typing a name.
        expect(page.get_by_role("button", name="Log in", exact=True)).to_be_visible()
        expect(page.get_by_role("textbox")).to_have_count(0)
        log_in(page, "Ann")
        expect(page.get_by_text("You are logged in as Ann Lee.")).to_be_visible()
        join(page, link)
        assert names(lead) == ["Ann Lee"]
    with visiting(browser, workbench) as other:
        page = other.open(f"/annotate?link={link}&lang=zh")
        log_in(page, "Ann", "登录")
        # The language came along.
        expect(page.get_by_text("您已登录为 Ann Lee。")).to_be_visible()
        page.get_by_role("button", name="加入会话").click()
        page.wait_for_url(lambda url: "link=" in url and link not in url)
        assert names(lead) == ["Ann Lee"]
    with visiting(browser, workbench) as third:
        page = third.open(f"/annotate?link={link}&lang=en")
        log_in(page, "Bo")
        # An address that stands for a name is not shown whole.
        expect(page.get_by_text("You are logged in as bo.")).to_be_visible()
        join(page, link)
        assert names(lead) == ["Ann Lee", "bo"]


def test_who_is_not_invited_is_told_and_can_log_out(
    browser: Browser, workbench: Workbench, store: RunStore
):
    lead = lead_session(store, login=True, names=("ann@example.org",))
    link = lead.invite("join")
    with visiting(browser, workbench) as visitor:
        page = visitor.open(f"/annotate?link={link}&lang=en")
        log_in(page, "Bo")
        page.get_by_role("button", name="Join the session").click()
        expect(page.get_by_text("This name is not among those who may join")).to_be_visible()
        assert names(lead) == []
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("button", name="Log in", exact=True)).to_be_visible()
        log_in(page, "Ann")
        join(page, link)
        assert names(lead) == ["Ann Lee"]


def test_a_session_that_asks_for_no_login_is_joined_by_name(
    browser: Browser, workbench: Workbench, store: RunStore
):
    lead = lead_session(store)
    with visiting(browser, workbench) as visitor:
        page = visitor.open(f"/annotate?link={lead.invite('join')}&lang=en")
        expect(page.get_by_role("textbox").first).to_be_visible()
        expect(page.get_by_role("button", name="Log in", exact=True)).to_have_count(0)
