"""A session as the person who leads it sees it: progress, decisions, results, settings."""

from __future__ import annotations

import streamlit as st

from app.links import current_link
from app.parts import choose_one, draw_error, guarded, page_title, show_html
from app.screens.annotation_decide import draw_decide
from app.screens.annotation_links import draw_links
from app.screens.annotation_place import close_session
from app.screens.annotation_progress import draw_progress
from app.screens.annotation_results import draw_results
from app.screens.annotation_settings import draw_settings, forget_said
from components.annotation import about_view, closed_notice
from components.messages import Catalogue
from pipelines.annotation.leading import Lead
from pipelines.errors import VeriscopeError

PARTS = ("progress", "decide", "results", "settings")
"""The parts of the page."""


def draw_session(lead: Lead, t: Catalogue) -> None:
    """Draw all of it."""
    try:
        stored, standing = lead.session, lead.store.annotations.standing(lead.session_id)
    except VeriscopeError as error:
        # It was deleted while the page was open.
        page_title(t("annotate.title"), t("annotate.note"))
        draw_error("annotate", error)
        return
    page_title(stored.name, t("annotate.lead.note"))
    draw_error("annotate")
    if not current_link():
        st.button(t("annotate.all"), key="annotate.all", on_click=close_session)
    with guarded(t("annotate.title"), key="about"):
        show_html(about_view(standing, lead.spec, t), key="session-about")
    if standing.closed is not None:
        show_html(closed_notice(t), key="session-closed")
    part = choose_one(
        t("annotate.part"),
        PARTS,
        f"annotate.part.{lead.session_id}",
        lambda name: t(f"annotate.part.{name}"),
        label_visibility="collapsed",
        persist_state="session",
    )
    if part != "settings":
        forget_said()
    with guarded(t(f"annotate.part.{part}"), key=part):
        match part:
            case "progress":
                draw_links(lead, t, unfolded=not standing.people)
                draw_progress(lead, t)
            case "decide":
                draw_decide(lead, t)
            case "results":
                draw_results(lead, t)
            case _:
                draw_settings(lead, t)
