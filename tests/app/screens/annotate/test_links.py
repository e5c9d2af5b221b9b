"""Links that are withdrawn while their page stands open: nothing more is done there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pipelines.annotation.sessions import Lead
from pipelines.engine.service import Engine
from pipelines.errors import NotFoundError
from tests.app.playing import seen
from tests.app.screens.annotate.test_lead import annotate, mine, part
from tests.app.screens.annotate.test_task import given, lead, opened, press
from tests.app.test_screens import engine as engine
from tests.pipelines.annotation.bench import VALUES, join, take

STRANGER = "b" * 48
"""The browser of somebody who has no session of their own."""


def withdraw(session: Lead, token: str) -> None:
    session.revoke(token.split(".")[0])


def test_nobody_joins_by_a_link_that_was_withdrawn(engine: Engine):
    session = lead(engine)
    token = session.invite("join")
    test = opened(token)
    test.text_input(key="annotate.join.name").set_value("Ann")
    withdraw(session, token)
    test.button[0].click().run()
    assert not test.exception
    assert "Not found" in seen(test)
    assert session.annotators() == []
    assert test.query_params["link"] in (token, [token])


def test_an_annotator_does_nothing_more_after_it(engine: Engine):
    session = lead(engine, "answer")
    (ann,) = join(session, "Ann")
    ann.label(take(ann).item, VALUES["answer"], client="c", seconds=2)
    token = given(ann, session)
    test = opened(token)
    withdraw(session, token)
    press(test, "annotate.undo")
    assert "Not found" in seen(test)
    assert [one.kind for one in session.events()] == ["given"]
    # With another link they go on where they were.
    press(opened(given(ann, session)), "annotate.undo")
    assert [one.kind for one in session.events()] == ["given", "undone"]


def test_a_lead_changes_nothing_more_after_it(engine: Engine):
    session = mine(engine)
    token = session.invite("lead")
    test = annotate(link=token, _owner=STRANGER, **part(session, "settings"))
    assert session.session.name in seen(test)
    withdraw(session, token)
    press(test, "annotate.close")
    assert "Not found" in seen(test)
    assert session.session.closed is None


def test_a_lead_makes_no_link_after_it(engine: Engine):
    session = mine(engine)
    token = session.invite("lead")
    test = annotate(link=token, _owner=STRANGER)
    withdraw(session, token)
    press(test, "annotate.link.make")
    assert len(session.links()) == 1
    assert not test.code


def asking() -> None:
    """A page that keeps what its exports ask before they make a file."""
    import streamlit as st

    from app.login import link_check

    st.session_state["check"] = link_check()


@pytest.fixture
def check(engine: Engine) -> Callable[[str], Callable[[], object]]:
    def checking(link: str) -> Callable[[], object]:
        test = AppTest.from_function(asking)
        if link:
            test.query_params["link"] = link
        test.run()
        assert not test.exception
        return test.session_state["check"]

    return checking


def test_no_file_is_made_after_it(engine: Engine, check: Callable[[str], Callable[[], object]]):
    session = lead(engine)
    token = session.invite("lead")
    asked = check(token)
    # It is asked outside of any page, when the file is wanted.
    asked()
    withdraw(session, token)
    with pytest.raises(NotFoundError):
        asked()
    # Whose session it is needs no link.
    check("")()
