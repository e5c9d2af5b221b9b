"""The verdicts that visitors of the public page left, for the lead to accept or refuse."""

from __future__ import annotations

from functools import partial
from typing import Literal

import streamlit as st

from app.links import require_link
from app.parts import choose_one, draw_error, remembered, show_html
from app.screens.run_row import local_moment
from components.annotation import visitor_view
from components.messages import Catalogue, integer
from pipelines.annotation.leading import Lead
from pipelines.annotation.visitors import VisitorVerdict, decide_verdict, visitor_verdicts
from pipelines.errors import VeriscopeError

_ERRORS = "annotate-visitors"
_MOST = 50
"""Verdicts that are listed at once; the next follow as these are decided."""

_Shown = Literal["waiting", "accepted", "refused", "all"]
_SHOWN: tuple[_Shown, ...] = ("waiting", "accepted", "refused", "all")


def draw_visitors(lead: Lead, t: Catalogue) -> None:
    """Draw the part of the page: those that wait first."""
    st.caption(t("annotate.visitors.note"))
    draw_error(_ERRORS)
    found = visitor_verdicts(lead)
    counts = {name: sum(name in ("all", one.state) for one in found) for name in _SHOWN}
    shown = choose_one(
        t("annotate.visitors.which"),
        _SHOWN,
        f"annotate.visitors.{lead.session_id}",
        lambda name: t(f"annotate.visitors.{name}", count=integer(counts[name])),
        label_visibility="collapsed",
        persist_state="session",
    )
    listed = [one for one in found if shown in ("all", one.state)]
    if not listed:
        st.caption(t("annotate.visitors.none" if found else "annotate.visitors.empty"))
        return
    waiting = [one.number for one in listed[:_MOST] if one.state == "waiting"]
    if len(waiting) > 1:
        with st.container(horizontal=True, key="annotate-visitors-all"):
            for accept in (True, False):
                name = "accept" if accept else "refuse"
                st.button(
                    t(f"annotate.visitors.{name}.all", count=len(waiting)),
                    key=f"annotate.visitors.{name}.all",
                    on_click=_decide,
                    args=(lead, waiting, accept),
                )
    for one in listed[:_MOST]:
        _row(lead, one, t)
    if len(listed) > _MOST:
        st.caption(t("annotate.more", count=integer(len(listed) - _MOST)))


def _row(lead: Lead, one: VisitorVerdict, t: Catalogue) -> None:
    with st.container(border=True, key=f"card-visitor-{one.number}"):
        show_html(visitor_view(one, local_moment(one.at), t), key=f"annotate-visitor-{one.number}")
        with st.container(horizontal=True):
            for accept, state in ((True, "accepted"), (False, "refused")):
                if one.state not in (state, "replaced"):
                    name = "accept" if accept else "refuse"
                    st.button(
                        t(f"annotate.visitors.{name}"),
                        key=f"annotate.visitors.{name}.{one.number}",
                        on_click=partial(_decide, lead, [one.number], accept),
                    )


def _decide(lead: Lead, numbers: list[int], accept: bool) -> None:
    """Decide each; one whose visitor has changed it meanwhile stops none of the others."""
    with remembered(_ERRORS):
        require_link()
        failed: VeriscopeError | None = None
        for number in numbers:
            try:
                decide_verdict(lead, number, accept=accept)
            except VeriscopeError as error:
                failed = error
        if failed is not None:
            raise failed
