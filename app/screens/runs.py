"""The Runs page: what this browser has run, to open, export, import and delete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from app import live
from app.engine import engine
from app.parts import delete_button, draw_error, go_to, page_title, remembered
from app.session import messages, owner
from components.compare import MOST_COMPARED
from components.elements import Status, status_badge
from components.markup import shown, tag
from components.messages import Catalogue, duration, named
from pipelines.errors import InvalidInputError
from pipelines.store import RunSummary
from pipelines.store.evaluations import StoredEvaluation

TO_COMPARE = "_compare.wanted"
"""Where the session keeps the runs that were picked until the Compare page takes them."""

_PAGE = 20
_SHOWN = "runs.shown"
_UPLOADS = "runs.uploads"


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("runs.title"), t("runs.note"))
    draw_error("runs")
    left, right = st.columns([3, 2], gap="large", vertical_alignment="bottom")
    with left:
        text = st.text_input(
            t("runs.search"),
            type="search",
            key="runs.text",
            placeholder=t("runs.search"),
            label_visibility="collapsed",
            max_chars=200,
            live="300ms",
        )
    with right:
        st.file_uploader(
            t("runs.import"),
            type=["jsonl", "json"],
            key=f"runs.upload.{st.session_state.get(_UPLOADS, 0)}",
            on_change=_bring_in,
            max_upload_size=64,
        )
    limit = st.session_state.get(_SHOWN, _PAGE)
    runs = engine().service.store.list(owner(), limit=limit + 1, text=text or None)
    if not runs:
        st.html(tag("p", t("runs.none_found" if text else "runs.none"), class_="workbench-empty"))
    else:
        _compare_button([run.id for run in runs[:limit]], t)
    for run in runs[:limit]:
        _row(run, t)
    if len(runs) > limit:
        st.button(t("runs.more"), on_click=_show_more)


def _compare_button(runs: Sequence[str], t: Catalogue) -> None:
    picked = [run for run in runs if st.session_state.get(f"pick-{run}")]
    st.button(
        t("runs.compare.count", count=len(picked)) if picked else t("runs.compare"),
        key="compare",
        disabled=not 1 <= len(picked) <= MOST_COMPARED,
        help=t("runs.compare.note", most=MOST_COMPARED),
        on_click=_compare,
        args=(picked,),
    )


def _compare(runs: Sequence[str]) -> None:
    st.session_state[TO_COMPARE] = list(runs)
    go_to("compare")


def _row(run: RunSummary, t: Catalogue) -> None:
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"card-run-{run.id}"
    ):
        st.checkbox(t("runs.compare.pick"), key=f"pick-{run.id}", label_visibility="collapsed")
        st.html(_summary(run, t))
        with st.container(horizontal=True, width="content", gap="small"):
            st.button(t("action.open"), key=f"open-{run.id}", on_click=_open, args=(run.id,))
            st.download_button(
                t("action.export"),
                data=partial(_exported, run.id, owner()),
                file_name=f"veriscope-{run.id[:8]}.jsonl",
                mime="application/jsonl",
                key=f"export-{run.id}",
                on_click="ignore",
            )
            delete_button(run.id, t("runs.delete.sure"), partial(_delete, run.id))


def _summary(run: RunSummary, t: Catalogue) -> str:
    status: Status = "done" if run.status == "finished" else run.status
    facts = (
        t("list.separator").join(named("method", name, t) for name in run.methods),
        local_time(run),
        duration(run.duration, t),
        t("counter.calls", count=run.model_calls),
        *([t("runs.interrupted")] if run.reason == "interrupted" else []),
    )
    return tag(
        "div",
        tag("p", shown(run.question), class_="workbench-run-question", dir="auto"),
        tag("p", status_badge(status, t), " · ", " · ".join(facts), class_="workbench-run-facts"),
        class_="workbench-run",
    )


def local_time(run: RunSummary | StoredEvaluation) -> str:
    """The start in the visitor's own time."""
    try:
        zone = ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = UTC
    return run.created.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def _exported(run_id: str, whose: str) -> str:
    return "".join(engine().service.store.export(run_id, whose))


def _open(run_id: str) -> None:
    with remembered("runs"):
        live.open_run(run_id)
        go_to("ask")


def _delete(run_id: str) -> None:
    watched = live.current()
    if watched is not None and watched.run_id == run_id:
        live.close()
    with remembered("runs"):
        engine().call(engine().service.delete(run_id, owner=owner()))


def _bring_in() -> None:
    uploads = st.session_state.get(_UPLOADS, 0)
    file = st.session_state.get(f"runs.upload.{uploads}")
    if file is None:
        return
    # The uploader keeps its file until it is another uploader.
    st.session_state[_UPLOADS] = uploads + 1
    with remembered("runs"):
        try:
            text = file.getvalue().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInputError(
                "The file is no exported run.",
                remedy="Choose a .jsonl file that was exported here.",
            ) from None
        live.open_run(engine().service.store.import_run(text, owner()))
        go_to("ask")


def _show_more() -> None:
    st.session_state[_SHOWN] = st.session_state.get(_SHOWN, _PAGE) + _PAGE
