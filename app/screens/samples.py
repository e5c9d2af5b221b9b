"""What can be watched without asking anything: walkthroughs written by hand, recorded runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from app import live
from app.parts import in_rows, remembered, section_title
from app.screens.setup import fold_setup
from app.session import language
from components.markup import shown, tag
from components.messages import Catalogue, lang, named
from pipelines.samples.walkthroughs import walkthrough, walkthroughs
from pipelines.store.recordings import recordings


def draw_samples(t: Catalogue, *, place: str) -> None:
    """A card for each of them; `place` distinguishes two lists on one page."""
    if walkthroughs():
        section_title(t("samples.walkthroughs"))
        st.caption(t("samples.walkthroughs.note"))
    for column, one in in_rows(walkthroughs(), 2):
        html = tag(
            "div",
            tag("p", tag("strong", one.title[language()])),
            tag("p", shown(one.question), dir="auto", lang=lang(one.language)),
            tag("p", one.shows[language()], class_="workbench-note"),
        )
        with column:
            _card(f"{place}-{one.id}", html, t("samples.play"), partial(_play, one.id))
    if recordings():
        section_title(t("samples.recordings"))
        st.caption(t("samples.recordings.note"))
    for column, one in in_rows(recordings(), 2):
        methods = t("list.separator").join(named("method", name, t) for name in one.methods)
        html = tag(
            "div",
            tag("p", tag("strong", shown(one.question)), dir="auto"),
            tag("p", methods, class_="workbench-note"),
        )
        with column:
            _card(f"{place}-{one.id}", html, t("action.open"), partial(_open, one.id))


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
    """The form shows what the sample was asked."""
    watched = live.current()
    if watched is not None:
        st.session_state["question"] = watched.spec.question
    fold_setup()
