"""The Runs page: what this browser has run, to find, name, open, compare, export and delete."""

from __future__ import annotations

from math import ceil

import streamlit as st

from app.engine import engine
from app.parts import draw_error, guarded, page_title, remembered, show_html, show_run
from app.screens.run_filters import (
    PAGE,
    chosen_filter,
    clear_filters,
    draw_filters,
    draw_search,
    keep_address,
)
from app.screens.run_row import draw_row
from app.screens.run_selection import draw_selection
from app.session import messages, owner
from components.elements import error_note, notice
from components.markup import tag, visible
from components.messages import Catalogue
from pipelines.errors import VeriscopeError, failure
from pipelines.store import RunFilter
from pipelines.store.archive import import_archive, is_archive

LISTED = 20
"""Runs of a page of the list."""

_UPLOADS = "runs.uploads"
_IMPORTED = "_runs.imported"
_MEGABYTES = 64
_REFUSED = 5


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("runs.title"), t("runs.note"))
    failed = draw_error("runs")
    left, right = st.columns([3, 2], gap="large", vertical_alignment="bottom")
    with left:
        draw_search(t)
    with right:
        st.file_uploader(
            t("runs.import"),
            type=["jsonl", "json", "zip"],
            key=f"runs.upload.{st.session_state.get(_UPLOADS, 0)}",
            on_change=_bring_in,
            max_upload_size=_MEGABYTES,
        )
    _imported(t)
    draw_filters(t)
    where = chosen_filter()
    try:
        found = engine().service.store.count(owner(), where)
        whole = found if where.empty else engine().service.store.count(owner())
    except VeriscopeError as error:
        if not failed:
            show_html(error_note(error.info(), t), key="runs-unreadable")
        return
    _found(found, whole, where, t)
    with guarded(t("runs.title"), key="list"):
        _list(found, where, t)
    keep_address()


def _found(found: int, whole: int, where: RunFilter, t: Catalogue) -> None:
    """Draw how many runs are listed of how many; a line that is always there, so that
    nothing moves.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="runs-found"):
        words = t("runs.count", count=f"{whole:,}")
        if not where.empty:
            words = t("runs.found", count=f"{found:,}", total=f"{whole:,}")
        st.caption(words, width="content")
        if not where.empty:
            st.button(t("runs.clear"), key="runs-clear", type="tertiary", on_click=clear_filters)
    if where.since and where.until and where.until <= where.since:
        show_html(notice(t("runs.dates_reversed"), "dates"), key="runs-dates")


def _list(found: int, where: RunFilter, t: Catalogue) -> None:
    if not found:
        words = t("runs.none" if where.empty else "runs.none_found")
        st.html(tag("p", words, class_="workbench-empty"))
        return
    # The list stands above the control that turns its pages, and needs to know what that says.
    listing = st.container(key="runs-list")
    pages, page = ceil(found / LISTED), 1
    if pages > 1:
        st.session_state[PAGE] = min(st.session_state.get(PAGE) or 1, pages)
        page = st.pagination(pages, key=PAGE, persist_state="session", width="stretch")
    with listing:
        runs = engine().service.store.list(
            owner(), limit=LISTED, where=where, offset=LISTED * (page - 1)
        )
        draw_selection([run.id for run in runs], found, where, t)
        for run in runs:
            draw_row(run, t)


def _imported(t: Catalogue) -> None:
    """Draw what became of a file with several runs, until the next file."""
    told = st.session_state.get(_IMPORTED)
    if told is None:
        return
    count, refused = told
    if count:
        show_html(notice(t("runs.imported", count=count), "imported"), key="runs-imported")
    for name, error in refused[:_REFUSED]:
        show_html(tag("p.vs-label", visible(name)), key=f"refused-name-{name}")
        show_html(error_note(error, t), key=f"refused-{name}")
    if len(refused) > _REFUSED:
        st.caption(t("runs.refused_more", count=len(refused) - _REFUSED))


def _bring_in() -> None:
    uploads = st.session_state.get(_UPLOADS, 0)
    file = st.session_state.get(f"runs.upload.{uploads}")
    if file is None:
        return
    # The uploader keeps its file until it is another uploader.
    st.session_state[_UPLOADS] = uploads + 1
    st.session_state[_IMPORTED] = None
    with remembered("runs"):
        data = file.getvalue()
        if is_archive(data):
            brought = import_archive(engine().service.store, data, owner())
            refused = [(name, error.info()) for name, error in brought.refused]
            st.session_state[_IMPORTED] = (len(brought.runs), refused)
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise failure("storage.no_run_file") from None
        show_run(engine().service.store.import_run(text, owner()))
