"""The Glossary page: what the numbers and the words of the field mean, searchable."""

from __future__ import annotations

import streamlit as st

from app.page import page_title, show_html
from app.session import messages
from components.base.html import tag
from components.base.words import KINDS, entries, glossary_view, matches

_SEARCH = "glossary.search"
_KINDS = "glossary.kinds"
_TERM = "term"


def show() -> None:
    """Draw the page; `?term=` in the address brings an entry into view."""
    t = messages()
    page_title(t("glossary.title"), t("glossary.note"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            t("glossary.search"),
            key=_SEARCH,
            placeholder=t("glossary.search.placeholder"),
            autocomplete="off",
            live=True,
            persist_state="session",
            on_change=_look_elsewhere,
        )
        chosen = st.pills(
            t("glossary.kinds"),
            KINDS,
            selection_mode="multi",
            format_func=lambda kind: t(f"glossary.kind.{kind}"),
            key=_KINDS,
            label_visibility="collapsed",
            persist_state="session",
            on_change=_look_elsewhere,
        )
    term = st.query_params.get(_TERM, "")
    if term in entries():
        # A search that is still there would hide what was asked for.
        search, chosen = "", ()
    if not any(matches(one, search or "") for one in entries().values()):
        st.html(tag("p", t("glossary.none"), class_="workbench-empty", role="status"))
        return
    html = glossary_view(t, search=search or "", kinds=chosen or KINDS, term=term)
    show_html(html, key="glossary")


def _look_elsewhere() -> None:
    """Drop the entry that the address names. Called from a callback of the search."""
    st.query_params.pop(_TERM, None)
