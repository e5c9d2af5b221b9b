"""What can be watched without asking anything: walkthroughs written by hand, recorded runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from app import live
from app.parts import in_rows, remembered, section_title
from app.screens.setup import fold_setup
from app.session import language
from components.markup import shown, tag
from components.messages import Catalogue, named
from pipelines.samples.walkthroughs import Walkthrough, walkthrough, walkthroughs
from pipelines.store.recordings import Recording, recordings

__all__ = ["draw_samples"]


def draw_samples(t: Catalogue, *, place: str) -> None:
    """A card for each of them; `place` distinguishes two lists on one page."""
    if walkthroughs():
        section_title(t("samples.walkthroughs"))
        st.caption(t("samples.walkthroughs.note"))
        _cards([_walkthrough_card(one, t) for one in walkthroughs()], place)
    if recordings():
        section_title(t("samples.recordings"))
        st.caption(t("samples.recordings.note"))
        _cards([_recording_card(one, t) for one in recordings()], place)


class _Card(NamedTuple):
    """One sample: what it is called, what is shown of it, and what its button does."""

    id: str
    html: str
    label: str
    watch: Callable[[str], None]


def _cards(cards: list[_Card], place: str) -> None:
    for column, card in in_rows(cards, 2):
        with column, st.container(border=True, key=f"card-sample-{place}-{card.id}"):
            st.html(card.html)
            key = f"sample-{place}-{card.id}"
            st.button(card.label, key=key, on_click=card.watch, args=(card.id,))


def _walkthrough_card(one: Walkthrough, t: Catalogue) -> _Card:
    lang = "zh-CN" if one.language == "zh" else "en"
    html = tag(
        "div",
        tag("p", tag("strong", one.title[language()])),
        tag("p", shown(one.question), dir="auto", lang=lang),
        tag("p", one.shows[language()], class_="workbench-note"),
    )
    return _Card(one.id, html, t("samples.play"), _play)


def _recording_card(one: Recording, t: Catalogue) -> _Card:
    methods = t("list.separator").join(named("method", name, t) for name in one.methods)
    html = tag(
        "div",
        tag("p", tag("strong", shown(one.question)), dir="auto"),
        tag("p", methods, class_="workbench-note"),
    )
    return _Card(one.id, html, t("action.open"), _open)


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
