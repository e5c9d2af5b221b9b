"""What can be watched without asking anything: walkthroughs written by hand, recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

import streamlit as st

from app import live
from app.parts import (
    Action,
    act,
    draw_unfolded,
    in_rows,
    remembered,
    section_title,
    show_html,
)
from app.screens.setup import fold_away
from app.session import language
from components.ask import results
from components.markup import shown, tag
from components.messages import Catalogue, lang
from components.samples import Part, nowhere_note, outcomes_in, recording_card, recordings_note
from pipelines.run.view import fold
from pipelines.samples.walkthroughs import Walkthrough, walkthrough, walkthroughs
from pipelines.store.recordings import choice, load_recording, recordings
from pipelines.types import Language

_FIRST = 4
"""How many walkthroughs are in view; the others wait behind a fold."""


def draw_first_run(t: Catalogue) -> None:
    """Draw what became of a recorded question in the visitor's language, as a run ends."""
    first = next((one for one in recordings() if one.language == language()), None)
    if first is None:
        return
    section_title(t("samples.first"))
    st.caption(t("samples.first.note"))
    show_html(_ended(first.id, language()), key="first-run", on_action=partial(_follow, first.id))
    st.button(t("samples.first.open"), key="first-run-open", on_click=_open, args=(first.id,))


@st.cache_resource(max_entries=8, show_spinner=False)
def _ended(name: str, page: Language) -> str:
    t, view = Catalogue(page), fold(load_recording(name).events)
    question = view.header.spec.question if view.header else ""
    title = tag("h2.vs-question", shown(question), dir="auto")
    return tag("div.vs-run", title, results(view, t))


def _follow(name: str, action: Action) -> None:
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
        draw_unfolded(rest, partial(_more, more, t, place))
    if recordings():
        section_title(t("samples.recordings"))
        st.caption(recordings_note(choice(), t))
        for part in get_args(Part):
            _recordings(part, t, place)


def _more(some: Sequence[Walkthrough], t: Catalogue, place: str) -> None:
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
