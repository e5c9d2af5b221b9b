"""The part "Study" of the Evaluate page, and profiles on the Ask page, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Slider

from app.jobs import studies, study_of
from pipelines.engine.service import Engine
from pipelines.methods.registry import METHODS
from pipelines.store.profiles import Profile
from tests.app.opening import always, page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, QUESTION, page
from tests.pipelines.evaluation.studies.recorded import record


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, partial(Engine, pool=always("In Hope."))) as opened:
        yield opened
        studies.clear()


def evaluated(engine: Engine) -> str:
    """An evaluation of one detector on four texts, whole."""
    return engine.call(record(engine.service, ME))


def opened(evaluation: str) -> AppTest:
    test = page("evaluate", **{"evaluate.study": True})
    test.query_params["evaluation"] = evaluation
    test.run()
    assert not test.exception
    return test


def studied(test: AppTest, values: str) -> AppTest:
    test.text_input(key="study.values.selfcheck.threshold").set_value(values).run()
    test.button(key="study.start").click().run()
    job = study_of(ME, "e")
    if job is not None:
        job.wait()
    test.run()
    assert not test.exception
    return test


def test_a_setting_is_studied_and_its_choice_saved_and_used(engine: Engine):
    test = studied(opened(evaluated(engine)), "0.5,2,4")
    text = seen(test)
    assert "Chosen on even items" in text
    assert "The study as a table" in text
    assert test.selectbox(key="study.metric.e.selfcheck.threshold.replay").value
    # Another metric chooses without a replay.
    before = study_of(ME, "e")
    test.selectbox(key="study.metric.e.selfcheck.threshold.replay").set_value(
        "verdict_recall"
    ).run()
    assert not test.exception
    assert study_of(ME, "e") is before
    test.text_input(key="study.profile").set_value("Mine").run()
    test.button(key="study.save").click().run()
    assert not test.exception
    saved = engine.service.store.profiles.get(ME, "Mine")
    assert saved.origin is not None
    assert (saved.origin.evaluation, saved.origin.metric) == ("e", "verdict_recall")
    # The same name is not taken twice.
    test.button(key="study.save").click().run()
    assert "already" in seen(test)


def test_a_threshold_is_moved_over_the_scores(engine: Engine):
    test = opened(evaluated(engine))
    test.selectbox(key="study.setting.selfcheck").set_value("scores").run()
    assert not test.exception
    assert "study.start" not in [button.key for button in test.button]
    assert "Chosen on even items" in seen(test)
    key = "study.metric.e.selfcheck.threshold.scores"
    assert test.selectbox(key=key).value == "verdict_f1"
    test.selectbox(key=key).set_value("verdict_precision").run()
    assert not test.exception
    # A threshold on scores is no setting that a profile could hold.
    assert "study.save" not in [button.key for button in test.button]


def test_values_that_cannot_be_are_told(engine: Engine):
    test = studied(opened(evaluated(engine)), "a lot")
    assert "threshold" in seen(test)
    assert study_of(ME, "e") is None


def test_what_was_deleted_cannot_be_studied(engine: Engine):
    test = opened(evaluated(engine))
    for _, run, _ in engine.service.store.evaluations.outcomes("e", ME):
        engine.service.store.delete(run, ME)
    assert "No recorded run of 'selfcheck'" in seen(studied(test, "0.5,2"))


def threshold(test: AppTest) -> Slider:
    """The control of DRAD's threshold that is drawn now."""
    (found,) = [one for one in test.slider if (one.key or "").endswith(".drad.theta_1")]
    return found


def test_a_profile_is_chosen_on_the_ask_page_and_recorded(engine: Engine):
    engine.service.store.profiles.save(
        ME, Profile(name="Strict", settings={"drad": {"theta_1": 0.8}})
    )
    test = page("ask").run()
    test.selectbox(key="settings.profile").set_value("Strict").run()
    assert not test.exception
    assert "Settings of the profile “Strict”." in [one.value for one in test.caption]
    assert threshold(test).value == 0.8
    threshold(test).set_value(0.7).run()
    assert any("with changes" in one.value for one in test.caption)
    threshold(test).set_value(0.8).run()
    for name in METHODS:
        if test.checkbox(key=f"method.{name}").value and name != "drad":
            test.checkbox(key=f"method.{name}").uncheck()
    test.checkbox(key="method.drad").check().run()
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    assert not test.exception
    (run,) = engine.service.store.list(ME)
    header = engine.service.store.load(run.id, ME).header
    assert header.spec.profile == "Strict"
    assert header.spec.methods[0].settings["theta_1"] == 0.8


def test_no_profile_is_offered_where_none_is_saved_and_one_is_deleted(engine: Engine):
    engine.service.store.profiles.save("b" * 48, Profile(name="Another's"))
    assert "settings.profile" not in [one.key for one in page("ask").run().selectbox]
    engine.service.store.profiles.save(ME, Profile(name="Mine", description="Mine alone."))
    test = page("ask").run()
    test.selectbox(key="settings.profile").set_value("Mine").run()
    assert "Mine alone." in [one.value for one in test.caption]
    test.button(key="sure-profile").click().run()
    assert not test.exception
    assert engine.service.store.profiles.list(ME) == []
    assert "settings.profile" not in [one.key for one in test.selectbox]


def test_a_profile_saved_anew_under_its_old_name_has_its_own_settings(engine: Engine):
    profiles = engine.service.store.profiles
    profiles.save(ME, Profile(name="Best", settings={"drad": {"theta_1": 0.6}}))
    test = page("ask").run()
    test.selectbox(key="settings.profile").set_value("Best").run()
    assert threshold(test).value == 0.6
    test.button(key="sure-profile").click().run()
    profiles.save(ME, Profile(name="Best", settings={"drad": {"theta_1": 0.7}}))
    test.run()
    test.selectbox(key="settings.profile").set_value("Best").run()
    assert not test.exception
    assert threshold(test).value == 0.7
    assert "Settings of the profile “Best”." in [one.value for one in test.caption]
