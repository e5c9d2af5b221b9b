"""The Ask page: a question, what it is asked of, and the run as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

import streamlit as st

from app import page
from app import page as live
from app.engine import engine
from app.limiting import draw_estimate, draw_over_limit, hold_back
from app.page import (
    Action,
    act,
    address_note,
    begin_run,
    draw_error,
    draw_run,
    draw_unfolded,
    go_to,
    in_rows,
    page_of_run,
    page_title,
    remembered,
    save_buttons,
    section_title,
    show_html,
)
from app.screens.models import draw_missing
from app.screens.setup import (
    SAMPLES,
    chosen_estimate,
    chosen_methods,
    chosen_request,
    completed_spec,
    draw_setup,
    fold_away,
    offer_setup,
    setup_unfolded,
    unfold_setup,
)
from app.session import language, messages
from app.touring import offer_tour, tour_button
from components.ask import (
    Part,
    ask_view,
    examples,
    nowhere_note,
    outcomes_in,
    recording_card,
    recordings_note,
    results,
)
from components.base.elements import notice
from components.base.html import shown, tag
from components.base.words import Catalogue, integer, lang
from pipelines.base import Language
from pipelines.errors import VeriscopeError
from pipelines.run.events import MAX_QUESTION
from pipelines.run.view import fold
from pipelines.samples.walkthroughs import Walkthrough, walkthrough, walkthroughs
from pipelines.store.exchange import choice, load_recording, recordings

# What can be watched without asking anything: walkthroughs written by hand, recorded runs.

_FIRST = 4
"""How many walkthroughs are in view; the others wait behind a fold."""


def draw_first_run(t: Catalogue) -> None:
    """Draw what became of a recorded question in the visitor's language, as a run ends."""
    first = next((one for one in recordings() if one.language == language()), None)
    if first is None:
        return
    section_title(t("samples.first"))
    st.caption(t("samples.first.note"))
    show_html(
        _ended(first.id, language()), key="first-run", on_action=partial(_samples_follow, first.id)
    )
    st.button(t("samples.first.open"), key="first-run-open", on_click=_open, args=(first.id,))


@st.cache_resource(max_entries=8, show_spinner=False)
def _ended(name: str, page: Language) -> str:
    t, view = Catalogue(page), fold(load_recording(name).events)
    question = view.header.spec.question if view.header else ""
    title = tag("h2.vs-question", shown(question), dir="auto")
    return tag("div.vs-run", title, results(view, t))


def _samples_follow(name: str, action: Action) -> None:
    """Open the run, and the page that a button of it leads to."""
    _open(name)
    act("ask", action)


def draw_samples(t: Catalogue, *, place: str) -> None:
    """Draw a card for each of them; `place` distinguishes two lists on one page."""
    if walkthroughs():
        section_title(t("samples.walkthroughs"))
        st.caption(t("samples.walkthroughs.note"))
        _walkthroughs(walkthroughs()[:_FIRST], t, place)
    if more := walkthroughs()[_FIRST:]:
        rest = st.expander(t("samples.more"), key=f"walkthroughs-{place}", on_change="rerun")
        draw_unfolded(rest, partial(_samples_more, more, t, place))
    if recordings():
        section_title(t("samples.recordings"))
        st.caption(recordings_note(choice(), t))
        for part in get_args(Part):
            _recordings(part, t, place)


def _samples_more(some: Sequence[Walkthrough], t: Catalogue, place: str) -> None:
    st.caption(t("samples.more.note"))
    _walkthroughs(some, t, place)


def _walkthroughs(some: Sequence[Walkthrough], t: Catalogue, place: str) -> None:
    for column, one in in_rows(some, 2):
        html = tag(
            "div",
            tag("p", tag("strong", one.title[language()])),
            tag("p", shown(one.question), dir="auto", lang=lang(one.language)),
            tag("p", one.shows[language()], class_="workbench-note"),
        )
        with column:
            _card(f"{place}-{one.id}", html, t("samples.play"), partial(_play, one.id))


def _recordings(part: Part, t: Catalogue, place: str) -> None:
    """Draw the runs in which methods do what they are for, or those in which they fail."""
    st.html(tag("h3", t(f"samples.{part}"), class_="workbench-part"))
    some = [one for one in recordings() if outcomes_in(one, part)]
    for column, one in in_rows(some, 2):
        with column:
            html = recording_card(one, part, t)
            _card(f"{place}-{part}-{one.id}", html, t("action.open"), partial(_open, one.id))
    if nowhere := nowhere_note(choice(), part, t):
        st.caption(nowhere)


def _card(key: str, html: str, label: str, watch: Callable[[], None]) -> None:
    with st.container(border=True, key=f"card-sample-{key}"):
        st.html(html)
        st.button(label, key=f"sample-{key}", on_click=watch)


def _play(name: str) -> None:
    with remembered("ask"):
        live.start(walkthrough(name).spec())
        _show_question()


def _open(name: str) -> None:
    with remembered("ask"):
        live.open_run(name)
        _show_question()


def _show_question() -> None:
    """Show in the form what the sample was asked."""
    watched = live.current()
    if watched is not None:
        st.session_state["question"] = watched.spec.question
    fold_away()


_QUESTION = "question"
_EXAMPLE = "example"
_REFUSED = "_refused"


def show() -> None:
    """Draw the page."""
    t = messages()
    # What it takes stands beside the title while a run has the rest of the screen.
    look = {"horizontal": True, "vertical_alignment": "center"}
    head = st.container(key="ask-head", **look)
    missing, watched = _follow(t)
    new = watched is None
    with head:
        page_title(t("ask.title"), t("app.tagline") if new else "")
        if not (new or setup_unfolded()):
            draw_estimate(chosen_estimate(), t("ask.no_method"), t)
        tour_button(t)
    if new:
        draw_missing(t)
    elif _QUESTION not in st.session_state:
        # After a reload the form shows what the run was asked.
        st.session_state[_QUESTION] = watched.spec.question
    with st.container(key="ask-line", **look):
        _question_row(t)
        if not new:
            more = st.popover(t("samples.title"), key=SAMPLES, width="content", on_change="rerun")
            draw_unfolded(more, partial(_more, t))
            offer_setup(t)
    if new:
        _examples(t)
        if not setup_unfolded():
            draw_estimate(chosen_estimate(), t("ask.no_method"), t)
    anyway = partial(_ask, anyway=True)
    over = draw_over_limit("ask", chosen_estimate(), t, start=anyway, fewer=unfold_setup)
    draw_setup(t, folded=not new)
    refusal = _refusal(t) if st.session_state.get(_REFUSED) else None
    if refusal is not None:
        show_html(notice(refusal, "refusal", role="alert"), key="refusal")
    failed = draw_error("ask", missing)
    if watched is not None:
        draw_run(watched, _draw_view, beside=_keep)
        draw_missing(t)
        return
    offer_tour(t)
    if refusal is None and not failed and not over:
        draw_first_run(t)
        draw_samples(t, place="empty")


def _follow(t: Catalogue) -> tuple[VeriscopeError | None, page.Watched | None]:
    """Return the run that is looked at, and why the one of the address cannot be.

    A check of a text has a page of its own. An address leads on to it; a visitor who opens this
    page while looking at a check is told where it is shown.
    """
    before = page.current()
    missing, watched = page.follow_address(), page.current()
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
            page.start(chosen_request(st.session_state[_QUESTION]), anyway=anyway)
            fold_away()


def _refusal(t: Catalogue) -> str | None:
    """Return why the question cannot be asked, if it cannot."""
    length = len((st.session_state.get(_QUESTION) or "").strip())
    if not length:
        return t("ask.no_question")
    if length > MAX_QUESTION:
        return t("ask.too_long", length=integer(length), most=integer(MAX_QUESTION))
    return None if chosen_methods() else t("ask.no_method")


def _keep(watched: page.Watched, t: Catalogue) -> None:
    """Draw what keeps the run: there from the beginning, so that nothing moves when it is over."""
    with st.container(horizontal=True, vertical_alignment="center", key="run-kept"):
        save_buttons(watched.run_id, t, key="shown", disabled=not watched.view.over)
        address_note(watched.run_id)


def _draw_view(watched: page.Watched, t: Catalogue) -> None:
    if watched.spec.profile:
        st.caption(t("run.profile", name=watched.spec.profile))
    loading = engine().service.loading()
    html = ask_view(watched.view, t, now=time.time(), loading=loading)
    show_html(html, key="run-view", on_action=_act)


def _act(action: Action) -> None:
    act("ask", action)
    watched = page.current()
    if action["action"] == "complete" and watched is not None:
        begin_run("ask", partial(completed_spec, watched.view))
    if action["action"] in ("retry", "complete"):
        fold_away()
