"""What a question is asked of: methods, model, evidence and settings."""

from __future__ import annotations

import streamlit as st

from app.choices import (
    EVIDENCE_MODES,
    SETTINGS,
    chosen_models,
    known_models,
    model_select,
    unmet_need,
)
from app.engine import engine
from app.settings_form import draw_settings
from components.messages import Catalogue
from pipelines.methods import METHODS

__all__ = ["draw_setup", "fold_setup"]

_SETUP = "setup"
_SETTINGS = "settings"


def fold_setup() -> None:
    """From a callback: fold the controls away, so that the run is in view."""
    for name in (_SETUP, _SETTINGS):
        st.session_state[name] = False


def draw_setup(t: Catalogue, *, expanded: bool) -> None:
    """The controls; `expanded` is how they are found at first."""
    if _SETUP not in st.session_state:
        st.session_state[_SETUP] = expanded
    with st.expander(t("ask.setup"), key=_SETUP, on_change="rerun"):
        columns = st.columns([1, 1, 1, 1.15], gap="medium")
        for column, name in zip(columns, METHODS, strict=False):
            with column, st.container(key=f"choice-{name}"):
                _method(name, t)
        with columns[-1]:
            _sources(t)
    with st.expander(t("ask.settings"), key=_SETTINGS, on_change="rerun"):
        titles = [t(f"method.{name}.title") for name in METHODS]
        *tabs, run_tab = st.tabs([*titles, t("setting.run.title")])
        for tab, (name, method) in zip(tabs, METHODS.items(), strict=True):
            with tab, st.container(key=f"settings-{name}"):
                draw_settings(method, t, scope=SETTINGS)
        with run_tab:
            _run_settings(t)


def _run_settings(t: Catalogue) -> None:
    st.toggle(
        t("setting.run.reproducible"),
        key="run.reproducible",
        help=t("setting.run.reproducible.help"),
        persist_state="session",
    )
    st.number_input(
        t("setting.run.seed"),
        min_value=0,
        max_value=2**31 - 1,
        value=0,
        key="run.seed",
        help=t("setting.run.seed.help"),
        persist_state="session",
        width=160,
    )


def _method(name: str, t: Catalogue) -> None:
    need = unmet_need(METHODS[name], chosen_models())
    st.checkbox(
        t(f"method.{name}.title"),
        value=True,
        key=f"method.{name}",
        disabled=need is not None,
        persist_state="session",
    )
    st.caption(t(f"need.{need.reason}") if need else t(f"method.{name}.summary"))


def _sources(t: Catalogue) -> None:
    model_select(t("ask.model"), "main", known_models(), t)
    left, right = st.columns(2, gap="small")
    with left:
        st.selectbox(
            t("ask.evidence"),
            engine().service.libraries.names,
            key="evidence.library",
            format_func=lambda name: t(f"library.{name}") if t.has(f"library.{name}") else name,
            persist_state="session",
        )
    with right:
        st.selectbox(
            t("ask.search"),
            EVIDENCE_MODES,
            index=EVIDENCE_MODES.index("hybrid"),
            key="evidence.mode",
            format_func=lambda mode: t(f"evidence.mode.{mode}"),
            persist_state="session",
        )
