"""Small pieces that several pages share."""

from __future__ import annotations

import streamlit as st

from app import live
from app.engine import engine
from app.session import language, messages, theme
from app.view_component import Action, show_html
from components.markup import tag
from components.method_card import error_note
from pipelines.errors import ErrorInfo, VeriscopeError

__all__ = ["page_title", "remember_error", "run_again", "show_error", "take_error"]


def page_title(text: str, note: str = "") -> None:
    """The page's only first-level heading."""
    line = tag("p", note) if note else None
    st.html(tag("header", tag("h1", text), line, class_="workbench-title"))


def show_error(error: ErrorInfo | VeriscopeError, *, key: str, retry: str | None = None) -> None:
    """What went wrong and what to do about it."""
    info = error.info() if isinstance(error, VeriscopeError) else error
    show_html(error_note(info, messages(), retry=retry), key=key, language=language())


def remember_error(place: str, error: VeriscopeError | None) -> None:
    """Keep what went wrong in a callback until the page is drawn."""
    st.session_state[f"_error.{place}"] = error.info() if error else None


def take_error(place: str) -> ErrorInfo | None:
    """What went wrong, as long as nothing else was tried."""
    return st.session_state.get(f"_error.{place}")
