"""Collections of a visitor's own documents: make, open, rename and delete them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app.engine import engine
from app.parts import (
    delete_button,
    draw_again,
    draw_error,
    draw_unfolded,
    guarded,
    page_title,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
    stop_button,
)
from app.screens.library_documents import (
    close_document,
    draw_added,
    draw_adding,
    draw_documents,
    draw_opened,
    forget_added,
)
from app.screens.library_embedder import draw_embedder
from app.screens.library_search import draw_search
from app.session import embedder_key, messages, owner
from components.elements import notice
from components.library import collection_view, indexing_view
from components.markup import tag
from components.messages import Catalogue
from pipelines.engine.collections import Collections
from pipelines.engine.libraries import SAMPLE_LIBRARY
from pipelines.errors import VeriscopeError
from pipelines.retrieval.embedders import EmbedderSpec
from pipelines.retrieval.reading.parsed import MAX_FILE
from pipelines.store.collections import MAX_BYTES, MAX_DOCUMENTS, MAX_NAME, StoredCollection

PERIOD = 0.5
"""Seconds between two looks at an indexing that goes on."""

_OPENED = "_library.opened"
_ERRORS = "library"
_KEPT: Any = {"persist_state": "session"}


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("library.title"), t("library.note"))
    opened, missing = _follow_address()
    draw_error(_ERRORS, missing)
    if opened is not None:
        _draw_collection(opened, t)
    else:
        _draw_new(t)
        _draw_list(t)


def _collections() -> Collections:
    return engine().service.collections


def _follow_address() -> tuple[StoredCollection | None, VeriscopeError | None]:
    """Return the collection of the address, else the one that was looked at; and why it is
    not shown.
    """
    asked = st.query_params.get("collection") or st.session_state.get(_OPENED)
    if not asked:
        return None, None
    try:
        stored = _collections().store.get(owner(), asked)
    except VeriscopeError as error:
        _close()
        return None, error
    _open(asked)
    return stored, None


def _open(collection: str) -> None:
    st.session_state[_OPENED] = collection
    if st.query_params.get("collection") != collection:
        st.query_params["collection"] = collection


def _close() -> None:
    st.session_state.pop(_OPENED, None)
    st.query_params.pop("collection", None)
    close_document()
    forget_added()


def _draw_new(t: Catalogue) -> None:
    section_title(t("library.new"))
    with st.container(horizontal=True, vertical_alignment="bottom", key="library-new"):
        st.text_input(
            t("library.name"),
            key="library.name",
            max_chars=MAX_NAME,
            placeholder=t("library.name.example"),
            width=360,
            **_KEPT,
        )
        st.button(t("library.create"), key="library.create", type="primary", on_click=_create)
    facts = {
        "file": MAX_FILE // 2**20,
        "documents": f"{MAX_DOCUMENTS:,}",
        "size": MAX_BYTES // 2**30,
    }
    st.caption(t("library.limits", **facts))


def _create() -> None:
    with remembered(_ERRORS):
        name = st.session_state.get("library.name") or ""
        _open(_collections().create(owner(), name))
        st.session_state["library.name"] = ""


def _draw_list(t: Catalogue) -> None:
    section_title(t("library.list"))
    collections = _collections()
    known = collections.store.of(owner())
    if not known:
        with st.container(border=True, key="card-library-none"):
            st.html(tag("p", t("library.none"), class_="workbench-empty"))
            st.button(
                t("library.try"), key="library.try", on_click=_try, help=t("library.try.help")
            )
    for stored in known:
        with st.container(
            border=True,
            horizontal=True,
            vertical_alignment="center",
            key=f"card-collection-{stored.id}",
        ):
            current = collections.is_current(owner(), stored.id)
            st.html(collection_view(stored, current, t))
            with st.container(horizontal=True, width="content", gap="small"):
                st.button(
                    t("action.open"), key=f"open-{stored.id}", on_click=_open, args=(stored.id,)
                )
                delete_button(stored.id, t("library.delete.sure"), partial(_delete, stored.id))


def _try() -> None:
    """Make a collection of the bundled articles, indexed."""
    with remembered(_ERRORS):
        collections = _collections()
        collection = collections.create(owner(), messages()("library.try.name"))
        for path in sorted(SAMPLE_LIBRARY.rglob("*.md")):
            name = path.relative_to(SAMPLE_LIBRARY).as_posix()
            collections.add(owner(), collection, name, path.read_bytes())
        collections.index(owner(), collection)
        _open(collection)


def _delete(collection: str) -> None:
    with remembered(_ERRORS):
        _collections().delete(owner(), collection)
        if st.session_state.get(_OPENED) == collection:
            _close()
    redraw_whole()


def _draw_collection(stored: StoredCollection, t: Catalogue) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="library-head"):
        st.button(t("library.all"), key="library.all", on_click=_close)
        with st.popover(t("library.rename"), key="library-rename"):
            st.text_input(
                t("library.name"),
                value=stored.name,
                key=f"library.rename.{stored.id}",
                max_chars=MAX_NAME,
            )
            st.button(t("action.save"), key="library.rename", on_click=_rename, args=(stored.id,))
        delete_button(stored.id, t("library.delete.sure"), partial(_delete, stored.id))
    st.html(tag("h2", tag("bdi", stored.name), class_="workbench-part"))
    _draw_indexing(stored)
    index = _index_of(stored)
    if draw_opened(stored, index, t):
        return
    with guarded(t("library.add"), key="adding"):
        key = f"library.add.{stored.id}"
        if key not in st.session_state:
            st.session_state[key] = not stored.documents
        fold = st.expander(t("library.add"), key=key, on_change="rerun")
        draw_unfolded(fold, partial(draw_adding, stored.id, index, t))
        draw_added(t)
    with guarded(t("library.search"), key="search"):
        draw_search(stored, t)
    with guarded(t("library.column.document"), key="documents"):
        draw_documents(stored, t)
    fold = st.expander(t("library.embedder"), key="library.embedder", on_change="rerun")
    draw_unfolded(fold, partial(draw_embedder, stored, partial(_change, stored.id), t))


def _draw_indexing(stored: StoredCollection) -> None:
    """Draw what ticks, with Stop or Index beside it; the page is drawn again when it has ended."""
    progress = _collections().progress(owner(), stored.id)
    running = progress is not None and progress.going_on

    def body() -> None:
        t = messages()
        now = _collections().progress(owner(), stored.id)
        going_on = now is not None and now.going_on
        current = False if going_on else _collections().is_current(owner(), stored.id)
        with st.container(key="run-bar", horizontal=True, vertical_alignment="center"):
            with guarded(t("library.indexing"), key="indexing"):
                show_html(indexing_view(now, stored, current, t), key="indexing")
            if going_on:
                stop_button(t, key="library.stop", stop=_stop, of=stored.id)
            elif stored.documents and not current:
                begun = now is not None and now.stage == "stopped"
                st.button(
                    t("library.continue" if begun else "library.index"),
                    key="library.index",
                    type="primary",
                    on_click=_begin,
                    args=(stored.id,),
                )
        if running and not going_on:
            st.rerun()

    # One fragment, running or not: what is drawn stays where it is when it ends.
    draw_again(body, PERIOD if running else None)
    if progress is not None and progress.error is not None:
        show_error(progress.error, key="indexing-error")
    if stored.embedder.kind == "none":
        t = messages()
        show_html(notice(t("library.words_only"), "words-only"), key="words-only")


def _begin(collection: str) -> None:
    with remembered(_ERRORS):
        _index(collection)
    redraw_whole()


def _index_of(stored: StoredCollection) -> Callable[[], None]:
    """Return what begins to index it, without another look at the session."""
    collections, whose, key = _collections(), owner(), embedder_key(stored.embedder)

    def begin() -> None:
        collections.index(whose, stored.id, key)

    return begin


def _index(collection: str) -> None:
    stored = _collections().store.get(owner(), collection)
    _collections().index(owner(), collection, embedder_key(stored.embedder))


def _stop(collection: str) -> None:
    with remembered(_ERRORS):
        _collections().stop(owner(), collection)
    redraw_whole()


def _rename(collection: str) -> None:
    with remembered(_ERRORS):
        name = st.session_state.get(f"library.rename.{collection}") or ""
        _collections().change(owner(), collection, name=name)


def _change(collection: str, embedder: EmbedderSpec) -> None:
    _collections().change(owner(), collection, embedder=embedder)
    if _collections().store.get(owner(), collection).documents:
        _index(collection)
