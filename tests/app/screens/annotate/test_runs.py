"""The runs of an annotation session: filtered by their words, methods and dates, and picked."""

from __future__ import annotations

from datetime import timedelta

from streamlit.testing.v1 import AppTest

from pipelines.engine.service import Engine
from pipelines.store.exchange import recordings
from tests.app.playing import seen
from tests.app.screens.annotate.test_lead import (
    MAKE,
    SAMPLE,
    drawn,
    imported,
    led,
    making,
    press,
    texts,
)
from tests.app.test_screens import ME
from tests.app.test_screens import engine as engine

WEEK = timedelta(days=7)


def offered(test: AppTest) -> set[str]:
    """The runs that can be picked."""
    place = f"{MAKE}.pick."
    return {one.key.removeprefix(place) for one in test.checkbox if one.key and place in one.key}


def test_a_session_is_made_of_picked_runs(engine: Engine):
    run = imported(engine)
    test = making("runs")
    assert "Pick one run or more." in texts(test)
    test.checkbox(key=f"{MAKE}.pick.{run}").check()
    drawn(test)
    assert "× 2 people =" in seen(test)
    assert test.button(key=f"{MAKE}.go").disabled
    assert "The session has no control items" in seen(test)
    test.checkbox(key=f"{MAKE}.without_gold").check()
    test.text_input(key=f"{MAKE}.name").input("Clinton")
    drawn(test)
    press(test, f"{MAKE}.go")
    lead = led(engine, test)
    assert lead.session.name == "Clinton"
    assert lead.spec.tasks == ("sentence", "answer")
    assert lead.spec.without_gold
    assert {one.body["place"]["run"] for one in lead.items()} == {run}
    guidelines = engine.service.store.annotations.guidelines(lead.session_id)
    assert "How wrong is the sentence?" in guidelines[0].text
    assert "Mark what is hallucinated" not in guidelines[0].text


def test_runs_are_filtered_and_all_that_match_are_taken(engine: Engine):
    run = imported(engine)
    test = making("runs")
    assert offered(test) == {run, *(one.id for one in recordings())}
    test.text_input(key=f"{MAKE}.text").input(recordings()[1].question)
    assert len(offered(drawn(test))) == 1
    test.text_input(key=f"{MAKE}.text").input(recordings()[0].question)
    test.checkbox(key=f"{MAKE}.all").check()
    drawn(test)
    test.checkbox(key=f"{MAKE}.without_gold").check()
    press(drawn(test), f"{MAKE}.go")
    # The own run and the sample.
    runs = {one.body["place"]["run"] for one in led(engine, test).items()}
    assert runs == {run, SAMPLE}
    test = making("runs", **{f"{MAKE}.methods": ["ever"], f"{MAKE}.text": "nothing like it"})
    assert "No run matches." in seen(test)


def test_runs_are_filtered_by_their_dates(engine: Engine):
    run = imported(engine)
    (stored,) = engine.service.store.list(ME, limit=2)
    day = stored.created.date()
    test = making("runs")
    since, until = (f"{MAKE}.{name}" for name in ("since", "until"))
    test.date_input(key=since).set_value(day - WEEK)
    # A sample was never run in this browser, and has no date here.
    assert offered(drawn(test)) == {run}
    test.date_input(key=until).set_value(day + WEEK)
    assert offered(drawn(test)) == {run}
    test.date_input(key=until).set_value(day - WEEK)
    assert offered(drawn(test)) == set()
    assert "No run matches." in seen(test)
