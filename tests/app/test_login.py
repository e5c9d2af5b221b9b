"""Logging in, without a browser: whom claims name, what is shown where nobody can, where one was.

With a provider that speaks for real it is in test_browser_login.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import login
from app.login import Return, login_of
from pipelines.annotation.types import Login
from tests.app.playing import seen

CLAIMS: dict[str, Any] = {
    "is_logged_in": True,
    "iss": "https://id.example",
    "sub": "1",
    "name": "Ann Lee",
    "email": "ann@example.org",
    "email_verified": True,
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, Login("https://id.example\n1", "Ann Lee", "ann@example.org")),
        # Some providers say it as a word.
        ({"email_verified": "true"}, Login("https://id.example\n1", "Ann Lee", "ann@example.org")),
        ({"email_verified": False}, Login("https://id.example\n1", "Ann Lee")),
        ({"name": "ann@example.org"}, Login("https://id.example\n1", "ann", "ann@example.org")),
        (
            {"name": None, "preferred_username": "ann"},
            Login("https://id.example\n1", "ann", "ann@example.org"),
        ),
        ({"name": "", "email": None}, Login("https://id.example\n1", "?")),
        ({"is_logged_in": False}, None),
        ({"is_logged_in": "yes"}, None),
        ({"sub": ""}, None),
        ({"iss": None}, None),
    ],
)
def test_claims_name_somebody(changes: dict[str, Any], found: Login | None):
    assert login_of({**CLAIMS, **changes}) == found


def test_no_claims_name_nobody():
    assert login_of({}) is None


def page() -> None:
    import streamlit as st

    from app.login import draw_join, login_reason, signed_in
    from app.session import messages

    t = messages()
    st.text(f"{signed_in()} / {login_reason(t)}")
    draw_join(st.session_state["invitation"], t, st.session_state["joined"].append)


class Invited:
    """Stands for an invitation."""

    def join_as(self, found: Login) -> tuple[None, str]:
        return None, f"link of {found.name}"


@pytest.fixture
def drawn() -> AppTest:
    test = AppTest.from_function(page)
    test.session_state["invitation"] = Invited()
    test.session_state["joined"] = []
    return test


def test_without_a_provider_the_page_says_so(drawn: AppTest):
    drawn.run()
    assert not drawn.exception
    assert "None / Nobody can log in here: no identity provider is set up." in drawn.text[0].value
    assert "no identity provider is set up" in seen(drawn)
    assert not drawn.button


def set_up(test: AppTest, **auth: Any) -> None:
    whole = {"redirect_uri": "http://localhost/oauth2callback", "cookie_secret": "x" * 32}
    test.secrets["auth"] = {**whole, **auth}


ONE = {"client_id": "c", "client_secret": "s", "server_metadata_url": "https://id.example/x"}


def test_there_is_a_button_for_each_provider(drawn: AppTest):
    set_up(drawn, google=ONE, okta=ONE, broken={"client_id": "c"})
    drawn.run()
    assert not drawn.exception
    assert [one.label for one in drawn.button] == ["Log in with google", "Log in with okta"]


def test_one_provider_needs_no_name(drawn: AppTest):
    set_up(drawn, **ONE)
    drawn.run()
    assert [one.label for one in drawn.button] == ["Log in"]


def test_who_is_logged_in_joins(drawn: AppTest, monkeypatch: pytest.MonkeyPatch):
    set_up(drawn, **ONE)
    monkeypatch.setattr(login, "login_of_visitor", lambda: login_of(CLAIMS))
    drawn.run()
    assert not drawn.exception
    assert "You are logged in as Ann Lee." in [one.value for one in drawn.text]
    drawn.button(key="annotate.login.join").click().run()
    assert not drawn.exception
    assert drawn.session_state["joined"] == ["link of Ann Lee"]


def test_a_place_is_remembered_once_and_for_a_while():
    now = 0.0
    places = login._Returns(lambda: now)
    there = Return("link", "zh")
    places.keep("me", there)
    assert places.take("you") is None
    assert places.take("me") == there
    assert places.take("me") is None
    places.keep("me", there)
    now = login._KEPT + 1
    assert places.take("me") is None


def test_of_many_only_the_last_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(login, "_MOST", 2)
    places = login._Returns()
    for browser in "abc":
        places.keep(browser, Return(browser, "en"))
    assert places.take("a") is None
    assert places.take("c") == Return("c", "en")
