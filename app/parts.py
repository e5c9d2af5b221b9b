"""Small pieces that several pages share."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

import streamlit as st

from app import live
from app.engine import engine
from app.session import language, messages
from app.view_component import Action, show_html
from components.ask import ask_view, run_bar
from components.elements import error_note
from components.markup import shown, tag
from components.messages import Catalogue
from components.page import illustration_note
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.run.view import RunView

__all__ = [
    "disambiguate",
    "draw_live_run",
    "draw_run_bar",
    "go_to",
    "heading",
    "page_title",
    "redraw_if_asked",
    "remember_error",
    "section_title",
    "show_error",
    "take_error",
    "take_wanted_page",
    "whole_page",
]

_PAGE = "_wanted_page"
_WHOLE = "_whole_page"


def page_title(text: str, note: str = "") -> None:
    """The page's only first-level heading."""
    line = tag("p", note) if note else None
    st.html(tag("header", tag("h1", text), line, class_="workbench-title"))


def section_title(text: str) -> None:
    """The heading of a part of the page."""
    st.html(tag("h2", text, class_="workbench-section"))


def heading(view: RunView, t: Catalogue) -> None:
    """The question a page is about, and whether it is answered by hand."""
    question = view.header.spec.question if view.header else ""
    html = tag(
        "div",
        tag("h2", shown(question), class_="vs-question", dir="auto"),
        illustration_note(view, t),
        class_="vs-run",
    )
    show_html(html, key="question-heading", language=t.language)


def draw_run_bar(view: RunView, t: Catalogue, *, now: float | None = None) -> None:
    """What ticks, with Stop beside it while there is something to stop."""
    now = now or time.time()
    with st.container(key="run-bar", horizontal=True, vertical_alignment="center"):
        show_html(run_bar(view, t, now=now), key="bar", language=t.language)
        if not view.over:
            st.button(t("action.stop"), key="stop", on_click=live.stop)


def draw_live_run(*, key: str, on_action: Callable[[Action], None], running: bool) -> None:
    """From a fragment: the run that is looked at, as it is now.

    `running` says that it went on when the fragment was set up: once it is over, the whole page is
    drawn again, without the fragment's period.
    """
    watched = live.current()
    if watched is None:
        return
    redraw_if_asked()
    t = messages()
    view = watched.pull()
    now = time.time()
    draw_run_bar(view, t, now=now)
    html = ask_view(view, t, now=now, loading=engine().service.loading())
    show_html(html, key=key, language=t.language, on_action=on_action)
    if running and view.over:
        st.rerun()


def show_error(error: ErrorInfo | VeriscopeError, *, key: str, retry: str | None = None) -> None:
    """What went wrong and what to do about it."""
    info = error.info() if isinstance(error, VeriscopeError) else error
    show_html(error_note(info, messages(), retry=retry), key=key, language=language())


def remember_error(place: str, error: VeriscopeError | None) -> None:
    """Keep what went wrong in a callback until the page is drawn."""
    st.session_state[f"_error.{place}"] = error.info() if error else None


def take_error(place: str) -> ErrorInfo | None:
    """What went wrong, until the visitor tries something else."""
    return st.session_state.get(f"_error.{place}")


def disambiguate(words: Mapping[str, str]) -> dict[str, str]:
    """Runs by their ids, in words; those that several runs share are followed by the id's start.

    A select box identifies its options by their text.
    """
    count = Counter(words.values())
    return {
        run: f"{label} · {run[:8]}" if count[label] > 1 else label for run, label in words.items()
    }


def go_to(page: str) -> None:
    """From a callback: open another page as soon as the script runs."""
    st.session_state[_PAGE] = page
    whole_page()


def take_wanted_page() -> str | None:
    """The page that a callback asked for, once."""
    return st.session_state.pop(_PAGE, None)


def whole_page() -> None:
    """From a callback of a fragment: what it changed concerns the whole page."""
    st.session_state[_WHOLE] = True


def redraw_if_asked() -> None:
    """In a fragment: draw the whole page again if a callback asked for that."""
    if st.session_state.pop(_WHOLE, False):
        st.rerun()
