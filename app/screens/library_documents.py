"""The documents of a collection: added by file, folder and address, listed, and looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

import streamlit as st

from app.engine import engine
from app.parts import (
    Action,
    choose_one,
    delete_button,
    draw_error,
    guarded,
    remembered,
    section_title,
    show_error,
    show_html,
)
from app.session import owner
from components.elements import notice
from components.failures import explained
from components.library import document_about, documents_view, sections_view
from components.markup import visible
from components.messages import Catalogue
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.retrieval.reading.parsed import MAX_FILE
from pipelines.retrieval.reading.sniffing import ENDINGS
from pipelines.retrieval.web.pages import MAX_ADDRESSES
from pipelines.store.collections import StoredCollection

_ERRORS = "library-add"
_ADDED = "_library.added"
_DOCUMENT = "_library.document"
_PASSAGE = "_library.passage"
_ROWS = 20
"""Documents on one page of the list."""

_SECTIONS = 3
"""Sections of a document that are looked at together."""

_KEPT: Any = {"persist_state": "session"}
_WAYS = ("files", "folder", "addresses")

Index = Callable[[], None]


@dataclass
class _Added:
    """What became of the documents that were added, by name; `taken` are ids of uploads."""

    stored: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    failed: list[tuple[str, ErrorInfo]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)


def draw_adding(collection: str, index: Index, t: Catalogue) -> None:
    """Draw the controls that add documents; `index` is called when some were added."""
    way = choose_one(
        t("library.add.way"),
        _WAYS,
        "library.way",
        lambda way: t(f"library.add.{way}"),
        label_visibility="collapsed",
        **_KEPT,
    )
    draw_error(_ERRORS)
    if way == "addresses":
        st.text_area(
            t("library.addresses", most=MAX_ADDRESSES),
            key="library.addresses",
            placeholder="https://example.org/article\nhttps://example.org/paper.pdf",
            help=t("library.addresses.help"),
            height=120,
        )
        st.button(
            t("library.addresses.add"),
            key="library.addresses.add",
            on_click=_add_addresses,
            args=(collection, index),
        )
    else:
        key = f"library.{way}.{collection}"
        st.file_uploader(
            t(f"library.upload.{way}", size=MAX_FILE // 2**20),
            type=[ending[1:] for ending in ENDINGS] if way == "folder" else None,
            accept_multiple_files="directory" if way == "folder" else True,
            key=key,
            on_change=_add_files,
            args=(collection, key, index),
            max_upload_size=MAX_FILE // 2**20,
            help=t("library.upload.help"),
        )


def draw_added(t: Catalogue) -> None:
    """Draw what became of the documents that were added."""
    told = _told()
    said = [f"{name}: {explained(error, t)}" for name, error in told.failed]
    for names, words in ((told.there, "library.there"), (told.stored, "library.added")):
        if names:
            said.insert(0, t(words, count=len(names), names=_names(names, t)))
    for number, one in enumerate(said):
        show_html(notice(one, f"added-{number}", role="status"), key=f"added-{number}")


def forget_added() -> None:
    """Forget what became of the added documents. Called from a callback."""
    st.session_state.pop(_ADDED, None)


def _told() -> _Added:
    return st.session_state.setdefault(_ADDED, _Added())


def _add_files(collection: str, key: str, index: Index) -> None:
    """Store what was uploaded and is not stored yet.

    This is called again and again while several files arrive, and every access to the session may
    end it, because the next file has arrived: what it needs is read first, and what it learns is
    kept in an object that the session holds already.
    """
    uploads = list(st.session_state.get(key) or [])
    whose = owner()
    told = _told()
    with remembered(_ERRORS):
        new = [one for one in uploads if one.file_id not in told.taken]
        for upload in new:
            told.taken.add(upload.file_id)
            try:
                added = engine().service.collections.add(
                    whose, collection, upload.name, upload.getvalue()
                )
            except VeriscopeError as error:
                # The others are stored all the same.
                told.failed.append((visible(upload.name), error.info()))
                continue
            (told.there if added.id is None else told.stored).append(visible(added.name))
        if new:
            index()


def _add_addresses(collection: str, index: Index) -> None:
    with remembered(_ERRORS):
        text = st.session_state.get("library.addresses") or ""
        added = engine().service.collections.add_addresses(owner(), collection, text)
        told = _told()
        told.stored += [visible(one.name) for one in added if one.id is not None]
        told.there += [visible(one.name) for one in added if one.id is None]
        if any(one.id is not None for one in added):
            st.session_state["library.addresses"] = ""
            index()


def _names(names: list[str], t: Catalogue, most: int = 5) -> str:
    words = t("list.separator").join(names[:most])
    return f"{words} …" if len(names) > most else words


def draw_opened(stored: StoredCollection, index: Index, t: Catalogue) -> bool:
    """Draw the document that was opened; return False where none was."""
    opened = st.session_state.get(_DOCUMENT)
    if opened is None or opened[0] != stored.id:
        return False
    with guarded(t("library.section.document"), key="document"):
        _draw_document(stored, opened[1], index, t)
    return True


def draw_documents(stored: StoredCollection, t: Catalogue) -> None:
    """Draw the list of documents."""
    section_title(t("library.section.documents"))
    documents = engine().service.collections.store.documents(owner(), stored.id)
    # What needs somebody's attention comes first.
    documents.sort(key=lambda one: one.state != "refused")
    pages = ceil(len(documents) / _ROWS)
    # Above the list, so that it stays where it is when the list gets shorter.
    page = _pagination(pages, f"library.page.{stored.id}.{pages}") if pages > 1 else 1
    shown = documents[(page - 1) * _ROWS : page * _ROWS]
    show_html(documents_view(shown, t), key="documents", on_action=partial(_act, stored.id))


def _act(collection: str, action: Action) -> None:
    if action["action"] == "document" and action["value"]:
        open_document(collection, action["value"])


def open_document(collection: str, document: str, passage: int | None = None) -> None:
    """Look at a document, at one of its passages. Called from a callback."""
    st.session_state[_DOCUMENT] = collection, document
    st.session_state[_PASSAGE] = passage
    st.session_state["_library.view"] = st.session_state.get("_library.view", 0) + 1


def close_document() -> None:
    """Go back to the list. Called from a callback."""
    st.session_state.pop(_DOCUMENT, None)
    st.session_state.pop(_PASSAGE, None)


def _draw_document(stored: StoredCollection, document: str, index: Index, t: Catalogue) -> None:
    section_title(t("library.section.document"))
    collections = engine().service.collections
    with st.container(horizontal=True, key="library-document-head"):
        st.button(t("library.document.back"), key="library.back", on_click=close_document)
        delete_button(
            document,
            t("library.document.sure"),
            partial(_delete, stored.id, document, index),
        )
    try:
        found = collections.store.document(owner(), stored.id, document)
        show_html(document_about(found, t), key="document-about")
        if found.state != "ready":
            if found.state != "refused":
                st.caption(t("library.document.later"))
            return
        prepared = collections.document(owner(), stored.id, document)
    except VeriscopeError as error:
        show_error(error, key="document-error")
        return
    marked: int | None = st.session_state.get(_PASSAGE)
    if marked is not None and not 0 <= marked < len(prepared.passages):
        marked = None
    first = prepared.section_of(marked) if marked is not None else 0
    pages = ceil(prepared.sections / _SECTIONS)
    view = st.session_state.get("_library.view", 0)
    page = 1
    if pages > 1:
        page = _pagination(pages, f"library.view.{document}.{view}", first // _SECTIONS + 1)
    shown = range((page - 1) * _SECTIONS, min(page * _SECTIONS, prepared.sections))
    show_html(
        sections_view(
            [prepared.section(number) for number in shown],
            prepared.passages,
            t,
            kind=found.kind,
            marked=marked,
        ),
        key="sections",
    )


def _pagination(pages: int, key: str, default: int = 1) -> int:
    return st.pagination(pages, default=min(default, pages), key=key)


def _delete(collection: str, document: str, index: Index) -> None:
    with remembered(_ERRORS):
        engine().service.collections.remove(owner(), collection, document)
        close_document()
        index()
