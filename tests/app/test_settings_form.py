"""Controls drawn from a method's settings, without a browser."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def form() -> None:
    import streamlit as st

    from app.settings_form import draw_settings, read_settings
    from components.messages import Catalogue
    from pipelines.methods import get_method

    drad = get_method("drad")
    start = st.session_state.get("start")
    draw_settings(drad, Catalogue("en"), scope="t", start=start, only=st.session_state.get("only"))
    st.session_state["read"] = read_settings(drad, scope="t", start=start)


def place(name: str) -> str:
    return f"t.drad.{name}"


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
        "Least",
        "First token",
        "Product",
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
    assert used.value is True
    used.uncheck().run()
    assert test.session_state["read"] == {"theta_2": None}
    assert test.slider(key=place("theta_2")).disabled
    test.checkbox(key=f"{place('theta_2')}.used").check().run()
    test.slider(key=place("theta_2")).set_value(2.5).run()
    assert test.session_state["read"] == {"theta_2": 2.5}


def test_controls_begin_with_what_they_are_given():
    test = drawn(start={"theta_1": 0.4, "theta_2": None, "passages": 7}, only=["theta_1"])
    assert test.slider(key=place("theta_1")).value == 0.4
    assert len(test.slider) == 1
    # Fields without a control keep what was given.
    assert test.session_state["read"] == {"theta_1": 0.4, "theta_2": None, "passages": 7}


def test_a_field_nobody_has_worded_shows_its_description(monkeypatch):
    from components.messages import Catalogue

    known = Catalogue.has
    monkeypatch.setattr(
        Catalogue, "has", lambda self, key: "theta_1" not in key and known(self, key)
    )
    theta = drawn().slider(key=place("theta_1"))
    assert theta.label == "Theta 1"
    assert theta.help.startswith("An entity is doubtful below this P(E)")
