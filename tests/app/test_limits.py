"""Limits of a session's runs on the Ask page: set, checked before the start, and raised."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from pipelines.engine.service import Engine
from pipelines.run.events import RunFinished
from tests.app.playing import load
from tests.app.test_estimate import engine as engine
from tests.app.test_screens import ME, QUESTION, told
from tests.app.test_setup import ask_page


def asked(test: AppTest) -> AppTest:
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    assert not test.exception
    return test


def test_a_run_above_the_limit_is_not_started_and_says_what_to_do(engine: Engine):
    # Direct and Rowen are expected to make 1 + 12 + 5 calls.
    test = asked(ask_page("direct", "rowen", **{"limit.calls": 12}))
    assert "run" not in test.query_params
    assert "limit: 12 calls" in test.caption[0].value
    assert "About 18 calls are expected: 6 more than the limit of 12." in told(test)
    # 18 * 1.25 = 22.5, rounded up.
    assert test.button(key="limit-raise").label == "Raise the limit to 23 calls"
    test.button(key="limit-raise").click().run()
    assert test.session_state["limit.calls"] == 23
    assert "more than the limit" not in told(test)
    assert "run" not in test.query_params


def test_fewer_methods_fit(engine: Engine):
    test = asked(ask_page("direct", "rowen", **{"limit.calls": 12}))
    test.button(key="limit-fewer").click().run()
    assert not test.exception
    test.checkbox(key="method.rowen").uncheck().run()
    assert "more than the limit" not in told(test)
    asked(test)
    assert test.query_params["run"]
    engine.call(engine.service.stop(test.query_params["run"], owner=ME))


def test_a_run_can_be_started_up_to_the_limit(engine: Engine):
    test = asked(ask_page("direct", "selfcheck", **{"limit.calls": 2}))
    assert "more than the limit" in told(test)
    test.button(key="limit-anyway").click().run()
    assert not test.exception
    run_id = test.query_params["run"]

    async def ended() -> None:
        async for _ in engine.service.follow(run_id, owner=ME):
            pass

    engine.call(ended())
    test.run()
    assert not test.exception
    page = told(test)
    assert "The run stopped at the limit of calls" in page
    assert "Calls: 2 of about " in page
    # Each wrote a draft, for scripted models share no reply; the samples were not drawn.
    end = load(engine, run_id).terminal
    assert isinstance(end, RunFinished)
    answers = end.answers
    assert answers["direct"].flags == ()
    assert answers["selfcheck"].flags == ("limit_reached",)


def test_a_limit_of_money_that_cannot_be_kept_is_told(engine: Engine):
    models = {"model.main": "Second", "limit.money": 0.5}
    test = asked(ask_page("direct", **models))
    assert "run" not in test.query_params
    assert "Second has no price" in told(test)
    test = asked(ask_page("direct", **{**models, "model.main": "Priced"}))
    assert "The limit of money is in USD, but Priced has its price in EUR." in told(test)


def test_the_limits_are_set_in_one_place_and_kept(engine: Engine):
    test = ask_page("direct")
    test.number_input(key="limit.seconds").set_value(30.0).run()
    test.number_input(key="limit.money").set_value(0.5).run()
    test.selectbox(key="limit.currency").select("CNY").run()
    assert not test.exception
    assert "limit: 30 s, 0.5 CNY" in test.caption[0].value
    test.session_state["settings"] = False
    test.run()
    assert "limit: 30 s, 0.5 CNY" in test.caption[0].value
