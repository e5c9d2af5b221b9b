"""Controls drawn from forms and from methods' settings, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.annotate import make
from components.base.words import Catalogue
from components.forms import (
    ANSWERS,
    BUDGET,
    FORMS,
    MAPPING,
    MODEL,
    PRICE,
    RUN_FILTER,
    RUN_LIMITS,
    SESSION,
)
from pipelines.engine.service import Engine
from pipelines.methods.registry import METHODS
from pipelines.models.providers import PROVIDERS
from tests.app.opening import page_engine
from tests.app.test_screens import ME


def form() -> None:
    import streamlit as st

    from app.forms import draw_settings, read_settings
    from components.base.words import Catalogue
    from pipelines.methods.registry import get_method

    method = get_method(st.session_state.get("method", "drad"))
    start, only = st.session_state.get("start"), st.session_state.get("only")
    draw_settings(method, Catalogue("en"), scope="t", start=start, only=only)
    st.session_state["read"] = read_settings(method, scope="t", start=start)


def place(name: str, method: str = "drad") -> str:
    return f"t.{method}.{name}"


def drawn(**state: object) -> AppTest:
    test = AppTest.from_function(form, default_timeout=30)
    for name, value in state.items():
        test.session_state[name] = value
    return test.run()


def test_every_field_has_a_control_within_its_bounds():
    test = drawn()
    assert not test.exception
    theta = test.slider(key=place("theta_1"))
    assert (theta.min, theta.max, theta.value, theta.step) == (0.0, 1.0, 0.6, 0.01)
    assert test.selectbox(key=place("pooling")).options == [
        "Mean",
        "Geometric mean",
        "Minimum",
        "Maximum",
        "First token",
        "Product",
        "Sum",
    ]
    tokens = test.number_input(key=place("max_tokens"))
    assert (tokens.min, tokens.max, tokens.value) == (8, 1024, 128)
    assert test.toggle(key=place("early_stop")).value is False
    assert test.session_state["read"] == {}


def test_only_what_differs_from_the_defaults_is_read():
    test = drawn()
    test.slider(key=place("theta_1")).set_value(0.75)
    test.selectbox(key=place("pooling")).set_value("min")
    test.toggle(key=place("skip_repeats")).set_value(True)
    test.run()
    assert test.session_state["read"] == {
        "theta_1": 0.75,
        "pooling": "min",
        "skip_repeats": True,
    }


def test_an_optional_number_can_be_left_out():
    test = drawn()
    used = test.checkbox(key=f"{place('theta_2')}.used")
    assert used.value is False
    assert place("theta_2") not in [slider.key for slider in test.slider]
    said = (
        "The value calibrated for the model that writes; for SmolLM2-135M-Instruct 1.6."
        " Without one, the probability alone decides."
    )
    assert [caption.value for caption in test.caption] == [said]
    used.check().run()
    assert test.slider(key=place("theta_2")).value == 1.58
    test.slider(key=place("theta_2")).set_value(2.5).run()
    assert test.session_state["read"] == {"theta_2": 2.5}
    test.checkbox(key=f"{place('theta_2')}.used").uncheck().run()
    assert test.session_state["read"] == {}


def test_a_number_that_was_left_out_comes_back_as_it_was():
    test = drawn()
    test.checkbox(key=f"{place('theta_2')}.used").check().run()
    test.slider(key=place("theta_2")).set_value(2.5).run()
    test.checkbox(key=f"{place('theta_2')}.used").uncheck().run()
    test.checkbox(key=f"{place('theta_2')}.used").check().run()
    assert test.slider(key=place("theta_2")).value == 2.5
    assert test.session_state["read"] == {"theta_2": 2.5}


def test_an_unset_number_says_what_it_effective_default():
    test = drawn(method="rowen")
    threshold = place("threshold", "rowen")
    assert threshold not in [slider.key for slider in test.slider]
    # Which of the two "auto" comes to depends on the models that a run has.
    both = (
        "By default 0.50 for “Languages and models (hybrid)”, 0.80 for “Models (CM)”,"
        " 1.0 for “Hybrid of a weak main model”"
    )
    assert [caption.value for caption in test.caption] == [both]
    test.selectbox(key=place("variant", "rowen")).set_value("cm").run()
    assert [caption.value for caption in test.caption] == ["By default 0.80"]
    test.checkbox(key=f"{threshold}.used").check().run()
    assert test.slider(key=threshold).value == 0.8
    assert not test.caption
    assert test.session_state["read"] == {"variant": "cm", "threshold": 0.8}


def test_an_unset_number_without_a_usual_value_says_nothing():
    test = drawn(method="slm")
    assert not test.caption
    threshold = place("threshold", "slm")
    test.checkbox(key=f"{threshold}.used").check().run()
    slider = test.slider(key=threshold)
    # (-5 + 5) / 4
    assert (slider.min, slider.max, slider.value) == (-5.0, 5.0, 0.0)
    assert test.session_state["read"] == {"threshold": 0.0}


def test_texts_have_room_and_what_cannot_be_typed_has_no_control():
    history = {"tiny": {"mu": 0.5, "sigma": 0.1, "n": 40, "source": "history"}}
    test = drawn(method="slm", start={"history": history})
    assert not test.exception
    assert [area.key for area in test.text_area] == [
        place("answer", "slm"),
        place("passage", "slm"),
    ]
    assert place("history", "slm") not in test.session_state
    test.text_area(key=place("passage", "slm")).input("Ada was born in London.").run()
    assert test.session_state["read"] == {
        "history": history,
        "passage": "Ada was born in London.",
    }


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_controls_that_leave_its_defaults_as_they_are(method: str):
    test = drawn(method=method)
    assert not test.exception
    assert test.session_state["read"] == {}


def test_controls_begin_with_what_they_are_given():
    test = drawn(start={"theta_1": 0.4, "use_entropy": False, "passages": 7}, only=["theta_1"])
    assert test.slider(key=place("theta_1")).value == 0.4
    assert len(test.slider) == 1
    # Fields without a control keep what was given.
    assert test.session_state["read"] == {"theta_1": 0.4, "use_entropy": False, "passages": 7}


def test_a_field_nobody_has_worded_shows_its_description(monkeypatch):
    from components.base.words import Catalogue

    known = Catalogue.has
    monkeypatch.setattr(
        Catalogue, "has", lambda self, key: "theta_1" not in key and known(self, key)
    )
    theta = drawn().slider(key=place("theta_1"))
    assert theta.label == "Theta 1"
    assert theta.help.startswith("An entity is doubtful below this P(E)")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path / "data") as opened:
        yield opened


def draw_limits_of_runs() -> None:
    from app.session import draw_session_limits
    from components.base.words import Catalogue

    draw_session_limits(Catalogue("en"))


def draw_limits_of_an_evaluation() -> None:
    from app.screens.evaluate.data import draw_limits
    from components.base.words import Catalogue

    draw_limits(Catalogue("en"), [])


def draw_an_evaluation() -> None:
    from app.screens.evaluate import form

    form.show()


def draw_filters_of_runs() -> None:
    from app.screens.runs import draw_filters, draw_search
    from components.base.words import Catalogue

    draw_search(Catalogue("en"))
    draw_filters(Catalogue("en"))


def draw_models() -> None:
    from app.screens import models

    models.show()


def draw_a_session() -> None:
    from app.screens.annotate.make import draw_form
    from components.base.words import Catalogue

    draw_form(Catalogue("en"))


def draw_a_mapping() -> None:
    from app.screens.evaluate.data import _mapping
    from components.base.words import Catalogue
    from pipelines.evaluation.datasets.files import DataTable

    _mapping(DataTable("a.csv", [{"q": "?"}], [1], "row"), "here", Catalogue("en"))


PAGES = {
    RUN_LIMITS.base: [(draw_limits_of_runs, {})],
    BUDGET.base: [(draw_limits_of_an_evaluation, {})],
    ANSWERS.base: [(draw_an_evaluation, {"evaluate.more": True})],
    RUN_FILTER.base: [(draw_filters_of_runs, {})],
    PRICE.base: [(draw_models, {"new.kind": "openai"})],
    # The address is a service's, the rest a judge's.
    MODEL.base: [
        (draw_models, {"new.kind": "openai"}),
        (draw_models, {"new.kind": "hub_judge"}),
    ],
    SESSION.base: [(draw_a_session, {"annotate.make.unfolded": True})],
    # What a label means is asked where it is not known.
    MAPPING.base: [(draw_a_mapping, {}), (draw_a_mapping, {"here.label_is": "supported"})],
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.base)
def test_every_field_of_a_form_is_on_its_page(form, engine: Engine, monkeypatch):
    """A field that a page forgot, of a model or of its description, is missing here."""
    items = SimpleNamespace(counts=lambda: {"span": 3}, controls=lambda tasks: [])
    chosen = SimpleNamespace(items=items, name="Items")
    monkeypatch.setattr(make, "draw_items", lambda place, t: chosen)
    labels: set[str] = set()
    for draw, state in PAGES[form.base]:
        test = AppTest.from_function(draw, default_timeout=30)
        for key, value in {"_owner": ME, **state}.items():
            test.session_state[key] = value
        test.run()
        assert not test.exception
        labels |= {getattr(getattr(node, "proto", None), "label", "") for node in test.main}
    t = Catalogue("en")
    # A model's id is called otherwise for each kind of model.
    titles = {
        name: {field.title(t), *(field.word(kind, t) for kind in PROVIDERS)}
        for name, field in form.fields.items()
    }
    assert [name for name, said in titles.items() if not said & labels] == []
