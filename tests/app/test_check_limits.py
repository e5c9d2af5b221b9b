"""Checks and what they may take: estimated, held against the limits, ended there and gone on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pipelines.engine import estimate as estimates
from pipelines.engine.checking import detectors
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine
from pipelines.run.events import MethodSpec, ModelCalled
from pipelines.store.profiles import Profile
from tests.app.opening import page_engine
from tests.app.playing import load, opened, seen
from tests.app.test_check_screen import BORN, TEXT, finished
from tests.app.test_screens import ME, page, told
from tests.app.test_setup import ask_page
from tests.pipelines.engine.tables import TABLE
from tests.scripted.fakes import FakeModel

QUESTION = "Who was Marie Curie?"
PROFILE = Profile(
    name="Mine",
    settings={"drad": {"theta_1": 0.9}},
    prompts={"direct": {"en": {"system": "Answer in one word."}}},
)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(estimates, "effort_table", lambda: TABLE)
    # Not scripted ones: what these say is known to no later run.
    pool = ModelPool(lambda spec, key, progress: FakeModel("In Hope."))
    with page_engine(tmp_path, partial(Engine, pool=pool)) as opened:
        yield opened


def check_page(*ticked: str, **state: Any) -> AppTest:
    text = state.pop("text", TEXT)
    ticks = {f"check.method.{name}": name in ticked for name in detectors()}
    given = {"check.text": text, "check.question": QUESTION}
    test = page("check", **ticks, **given, **state).run()
    assert not test.exception
    return test


def line(test: AppTest) -> str:
    """What the page says that a check takes."""
    (found,) = (one.value for one in test.caption if one.value.startswith("About "))
    return found


def pressed(test: AppTest) -> AppTest:
    test.button(key="check.run").click().run()
    assert not test.exception
    return test


def test_the_estimate_grows_with_the_text(engine: Engine):
    assert line(check_page("ever", text=BORN)).startswith("About 4 calls · 20 tokens · ")
    test = check_page("ever")
    # Two sentences: 4 calls of the main model and 3 of the judge.
    assert line(test).startswith("About 7 calls · 40 tokens · ")
    (estimate,) = (one for one in test.caption if one.value == line(test))
    assert "3 texts with 9 sentences" in estimate.proto.help
    assert "the sentences of this text (2) and the names and numbers in them" in estimate.proto.help
    nothing = "What a check takes is estimated as soon as there is a text."
    assert nothing in [one.value for one in check_page("ever", text="").caption]


def test_a_check_above_the_limit_is_not_started_and_says_what_to_do(engine: Engine):
    test = pressed(check_page("ever", **{"limit.calls": 5}))
    assert "run" not in test.query_params
    assert "limit: 5 calls" in line(test)
    assert "About 7 calls are expected: 2 more than the limit of 5." in told(test)
    test.button(key="limit-fewer").click().run()
    assert test.checkbox(key="check.method.ever").value
    test.button(key="limit-raise").click().run()
    assert test.session_state["limit.calls"] == 9
    assert "more than the limit" not in told(test)
    assert test.text_area(key="check.text").value == TEXT


def press_try_again(module: str, run_id: str, **state: object) -> AppTest:
    """The page's answer to the button "Try again" inside a run, as the browser asks for it."""

    def show() -> None:
        import importlib

        import streamlit as st

        from app import page as live

        live.follow_address()
        act = importlib.import_module(st.session_state["module"])._act
        action = {"action": "retry", "value": "run"}
        st.button("again", key="again", on_click=act, args=(action,))

    test = AppTest.from_function(show, default_timeout=60)
    for key, value in {"_owner": ME, "module": module, **state}.items():
        test.session_state[key] = value
    test.query_params["run"] = run_id
    test.run()
    test.button(key="again").click().run()
    assert not test.exception
    return test


def calls(engine: Engine, run_id: str) -> list[ModelCalled]:
    return [one for one in load(engine, run_id).events if isinstance(one, ModelCalled)]


def made_of(engine: Engine, run_id: str) -> list[ModelCalled]:
    """The calls that were really made, and answered."""
    return [one for one in calls(engine, run_id) if one.error is None and not one.cached]


def test_a_check_ends_at_its_limit_and_goes_on_without_asking_again(engine: Engine):
    test = pressed(check_page("selfcheck", "sac3", **{"limit.calls": 1}))
    assert "more than the limit" in told(test)
    test.button(key="limit-anyway").click().run()
    assert not test.exception
    first = finished(engine, test)
    shown = seen(opened("check", first))
    assert "The run stopped at the limit of calls" in shown
    (made,) = made_of(engine, first)
    again = press_try_again("app.screens.check", first, **{"limit.calls": 200})
    second = finished(engine, again)
    assert second != first
    known = [one for one in calls(engine, second) if one.cached]
    assert made.request in [one.request for one in known]
    # The rest of what the limit kept from it was asked now.
    assert len(calls(engine, second)) > 1
    titles = {run.title for run in engine.service.store.list(ME)}
    assert titles == {QUESTION}


def test_a_question_that_ended_at_its_limit_goes_on_as_well(engine: Engine):
    test = ask_page("direct", "selfcheck", **{"limit.calls": 1})
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    test.button(key="limit-anyway").click().run()
    first = finished(engine, test)
    (made,) = made_of(engine, first)
    second = finished(engine, press_try_again("app.screens.ask", first, **{"limit.calls": 200}))
    answered = calls(engine, second)
    assert next(one for one in answered if one.request == made.request).cached
    assert "stopped at the limit" not in seen(opened("ask", second))


def test_a_profile_and_own_prompts_hold_for_checks(engine: Engine):
    engine.service.store.profiles.save(ME, PROFILE)
    state = {"_profile": PROFILE, "settings.profile": "Mine", "check.settings": True}
    test = check_page("drad", **state)
    captions = " ".join(one.value for one in test.caption)
    assert "A prompt of your own: direct/system (English)" in captions
    test = pressed(test)
    spec = load(engine, finished(engine, test)).header.spec
    assert spec.methods == (MethodSpec(name="drad", settings={"theta_1": 0.9}),)
    assert spec.prompts == PROFILE.prompts
    assert spec.profile == "Mine"


def test_the_settings_of_a_run_hold_for_checks(engine: Engine):
    state = {"run.seed": 7, "run.reproducible": True, "check.settings": True}
    test = check_page("selfcheck", **state)
    assert test.number_input(key="limit.calls").value is None
    spec = load(engine, finished(engine, pressed(test))).header.spec
    assert (spec.seed, spec.reproducible) == (7, True)
