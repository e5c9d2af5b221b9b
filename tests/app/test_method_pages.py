"""The pages of the methods without a browser, on walkthroughs played without a pause."""

from __future__ import annotations

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import page as live
from components.base.words import Catalogue
from pipelines.base import Language
from pipelines.engine.service import Engine
from pipelines.errors import InvalidInputError
from pipelines.methods.registry import METHODS, get_method, method_pages
from pipelines.run.events import MethodSpec, RunSpec
from pipelines.samples.walkthroughs import walkthrough
from pipelines.store.exchange import recordings
from tests.app.playing import (
    EACH,
    EVEREST,
    PAGES,
    SOMEBODY_ELSE,
    load,
    opened,
    play,
    run,
    seen,
)
from tests.app.test_screens import ME, QUESTION, page, told

NAMES = {method: Catalogue("en")(f"method.{method}.title") for method in METHODS}


@pytest.fixture(scope="module")
def plain(played: Engine) -> str:
    """A run of Direct alone."""
    return run(played, RunSpec(question=QUESTION, methods=(MethodSpec(name="direct"),)))


def place(run_id: str, method: str, field: str) -> str:
    return f"detector.{run_id}.{method}.{field}"


def labels(test: AppTest) -> list[str]:
    return [button.label for button in test.button]


def offers_to_run_again(test: AppTest) -> bool:
    return any((button.key or "").endswith("-again") for button in test.button)


def stored(played: Engine) -> list[str]:
    return [one.id for one in played.service.store.list(ME, limit=1000)]


def set_to(test: AppTest, run_id: str, method: str, **fields: Any) -> AppTest:
    """Moves controls; an optional one is ticked first."""
    for field, value in fields.items():
        key = place(run_id, method, field)
        used = [box for box in test.checkbox if box.key == f"{key}.used"]
        if value is None:
            used[0].uncheck()
        elif isinstance(value, bool):
            test.toggle(key=key).set_value(value)
        elif isinstance(value, str):
            test.selectbox(key=key).set_value(value)
        elif isinstance(value, int):
            test.number_input(key=key).set_value(value)
        else:
            if used and not used[0].value:
                used[0].check().run()
            test.slider(key=key).set_value(value)
        test.run()
        assert not test.exception
    return test


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_a_visitor_without_runs_is_sent_to_the_ask_page(name: str, language: Language):
    t = Catalogue(language)
    test = page(name, _owner=SOMEBODY_ELSE, lang=language).run()
    assert not test.exception
    assert told(test).count("<h1") == 1
    names = t("list.separator").join(t(f"method.{one}.title") for one in PAGES[name])
    assert t("page.no_runs", methods=names) in seen(test)
    assert labels(test) == [t("page.recorded"), t("nav.ask")]
    test.button(key=f"{name}-ask").click().run()
    assert test.session_state["_wanted_page"] == "ask"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", [*PAGES, "compare"])
def test_a_visitor_without_runs_can_look_at_a_recorded_one(name: str, language: Language):
    test = page(name, _owner=SOMEBODY_ELSE, lang=language).run()
    test.button(key=f"{name}-recorded").click().run()
    assert not test.exception
    first = next(one for one in recordings() if one.language == language)
    assert test.session_state["_watched"].run_id == first.id
    assert first.question in seen(test)


@pytest.mark.parametrize("name", PAGES)
def test_a_run_that_used_the_method_can_be_picked(
    name: str, played: Engine, plain: str, everest: str
):
    test = page(name).run()
    choice = test.selectbox(key=f"{name}-pick")
    assert choice.value is None
    assert QUESTION not in choice.options
    choice.select(walkthrough(EVEREST).question).run()
    assert not test.exception
    assert test.query_params["run"] == everest
    assert walkthrough(EVEREST).question in seen(test)


def test_runs_of_the_same_question_have_different_labels(played: Engine):
    whose = "c" * 48
    first, second = (play(played, EVEREST, whose) for _ in range(2))
    test = page("rowen", _owner=whose).run()
    options = test.selectbox(key="rowen-pick").options
    assert options == [f"{walkthrough(EVEREST).question} · {one[:8]}" for one in (second, first)]
    test.selectbox(key="rowen-pick").select_index(1).run()
    assert test.query_params["run"] == first


@pytest.mark.parametrize(("name", "method"), EACH)
def test_a_run_without_the_method_offers_one_with_it(
    name: str, method: str, played: Engine, plain: str
):
    test = opened(name, plain)
    assert not test.exception
    for other in PAGES[name]:
        assert f"This run did not use {NAMES[other]}." in seen(test)
    assert labels(test) == [f"Run it with {NAMES[other]} as well" for other in PAGES[name]]
    test.button(key=f"{method}-add").click().run()
    assert not test.exception
    again = test.query_params["run"]
    assert again != plain
    spec, before = load(played, again).header.spec, load(played, plain).header.spec
    assert [one.name for one in spec.methods] == ["direct", method]
    assert spec.model_copy(update={"methods": before.methods}) == before
    played.call(played.service.stop(again, owner=ME))
    ended = opened(name, again)
    assert not ended.exception
    left = [f"Run it with {NAMES[other]} as well" for other in PAGES[name] if other != method]
    assert [label for label in labels(ended) if label.startswith("Run it with")] == left


def test_many_methods_that_a_run_did_not_use_are_one_line(played: Engine, plain: str):
    test = opened("baselines", plain)
    assert not test.exception
    others = method_pages()["baselines"]
    (fold,) = [one for one in test.expander if "did not use" in one.label]
    assert fold.label == f"This run did not use {len(others)} methods of this page"
    assert "This run did not use" not in seen(test)
    assert labels(test) == []
    test = opened("baselines", plain, **{"baselines-not-used": True})
    assert len(labels(test)) == len(others)
    test.button(key="chain_of_thought-add").click().run()
    again = test.query_params["run"]
    spec = load(played, again).header.spec
    assert [one.name for one in spec.methods] == ["direct", "chain_of_thought"]
    played.call(played.service.stop(again, owner=ME))


@pytest.mark.verify
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", [*PAGES, "ask", "compare"])
def test_replies_written_by_hand_are_called_so_wherever_they_are_shown(
    name: str, language: Language, everest: str, plain: str
):
    label = Catalogue(language)("illustration.note")
    test = opened(name, everest, lang=language)
    assert not test.exception
    assert told(test).count("<h1") == 1
    assert label in seen(test)
    assert not offers_to_run_again(test)
    assert label not in seen(opened(name, plain, lang=language))


@pytest.mark.parametrize(
    ("name", "method", "fields", "before", "after"),
    [
        # Everest: Z_CL = 0/3, Z_CM = 1/3, so Z = 0.33 for alpha 1.
        (
            "rowen",
            "rowen",
            {"threshold": 0.0},
            "0.33 is below 0.50: evidence is looked up",
            "0.33 is not below 0.00: the original answer stays.",
        ),
        (
            "rowen",
            "rowen",
            {"alpha": 3.0},
            "0.33 is below 0.50",
            "1.00 is not below 0.50: the original answer stays.",
        ),
        (
            "rowen",
            "rowen",
            {"variant": "cl"},
            "0 of 3 pairs of answers agree across languages, 1 of 3 with the verifier",
            "0 is below 0.60: evidence is looked up",
        ),
        (
            "drad",
            "drad",
            {"theta_1": 0.5, "use_entropy": False},
            "1 of 11 entities is doubtful",
            "The original answer stays as it is.",
        ),
        # H = 1.6 nats is the largest of an entity.
        (
            "drad",
            "drad",
            {"theta_1": 0.5, "theta_2": 1.2},
            "No θ₂ was calibrated",
            "θ₂ = 1.20 nats was set by hand.",
        ),
        ("grounding", "haarag", {"tau_a": 0.0}, "τₐ = 0.22 was", "τₐ = 0 was set by hand."),
        ("grounding", "slm", {"threshold": 0.0}, "< 0.50", "> 0.00"),
        ("grounding", "slm", {"normalise": False}, "z", "P(yes)"),
    ],
)
def test_a_control_decides_the_recorded_run_again_without_a_call(
    name: str,
    method: str,
    fields: dict[str, Any],
    before: str,
    after: str,
    played: Engine,
    everest: str,
):
    test = opened(name, everest)
    runs, events = stored(played), len(load(played, everest).events)
    first = seen(test)
    assert before in first
    set_to(test, everest, method, **fields)
    assert after in seen(test)
    assert seen(test) != first
    assert test.query_params["run"] == everest
    assert (stored(played), len(load(played, everest).events)) == (runs, events)
    assert not offers_to_run_again(test)


@pytest.mark.parametrize("rounds", [1, 4])
def test_another_limit_of_rounds_that_would_have_changed_nothing(rounds: int, wall: str):
    test = opened("ever", wall)
    first = seen(test)
    set_to(test, wall, "ever", max_rounds=rounds)
    # How long the models took is not known of a run that was re-evaluated.
    times = re.compile(r"( · )?\d+\.\d+ s|(\n)What if[^\n]*")
    assert times.sub("", seen(test)) == times.sub("", first)
    assert not offers_to_run_again(test)


@pytest.mark.parametrize(
    ("name", "method", "fields", "said"),
    [
        ("rowen", "rowen", {"threshold": 2.0}, "the run leaves the recorded one"),
        ("rowen", "rowen", {"variant": "cm"}, "the run leaves the recorded one"),
        ("drad", "drad", {"theta_1": 1.0}, "doubtful"),
        ("grounding", "haarag", {"tau_r": 1.0}, "leaves the recorded one at draft 1 "),
        ("grounding", "haarag", {"tau_a": 1.0}, "leaves the recorded one at draft 2 "),
    ],
)
def test_a_change_that_needs_another_run_says_so_and_starts_it(
    name: str, method: str, fields: dict[str, Any], said: str, played: Engine, wall: str
):
    test = opened(name, wall)
    set_to(test, wall, method, **fields)
    assert said in seen(test)
    test.button(key=f"{method}-again").click().run()
    assert not test.exception
    again = test.query_params["run"]
    assert again != wall
    before, spec = load(played, wall).header.spec, load(played, again).header.spec
    for old, new in zip(before.methods, spec.methods, strict=True):
        changed = fields if old.name == method else {}
        wanted = get_method(old.name).settings({**old.settings, **changed})
        assert (new.name, get_method(new.name).settings(new.settings)) == (old.name, wanted)
    assert spec.model_copy(update={"methods": before.methods}) == before
    played.call(played.service.stop(again, owner=ME))


def test_why_a_run_cannot_be_started_is_said_where_it_was_asked_for(
    wall: str, monkeypatch: pytest.MonkeyPatch
):
    def refuse(spec: RunSpec) -> None:
        raise InvalidInputError("There is no such thing.", remedy="Choose another.")

    test = opened("grounding", wall)
    set_to(test, wall, "haarag", tau_r=1.0)
    with monkeypatch.context() as patch:
        patch.setattr(live, "start", refuse)
        test.button(key="haarag-again").click().run()
    assert not test.exception
    assert "There is no such thing." in seen(test)
    assert test.query_params["run"] == wall


def test_baselines_are_run_from_their_own_page(played: Engine):
    test = page("baselines").run()
    assert not test.exception
    table = test.dataframe[0].value
    names = method_pages()["baselines"]
    assert list(table["Baseline"]) == [NAMES[name] for name in names]
    assert set(table["Kind"]) == {"answers", "only checks"}
    assert all(int(count) >= 1 for count in table["Calls"])
    # What those that are chosen do is explained below.
    captions = "\n".join(one.value for one in test.caption)
    assert "Chosen: Token probability, SelfCheckGPT." in captions
    test.text_input(key="baselines.question").input(QUESTION)
    test.button(key="baselines-run").click().run()
    assert not test.exception
    begun = test.query_params["run"]
    spec = load(played, begun).header.spec
    assert spec.question == QUESTION
    assert {one.name for one in spec.methods} >= {"token_probability", "selfcheck"}
    played.call(played.service.stop(begun, owner=ME))


def test_what_if_shows_what_was_and_what_is_now_and_leads_back(everest: str):
    test = opened("rowen", everest)
    assert "What if" not in seen(test)
    assert test.button(key="reset-rowen").disabled
    set_to(test, everest, "rowen", threshold=0.0)
    assert "What if: not what was recorded." in seen(test)
    words = " ".join(seen(test).split())
    assert re.search(r"was.?Doubtful 0\.33 < 0\.50→now.?Confident 0\.33 > 0", words)
    # Z goes from 0 to 1 + alpha, and so far can its threshold be moved.
    slider = test.slider(key=place(everest, "rowen", "threshold"))
    assert (slider.min, slider.max) == (0.0, 2.0)
    test.button(key="reset-rowen").click().run()
    assert not test.exception
    assert "What if" not in seen(test)
    assert "0.33 is below 0.50: evidence is looked up" in seen(test)
