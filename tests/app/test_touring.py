"""The tour and the glossary without a browser: what they start, where they lead, what they keep."""

from __future__ import annotations

import pytest

from app import touring
from app.touring import _moved
from components.base.tour import STOPS, tour_sample
from components.base.words import Catalogue, entries
from pipelines.engine.service import Engine
from tests.app.test_screens import page, told

EN, ZH = Catalogue("en"), Catalogue("zh")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A session in which the tour is at its first stop."""
    state: dict[str, object] = {}
    monkeypatch.setattr(touring.st, "session_state", state)
    touring._set(0)
    return state


def asks(state: dict[str, object], **move: object) -> None:
    """The script in the browser asks for something."""
    state["tour"] = {"move": move}
    _moved()


def test_a_stop_on_another_page_opens_that_page(session: dict[str, object]):
    at = next(place for place, stop in enumerate(STOPS) if stop.page == "compare")
    asks(session, action="go", at=at)
    assert session["_wanted_page"] == "compare"
    assert session["_tour"] == (at, 2)


@pytest.mark.parametrize("at", [-1, len(STOPS), "1", None, 1.5])
def test_what_is_no_stop_is_not_followed(session: dict[str, object], at: object):
    asks(session, action="go", at=at)
    assert session["_tour"] == (0, 1)
    assert "_wanted_page" not in session


def test_the_tour_ends_and_a_second_one_begins_anew_for_the_script(session: dict[str, object]):
    asks(session, action="end")
    assert "_tour" not in session
    asks(session, action="go", at=1)
    assert "_tour" not in session
    touring._set(0)
    assert session["_tour"] == (0, 2)


@pytest.mark.parametrize("t", [EN, ZH], ids=["en", "zh"])
def test_the_tour_plays_its_walkthrough(played: Engine, t: Catalogue):
    test = page("ask", lang=t.language).run()
    assert not test.exception
    test.button(key="tour-start").click().run()
    assert not test.exception
    sample = tour_sample(t)
    assert sample is not None
    assert test.session_state["question"] == sample.question
    assert test.session_state["_watched"].spec.question == sample.question
    assert test.session_state["_tour"].at == 0
    assert test.session_state["_wanted_page"] == "ask"


def test_it_is_offered_until_it_is_declined_and_can_be_found_again(played: Engine):
    test = page("ask").run()
    assert EN("tour.offer.title") in told(test)
    test.button(key="tour-decline").click().run()
    assert EN("tour.offer.title") not in told(test)
    assert test.button(key="tour-start").label == EN("tour.start")


def test_a_browser_that_was_offered_it_before_is_not_asked_again(
    played: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(touring, "_offered_before", lambda: True)
    test = page("ask").run()
    assert not test.exception
    assert EN("tour.offer.title") not in told(test)


def test_the_glossary_is_searched_in_both_languages(played: Engine):
    test = page("glossary").run()
    assert not test.exception
    test.text_input(key="glossary.search").set_value("no such word at all").run()
    assert EN("glossary.none") in told(test)
    test.text_input(key="glossary.search").set_value("幻觉").run()
    assert EN("glossary.none") not in told(test)
    assert not test.exception


def test_an_address_with_an_entry_comes_before_a_search(played: Engine):
    test = page("glossary", **{"glossary.search": "no such word at all"})
    test.query_params["term"] = "alpha"
    test.run()
    assert EN("glossary.none") not in told(test)
    test.text_input(key="glossary.search").set_value("still no such word").run()
    assert "term" not in test.query_params
    assert EN("glossary.none") in told(test)


def test_a_method_page_without_a_run_shows_what_the_method_does(played: Engine):
    test = page("drad").run()
    assert not test.exception
    assert EN("flow.title", method="DRAD") in told(test)


def test_the_entries_that_pages_lead_to_are_there():
    assert {"entity_probability", "rowen_cl", "auroc", "alpha"} <= entries().keys()
