"""What a question is asked of, as the Ask page has it chosen: models, evidence, keys, settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.base.elements import error_title
from components.base.words import Catalogue
from pipelines.engine.library import Libraries
from pipelines.engine.service import Engine
from pipelines.methods.registry import METHODS, grouped_methods, method_presets
from pipelines.methods.slm.scores import history_of
from pipelines.retrieval.base import Retriever
from pipelines.run import events
from pipelines.run.events import JUDGES, ROLES, EvidenceSpec, ModelSpec, RunSpec, default_models
from tests.app.opening import page_engine
from tests.app.playing import WALL, load, open_engine, play, seen
from tests.app.test_screens import FOLDS, ME, QUESTION, page

SERVER = ModelSpec(kind="openai", name="Second", model="m", base_url="http://127.0.0.1:9/v1")
MUTE = ModelSpec(
    kind="openai", name="Mute", model="m", base_url="http://127.0.0.1:9/v1", top_logprobs=0
)
EMBEDDED = ModelSpec()
KEY = "never-to-be-stored-0815"
SAME = "is the same model as the main one"
NOTE = "Queries leave this machine: they are sent to the search service."


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine whose visitor saved two servers."""
    with page_engine(tmp_path, open_engine) as opened:
        for spec in (SERVER, MUTE):
            opened.service.store.models.save(ME, spec)
        yield opened


@pytest.fixture
def searches(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """The evidence that runs searched in and the keys they had; the web is not really asked."""
    heard: list[tuple[str, str | None]] = []

    def search_in(
        self: Libraries, evidence: EvidenceSpec, key: str | None = None, *, owner: str = ""
    ) -> Retriever:
        heard.append((evidence.name, key))
        return known(self, EvidenceSpec(mode="bm25"))

    known = Libraries.search_in
    monkeypatch.setattr(Libraries, "search_in", search_in)
    return heard


def ask_page(*methods: str, **state: object) -> AppTest:
    """The Ask page with `methods` ticked and no others."""
    ticks = {f"method.{name}": name in methods for name in METHODS}
    test = page("ask", **{**ticks, **state}).run()
    assert not test.exception
    return test


@pytest.fixture(autouse=True)
def nothing_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is the bundled model, whatever models this installation has fetched."""
    monkeypatch.setattr(events, "fetched_file", lambda name: None)


def roles(test: AppTest) -> list[str]:
    """The roles that a model can be chosen for."""
    keys = [box.key or "" for box in test.selectbox]
    return [role for role in ROLES if f"model.{role}" in keys]


def captions(test: AppTest) -> str:
    return "\n".join(caption.value for caption in test.caption)


def unfold(test: AppTest) -> None:
    """Shows the controls again, which asking folds away."""
    for name in FOLDS:
        test.session_state[name] = True
    test.run()


def asked(test: AppTest, engine: Engine, question: str = QUESTION) -> RunSpec:
    """Asks the question; what the run was made of. Waits for its end."""
    test.text_input(key="question").input(question)
    test.button(key="run").click().run()
    assert not test.exception
    run_id = test.query_params["run"]

    async def ended() -> None:
        async for _ in engine.service.follow(run_id, owner=ME):
            pass

    engine.call(ended())
    return load(engine, run_id).header.spec


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (["direct"], ["main"]),
        (["direct", "rag"], ["main", *JUDGES]),
        (["rowen"], ["main", "verifier", *JUDGES]),
        (["ever"], ["main", *JUDGES]),
        (["drad"], ["main", *JUDGES, "proxy"]),
        (["slm"], ["main", *JUDGES]),
        (["rowen", "drad", "slm"], list(ROLES)),
    ],
)
def test_models_are_chosen_for_the_roles_of_the_ticked_methods(
    engine: Engine, methods: list[str], expected: list[str]
):
    assert roles(ask_page(*methods)) == expected


def test_roles_come_and_go_with_the_ticks(engine: Engine):
    test = ask_page("direct")
    assert roles(test) == ["main"]
    test.checkbox(key="method.rowen").check().run()
    assert roles(test) == ["main", "verifier", *JUDGES]
    test.selectbox(key="model.verifier").select("Second").run()
    test.checkbox(key="method.rowen").uncheck().run()
    assert roles(test) == ["main"]
    test.checkbox(key="method.rowen").check().run()
    assert test.selectbox(key="model.verifier").value == "Second"


def test_the_models_that_were_chosen_are_those_of_the_run(engine: Engine):
    test = ask_page("direct", "slm")
    test.selectbox(key="model.judge_1").select("Second").run()
    test.selectbox(key="model.judge_3").select("Mute").run()
    models = asked(test, engine).models
    assert models == {
        "main": EMBEDDED,
        "judge_1": SERVER,
        "judge_2": default_models()["judge_2"],
        "judge_3": MUTE,
    }


def test_the_judges_that_come_along_judge_until_they_are_taken_away(engine: Engine):
    test = ask_page("direct", "slm")
    names = [test.selectbox(key=f"model.{role}").value for role in JUDGES]
    assert names == ["Veriscope judge", "Word overlap", None]
    test = ask_page("direct", "slm", **{"model.judge_2": None})
    assert asked(test, engine).models == {
        "main": EMBEDDED,
        "judge_1": default_models()["judge_1"],
    }


def test_a_second_opinion_of_the_main_model_is_called_so(engine: Engine):
    test = ask_page("rowen")
    assert SAME not in captions(test)
    test.selectbox(key="model.verifier").select(EMBEDDED.name).run()
    assert f"The verifier {SAME}" in captions(test)
    test.selectbox(key="model.verifier").select("Second").run()
    assert SAME not in captions(test)
    test.selectbox(key="model.main").select("Second").run()
    assert f"The verifier {SAME}" in captions(test)
    test.checkbox(key="method.rowen").uncheck().run()
    assert SAME not in captions(test)


def test_a_library_is_searched_by_words_or_meaning_without_a_key(engine: Engine):
    test = ask_page("rag")
    assert not test.selectbox(key="evidence.mode").disabled
    assert NOTE not in captions(test)
    assert not [field for field in test.text_input if "search-key" in (field.key or "")]
    test.selectbox(key="evidence.mode").select("bm25").run()
    assert asked(test, engine).evidence == EvidenceSpec(mode="bm25")


@pytest.mark.parametrize("source", ["serper", "duckduckgo", "wikipedia"])
def test_the_web_is_said_to_be_asked_and_has_no_modes(engine: Engine, source: str):
    test = ask_page("rag")
    test.selectbox(key="evidence.library").set_value(source).run()
    assert not test.exception
    assert NOTE in captions(test)
    assert test.selectbox(key="evidence.mode").disabled
    fields = [field.key for field in test.text_input if "search-key" in (field.key or "")]
    assert fields == (["search-key.serper"] if source == "serper" else [])
    test.selectbox(key="evidence.library").set_value("sample").run()
    assert NOTE not in captions(test)
    assert not test.selectbox(key="evidence.mode").disabled


def test_the_key_of_a_search_stays_in_the_session_and_goes_to_that_search_alone(
    engine: Engine, searches: list[tuple[str, str | None]], tmp_path: Path
):
    test = ask_page("direct", "rag")
    test.selectbox(key="evidence.library").set_value("serper").run()
    field = test.text_input(key="search-key.serper")
    assert field.proto.type == field.proto.PASSWORD
    field.input(KEY).run()
    assert not test.exception
    assert test.text_input(key="search-key.serper").placeholder
    assert test.session_state["_keys"] == {("search", "serper"): KEY}
    spec = asked(test, engine)
    assert spec.evidence.source == "serper"
    assert KEY not in spec.model_dump_json()
    assert searches == [("serper", KEY)]

    unfold(test)
    test.selectbox(key="evidence.library").set_value("wikipedia").run()
    asked(test, engine, "Who was Ada Lovelace?")
    assert searches[1:] == [("wikipedia", None)]
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"serper" in stored
    assert KEY.encode() not in stored


def test_without_a_key_the_search_says_so_where_it_fails(engine: Engine):
    test = ask_page("rag")
    test.selectbox(key="evidence.library").set_value("serper").run()
    asked(test, engine)
    test.run()
    assert not test.exception
    assert error_title("missing_key", Catalogue("en")) in seen(test)
    assert test.text_input(key="question").value == QUESTION


@pytest.mark.parametrize(
    ("state", "method", "said"),
    [
        (
            {"ask.rowen.variant": "hybrid"},
            "rowen",
            "Needs a main model that speaks both languages of this variant.",
        ),
        (
            {"model.main": "Mute", "ask.drad.confidence": "logprobs"},
            "drad",
            "Needs token probabilities, which this model does not report.",
        ),
        (
            {"model.main": "Mute", "ask.drad.confidence": "proxy"},
            "drad",
            "Needs a local model that can score a given text.",
        ),
    ],
)
def test_a_method_that_cannot_run_is_greyed_out_and_left_out(
    engine: Engine, state: dict[str, object], method: str, said: str
):
    test = ask_page("direct", method, **state)
    assert test.checkbox(key=f"method.{method}").disabled
    assert said in captions(test)
    assert [one.name for one in asked(test, engine).methods] == ["direct"]


def test_a_method_can_be_chosen_again_with_a_model_that_can(engine: Engine):
    test = ask_page("direct", "rowen", **{"ask.rowen.variant": "cl"})
    assert test.checkbox(key="method.rowen").disabled
    assert roles(test) == ["main"]
    test.selectbox(key="model.main").select("Second").run()
    assert not test.checkbox(key="method.rowen").disabled
    assert test.checkbox(key="method.rowen").value is True
    assert roles(test) == ["main", "verifier", *JUDGES]


def test_judges_are_measured_against_earlier_runs_only_when_asked_to(engine: Engine):
    earlier = load(engine, play(engine, WALL))
    expected = history_of([earlier], "zh")
    assert expected
    test = ask_page("direct", "slm")
    question = "李白的号是什么？"
    (_, slm) = asked(test, engine, question).methods
    assert "history" not in slm.settings
    unfold(test)
    test.toggle(key="slm.use_history").set_value(True).run()
    (_, slm) = asked(test, engine, question).methods
    judges = {name: slm.settings["history"][name] for name in expected}
    assert judges == {name: scale.model_dump() for name, scale in expected.items()}
    # Scores of Chinese statements say nothing about English ones.
    (_, slm) = asked(test, engine, QUESTION).methods
    assert not set(slm.settings.get("history", {})) & set(expected)


def test_what_is_folded_away_keeps_what_was_chosen(engine: Engine):
    test = ask_page("direct", "drad")
    test.slider(key="ask.drad.theta_1").set_value(0.8).run()
    first = asked(test, engine)
    assert not test.slider
    test.run()
    second = asked(test, engine, "Who was Ada Lovelace?")
    assert first.methods == second.methods
    assert dict(second.methods[1].settings) == {"theta_1": 0.8}
    unfold(test)
    assert test.slider(key="ask.drad.theta_1").value == 0.8
    assert test.checkbox(key="method.rag").value is False


def test_settings_reach_the_run_and_only_where_they_differ(engine: Engine):
    test = ask_page("direct", "drad", "ever")
    test.slider(key="ask.drad.theta_1").set_value(0.8)
    test.toggle(key="ask.drad.use_entropy").set_value(False)
    test.selectbox(key="ask.ever.task").set_value("short")
    test.number_input(key="run.seed").set_value(7)
    test.toggle(key="run.reproducible").set_value(True).run()
    spec = asked(test, engine)
    assert {one.name: one.settings for one in spec.methods} == {
        "direct": {},
        "drad": {"theta_1": 0.8, "use_entropy": False},
        "ever": {"task": "short"},
    }
    assert (spec.seed, spec.reproducible) == (7, True)


def test_models_that_only_judge_are_offered_as_judges_alone(engine: Engine):
    test = ask_page("rowen", "slm")
    offered = {role: set(test.selectbox(key=f"model.{role}").options) for role in roles(test)}
    assert offered["judge_1"] - offered["main"] == {
        "Veriscope judge",
        "Similarity (all-MiniLM-L6-v2)",
        "Word overlap",
    }
    assert offered["verifier"] == offered["main"]


def test_settings_are_those_of_the_ticked_methods_and_of_what_was_changed(engine: Engine):
    test = ask_page("direct", "drad")
    assert {slider.key for slider in test.slider} >= {"ask.drad.theta_1"}
    assert not any((slider.key or "").startswith("ask.flare") for slider in test.slider)
    test.checkbox(key="method.flare").check().run()
    test.slider(key="ask.flare.beta").set_value(0.3).run()
    test.checkbox(key="method.flare").uncheck().run()
    # Changed, and no longer ticked: it can still be taken back.
    test.slider(key="ask.flare.beta").set_value(0.4).run()
    test.run()
    assert not any((slider.key or "").startswith("ask.flare") for slider in test.slider)


@pytest.mark.parametrize(
    ("preset", "taken"),
    [
        ("quick", ["direct", "rag", "drad", "slm"]),
        ("five", ["direct", "rag", "rowen", "drad", "ever", "haarag", "slm"]),
        ("all", [name for name in METHODS if not METHODS[name].own_weights]),
    ],
)
def test_several_methods_are_chosen_at_once(engine: Engine, preset: str, taken: list[str]):
    test = ask_page("flare")
    test.button(key=f"preset-{preset}").click().run()
    assert not test.exception
    ticked = [name for name in METHODS if test.checkbox(key=f"method.{name}").value]
    assert ticked == taken


def test_what_cannot_run_keeps_its_tick(engine: Engine):
    test = ask_page("direct", "rowen", **{"ask.rowen.variant": "cl"})
    assert test.checkbox(key="method.rowen").disabled
    test.button(key="preset-quick").click().run()
    ticked = [name for name in METHODS if test.checkbox(key=f"method.{name}").value]
    assert ticked == ["direct", "rag", "rowen", "drad", "slm"]


def test_every_method_stands_in_one_group():
    groups = grouped_methods()
    assert groups["published"] == ("rowen", "drad", "ever", "haarag", "slm")
    assert sorted(name for some in groups.values() for name in some) == sorted(METHODS)
    assert {name for some in method_presets().values() for name in some} <= set(METHODS)
