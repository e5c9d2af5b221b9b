"""The pages without a browser, on an engine whose models answer from a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import engine as engines
from pipelines.engine.service import Engine
from pipelines.methods.registry import METHODS
from pipelines.models.providers import BUILT_IN, PROVIDERS
from pipelines.run.events import MethodSpec, ModelSpec, RunSpec
from tests.app.opening import always, page_engine

MAIN = str(Path(engines.__file__).with_name("main.py"))
ME = "a" * 48
QUESTION = "Where was Bill Clinton born?"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path, partial(Engine, pool=always("In Hope."))) as opened:
        yield opened


FOLDS = ("setup", "settings", "samples", "walkthroughs-empty", "walkthroughs-more")
"""What the Ask page folds away, and draws only once it is unfolded."""


def page(name: str, **state: Any) -> AppTest:
    """The script as a visitor first sees it on `name`, with everything unfolded."""

    def show() -> None:
        import importlib

        import streamlit as st

        from app.screens.methods import show_page
        from pipelines.methods.registry import method_pages

        name = st.session_state["page"]
        if name in method_pages():
            show_page(name)
        else:
            place = {"annotate": "annotate.lead", "evaluate": "evaluate.form"}.get(name, name)
            importlib.import_module(f"app.screens.{place}").show()

    test = AppTest.from_function(show, default_timeout=60)
    unfolded = dict.fromkeys(FOLDS, True) if name == "ask" else {}
    for key, value in {"page": name, "_owner": ME, **unfolded, **state}.items():
        test.session_state[key] = value
    return test


def told(test: AppTest) -> str:
    """The HTML that components were given, and that was shown directly."""
    found = [node.proto.body for node in test.get("html")]
    found += [node.proto.json for node in test.get("bidi_component")]
    return "\n".join(found)


def finished_run(engine: Engine, question: str = QUESTION) -> str:
    async def run() -> str:
        spec = RunSpec(question=question, methods=(MethodSpec(name="direct"),))
        run_id = await engine.service.start(spec, owner=ME)
        async for _ in engine.service.follow(run_id, owner=ME):
            pass
        return run_id

    return engine.call(run())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_whole_app_is_drawn(engine: Engine, language: str):
    test = AppTest.from_file(MAIN, default_timeout=60)
    test.session_state["lang"] = language
    test.session_state["_owner"] = ME
    test.run()
    assert not test.exception
    assert ("提问" if language == "zh" else "Ask") in told(test)
    assert test.query_params.get("lang", "en") == language


@pytest.mark.parametrize("name", ["ask", "drad", "models", "runs"])
def test_a_page_is_drawn_for_a_new_visitor(engine: Engine, name: str):
    test = page(name).run()
    assert not test.exception
    assert told(test).count("<h1") == 1


def test_a_question_is_asked_and_its_run_is_in_the_address(engine: Engine):
    test = page("ask").run()
    for method in set(METHODS) - {"direct"}:
        test.checkbox(key=f"method.{method}").uncheck()
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    assert not test.exception
    run = test.query_params["run"]
    stored = engine.call(engine.service.load(run, owner=ME))
    assert stored.header.spec.question == QUESTION
    assert [method.name for method in stored.header.spec.methods] == ["direct"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (" ", "Type a question first."),
        ("x" * 4001, "The question has 4,001 characters; at most 4,000 are allowed."),
    ],
)
def test_what_cannot_be_asked_is_told_and_kept(engine: Engine, question: str, said: str):
    test = page("ask").run()
    test.text_input(key="question").input(question)
    test.button(key="run").click().run()
    assert said in told(test)
    assert test.text_input(key="question").value == question
    assert "run" not in test.query_params


def test_no_method_is_told_until_there_is_one(engine: Engine):
    test = page("ask").run()
    for method in METHODS:
        test.checkbox(key=f"method.{method}").uncheck()
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    assert "Choose at least one method." in told(test)
    test.checkbox(key="method.direct").check().run()
    assert "Choose at least one method." not in told(test)


def test_a_recorded_run_is_opened_by_its_address(engine: Engine):
    run = finished_run(engine)
    test = page("ask")
    test.query_params["run"] = run
    test.run()
    assert "In Hope." in told(test)
    assert test.text_input(key="question").value == QUESTION


def test_somebody_elses_run_is_not(engine: Engine):
    run = finished_run(engine)
    test = page("ask", _owner="b" * 48)
    test.query_params["run"] = run
    test.run()
    assert "Not found" in told(test)
    assert "In Hope." not in told(test)


def test_what_a_method_lacks_is_said_where_it_is_chosen(engine: Engine):
    spec = ModelSpec(kind="openai", name="mute", model="m", top_logprobs=0)
    engine.service.store.models.save(ME, spec)
    test = page("ask", **{"model.main": "mute", "ask.drad.confidence": "logprobs"}).run()
    assert test.checkbox(key="method.drad").disabled
    assert not test.checkbox(key="method.rag").disabled
    captions = [caption.value for caption in test.caption]
    assert "Needs token probabilities, which this model does not report." in captions


def test_a_model_is_saved_with_its_key_in_the_session_only(engine: Engine, tmp_path: Path):
    test = page("models").run()
    for field, value in {
        "name": "mine",
        "model": "m-1",
        "address": "http://localhost:8000/v1",
        "key": "secret-of-mine",
    }.items():
        test.text_input(key=f"new.{field}").input(value)
    test.button(key="new-save").click().run()
    assert not test.exception
    assert [spec.name for spec in engine.service.store.models.list(ME)] == ["mine"]
    assert test.text_input(key="new.key").value == ""
    assert test.session_state["_keys"] == {
        ("openai", "mine", "http://localhost:8000/v1"): "secret-of-mine"
    }
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"secret-of-mine" not in stored


def test_dashscope_needs_no_address(engine: Engine):
    test = page("models", **{"new.kind": "dashscope"}).run()
    assert "aliyuncs.com" in test.text_input(key="new.address").placeholder
    test.text_input(key="new.model").input("qwen-plus")
    test.text_input(key="new.key").input("secret-of-mine")
    test.button(key="new-save").click().run()
    assert not test.exception
    (saved,) = engine.service.store.models.list(ME)
    assert (saved.kind, saved.name, saved.base_url) == ("dashscope", "qwen-plus", None)
    assert "secret-of-mine" in test.session_state["_keys"].values()
    # Of several such fields each says whose key it takes.
    field = test.text_input(key=f"key-{saved.name.encode().hex()}")
    assert (field.value, field.label) == ("", "Key for qwen-plus")


def test_a_new_provider_is_a_choice_by_its_entry_in_the_table(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    entry = replace(
        PROVIDERS["openai"],
        label="A brand new provider",
        base_url="https://new.example/v1",
        example_url="",
    )
    monkeypatch.setitem(PROVIDERS, "brandnew", entry)
    test = page("models", **{"new.kind": "brandnew"}).run()
    assert not test.exception
    kinds = test.get("button_group")[-1]
    assert "A brand new provider" in [option.content for option in kinds.proto.options]
    assert test.text_input(key="new.address").placeholder == "https://new.example/v1"
    test.text_input(key="new.model").input("m")
    test.button(key="new-save").click().run()
    assert not test.exception
    (saved,) = engine.service.store.models.list(ME)
    assert (saved.kind, saved.name, saved.base_url) == ("brandnew", "m", None)
    assert "A brand new provider" in told(test)


@pytest.mark.parametrize(
    ("name", "model", "address"),
    [
        ("x", "", "http://localhost/v1"),
        (BUILT_IN[0].name, "m", "http://localhost/v1"),
        ("x", "m", "http://user:password@localhost/v1"),
        ("x", "m", "no address"),
    ],
)
def test_a_model_that_cannot_be_saved_keeps_what_was_typed(
    engine: Engine, name: str, model: str, address: str
):
    test = page("models").run()
    for field, value in {"name": name, "model": model, "address": address}.items():
        test.text_input(key=f"new.{field}").input(value)
    test.button(key="new-save").click().run()
    assert "This input cannot be used" in told(test)
    assert test.text_input(key="new.address").value == address
    assert engine.service.store.models.list(ME) == []


def test_runs_are_listed_newest_first_and_searched(engine: Engine):
    first, second = finished_run(engine), finished_run(engine, "Who was <b>Ada</b>?")
    test = page("runs").run()
    html = told(test)
    assert html.index("Who was &lt;b&gt;Ada&lt;/b&gt;?") < html.index(QUESTION)
    test.text_input(key="runs.text").input("ada").run()
    assert QUESTION not in told(test)
    assert [b.key for b in test.button if (b.key or "").startswith("open-")] == [f"open-{second}"]
    assert first != second


def test_a_run_is_deleted_after_asking(engine: Engine):
    run = finished_run(engine)
    test = page("runs").run()
    test.button(key=f"sure-{run}").click().run()
    assert "No runs yet." in told(test)
    assert engine.service.store.list(ME) == []


def test_the_drad_page_of_a_run_without_drad_offers_one_with(engine: Engine):
    run = finished_run(engine)
    test = page("drad")
    test.query_params["run"] = run
    test.run()
    assert "This run did not use DRAD." in told(test)
    test.button(key="drad-add").click().run()
    again = test.query_params["run"]
    spec = engine.call(engine.service.load(again, owner=ME)).header.spec
    assert [method.name for method in spec.methods] == ["direct", "drad"]
    engine.call(engine.service.stop(again, owner=ME))
