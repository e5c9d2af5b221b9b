"""A search of a collection by words, by meaning and by both."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.engine import engine
from app.parts import Action, section_title, show_html
from app.screens.library_documents import open_document
from app.session import embedder_key, owner
from components.library_search import search_view
from components.messages import Catalogue
from pipelines.run.spec import MAX_QUESTION
from pipelines.store.collections import StoredCollection

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
    show_html(search_view(query, known[1], t), key="found", on_action=partial(_act, stored.id))


def _act(collection: str, action: Action) -> None:
    """Look at a passage that was found, in its document."""
    if action["action"] == "passage" and action["value"]:
        document, _, number = action["value"].rpartition("#")
        if document and number.isdigit():
            open_document(collection, document, int(number))
