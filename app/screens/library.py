"""Collections of a visitor's own documents: make, open, rename and delete them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any, cast

import streamlit as st

from app.engine import engine
from app.page import (
    Action,
    choose_one,
    delete_button,
    draw_again,
    draw_error,
    draw_unfolded,
    guarded,
    key_field,
    page_title,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
    stop_button,
)
from app.screens.setup import ask_with
from app.session import embedder_key, keep_embedder_key, messages, owner
from components.base.elements import explained, notice
from components.base.html import tag, visible
from components.base.words import Catalogue
from components.library import (
    collection_view,
    document_about,
    documents_view,
    indexing_view,
    search_view,
    sections_view,
)
from pipelines.base import Language
from pipelines.engine.library import SAMPLE_LIBRARY, Collections
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.retrieval.embedders import ENGLISH_EMBEDDER, RECOMMENDED, EmbedderKind, EmbedderSpec
from pipelines.retrieval.indexes import default_embedder
from pipelines.retrieval.reading.parsed import ENDINGS, MAX_FILE
from pipelines.retrieval.web import MAX_ADDRESSES
from pipelines.run.events import MAX_QUESTION
from pipelines.store.collections import MAX_BYTES, MAX_DOCUMENTS, MAX_NAME, StoredCollection

# The documents of a collection: added by file, folder and address, listed, and looked at.

_DOCUMENTS_ERRORS = "library-add"
_ADDED = "_library.added"
_DOCUMENT = "_library.document"
_PASSAGE = "_library.passage"
_ROWS = 20
"""Documents on one page of the list."""

_SECTIONS = 3
"""Sections of a document that are looked at together."""

_DOCUMENTS_KEPT: Any = {"persist_state": "session"}
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
        **_DOCUMENTS_KEPT,
    )
    draw_error(_DOCUMENTS_ERRORS)
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
    with remembered(_DOCUMENTS_ERRORS):
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
    with remembered(_DOCUMENTS_ERRORS):
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
            partial(_delete_document, stored.id, document, index),
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


def _delete_document(collection: str, document: str, index: Index) -> None:
    with remembered(_DOCUMENTS_ERRORS):
        engine().service.collections.remove(owner(), collection, document)
        close_document()
        index()


# The embedder of a collection: the bundled one, a sentence-transformers model, or a service.

_EMBEDDER_ERRORS = "library-embedder"
_KINDS: tuple[EmbedderKind, ...] = ("default", "sentence_transformers", "openai", "none")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_OTHER = ""


def draw_embedder(
    stored: StoredCollection, change: Callable[[EmbedderSpec], None], t: Catalogue
) -> None:
    """Draw the controls; `change` is given the embedder that was chosen."""
    st.caption(t("library.embedder.note"))
    draw_error(_EMBEDDER_ERRORS)
    now = stored.embedder
    place = f"library.embedder.{stored.id}"
    default = default_embedder()
    bundled = default.name if default is not None else ENGLISH_EMBEDDER
    kinds = _KINDS if now.kind in _KINDS else (now.kind, *_KINDS)
    kind: EmbedderKind = st.radio(
        t("library.embedder.kind"),
        kinds,
        index=kinds.index(now.kind),
        key=f"{place}.kind",
        format_func=lambda kind: t(f"library.embedder.{kind}", name=bundled),
        captions=[t(f"library.embedder.{kind}.help") for kind in kinds],
    )
    if kind == "sentence_transformers":
        _draw_model(now, place, t)
    if kind == "openai":
        _draw_service(now, place, t)
    if kind in ("sentence_transformers", "openai"):
        st.multiselect(
            t("library.embedder.languages"),
            _LANGUAGES,
            default=list(now.languages),
            key=f"{place}.languages",
            format_func=lambda code: t(f"library.language.{code}"),
            help=t("library.embedder.languages.help"),
        )
    if kind == now.kind == "default" and now.model == ENGLISH_EMBEDDER:
        # A collection keeps the embedder that it was made with.
        words = "english" if bundled == ENGLISH_EMBEDDER else "earlier"
        said = t(f"library.embedder.{words}", name=now.model, bundled=bundled)
        show_html(notice(said, "english"), key="embedder-english")
    st.button(
        t("library.embedder.use"),
        key=f"{place}.use",
        on_click=_use,
        args=(place, kind, change),
        help=t("library.embedder.use.help"),
    )


def _draw_model(now: EmbedderSpec, place: str, t: Catalogue) -> None:
    known = [one.model for one in RECOMMENDED]
    words = {
        one.model: t(
            "library.embedder.model.choice",
            model=one.model,
            millions=one.millions,
            languages=t("list.separator").join(t(f"library.language.{x}") for x in one.languages),
            licence=one.licence,
        )
        for one in RECOMMENDED
    }
    named = now.model if now.kind == "sentence_transformers" else known[0]
    options = [*known, _OTHER]
    chosen = st.selectbox(
        t("library.embedder.model"),
        options,
        index=options.index(named) if named in known else len(known),
        key=f"{place}.model",
        format_func=lambda model: words.get(model, t("library.embedder.model.other")),
    )
    if chosen == _OTHER:
        st.text_input(
            t("library.embedder.id"),
            value=named if named not in known else "",
            key=f"{place}.id",
            placeholder="intfloat/multilingual-e5-base",
            help=t("library.embedder.id.help"),
            max_chars=500,
        )


def _draw_service(now: EmbedderSpec, place: str, t: Catalogue) -> None:
    ours = now if now.kind == "openai" else EmbedderSpec(kind="openai")
    left, right = st.columns(2, gap="medium")
    with left:
        st.text_input(
            t("library.embedder.address"),
            value=ours.base_url or "",
            key=f"{place}.address",
            placeholder="https://api.openai.com/v1",
            help=t("library.embedder.address.help"),
            max_chars=500,
        )
    with right:
        st.text_input(
            t("library.embedder.service_model"),
            value=ours.model,
            key=f"{place}.service_model",
            placeholder="text-embedding-3-small",
            max_chars=500,
        )
    key_field(
        t("library.embedder.key"),
        f"{place}.key",
        help=t("evidence.key.note"),
        placeholder=t("models.key.kept") if embedder_key(ours) else None,
    )
    show_html(notice(t("library.embedder.sent"), "sent"), key="embedder-sent")


def _use(place: str, kind: EmbedderKind, change: Callable[[EmbedderSpec], None]) -> None:
    def said(name: str) -> str:
        return (st.session_state.get(f"{place}.{name}") or "").strip()

    with remembered(_EMBEDDER_ERRORS):
        chosen: Any = st.session_state.get(f"{place}.languages")
        languages = cast(tuple[Language, ...], tuple(chosen or ()))
        spec = EmbedderSpec(kind=kind)
        if kind == "sentence_transformers":
            spec = EmbedderSpec(kind=kind, model=said("model") or said("id"), languages=languages)
        elif kind == "openai":
            spec = EmbedderSpec(
                kind=kind,
                model=said("service_model"),
                base_url=said("address") or None,
                languages=languages,
            )
            if said("key"):
                keep_embedder_key(spec, said("key"))
        change(spec)


# A search of a collection by words, by meaning and by both.

_FOUND = "_library.found"
_HITS = 10


def draw_search(stored: StoredCollection, t: Catalogue) -> None:
    """Draw the field, and what was found for what stands in it; nothing before there is
    an index.
    """
    if not stored.passages:
        return
    section_title(t("library.search"))
    query = st.text_input(
        t("library.search.query"),
        key=f"library.query.{stored.id}",
        placeholder=t("library.search.example"),
        max_chars=MAX_QUESTION,
        persist_state="session",
        label_visibility="collapsed",
    )
    if not (query or "").strip():
        return
    collections = engine().service.collections
    asked = query, stored.id, stored.embedder, collections.build(stored.id)
    known = st.session_state.get(_FOUND)
    if known is None or known[0] != asked:
        key = embedder_key(stored.embedder)
        with st.spinner(t("library.search.running")):
            found = engine().call(collections.search(owner(), stored.id, query.strip(), _HITS, key))
        known = st.session_state[_FOUND] = asked, found
    show_html(
        search_view(query, known[1], t), key="found", on_action=partial(_act_on_find, stored.id)
    )


def _act_on_find(collection: str, action: Action) -> None:
    """Look at a passage that was found, in its document."""
    if action["action"] == "passage" and action["value"]:
        document, _, number = action["value"].rpartition("#")
        if document and number.isdigit():
            open_document(collection, document, int(number))


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
    ready = _searchable()
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
                _ask_button(stored, stored.id in ready, t)
                st.button(
                    t("action.open"), key=f"open-{stored.id}", on_click=_open, args=(stored.id,)
                )
                delete_button(stored.id, t("library.delete.sure"), partial(_delete, stored.id))


def _searchable() -> set[str]:
    """Return the ids of the visitor's collections that have an index."""
    return {one.id for one in _collections().searchable(owner())}


def _ask_button(stored: StoredCollection, ready: bool, t: Catalogue) -> None:
    """Draw the way to a question that this collection answers, once it can be searched."""
    st.button(
        t("library.ask"),
        key=f"ask-{stored.id}",
        disabled=not ready,
        help=None if ready else t("library.ask.index"),
        on_click=ask_with,
        args=(stored.id,),
    )


def _try() -> None:
    """Make a collection of the bundled articles, indexed."""
    with remembered(_ERRORS):
        collections = _collections()
        collection = collections.create(owner(), messages()("library.try.name"))
        files = [
            (path.relative_to(SAMPLE_LIBRARY).as_posix(), path.read_bytes)
            for path in sorted(SAMPLE_LIBRARY.rglob("*.md"))
        ]
        collections.add_all(owner(), collection, files)
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
        _ask_button(stored, stored.id in _searchable(), t)
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
