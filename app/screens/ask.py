"""The Ask page: a question, what it is asked of, and the run as it happens."""

from __future__ import annotations

import time

import streamlit as st

from app import live
from app.choices import (
    EVIDENCE_MODES,
    SETTINGS,
    chosen_models,
    chosen_spec,
    examples,
    known_models,
    unmet_need,
)
from app.engine import engine
from app.parts import page_title, remember_error, show_error, take_error
from app.session import language, messages
from app.settings_form import draw_settings
from app.view_component import Action, show_html
from components.ask_view import ask_view, run_bar
from components.messages import Catalogue
from pipelines.errors import VeriscopeError
from pipelines.methods import METHODS
from pipelines.run.view import RunView

_QUESTION = "question"
_EXAMPLE = "example"


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("ask.title"), t("app.tagline"))
    missing = live.follow_address()
    watched = live.current()
    if watched is not None:
        _fill_in(watched.view)
    _question_row(t)
    _setup(t)
    refused = take_error("ask")
    if refused is not None:
        show_error(refused, key="ask-error")
    elif missing is not None:
        show_error(missing, key="ask-missing")
    if watched is not None:
        _results(watched)
    elif missing is None:
        st.html(f'<p class="workbench-empty">{t("ask.empty")}</p>')


def _fill_in(view: RunView) -> None:
    """After a reload the form shows what the run was asked."""
    if _QUESTION not in st.session_state and view.header is not None:
        st.session_state[_QUESTION] = view.header.spec.question


def _question_row(t: Catalogue) -> None:
    with st.form("ask", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            t("ask.question"),
            key=_QUESTION,
            placeholder=t("ask.placeholder"),
            label_visibility="collapsed",
            autocomplete="off",
            persist_state="session",
        )
        st.form_submit_button(t("action.run"), type="primary", key="run", on_click=_run)
    st.pills(
        t("ask.examples"),
        examples(language()),
        key=_EXAMPLE,
        on_change=_take_example,
        label_visibility="collapsed",
    )


def _take_example() -> None:
    chosen = st.session_state.get(_EXAMPLE)
    if chosen:
        st.session_state[_QUESTION] = chosen
        st.session_state[_EXAMPLE] = None


def _run() -> None:
    try:
        live.start(chosen_spec(st.session_state.get(_QUESTION) or ""))
    except VeriscopeError as error:
        remember_error("ask", error)
    else:
        remember_error("ask", None)


def _setup(t: Catalogue) -> None:
    models = chosen_models()
    with st.container(key="setup", border=True):
        columns = st.columns([1, 1, 1, 1.15], gap="medium")
        for column, (name, method) in zip(columns, METHODS.items(), strict=False):
            need = unmet_need(method, models)
            with column:
                st.checkbox(
                    f"**{t(f'method.{name}.title')}**",
                    value=True,
                    key=f"method.{name}",
                    disabled=need is not None,
                    persist_state="session",
                )
                summary = t(f"method.{name}.summary")
                st.caption(t(f"need.{need.reason}") if need else summary)
        with columns[-1]:
            _sources(t)
        with st.expander(t("ask.settings")):
            for tab, (name, method) in zip(
                st.tabs([t(f"method.{name}.title") for name in METHODS]),
                METHODS.items(),
                strict=True,
            ):
                with tab, st.container(key=f"settings-{name}"):
                    draw_settings(method, t, scope=SETTINGS)


def _sources(t: Catalogue) -> None:
    st.selectbox(
        t("ask.model"), list(known_models()), key="model.main", persist_state="session"
    )
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


def _results(watched: live.Watched) -> None:
    running = not watched.pull().over
    st.fragment(_live_area, run_every=live.PERIOD if running else None)(running=running)


def _live_area(*, running: bool) -> None:
    watched = live.current()
    if watched is None:
        return
    t = messages()
    view = watched.pull()
    now = time.time()
    with st.container(key="run-bar", horizontal=True, vertical_alignment="center"):
        show_html(run_bar(view, t, now=now), key="bar", language=t.language)
        if not view.over:
            st.button(t("action.stop"), key="stop", on_click=live.stop)
    html = ask_view(view, t, now=now, loading=engine().service.loading())
    show_html(html, key="run-view", language=t.language, on_action=_act)
    if running and view.over:
        st.rerun()


def _act(action: Action) -> None:
    watched = live.current()
    if action["action"] == "open":
        st.session_state["_open_page"] = action["value"]
    elif action["action"] == "retry" and watched is not None and watched.view.header is not None:
        try:
            live.start(watched.view.header.spec)
        except VeriscopeError as error:
            remember_error("ask", error)
