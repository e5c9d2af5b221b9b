"""The Ask page: a question, what it is asked of, and the run as it happens."""

from __future__ import annotations

import streamlit as st

from app import live
from app.choices import chosen_methods, chosen_spec
from app.parts import (
    draw_live_run,
    go_to,
    page_title,
    remember_error,
    show_error,
    take_error,
    whole_page,
)
from app.screens.samples import draw_samples
from app.screens.setup import draw_setup, fold_setup
from app.session import language, messages
from app.view_component import Action, show_html
from components.ask import examples
from components.elements import notice
from components.markup import tag
from components.messages import Catalogue, integer
from pipelines.engine.executor import MAX_QUESTION
from pipelines.errors import VeriscopeError
from pipelines.run.spec import RunSpec
from pipelines.run.view import RunView

_QUESTION = "question"
_EXAMPLE = "example"
_REFUSED = "_refused"


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("ask.title"), t("app.tagline"))
    missing = live.follow_address()
    watched = live.current()
    if watched is not None:
        _fill_in(watched.view)
    _question_row(t)
    if watched is not None:
        with st.popover(t("samples.title"), key="samples", width="content"):
            draw_samples(t, place="more")
    draw_setup(t, expanded=watched is None)
    refusal = _refusal(t)
    if refusal is not None:
        show_html(notice(refusal, "refusal", role="alert"), key="refusal", language=t.language)
    problem = take_error("ask") or (missing.info() if missing else None)
    if problem is not None:
        show_error(problem, key="ask-error")
    if watched is not None:
        running = not watched.pull().over
        area = st.fragment(_live_area, run_every=live.PERIOD if running else None)
        area(running=running)
    elif problem is None and refusal is None:
        st.html(tag("p", t("ask.empty"), class_="workbench-empty"))
        draw_samples(t, place="empty")


def _fill_in(view: RunView) -> None:
    """After a reload the form shows what the run was asked."""
    if _QUESTION not in st.session_state and view.header is not None:
        st.session_state[_QUESTION] = view.header.spec.question


def _question_row(t: Catalogue) -> None:
    with st.form("ask", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(key="ask-question"):
            st.text_input(
                t("ask.question"),
                key=_QUESTION,
                placeholder=t("ask.placeholder"),
                label_visibility="collapsed",
                autocomplete="off",
                persist_state="session",
            )
        st.form_submit_button(t("action.run"), type="primary", key="run", on_click=_ask)
    st.pills(
        t("ask.examples"),
        examples(language()),
        key=_EXAMPLE,
        on_change=_take_example,
        label_visibility="collapsed",
        width="stretch",
    )


def _take_example() -> None:
    chosen = st.session_state.get(_EXAMPLE)
    if chosen:
        st.session_state[_QUESTION] = chosen
        st.session_state[_EXAMPLE] = None


def _ask() -> None:
    question = st.session_state.get(_QUESTION) or ""
    st.session_state[_REFUSED] = True
    if not question.strip() or len(question.strip()) > MAX_QUESTION or not chosen_methods():
        remember_error("ask", None)
        return
    try:
        _start(chosen_spec(question))
    except VeriscopeError as error:
        remember_error("ask", error)


def _refusal(t: Catalogue) -> str | None:
    """Why the question was not asked, after the visitor tried to run it."""
    if not st.session_state.get(_REFUSED):
        return None
    length = len((st.session_state.get(_QUESTION) or "").strip())
    if not length:
        return t("ask.no_question")
    if length > MAX_QUESTION:
        return t("ask.too_long", length=integer(length), most=integer(MAX_QUESTION))
    return None if chosen_methods() else t("ask.no_method")


def _start(spec: RunSpec) -> None:
    remember_error("ask", None)
    st.session_state[_REFUSED] = False
    live.start(spec)
    fold_setup()


def _live_area(*, running: bool) -> None:
    draw_live_run(key="run-view", on_action=_act, running=running)


def _act(action: Action) -> None:
    """A button inside the run was used."""
    watched = live.current()
    if action["action"] == "open":
        go_to(action["value"] or "ask")
    elif action["action"] == "retry" and watched is not None and watched.view.header is not None:
        try:
            _start(watched.view.header.spec)
        except VeriscopeError as error:
            remember_error("ask", error)
        whole_page()
