"""The guided tour in the workbench: its current step, and its offer to first-time visitors."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st
from streamlit.components.v2 import component

from app import page as live
from app.page import go_to, remembered
from app.screens.setup import fold_away
from app.session import language, messages
from components.base.html import tag
from components.base.theme import tour_style
from components.base.tour import STOPS, tour_data, tour_sample
from components.base.words import Catalogue, lang
from pipelines.base import ASSETS

COOKIE = "veriscope_tour"
"""Says that a browser has been offered the tour."""

_STATE = "_tour"
_OFFERED = "_tour_offered"

_tour = component(
    "veriscope_tour",
    html='<div class="vs-root vs-tour"></div>',
    css=tour_style(),
    js=(ASSETS / "tour.js").read_text(encoding="utf-8"),
)


class _Tour(NamedTuple):
    """The stop that the tour is at, and how often the server has said so."""

    at: int
    turn: int


def draw_tour(page: str) -> None:
    """Draw the tour over whatever page is shown; it takes no place, and shows nothing while
    it is off.

    It is always part of the page, so that nothing has to move when it begins.
    """
    tour: _Tour | None = st.session_state.get(_STATE)
    t = messages()
    data: dict[str, Any] = {"stops": []}
    if tour is not None:
        data = tour_data(t, at=tour.at, turn=tour.turn, page=page)
    data |= {"lang": lang(language()), "cookie": COOKIE if _OFFERED in st.session_state else ""}
    _tour(key="tour", data=data, on_move_change=_moved)


def tour_button(t: Catalogue) -> None:
    """Draw a button that begins the tour, whenever it is wanted."""
    if tour_sample(t) is not None:
        st.button(t("tour.start"), key="tour-start", on_click=begin_tour, help=t("tour.help"))


def offer_tour(t: Catalogue) -> None:
    """Offer the tour to a browser once, until it is taken or declined."""
    if tour_sample(t) is None:
        return
    if _OFFERED not in st.session_state and _offered_before():
        return
    if not st.session_state.setdefault(_OFFERED, True):
        return
    with (
        st.container(border=True, key="tour-offer"),
        st.container(horizontal=True, vertical_alignment="center"),
    ):
        st.html(tag("p", tag("strong", t("tour.offer.title")), " ", t("tour.offer")))
        st.button(t("tour.offer.start"), key="tour-take", type="primary", on_click=begin_tour)
        st.button(t("tour.offer.decline"), key="tour-decline", on_click=_decline)


def begin_tour() -> None:
    """Play the walkthrough, and lead through it from the first stop on. Called from a callback."""
    with remembered("ask"):
        sample = tour_sample(messages())
        if sample is None:
            return
        live.start(sample.spec())
        st.session_state["question"] = sample.question
        _set(0)
        _decline()
        fold_away()
        go_to("ask")


def _offered_before() -> bool:
    return st.context.cookies.get(COOKIE) == "offered"


def _decline() -> None:
    st.session_state[_OFFERED] = False


def _moved() -> None:
    """Go to the stop on another page that the script asks for, or end the tour, which is over."""
    state: Any = st.session_state.get("tour")
    asked = state.get("move") if state else None
    if not isinstance(asked, dict) or _STATE not in st.session_state:
        return
    at = asked.get("at")
    if asked.get("action") == "go" and isinstance(at, int) and 0 <= at < len(STOPS):
        _set(at)
        go_to(STOPS[at].page)
    elif asked.get("action") == "end":
        del st.session_state[_STATE]


def _set(at: int) -> None:
    before: _Tour | None = st.session_state.get(_STATE)
    # Also the first turn of a second tour has to be a new one for the script.
    turn = before.turn if before else st.session_state.get("_tour_turns", 0)
    st.session_state["_tour_turns"] = turn + 1
    st.session_state[_STATE] = _Tour(at, turn + 1)
