"""A run in the list of the Runs page: what it is, and what can be done with it alone."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import streamlit as st

from app import live
from app.engine import engine
from app.parts import delete_button, draw_unfolded, page_of_run, remembered, show_run
from app.saving import save_buttons, show_address
from app.screens.run_filters import here
from app.screens.run_selection import pick_box
from app.session import owner
from components.markup import visible
from components.messages import Catalogue
from components.run_list import run_line
from pipelines.store import RunSummary
from pipelines.store.annotation_records import StoredSession
from pipelines.store.evaluations import StoredEvaluation
from pipelines.store.labels import MAX_NOTE, MAX_RUN_NAME, MAX_TAG


def draw_row(run: RunSummary, t: Catalogue) -> None:
    """Draw the card of a run."""
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"card-run-{run.id}"
    ):
        pick_box(run.id, t, visible(run.title))
        st.html(run_line(run, local_time(run), t))
        with st.container(horizontal=True, width="content", gap="small"):
            st.button(
                t("runs.starred" if run.starred else "runs.star"),
                key=f"star-{run.id}",
                type="tertiary",
                help=t("runs.star.take" if run.starred else "runs.star.give"),
                on_click=_star,
                args=(run.id, not run.starred),
            )
            st.button(t("action.open"), key=f"open-{run.id}", on_click=_open, args=(run.id,))
            more = st.popover(t("runs.more_about"), key=f"more-{run.id}", on_change="rerun")
            draw_unfolded(more, partial(_details, run, t))
            delete_button(run.id, t("runs.delete.sure"), partial(_delete, run.id))


def local_time(run: RunSummary | StoredEvaluation | StoredSession) -> str:
    """Return the start in the visitor's own time."""
    return local_moment(run.created)


def local_moment(moment: datetime) -> str:
    """Return a moment in the visitor's own time."""
    return moment.astimezone(here()).strftime("%Y-%m-%d %H:%M")


def _details(run: RunSummary, t: Catalogue) -> None:
    known = engine().service.store.labels.known(owner()).tags
    with st.form(f"labels-{run.id}", border=False):
        st.text_input(
            t("runs.name"),
            value=run.name,
            key=f"name-{run.id}",
            max_chars=MAX_RUN_NAME,
            placeholder=t("runs.name.placeholder"),
        )
        st.multiselect(
            t("runs.tags"),
            list(dict.fromkeys([*known, *run.tags])),
            default=list(run.tags),
            key=f"tags-{run.id}",
            accept_new_options=True,
            placeholder=t("runs.tag.placeholder", most=MAX_TAG),
        )
        st.text_area(t("runs.note_field"), value=run.note, key=f"note-{run.id}", max_chars=MAX_NOTE)
        st.form_submit_button(
            t("action.save"), key=f"save-{run.id}", on_click=_save, args=(run.id,)
        )
    st.caption(t("runs.labels.own"))
    show_address(run.id, t)
    with st.container(horizontal=True):
        save_buttons(run.id, t, key=run.id)
        st.button(
            t("runs.replay"),
            key=f"replay-{run.id}",
            help=t("runs.replay.help"),
            on_click=_replay,
            args=(run.id,),
        )


def _save(run_id: str) -> None:
    state = st.session_state
    with remembered("runs"):
        engine().service.store.labels.save(
            run_id,
            owner(),
            name=state.get(f"name-{run_id}") or "",
            note=state.get(f"note-{run_id}") or "",
            tags=state.get(f"tags-{run_id}") or [],
        )


def _star(run_id: str, starred: bool) -> None:
    with remembered("runs"):
        engine().service.store.labels.star(run_id, owner(), starred)


def _open(run_id: str) -> None:
    with remembered("runs"):
        show_run(run_id)


def _replay(run_id: str) -> None:
    with remembered("runs"):
        service = engine().service
        again = engine().call(service.replay(run_id, owner=owner()))
        show_run(again)
        if (why := service.why_not_stored(again, owner=owner())) is not None:
            # It can be looked at until the server ends, and the page it is shown on says so.
            st.session_state[f"_error.{page_of_run()}"] = why.info()


def _delete(run_id: str) -> None:
    watched = live.current()
    if watched is not None and watched.run_id == run_id:
        live.close()
    with remembered("runs"):
        engine().call(engine().service.delete(run_id, owner=owner()))
