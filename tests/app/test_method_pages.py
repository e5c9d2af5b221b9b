"""The pages of the methods without a browser, on walkthroughs played without a pause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import engine as engines
from components.messages import Catalogue
from pipelines.engine import Engine
from pipelines.methods import get_method
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.trace import Trace
from pipelines.store.exchange import export_lines
from pipelines.types import Language
from pipelines.walkthroughs import walkthrough
from tests.app.playing import load, open_engine, play, run, seen
from tests.app.test_screens import ME, QUESTION, page, told

# In the first Rowen keeps the answer, in the second it looks for evidence.
WALL, EVEREST = "2-zh-great-wall", "4-zh-everest"
PAGES = {"rowen": ("rowen",), "drad": ("drad",), "ever": ("ever",), "grounding": ("haarag", "slm")}
NAMES = {"rowen": "Rowen", "drad": "DRAD", "ever": "EVER", "haarag": "HAARAG", "slm": "SLM check"}
EACH = [(name, method) for name, methods in PAGES.items() for method in methods]
SOMEBODY_ELSE = "b" * 48


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine for all tests, so that each walkthrough is played once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERISCOPE_DATA", str(tmp_path_factory.mktemp("played")))
        folder = engines.data_folder()
        opened = open_engine(folder)
        patch.setitem(engines._engines, folder, opened)
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def engine(shared: Engine) -> Engine:
    return shared


@pytest.fixture(scope="module")
def wall(shared: Engine) -> str:
    return play(shared, WALL)


@pytest.fixture(scope="module")
def everest(shared: Engine) -> str:
    return play(shared, EVEREST)


@pytest.fixture(scope="module")
def plain(shared: Engine) -> str:
    """A run of Direct alone."""
    return run(shared, RunSpec(question=QUESTION, methods=(MethodSpec(name="direct"),)))


def opened(name: str, run_id: str, **state: Any) -> AppTest:
    """The page, looking at a run."""
    test = page(name, **state)
    test.query_params["run"] = run_id
    return test.run()


def place(run_id: str, method: str, field: str) -> str:
    return f"detector.{run_id}.{method}.{field}"


def labels(test: AppTest) -> list[str]:
    return [button.label for button in test.button]


def offers_to_run_again(test: AppTest) -> bool:
    return any((button.key or "").endswith("-again") for button in test.button)


def stored(engine: Engine) -> list[str]:
    return [one.id for one in engine.service.store.list(ME, limit=1000)]


def set_to(test: AppTest, run_id: str, method: str, **fields: Any) -> AppTest:
    """Moves controls; an optional one is ticked first."""
    for field, value in fields.items():
        key = place(run_id, method, field)
        used = [box for box in test.checkbox if box.key == f"{key}.used"]
        if used and not used[0].value:
            used[0].check().run()
        if isinstance(value, bool):
            test.toggle(key=key).set_value(value).run()
        elif isinstance(value, str):
            test.selectbox(key=key).set_value(value).run()
        elif isinstance(value, float):
            test.slider(key=key).set_value(value).run()
        else:
            test.number_input(key=key).set_value(value).run()
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
    assert labels(test) == [t("nav.ask")]
    test.button[0].click().run()
    assert test.session_state["_wanted_page"] == "ask"


@pytest.mark.parametrize("name", PAGES)
def test_a_run_that_used_the_method_can_be_picked(
    name: str, engine: Engine, plain: str, everest: str
):
    test = page(name).run()
    choice = test.selectbox(key=f"{name}-pick")
    assert choice.value is None
    assert QUESTION not in choice.options
    choice.select(walkthrough(EVEREST).question).run()
    assert not test.exception
    assert test.query_params["run"] == everest
    assert walkthrough(EVEREST).question in seen(test)


@pytest.mark.parametrize(("name", "method"), EACH)
def test_a_run_without_the_method_offers_one_with_it(
    name: str, method: str, engine: Engine, plain: str
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
    spec, before = load(engine, again).header.spec, load(engine, plain).header.spec
    assert [one.name for one in spec.methods] == ["direct", method]
    assert spec.model_copy(update={"methods": before.methods}) == before
    engine.call(engine.service.stop(again, owner=ME))
    ended = opened(name, again)
    assert not ended.exception
    left = [f"Run it with {NAMES[other]} as well" for other in PAGES[name] if other != method]
    assert [label for label in labels(ended) if label.startswith("Run it with")] == left


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
            "0.33 is below 0.50, evidence is looked up",
            "0.33 is not below 0.00, the answer stays.",
        ),
        (
            "rowen",
            "rowen",
            {"alpha": 3.0},
            "0.33 is below 0.50",
            "1 is not below 0.50, the answer stays.",
        ),
        (
            "rowen",
            "rowen",
            {"variant": "cl"},
            "0 of 3 agree across languages, 1 of 3 with the verifier",
            "0 is below 0.60, evidence is looked up",
        ),
        ("drad", "drad", {"theta_1": 0.5}, "1 of 11 entities is doubtful", "stays"),
        ("grounding", "haarag", {"tau_a": 0.0}, "τₐ = 0.31 was", "τₐ = 0.00 was set by hand."),
        ("grounding", "slm", {"threshold": -5.0}, "< 0.50", "> -5.00"),
        ("grounding", "slm", {"normalise": False}, "z", "P(yes)"),
    ],
)
def test_a_control_decides_the_recorded_run_again_without_a_call(
    name: str,
    method: str,
    fields: dict[str, Any],
    before: str,
    after: str,
    engine: Engine,
    everest: str,
):
    test = opened(name, everest)
    runs, events = stored(engine), len(load(engine, everest).events)
    first = seen(test)
    assert before in first
    set_to(test, everest, method, **fields)
    assert after in seen(test)
    assert seen(test) != first
    assert test.query_params["run"] == everest
    assert (stored(engine), len(load(engine, everest).events)) == (runs, events)
    assert not offers_to_run_again(test)


@pytest.mark.parametrize("rounds", [1, 4])
def test_another_limit_of_rounds_that_would_have_changed_nothing(rounds: int, wall: str):
    test = opened("ever", wall)
    first = seen(test)
    set_to(test, wall, "ever", max_rounds=rounds)
    assert seen(test) == first
    assert not offers_to_run_again(test)


@pytest.mark.parametrize(
    ("name", "method", "fields", "said"),
    [
        ("rowen", "rowen", {"threshold": 5.0}, "evidence would be looked up"),
        ("rowen", "rowen", {"variant": "cm"}, "evidence would be looked up"),
        ("drad", "drad", {"theta_1": 1.0}, "doubtful"),
        ("grounding", "haarag", {"tau_r": 1.0}, "the search would have been widened further"),
        ("grounding", "haarag", {"tau_a": 1.0}, "searched for other parts of an answer"),
    ],
)
def test_a_change_that_needs_another_run_says_so_and_starts_it(
    name: str, method: str, fields: dict[str, Any], said: str, engine: Engine, wall: str
):
    test = opened(name, wall)
    set_to(test, wall, method, **fields)
    assert said in seen(test)
    test.button(key=f"{method}-again").click().run()
    assert not test.exception
    again = test.query_params["run"]
    assert again != wall
    before, spec = load(engine, wall).header.spec, load(engine, again).header.spec
    for old, new in zip(before.methods, spec.methods, strict=True):
        changed = fields if old.name == method else {}
        wanted = get_method(old.name).settings({**old.settings, **changed})
        assert (new.name, get_method(new.name).settings(new.settings)) == (old.name, wanted)
    assert spec.model_copy(update={"methods": before.methods}) == before
    engine.call(engine.service.stop(again, owner=ME))


@pytest.mark.parametrize("name", PAGES)
def test_a_run_that_failed_says_why(name: str, engine: Engine):
    # None of its replies fits another question.
    spec = walkthrough(EVEREST).spec()
    methods = tuple(one for one in spec.methods if one.name in PAGES[name])
    failed = run(
        engine, spec.model_copy(update={"question": "谁写了《红楼梦》？", "methods": methods})
    )
    test = opened(name, failed)
    assert not test.exception
    assert "谁写了《红楼梦》？" in seen(test)
    assert "A request cannot be answered" in seen(test)
    assert not offers_to_run_again(test)


def cut(engine: Engine, whole: Trace, share: float) -> str:
    """A run that was stopped when this share of `whole` had been recorded."""
    kept = Trace(events=whole.events[: max(1, int(share * len(whole.events)))])
    return engine.service.store.import_run("".join(export_lines(kept)), ME)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("name", PAGES)
def test_a_run_that_was_stopped_is_shown_as_far_as_it_came(
    name: str, share: float, engine: Engine, wall: str
):
    test = opened(name, cut(engine, load(engine, wall), share))
    assert not test.exception
    assert "The run was stopped" in seen(test)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("whose", ["nobody", "somebody else", "malformed"])
def test_an_address_of_no_run_of_this_browser_says_so(name: str, whose: str, everest: str):
    address = {"nobody": "0" * 32, "somebody else": everest, "malformed": "<b>../x"}[whose]
    test = opened(name, address, _owner=SOMEBODY_ELSE)
    assert not test.exception
    assert "Not found" in seen(test)
    assert "王富洲" not in seen(test)
    assert "<b>.." not in told(test)


@pytest.mark.parametrize(("name", "method"), EACH)
def test_a_run_with_settings_nobody_can_choose_says_what_is_wrong(
    name: str, method: str, engine: Engine, everest: str
):
    whole = load(engine, everest)
    header = whole.header
    wrong = (MethodSpec(name=method, settings={"unheard_of": 7}),)
    spec = header.spec.model_copy(update={"methods": wrong})
    started = header.model_copy(update={"spec": spec})
    run_id = engine.service.store.import_run(
        "".join(export_lines(Trace(events=(started, *whole.events[1:])))), ME
    )
    test = opened(name, run_id)
    assert not test.exception
    assert "unheard_of" in seen(test)
