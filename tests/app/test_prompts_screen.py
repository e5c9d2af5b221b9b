"""The Prompts page without a browser: a wording is written, checked, used, tried and saved."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from streamlit.testing.v1 import AppTest

from pipelines.engine.service import Engine
from pipelines.prompts import load_prompts
from pipelines.run.events import MethodSpec, RunSpec
from pipelines.store.profiles import Profile
from tests.app.opening import always, page_engine
from tests.app.playing import seen
from tests.app.test_screens import ME, QUESTION, finished_run, page

SYSTEM = "prompts.text.ask.direct.en.system"
ASKED = "prompts.text.ask.direct.en.question"
SHORT = "Answer in one word."
SOMEBODY_ELSE = "b" * 48


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, partial(Engine, pool=always("In Hope."))) as opened:
        yield opened


def opened(prompt: str = "direct/system", **state: Any) -> AppTest:
    """The page at one prompt of the direct answer, in English."""
    chosen = {"prompts.method": "direct", "prompts.prompt": prompt, "prompts.language": "en"}
    test = page("prompts", **{**chosen, **state}).run()
    assert not test.exception
    return test


def write(test: AppTest, text: str, key: str = SYSTEM) -> AppTest:
    test.text_area(key=key).set_value(text).run()
    assert not test.exception
    return test


def captions(test: AppTest) -> list[str]:
    return [one.value for one in test.caption]


def test_a_new_visitor_sees_the_defaults(engine: Engine):
    test = opened()
    default = load_prompts("direct").default("en", "system")
    assert test.text_area(key=SYSTEM).value == default
    assert "Your next runs have the default prompts." in captions(test)
    assert test.button(key="prompt-use").disabled
    assert test.button(key="prompt-reset").disabled
    # A recorded run fills the prompt until there are runs of one's own.
    assert test.selectbox(key="prompts.run").options[0].endswith("· recorded sample")
    assert "Where was Bill Clinton born and raised?" in seen(opened("direct/question"))
    # Which other methods a change applies to is said.
    assert any("are also used by" in one for one in captions(test))


def test_every_method_and_language_can_be_looked_at(engine: Engine):
    test = opened()
    for method in ("ever", "slm", "self_reflection"):
        test.selectbox(key="prompts.method").set_value(method).run()
        assert not test.exception
        assert str(test.selectbox(key="prompts.prompt").value).split("/")[0] != "direct"
    test.session_state["prompts.language"] = "zh"
    test.run()
    assert not test.exception
    # No recorded run has the last of them.
    assert "No run of these methods is recorded yet" in seen(test)


def test_a_draft_is_used_only_once_it_is_taken(engine: Engine):
    test = write(opened(), f"{SHORT}\n")
    assert "A draft: your next runs do not use it yet." in captions(test)
    assert "Difference from the default" in seen(test)
    test.button(key="prompt-use").click().run()
    assert "Your next runs use this text." in captions(test)
    assert "A prompt of your own: direct/system (English)" in seen(test)
    write(test, "Something else.")
    test.button(key="prompt-undo").click().run()
    assert test.text_area(key=SYSTEM).value == SHORT
    test.button(key="prompt-reset").click().run()
    assert test.text_area(key=SYSTEM).value == load_prompts("direct").default("en", "system")
    assert "Your next runs have the default prompts." in captions(test)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Well?", "The placeholder $question is missing."),
        ("$question\n$so", "Line 2, column 1: there is no value for $so."),
        ("$question for $5", "Line 1, column 15: a single dollar sign."),
        (" ", "There is no text."),
    ],
)
def test_what_cannot_be_filled_is_said_with_its_place_and_stays(
    engine: Engine, text: str, said: str
):
    test = write(opened("direct/question"), text, ASKED)
    assert said in seen(test)
    test.button(key="prompt-use").click().run()
    assert not test.exception
    assert "direct/question (en)" in seen(test)
    assert test.text_area(key=ASKED).value == text
    assert "Your next runs have the default prompts." in captions(test)


def test_a_key_is_refused(engine: Engine):
    test = write(opened(), "Use sk-hunter2hunter2hunter2.")
    test.button(key="prompt-use").click().run()
    assert "looks like a key" in seen(test)
    assert "Your next runs have the default prompts." in captions(test)


def ask(**state: Any) -> AppTest:
    methods = {f"method.{name}": name == "direct" for name in ("direct", "rag", "drad", "ever")}
    others = {f"method.{name}": False for name in ("rowen", "haarag", "slm")}
    test = page("ask", **{**methods, **others, **state}).run()
    assert not test.exception
    return test


def test_the_next_run_has_the_wording_and_is_marked(engine: Engine):
    wording = {"direct": {"en": {"system": SHORT}}}
    test = ask(**{"_wording.ask": wording})
    assert "A prompt of your own: direct/system (English)" in captions(test)
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    assert not test.exception
    (run,) = engine.service.store.list(ME)
    assert engine.service.store.load(run.id, ME).header.spec.prompts == wording
    assert "A prompt of your own: direct/system (English)" in seen(test.run())


def test_another_session_at_the_same_time_has_the_default(engine: Engine):
    mine = write(opened(), SHORT)
    mine.button(key="prompt-use").click().run()
    other = opened(_owner=SOMEBODY_ELSE)
    # Another window of the same visitor too: what is not saved belongs to a session.
    window = opened()
    for test in (other, window):
        assert "Your next runs have the default prompts." in captions(test)
        assert SHORT not in seen(test)
    assert "A prompt of your own" in seen(mine.run())


def test_a_profile_begins_the_wording_and_keeps_what_is_saved_to_it(engine: Engine):
    profiles = engine.service.store.profiles
    profile = Profile(name="Short", prompts={"direct": {"en": {"system": SHORT}}})
    profiles.save(ME, profile)
    test = opened(_profile=profile)
    assert "A prompt of your own: direct/system (English)" in seen(test)
    assert "As saved in the profile “Short”." in captions(test)
    (key,) = [one.key for one in test.text_area if one.key]
    assert test.text_area(key=key).value == SHORT
    write(test, "Answer in two words.", key)
    test.button(key="prompt-use").click().run()
    assert profiles.get(ME, "Short") == profile
    test.button(key="prompts-save").click().run()
    assert not test.exception
    saved = profiles.get(ME, "Short").prompts
    assert saved == {"direct": {"en": {"system": "Answer in two words."}}}
    assert "As saved in the profile “Short”." in captions(test)
    (key,) = [one.key for one in test.text_area if one.key]
    assert test.text_area(key=key).value == "Answer in two words."
    test.button(key="prompts-reset-all").click().run()
    assert "A prompt of your own" not in seen(test)
    assert profiles.get(ME, "Short").prompts == saved


def test_settings_that_were_changed_stay_when_prompts_are_saved(engine: Engine):
    profile = Profile(name="Short", prompts={"direct": {"en": {"system": SHORT}}})
    engine.service.store.profiles.save(ME, profile)
    before = f"ask.{crc32(profile.model_dump_json().encode()):08x}.drad.theta_1"
    test = opened(**{"_profile": profile, before: 0.75})
    (key,) = [one.key for one in test.text_area if one.key]
    write(test, "Answer in two words.", key)
    test.button(key="prompt-use").click().run()
    test.button(key="prompts-save").click().run()
    assert not test.exception
    saved = engine.service.store.profiles.get(ME, "Short")
    after = f"ask.{crc32(saved.model_dump_json().encode()):08x}.drad.theta_1"
    assert after != before
    assert test.session_state[after] == 0.75


def test_the_last_run_fills_the_prompt_and_the_model_is_asked(engine: Engine):
    finished_run(engine)
    test = write(opened("direct/question"), "In short: $question", ASKED)
    text = seen(test)
    assert "What would be sent, against what the run sent" in text
    assert QUESTION.split()[0] in text
    test.button(key="prompts-begin").click().run()
    assert not test.exception
    trial = test.session_state["_prompts.trial"]
    trial.future.result(timeout=30)
    test.run()
    text = seen(test)
    assert "Reply in the run" in text
    assert "In Hope." in text
    # Nothing is recorded of it.
    assert len(engine.service.store.list(ME)) == 1
    write(test, "Shortly: $question", ASKED)
    assert "The reply below is to an earlier text." in captions(test)
    # A text that cannot be filled is not.
    write(test, "Shortly:", ASKED)
    assert "cannot be filled before the problems above are solved" in seen(test)


def test_a_run_without_the_prompt_says_so(engine: Engine):
    async def run() -> None:
        spec = RunSpec(question=QUESTION, methods=(MethodSpec(name="direct"),), language="en")
        run_id = await engine.service.start(spec, owner=ME)
        async for _ in engine.service.follow(run_id, owner=ME):
            pass

    engine.call(run())
    test = opened()
    test.session_state["prompts.language"] = "zh"
    test.run()
    assert "This run did not use this prompt" in seen(test)


def test_a_prompt_of_ones_own_is_jumped_to(engine: Engine):
    state: dict[str, Any] = {"_wording.ask": {"ever": {"zh": {"verify": "$passages $question"}}}}
    test = opened(**state)
    test.button_group(key="prompts.own").set_value("ever/verify (Chinese)").run()
    assert not test.exception
    assert test.selectbox(key="prompts.prompt").value == "ever/verify"
    assert test.session_state["prompts.language"] == "zh"
