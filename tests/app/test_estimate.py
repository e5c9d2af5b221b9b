"""The estimate on the Ask page, the methods ticked at first, prices, and the other methods."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.base.words import LANGUAGES, Catalogue
from pipelines.engine import estimate as estimates
from pipelines.engine.service import Engine
from pipelines.methods.registry import standard_methods
from pipelines.models.providers import Price
from pipelines.run.events import default_models
from tests.app.opening import always, page_engine
from tests.app.playing import load
from tests.app.test_screens import ME, QUESTION, finished_run, page, told
from tests.app.test_setup import SERVER, ask_page
from tests.pipelines.engine.tables import TABLE

PRICED = SERVER.model_copy(
    update={"name": "Priced", "price": Price(read=2.0, written=11.0, currency="EUR")}
)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(estimates, "effort_table", lambda: TABLE)
    with page_engine(tmp_path, partial(Engine, pool=always("In Hope."))) as opened:
        for spec in (SERVER, PRICED):
            opened.service.store.models.save(ME, spec)
        yield opened


def line(test: AppTest) -> str:
    """The first small text of the page: it stands below the question."""
    assert not test.exception
    return test.caption[0].value


def test_the_line_follows_the_ticks_and_the_model(engine: Engine):
    test = ask_page("direct")
    assert line(test) == "About 1 call · 20 tokens · 6 seconds · free, on this machine"
    test.checkbox(key="method.rowen").check().run()
    assert line(test) == "About 18 calls · 420 tokens · 27 seconds · free, on this machine"
    test.selectbox(key="model.main").select("Second").run()
    unknown = "time: known after the first run of this model"
    price = "price: not known (give it on the Models page)"
    assert line(test) == f"About 26 calls · 650 tokens · {unknown} · {price}"
    test.selectbox(key="model.main").select("Priced").run()
    assert line(test) == f"About 26 calls · 650 tokens · {unknown} · 0.012 EUR"


def test_the_line_is_there_when_everything_is_folded_away(engine: Engine):
    folded = {"setup": False, "settings": False}
    assert line(ask_page("direct", **folded)).startswith("About 1 call · ")
    assert line(ask_page(**folded)) == "Choose at least one method."


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_help_says_what_the_line_rests_on(engine: Engine, language: str):
    t = Catalogue(language)  # type: ignore[arg-type]
    test = ask_page("direct", lang=language)
    help_text = test.caption[0].proto.help
    assert t("estimate.basis.cached") in help_text
    assert "Small" in help_text


def test_earlier_runs_are_what_the_line_rests_on(engine: Engine):
    finished_run(engine)
    test = ask_page("direct")
    # The scripted model counts two tokens written and none read.
    assert line(test).startswith("About 1 call · 2 tokens · ")
    assert "your last run" in test.caption[0].proto.help


def ticked(test: AppTest) -> list[str]:
    return [name for name in standard_methods() if test.checkbox(key=f"method.{name}").value]


def test_what_is_ticked_at_first_can_be_watched(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    # A run of all would take 44 seconds.
    monkeypatch.setattr(estimates, "PATIENCE", 30.0)
    test = page("ask").run()
    short = [name for name in standard_methods() if name != "rowen"]
    assert ticked(test) == short
    # It stays so, whatever becomes known.
    monkeypatch.setattr(estimates, "PATIENCE", 60.0)
    assert ticked(test.run()) == short
    assert ticked(page("ask").run()) == standard_methods()


def test_the_first_choice_is_asked_with_the_setup_folded_away(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(estimates, "PATIENCE", 30.0)
    test = page("ask", setup=False, settings=False).run()
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    run_id = test.query_params["run"]
    asked = [one.name for one in load(engine, run_id).header.spec.methods]
    assert asked == [name for name in standard_methods() if name != "rowen"]
    engine.call(engine.service.stop(run_id, owner=ME))


def test_a_price_is_given_in_the_form_and_shown_on_the_card(engine: Engine):
    test = page("models").run()
    for field, value in {"name": "Mine", "model": "m", "address": "http://127.0.0.1:9/v1"}.items():
        test.text_input(key=f"new.{field}").input(value)
    test.number_input(key="new.price.read").set_value(0.4)
    test.number_input(key="new.price.written").set_value(1.2)
    test.selectbox(key="new.price.currency").select("CNY")
    test.button(key="new-save").click().run()
    assert not test.exception
    saved = {spec.name: spec for spec in engine.service.store.models.list(ME)}
    assert saved["Mine"].price == Price(read=0.4, written=1.2, currency="CNY")
    assert "A million tokens: 0.4 CNY read, 1.2 CNY written" in told(test)
    assert test.number_input(key="new.price.read").value is None


def test_half_a_price_is_refused(engine: Engine):
    test = page("models").run()
    test.text_input(key="new.model").input("m")
    test.number_input(key="new.price.read").set_value(0.4)
    test.button(key="new-save").click().run()
    assert "Only half of the price was given." in told(test)
    assert len(engine.service.store.models.list(ME)) == 2


def test_a_model_on_this_machine_has_no_price(engine: Engine):
    test = page("models", **{"new.kind": "local"}).run()
    assert not test.exception
    assert not [box for box in test.number_input if "price" in (box.key or "")]


def test_a_price_enters_no_run(engine: Engine):
    test = ask_page("direct", **{"model.main": "Priced"})
    test.text_input(key="question").input(QUESTION)
    test.button(key="run").click().run()
    run_id = test.query_params["run"]
    spec = load(engine, run_id).header.spec
    assert spec.models == {"main": PRICED.without_price()}
    assert "price" not in spec.model_dump_json()
    engine.call(engine.service.stop(run_id, owner=ME))


def test_the_other_methods_are_run_by_one_press(engine: Engine):
    def show() -> None:
        import streamlit as st

        from app import page as live
        from app.screens.ask import _act

        live.follow_address()
        action = {"action": "complete", "value": "standard"}
        st.button("complete", key="complete", on_click=_act, args=(action,))

    first = finished_run(engine)
    test = AppTest.from_function(show, default_timeout=60)
    test.session_state["_owner"] = ME
    test.session_state["ask.rowen.k"] = 3
    test.query_params["run"] = first
    test.run()
    test.button(key="complete").click().run()
    assert not test.exception
    run_id = test.query_params["run"]
    assert run_id != first
    spec = load(engine, run_id).header.spec
    assert spec.question == QUESTION
    assert [one.name for one in spec.methods] == standard_methods()
    # As they are set at the moment, and with the judges that are chosen.
    assert next(one for one in spec.methods if one.name == "rowen").settings == {"k": 3}
    assert spec.models == default_models("en")
    engine.call(engine.service.stop(run_id, owner=ME))


def test_a_run_that_left_methods_out_offers_them(engine: Engine):
    test = page("ask")
    test.query_params["run"] = finished_run(engine)
    test.run()
    assert "Run the other methods too" in told(test)
