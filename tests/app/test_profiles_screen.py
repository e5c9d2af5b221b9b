"""The Profiles page without a browser: made, used, changed, carried, deleted; no key is stored."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens import profiles as screen
from pipelines.engine.calibrations import conditions
from pipelines.engine.profiles import profile_text
from pipelines.engine.service import Engine
from pipelines.models.providers import SWITCH
from pipelines.run.events import ModelSpec
from pipelines.store.profiles import Profile
from tests.app.opening import always, page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, page
from tests.pipelines.run.test_calibrations import calibration

SOMEBODY_ELSE = "b" * 48
LOCAL = ModelSpec(kind="openai", name="Qwen", model="qwen", base_url="http://localhost:8000/v1")
MINE = Profile(
    name="Mine",
    description="For the paper.",
    settings={"drad": {"theta_1": 0.7}},
    models={"main": LOCAL},
    prompts={"direct": {"en": {"system": "Answer in one word."}}},
)
SLUG = b"Mine".hex()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, partial(Engine, pool=always("In Hope."))) as opened:
        yield opened


@pytest.fixture
def saved(engine: Engine) -> Engine:
    engine.service.store.profiles.save(ME, MINE)
    return engine


def opened(**state: Any) -> AppTest:
    test = page("profiles", **state).run()
    assert not test.exception
    return test


def names(engine: Engine) -> list[str]:
    return [one.name for one in engine.service.store.profiles.list(ME)]


def test_calibrations_are_shown_and_stay_when_the_profile_is_changed(engine: Engine):
    told = conditions("drad", {}, {}, "theta_1")
    held = calibration(method="drad", setting="theta_1", conditions=told)
    fitted = MINE.model_copy(update={"calibrations": (held,)})
    engine.service.store.profiles.save(ME, fitted)
    test = opened(**{f"details-{SLUG}": True, f"edit-{SLUG}": True})
    assert "1 calibration" in seen(test)
    assert "240 labels of “Clinton”" in seen(test)
    test.button(key=f"present-{SLUG}").click().run()
    assert not test.exception
    assert engine.service.store.profiles.get(ME, "Mine").calibrations == (held,)


def test_a_new_visitor_sees_templates_and_what_they_need(engine: Engine):
    text = seen(opened())
    assert "There is no profile yet." in text
    assert "needs the address of its server" in text
    assert "Qwen-Max (verifier) needs a key" in text
    assert "Nothing else is needed." in text


def test_a_template_wants_its_address_first(engine: Engine):
    test = opened()
    test.button(key="make-local_qwen").click().run()
    assert "has no address" in seen(test)
    assert names(engine) == []
    test.text_input(key="template.local_qwen.address.main").input("http://localhost:8000/v1")
    test.button(key="make-local_qwen").click().run()
    assert not test.exception
    assert "Saved as “Local Qwen”." in seen(test)
    assert names(engine) == ["Local Qwen"]
    test.button(key="make-local_qwen").click().run()
    assert "already" in seen(test)
    # What was typed is still there.
    field = test.text_input(key="template.local_qwen.address.main")
    assert field.value == "http://localhost:8000/v1"


def test_the_present_settings_are_saved_without_keys(engine: Engine, tmp_path: Path):
    state = {
        "ask.drad.theta_1": 0.75,
        "_wording.ask": MINE.prompts,
        "_keys": {("openai", "Qwen", LOCAL.base_url): "hunter2-is-the-key"},
    }
    test = opened(**state)
    assert any("1 prompt that differs" in one.value for one in test.caption)
    test.text_input(key="profiles.name").input("Now")
    test.text_area(key="profiles.description").input("As it is.")
    test.button(key="profiles-save").click().run()
    assert not test.exception
    found = engine.service.store.profiles.get(ME, "Now")
    assert found.settings == {"drad": {"theta_1": 0.75}}
    assert found.prompts == MINE.prompts
    assert found.models["main"] == ModelSpec()
    assert "hunter2" not in profile_text(found)
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("veriscope.db*"))
    assert b"As it is." in stored
    assert b"hunter2" not in stored


def test_parts_can_be_left_out_and_an_empty_one_is_refused(engine: Engine):
    test = opened(**{"_wording.ask": MINE.prompts})
    for name in ("models", "settings"):
        test.checkbox(key=f"profiles.part.{name}").uncheck()
    test.text_input(key="profiles.name").input("Prompts alone")
    test.button(key="profiles-save").click().run()
    found = engine.service.store.profiles.get(ME, "Prompts alone")
    assert (found.models, found.settings, found.prompts) == ({}, {}, MINE.prompts)
    test.checkbox(key="profiles.part.prompts").uncheck()
    test.text_input(key="profiles.name").input("Nothing")
    test.button(key="profiles-save").click().run()
    assert "says nothing" in seen(test)
    assert test.text_input(key="profiles.name").value == "Nothing"


def test_a_profile_is_used_by_the_next_run(saved: Engine):
    test = opened()
    test.button(key=f"use-{SLUG}").click().run()
    assert not test.exception
    assert "Your next runs use “Mine”." in seen(test)
    assert test.button(key=f"use-{SLUG}").disabled
    state = {
        name: test.session_state[name]
        for name in ("_profile", "settings.profile", "model.main", "model.verifier")
    }
    assert state["model.main"] == "Qwen"
    ask = page("ask", **state).run()
    assert not ask.exception
    assert ask.selectbox(key="model.main").value == "Qwen"
    assert "A prompt of your own: direct/system (English)" in [one.value for one in ask.caption]
    assert "Settings of the profile “Mine”." in [one.value for one in ask.caption]
    # The model is not among the visitor's saved ones.
    assert saved.service.store.models.list(ME) == []
    models = page("models", **state).run()
    assert not models.exception
    assert models.selectbox(key="model.main").value == "Qwen"
    test.button(key="profiles-use-none").click().run()
    assert test.session_state["_profile"] is None


def test_a_model_of_the_same_name_is_told_apart(saved: Engine):
    other = LOCAL.model_copy(update={"base_url": "http://elsewhere:8000/v1"})
    saved.service.store.models.save(ME, other)
    test = opened()
    test.button(key=f"use-{SLUG}").click().run()
    assert test.session_state["model.main"] == "Qwen · Mine"
    # The key that is typed here is the one that its calls are given.
    test.text_input(key=f"profile-key-{SLUG}-0").input("hunter2-is-the-key").run()
    place = ("openai", "Qwen · Mine", LOCAL.base_url)
    assert test.session_state["_keys"] == {place: "hunter2-is-the-key"}


def test_a_profile_is_changed(saved: Engine):
    test = opened(**{f"edit-{SLUG}": True, "_profile": MINE})
    test.text_input(key=f"name-{SLUG}").input("Ours")
    test.text_area(key=f"description-{SLUG}").input("For us.")
    test.selectbox(key=f"role-{SLUG}-verifier").set_value("Qwen")
    test.button(key=f"save-{SLUG}").click().run()
    assert not test.exception
    assert names(saved) == ["Ours"]
    found = saved.service.store.profiles.get(ME, "Ours")
    assert (found.description, found.models["verifier"]) == ("For us.", LOCAL)
    assert found.prompts == MINE.prompts
    # What is in use is used as it is now.
    assert test.session_state["_profile"] == found


def test_a_name_that_is_taken_changes_nothing(saved: Engine):
    saved.service.store.profiles.save(ME, Profile(name="Other"))
    test = opened(**{f"edit-{SLUG}": True})
    test.text_input(key=f"name-{SLUG}").input("Other")
    test.button(key=f"save-{SLUG}").click().run()
    assert "already" in seen(test)
    assert names(saved) == ["Mine", "Other"]
    assert saved.service.store.profiles.get(ME, "Mine") == MINE


def test_what_is_in_a_profile_is_shown(saved: Engine):
    test = opened(**{f"details-{SLUG}": True})
    text = seen(test)
    for words in ("Settings that differ from the default", "direct/system (English)", LOCAL.model):
        assert words in text
    test.button(key=f"prompts-{SLUG}").click().run()
    assert test.session_state["_wanted_page"] == "prompts"
    assert test.session_state["_profile"] == MINE


def test_present_settings_take_the_place_of_those_in_a_profile(saved: Engine):
    test = opened(**{f"edit-{SLUG}": True, "ask.drad.theta_1": 0.8})
    test.button(key=f"present-{SLUG}").click().run()
    assert not test.exception
    found = saved.service.store.profiles.get(ME, "Mine")
    assert (found.settings, found.prompts) == ({"drad": {"theta_1": 0.8}}, {})
    assert found.description == MINE.description


def test_a_profile_is_deleted_after_a_question_and_used_no_more(saved: Engine):
    test = opened(_profile=MINE)
    assert "Delete the profile “Mine”? Runs that used it stay." in [one.value for one in test.text]
    test.button(key=f"sure-profile-{SLUG}").click().run()
    assert not test.exception
    assert names(saved) == []
    assert test.session_state["_profile"] is None


def test_profiles_belong_to_their_owner(saved: Engine):
    assert "Mine" not in seen(opened(_owner=SOMEBODY_ELSE))


def bring(engine: Engine, text: str | bytes, **state: Any) -> AppTest:
    test = opened(**state)
    data = text if isinstance(text, bytes) else text.encode()
    file = ("profile.json", data, "application/json")
    test.file_uploader(key="profiles.upload.0").set_value(file).run()
    assert not test.exception
    return test


def test_an_exported_profile_is_imported_whole(engine: Engine):
    test = bring(engine, profile_text(MINE))
    assert "Imported as “Mine”." in seen(test)
    assert engine.service.store.profiles.get(ME, "Mine") == MINE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"", "no JSON"),
        (b"{}", "holds no profile"),
        (
            json.dumps({"format": "veriscope-profile-1", "name": "a", "settings": {"x": {}}}),
            "no method 'x'",
        ),
        (
            profile_text(MINE).replace("Answer in one word.", "sk-hunter2hunter2hunter2"),
            "looks like a key",
        ),
    ],
)
def test_a_bad_file_says_what_is_wrong(engine: Engine, text: str | bytes, said: str):
    test = bring(engine, text)
    assert said in seen(test)
    assert "hunter2" not in seen(test)
    assert names(engine) == []


def test_one_of_the_same_name_is_replaced_only_when_that_is_meant(saved: Engine):
    newer = MINE.model_copy(update={"description": "Newer."})
    assert "already" in seen(bring(saved, profile_text(newer)))
    assert saved.service.store.profiles.get(ME, "Mine") == MINE
    bring(saved, profile_text(newer), **{"profiles.replace": True})
    assert saved.service.store.profiles.get(ME, "Mine") == newer


def test_strangers_may_not_bring_addresses_of_the_machines_network(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    restricted = SimpleNamespace(restricted=True)
    monkeypatch.setattr(screen, "workbench_exposure", lambda: restricted)
    test = bring(engine, profile_text(MINE))
    assert SWITCH in seen(test)
    assert names(engine) == []


def test_a_key_that_is_typed_stays_in_the_session(saved: Engine):
    test = opened()
    test.text_input(key=f"profile-key-{SLUG}-0").input("hunter2-is-the-key").run()
    assert not test.exception
    assert "hunter2-is-the-key" in test.session_state["_keys"].values()
    stored = json.dumps(
        [one.model_dump(mode="json") for one in saved.service.store.profiles.list(ME)]
    )
    assert "hunter2" not in stored


def test_the_exported_file_has_the_profiles_name():
    assert screen._file_name("Für 我的 / profile") == "Für-我的-profile"
    assert screen._file_name("///") == "profile"
    assert io.StringIO(profile_text(MINE)).readline().startswith("{")
