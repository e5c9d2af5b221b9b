"""Small pieces that several pages share."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import streamlit as st
from plotly.graph_objects import Figure
from streamlit.components.v2 import component
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_popover_container import PopoverContainer
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import live
from app.engine import PERIOD
from app.session import language, messages
from components.ask import run_bar
from components.elements import error_note
from components.markup import shown, tag
from components.messages import Catalogue, lang
from components.page import illustration_note
from components.run_pages import view_failed
from components.theme import ASSETS, view_code
from pipelines.engine.checking import is_check
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.run.scope import unexpected
from pipelines.run.spec import RunSpec

T = TypeVar("T")

STOP_KEYS = "Alt+S"
"""What stops a run, an indexing or an evaluation; `c` and `r` are Streamlit's own."""

Action = dict[str, str | None]
"""What a button inside the HTML asks for: `action`, and the `value` it is asked for."""

_log = logging.getLogger(__name__)

_PAGE = "_wanted_page"
_QUERY = "_wanted_query"
_SHOWN = "_page_shown"
_WHOLE = "_whole_page"

# Streamlit sends a component's script and style again with everything it shows. A run is shown
# again three times a second, so both are sent once, by a component that shows nothing, and the
# component that shows HTML waits for them.
_code = component("veriscope_code", js=f"{view_code()}\nexport default function () {{}}")
_view = component(
    "veriscope_view",
    html='<div class="vs-root"></div>',
    js=(ASSETS / "streamlit.js").read_text(encoding="utf-8"),
)


def load_code() -> None:
    """Give the page what `show_html` needs; once in every pass of the script."""
    _code(key="veriscope-code")


def show_html(html: str, *, key: str, on_action: Callable[[Action], None] | None = None) -> None:
    """Show `html`, which must come from `components/`: Streamlit does not escape it.

    An element with the same `key` is patched, so that focus, scroll positions and opened details
    stay. `on_action` is called, as a widget's callback, when a button with `data-action` is used.
    """

    def asked() -> None:
        state: Any = st.session_state.get(key)
        action = state.get("action") if state else None
        if action and action["action"] == "glossary":
            # Every score of every page leads there.
            go_to("glossary", term=action["value"] or "")
        elif action and on_action is not None:
            on_action(action)

    _view(
        key=key,
        data={"html": str(html), "lang": lang(language())},
        on_action_change=asked,
    )


def page_title(text: str, note: str) -> None:
    """Draw the page's only first-level heading."""
    st.html(tag("header", tag("h1", text), tag("p", note), class_="workbench-title"))


def section_title(text: str, *, method: bool = False) -> None:
    """Draw the heading of a part of the page; of a whole `method`, whose parts have
    headings too.
    """
    st.html(tag("h2", text, class_="workbench-method" if method else "workbench-section"))


def draw_unfolded(fold: ExpanderContainer | PopoverContainer, draw: Callable[[], None]) -> None:
    """Fill what can be folded, only while it is unfolded.

    A hundred controls that nobody sees would delay every page. `fold` has to be one that draws the
    page again when it is opened (`on_change="rerun"`).
    """
    if fold.open:
        with fold:
            draw()


def heading(watched: live.Watched, t: Catalogue) -> None:
    """Draw the question a page is about, and whether it is answered by hand."""
    html = tag(
        "div",
        tag("h2", shown(watched.spec.question), class_="vs-question", dir="auto"),
        illustration_note(watched.view, t),
        class_="vs-run",
    )
    show_html(html, key="question-heading")


def draw_run(
    watched: live.Watched,
    draw: Callable[[live.Watched, Catalogue], None],
    *,
    title: str = "",
    beside: Callable[[live.Watched, Catalogue], None] | None = None,
) -> None:
    """Draw the run that is looked at, again and again while it goes on.

    On top is what ticks, with what `beside` draws, and Stop while there is something to stop;
    `draw` draws what is below, on the page called `title`, or on Ask.
    """
    running = not watched.pull().over

    def body() -> None:
        watched = live.current()
        if watched is None:
            return
        t = messages()
        view = watched.pull()
        with st.container(key="run-bar", horizontal=True, vertical_alignment="center"):
            with guarded(title or t("nav.ask"), key="bar"):
                bar = run_bar(view, t, now=time.time(), account=watched.account)
                show_html(bar, key="bar")
            if not view.over:
                stop_button(t, key="stop", stop=live.stop)
            if beside is not None:
                beside(watched, t)
        with guarded(title or t("nav.ask"), key="run"):
            draw(watched, t)
        if running and view.over:
            # The whole page is drawn again, without the fragment's period.
            st.rerun()

    # One fragment, running or not: what is drawn stays where it is when the run ends.
    draw_again(body, PERIOD if running else None)


def stop_button(t: Catalogue, *, key: str, stop: Callable[..., None], of: str = "") -> None:
    """Draw a button that stops what goes on, in reach by the keyboard too; it calls `stop(of)`.

    One of them is drawn on a page. The keys are held together with another, so that nobody who
    types or dictates stops anything.
    """
    args = (of,) if of else ()
    st.button(t("action.stop"), key=key, on_click=stop, args=args, shortcut=STOP_KEYS)


def show_error(error: ErrorInfo | VeriscopeError, *, key: str) -> None:
    """Show what went wrong and what to do about it."""
    info = error.info() if isinstance(error, VeriscopeError) else error
    show_html(error_note(info, messages()), key=key)


@contextmanager
def guarded(view: str, *, key: str = "page") -> Iterator[None]:
    """Let what is drawn inside fail: then the page says that `view` cannot be drawn, and goes on.

    Why is in the log. Streamlit would show its own error screen in place of the page. `key` tells
    the views of one page apart.
    """
    try:
        yield
    except Exception:
        _log.exception("The view %s cannot be drawn", view)
        show_html(view_failed(view, messages()), key=f"failed-{key}-{view}")


@contextmanager
def remembered(page: str) -> Iterator[None]:
    """Show by `draw_error` what goes wrong inside, until the next try. Called from a callback."""
    st.session_state[f"_error.{page}"] = None
    try:
        yield
    except VeriscopeError as error:
        st.session_state[f"_error.{page}"] = error.info()
    except Exception:
        # A mistake of ours. Streamlit would show its own error screen.
        _log.exception("A callback of the page %s failed", page)
        st.session_state[f"_error.{page}"] = unexpected().info()


def draw_error(page: str, other: VeriscopeError | None = None) -> bool:
    """Show what went wrong in a callback, else `other`; False where nothing did."""
    problem = st.session_state.get(f"_error.{page}") or other
    if problem is not None:
        show_error(problem, key=f"{page}-error")
    return problem is not None


def begin_run(page: str, spec: RunSpec | Callable[[], RunSpec]) -> None:
    """Start a run and look at it; `page` shows why it could not be. Called from a callback."""
    with remembered(page):
        live.start(spec() if callable(spec) else spec)
    redraw_whole()


def act(page: str, action: Action) -> None:
    """Act on a button that was used inside the run that `page` shows."""
    watched = live.current()
    if action["action"] == "open":
        go_to(action["value"] or "ask")
    elif action["action"] == "retry" and watched is not None:
        with remembered(page):
            live.start_again(watched)
        redraw_whole()


def in_rows(items: Sequence[T], width: int) -> Iterator[tuple[DeltaGenerator, T]]:
    """Yield each of `items` with the column it belongs into, `width` beside each other."""
    for start in range(0, len(items), width):
        columns = st.columns(width, gap="medium")
        yield from zip(columns, items[start : start + width], strict=False)


def choose_one(
    label: str, options: Sequence[T], key: str, text: Callable[[T], str], **look: Any
) -> T:
    """Return one of `options`, shown side by side, the first at first; `text` is what a visitor
    reads of one.
    """
    return st.segmented_control(
        label,
        options,
        default=options[0],
        required=True,
        format_func=text,
        key=key,
        **look,
    )


def key_field(label: str, key: str, **look: Any) -> None:
    """Draw a field for a secret; `look` is what `st.text_input` takes besides.

    What is typed is taken with every letter: Streamlit takes nothing while the focus stays inside
    the field, and Tab leads to its button that shows the secret, from where no key is ever taken.
    """
    st.text_input(label, key=key, type="password", autocomplete="off", live="0ms", **look)


def show_figure(figure: Figure, *, key: str) -> None:
    """Show a figure in the colours that it brings."""
    st.plotly_chart(figure, theme=None, key=key, config={"displayModeBar": False})


def delete_button(key: str, sure: str, delete: Callable[[], None]) -> None:
    """Draw a button that asks before it deletes."""
    word = messages()("action.delete")
    with st.popover(word, key=f"delete-{key}"):
        st.text(sure)
        st.button(word, key=f"sure-{key}", type="primary", on_click=delete)


def disambiguate(words: Mapping[str, str]) -> dict[str, str]:
    """Return runs by their ids, in words; those that several runs share are followed by the
    id's start.

    A select box identifies its options by their text.
    """
    count = Counter(words.values())
    return {
        run: f"{label} · {run[:8]}" if count[label] > 1 else label for run, label in words.items()
    }


def go_to(page: str, **query: str) -> None:
    """Open another page as soon as the script runs; `query` is in its address. Called from a
    callback.
    """
    st.session_state[_PAGE], st.session_state[_QUERY] = page, query
    # In a fragment's callback too: what it changed concerns the whole page.
    redraw_whole()


def show_run(run_id: str) -> None:
    """Look at a run, on the page Check where it checks a text, else on Ask. Called from a callback.

    Raises NotFoundError where this browser has no such run.
    """
    live.open_run(run_id)
    go_to(page_of_run())


def page_of_run() -> str:
    """Return the page that is about the run that is looked at."""
    watched = live.current()
    return "check" if watched is not None and is_check(watched.spec) else "ask"


def take_wanted_page() -> tuple[str, dict[str, str]] | None:
    """Return the page that a callback asked for with what its address holds, once."""
    page, query = st.session_state.pop(_PAGE, None), st.session_state.pop(_QUERY, {})
    if page is None:
        return None
    # Another page is drawn whole anyway.
    st.session_state.pop(_WHOLE, None)
    return page, query


def leave_page(page: str) -> None:
    """Forget the fragments of the page that was shown before, once it is another one.

    Its browser asks for them until it has heard of the new page. Streamlit would answer in the name
    of the page before, upon which the browser drops what the new page has drawn.
    """
    if st.session_state.get(_SHOWN) != page and (context := get_script_run_ctx()) is not None:
        context.fragment_storage.clear()
    st.session_state[_SHOWN] = page


def redraw_whole() -> None:
    """Draw the whole page again. Called from a callback of a fragment."""
    st.session_state[_WHOLE] = True


def draw_again(body: Callable[[], None], every: float | None) -> None:
    """Draw a part of the page as a fragment, and again every so many seconds; None: when asked.

    Where a callback of it concerns the whole page (`redraw_whole`), that is drawn instead.
    """

    @wraps(body)
    def drawn() -> None:
        if st.session_state.pop(_WHOLE, False):
            st.rerun()
        body()

    st.fragment(drawn, run_every=every)()
