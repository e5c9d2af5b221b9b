"""The Ask page: a question, what it is asked of, and the run as it happens."""

from __future__ import annotations

import time
from functools import partial

import streamlit as st

from app import live
from app.engine import engine
from app.limiting import draw_estimate, draw_over_limit, hold_back
from app.parts import (
    Action,
    act,
    begin_run,
    draw_error,
    draw_run,
    draw_unfolded,
    go_to,
    page_of_run,
    page_title,
    remembered,
    show_html,
)
from app.saving import address_note, save_buttons
from app.screens.catalogue import draw_missing
from app.screens.samples import draw_first_run, draw_samples
from app.screens.setup import (
    SAMPLES,
    chosen_estimate,
    chosen_methods,
    chosen_request,
    completed_spec,
    draw_setup,
    fold_away,
    offer_setup,
    unfold_setup,
)
from app.session import language, messages
from app.touring import offer_tour, tour_button
from components.ask import ask_view, examples
from components.elements import notice
from components.messages import Catalogue, integer
from pipelines.errors import VeriscopeError
from pipelines.run.spec import MAX_QUESTION

_QUESTION = "question"
_EXAMPLE = "example"
_REFUSED = "_refused"


def show() -> None:
    """Draw the page."""
    t = messages()
    with st.container(key="ask-head", horizontal=True, vertical_alignment="bottom"):
        page_title(t("ask.title"), t("app.tagline"))
        tour_button(t)
    draw_missing(t)
    missing, watched = _follow(t)
    if watched is not None and _QUESTION not in st.session_state:
        # After a reload the form shows what the run was asked.
        st.session_state[_QUESTION] = watched.spec.question
    _question_row(t)
    if watched is None:
        _examples(t)
    draw_estimate(chosen_estimate(), t("ask.no_method"), t)
    anyway = partial(_ask, anyway=True)
    over = draw_over_limit("ask", chosen_estimate(), t, start=anyway, fewer=unfold_setup)
    if watched is None:
        draw_setup(t)
    else:
        with st.container(horizontal=True, key="ask-more"):
            more = st.popover(t("samples.title"), key=SAMPLES, width="content", on_change="rerun")
            draw_unfolded(more, partial(_more, t))
            offer_setup(t)
        draw_setup(t, folded=True)
    refusal = _refusal(t) if st.session_state.get(_REFUSED) else None
    if refusal is not None:
        show_html(notice(refusal, "refusal", role="alert"), key="refusal")
    failed = draw_error("ask", missing)
    if watched is not None:
        draw_run(watched, _draw_view, beside=_keep)
        return
    offer_tour(t)
    if refusal is None and not failed and not over:
        draw_first_run(t)
        draw_samples(t, place="empty")


def _follow(t: Catalogue) -> tuple[VeriscopeError | None, live.Watched | None]:
    """Return the run that is looked at, and why the one of the address cannot be.

    A check of a text has a page of its own. An address leads on to it; a visitor who opens this
    page while looking at a check is told where it is shown.
    """
    before = live.current()
    missing, watched = live.follow_address(), live.current()
    if watched is None or page_of_run() == "ask":
        return missing, watched
    if before is None or before.run_id != watched.run_id:
        go_to("check", run=watched.run_id)
        st.rerun()
    show_html(notice(t("ask.check"), "check"), key="ask-check")
    st.button(t("check.many.open"), key="ask-check-open", on_click=go_to, args=("check",))
    return missing, None


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


def _examples(t: Catalogue) -> None:
    """Draw questions that the sample library answers; one that is chosen goes into the form."""
    st.pills(
        t("ask.examples"),
        examples(language()),
        key=_EXAMPLE,
        on_change=_take_example,
        label_visibility="collapsed",
        width="stretch",
    )


def _more(t: Catalogue) -> None:
    _examples(t)
    draw_samples(t, place="more")


def _take_example() -> None:
    chosen = st.session_state.get(_EXAMPLE)
    if chosen:
        st.session_state[_QUESTION] = chosen
        st.session_state[_EXAMPLE] = None


def _ask(anyway: bool = False) -> None:
    with remembered("ask"):
        st.session_state[_REFUSED] = _refusal(messages()) is not None
        held = hold_back("ask", None if anyway else chosen_estimate())
        if not st.session_state[_REFUSED] and not held:
            live.start(chosen_request(st.session_state[_QUESTION]), anyway=anyway)
            fold_away()


def _refusal(t: Catalogue) -> str | None:
    """Return why the question cannot be asked, if it cannot."""
    length = len((st.session_state.get(_QUESTION) or "").strip())
    if not length:
        return t("ask.no_question")
    if length > MAX_QUESTION:
        return t("ask.too_long", length=integer(length), most=integer(MAX_QUESTION))
    return None if chosen_methods() else t("ask.no_method")


def _keep(watched: live.Watched, t: Catalogue) -> None:
    """Draw what keeps the run: there from the beginning, so that nothing moves when it is over."""
    with st.container(horizontal=True, vertical_alignment="center", key="run-kept"):
        save_buttons(watched.run_id, t, key="shown", disabled=not watched.view.over)
        address_note(watched.run_id)


def _draw_view(watched: live.Watched, t: Catalogue) -> None:
    if watched.spec.profile:
        st.caption(t("run.profile", name=watched.spec.profile))
    loading = engine().service.loading()
    html = ask_view(watched.view, t, now=time.time(), loading=loading)
    show_html(html, key="run-view", on_action=_act)


def _act(action: Action) -> None:
    act("ask", action)
    watched = live.current()
    if action["action"] == "complete" and watched is not None:
        begin_run("ask", partial(completed_spec, watched.view))
    if action["action"] in ("retry", "complete"):
        fold_away()
