"""Small pieces that several pages share."""

from __future__ import annotations

import logging
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial, wraps
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import streamlit as st
from plotly.graph_objects import Figure
from streamlit.components.v2 import component
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_popover_container import PopoverContainer
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.engine import PERIOD, Watched, engine
from app.routes import RECORD, REPORT
from app.session import keys_for, language, messages, owner, planned
from components.ask import run_bar
from components.base.elements import error_note, notice
from components.base.html import shown, tag
from components.base.theme import labelling_code, view_code
from components.base.words import Catalogue, lang
from components.page import illustration_note
from components.run.report import report_html, view_failed
from pipelines.base import ASSETS, Language
from pipelines.engine.asking import RunRequest
from pipelines.engine.checking import is_check
from pipelines.engine.estimate import refuse_excess
from pipelines.errors import ErrorInfo, VeriscopeError
from pipelines.jobs import NotYet
from pipelines.run.events import ModelCalled, RunSpec
from pipelines.run.scope import unexpected
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines, recordings_with

# The run a visitor is looking at: followed while it happens, read from the store afterwards.

_WATCHED = "_watched"


def start(
    asked: RunRequest | RunSpec, *, anyway: bool = False, known: Iterable[ModelCalled] = ()
) -> None:
    """Start a run and look at it; raises what planning and starting it raise.

    Raises VeriscopeError where it is expected to pass a limit of the session, unless `anyway`: then
    it ends there. What `known` calls were answered is not asked again.
    """
    plan = planned(asked)
    if not anyway:
        refuse_excess(plan.budget)
    keys = keys_for(plan.spec)
    start = engine().service.start(plan, owner=owner(), keys=keys, known=tuple(known))
    open_run(engine().call(start))


def start_again(watched: Watched) -> None:
    """Run what was run once more. What a run that ended at a limit was answered is known."""
    events = watched.trace.events if watched.view.limit else ()
    start(watched.spec, known=[one for one in events if isinstance(one, ModelCalled)])


def open_run(run_id: str) -> None:
    """Look at a run, live or recorded. Raises NotFoundError if this browser has no such run."""
    watched = watch(run_id)
    close()
    st.session_state[_WATCHED] = watched
    st.query_params["run"] = run_id


def watch(run_id: str) -> Watched:
    """Return a run, live or recorded, beside the one that is looked at. Raises NotFoundError."""
    service, looked_at = engine().service, current()
    if looked_at is not None and looked_at.run_id == run_id:
        # What a run that is over took is known only where it was followed.
        account = looked_at.account
    else:
        account = service.account(run_id, owner=owner())
    return Watched(run_id, engine().call(service.watch(run_id, owner=owner())), account)


def current() -> Watched | None:
    """Return the run that is looked at, if any."""
    return st.session_state.get(_WATCHED)


def follow_address() -> VeriscopeError | None:
    """Make the address's `run` and the run that is looked at the same; the address comes first.

    Returns why the run of the address cannot be shown, if it cannot.
    """
    asked, watched = st.query_params.get("run"), current()
    if asked and (watched is None or watched.run_id != asked):
        try:
            open_run(asked)
        except VeriscopeError as error:
            close()
            return error
    elif watched is not None and not asked:
        st.query_params["run"] = watched.run_id
    return None


def stop() -> None:
    """End the run that is looked at; what it has stays."""
    watched = current()
    if watched is not None:
        engine().call(engine().service.stop(watched.run_id, owner=owner()))


def close() -> None:
    """Look at no run any more."""
    watched = st.session_state.pop(_WATCHED, None)
    if watched is not None:
        watched.close()


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
    """Draw the page's only first-level heading, and a note under it if there is one."""
    below = tag("p", note) if note else None
    st.html(tag("header", tag("h1", text), below, class_="workbench-title"))


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


def heading(watched: Watched, t: Catalogue) -> None:
    """Draw the question a page is about, and whether it is answered by hand."""
    html = tag(
        "div",
        tag("h2", shown(watched.spec.question), class_="vs-question", dir="auto"),
        illustration_note(watched.view, t),
        class_="vs-run",
    )
    show_html(html, key="question-heading")


def draw_run(
    watched: Watched,
    draw: Callable[[Watched, Catalogue], None],
    *,
    title: str = "",
    beside: Callable[[Watched, Catalogue], None] | None = None,
) -> None:
    """Draw the run that is looked at, again and again while it goes on.

    On top is what ticks, with what `beside` draws, and Stop while there is something to stop;
    `draw` draws what is below, on the page called `title`, or on Ask.
    """
    running = not watched.pull().over

    def body() -> None:
        watched = current()
        if watched is None:
            return
        t = messages()
        view = watched.pull()
        with st.container(key="run-bar", horizontal=True, vertical_alignment="center"):
            with guarded(title or t("nav.ask"), key="bar"):
                bar = run_bar(view, t, now=time.time(), account=watched.account)
                show_html(bar, key="bar")
            if not view.over:
                stop_button(t, key="stop", stop=stop)
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


def draw_no_run(page: str, text: str, methods: Collection[str], t: Catalogue) -> None:
    """Say in `text` that there is no run to show; offer Ask, and a recorded run in the visitor's
    language that used one of `methods`.
    """
    show_html(notice(text, "no-runs"), key="no-runs")
    found = recordings_with(language(), methods)
    with st.container(horizontal=True):
        if found:
            st.button(
                t("page.recorded"),
                type="primary",
                key=f"{page}-recorded",
                on_click=_open_recorded,
                args=(page, found[0].id),
            )
        st.button(t("nav.ask"), key=f"{page}-ask", on_click=go_to, args=("ask",))


def _open_recorded(page: str, name: str) -> None:
    with remembered(page):
        open_run(name)


def begin_run(page: str, spec: RunSpec | Callable[[], RunSpec]) -> None:
    """Start a run and look at it; `page` shows why it could not be. Called from a callback."""
    with remembered(page):
        start(spec() if callable(spec) else spec)
    redraw_whole()


def act(page: str, action: Action) -> None:
    """Act on a button that was used inside the run that `page` shows."""
    watched = current()
    if action["action"] == "open":
        go_to(action["value"] or "ask")
    elif action["action"] == "retry" and watched is not None:
        with remembered(page):
            start_again(watched)
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
    open_run(run_id)
    go_to(page_of_run())


def page_of_run() -> str:
    """Return the page that is about the run that is looked at."""
    watched = current()
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


# What a page shows in place of a result that is still being computed.

_LOOK = 1.0
"""Seconds between two looks at a result that is being computed."""


@contextmanager
def computing_shown(key: str) -> Iterator[None]:
    """Show what is being computed, or why that failed, in place of what the block draws.

    `key` is different for each part of a page.
    """
    try:
        with st.spinner(messages()("evaluate.computing")):
            yield
    except NotYet as asked:
        _wait_for_computing(asked, key)
    except VeriscopeError as error:
        show_error(error, key=f"computing-error-{key}")


def _wait_for_computing(asked: NotYet, key: str) -> None:
    """Say that the rest is being computed, and draw the page again when it is."""

    def body() -> None:
        said = messages()("evaluate.computing.long")
        show_html(notice(said, "computing", role="status"), key=f"computing-{key}")
        if not asked.job.going_on:
            st.rerun()

    draw_again(body, _LOOK)


# What a visitor can keep of a run: its address, its report, its record.

_SHORT = 8


def run_address(run_id: str) -> str:
    """Return the address at which this browser can open the run again at any time.

    It is the first page's, whose name the server leaves out.
    """
    return _beside("", f"run={run_id}")


def _beside(path: str, query: str) -> str:
    """Return the absolute address of what the server has at `path`, from that of the page
    in view.
    """
    parts = urlsplit(st.context.url or "")
    folder = parts.path.rpartition("/")[0]
    return urlunsplit((parts.scheme, parts.netloc, f"{folder}/{path}", query, ""))


def save_buttons(run_id: str, t: Catalogue, *, key: str, disabled: bool = False) -> None:
    """Draw buttons that save the report and the record of a run; each is made when it is asked for.

    `disabled` where the run is not over.
    """
    name = f"veriscope-{run_id[:_SHORT]}"
    st.download_button(
        t("runs.report"),
        data=partial(_report, run_id, owner(), language()),
        file_name=f"{name}.html",
        mime="text/html",
        key=f"report-{key}",
        help=t("runs.report.help"),
        on_click="ignore",
        disabled=disabled,
    )
    st.download_button(
        t("action.export"),
        data=partial(_exported, run_id, owner()),
        file_name=f"{name}.jsonl",
        mime="application/jsonl",
        key=f"export-{key}",
        help=t("runs.export.help"),
        on_click="ignore",
        disabled=disabled,
    )


def show_address(run_id: str, t: Catalogue) -> None:
    """Show the run's own address, with a button that copies it, and those of its report
    and record.
    """
    st.caption(t("runs.address"))
    st.code(run_address(run_id), language=None, wrap_lines=True)
    report = _beside(REPORT.format(run=run_id), f"lang={language()}")
    record = _beside(RECORD.format(run=run_id), "")
    st.caption(f"[{t('runs.report.open')}]({report}) · [{t('runs.record.open')}]({record})")


def _report(run_id: str, whose: str, wanted: Language) -> str:
    trace = engine().call(engine().service.load(run_id, owner=whose))
    return report_html(fold(trace.events), Catalogue(wanted))


def _exported(run_id: str, whose: str) -> str:
    # The service knows recorded samples, and runs that could not be stored, too.
    return "".join(export_lines(engine().call(engine().service.load(run_id, owner=whose))))


def address_note(run_id: str) -> None:
    """Draw a folded note with the address, for a page that has little room."""
    t = messages()
    with st.popover(t("runs.link"), key=f"link-{run_id}"):
        show_address(run_id, t)


# Streamlit's own words in the language of the page: its upload field, its menu, its lists.

_words = component("veriscope_wording", js=(ASSETS / "wording.js").read_text(encoding="utf-8"))


@cache
def framework_words(language: Language) -> dict[str, Any]:
    """Return what the script replaces, and where; in English only what names Streamlit itself."""
    source = (ASSETS / "streamlit_words.toml").read_text(encoding="utf-8")
    found = tomllib.loads(source)
    if language == "en":
        # They are all in the dialog that says that the server is gone.
        places = ["[data-testid='stDialog']"]
        return {"places": places, "words": found["english"], "patterns": []}
    patterns = [list(pair) for pair in found["patterns"].items()]
    words = {**found["english"], **found["words"]}
    return {"places": found["places"], "words": words, "patterns": patterns}


def word_framework(language: Language) -> None:
    """Put Streamlit's own words into `language`, as they appear."""
    _words(key="veriscope-wording", data=framework_words(language))


# The component in which people label an item or decide one, on a page of Streamlit.

# As with other views: the code is sent once by a component that shows nothing, and the component
# that shows an item waits for it. It stands in the page itself and not in a shadow of its own,
# because browsers do not agree on what a selection inside a shadow is.
_labelling_code = component(
    "veriscope_labelling_code", js=f"{labelling_code()}\nexport default function () {{}}"
)
_labelling = component(
    "veriscope_labelling",
    html='<div class="vs-root vs-lab"></div>',
    js=(ASSETS / "labelling.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def show_labelling(
    data: dict[str, Any], *, key: str, on_request: Callable[[dict[str, Any]], None]
) -> None:
    """Show an item: `data` is what `components.annotate.labelling` makes of it.

    `on_request` is called, as a widget's callback, with everything that the component asks for:
    `{"action": ..., "item": ..., "client": ..., ...}`. What is missing or wrong in it is for
    `on_request` to find out: it comes from a browser.
    """

    count = f"_labelling.{key}"

    def asked() -> None:
        st.session_state[count] = st.session_state.get(count, 0) + 1
        state: Any = st.session_state.get(key)
        request = state.get("request") if state else None
        if isinstance(request, dict) and isinstance(request.get("action"), str):
            on_request(request)

    _labelling_code(key="labelling-code")
    # By the count the component knows an answer, also where it is the same as the one before.
    answer = data | {"asked": st.session_state.get(count, 0)}
    _labelling(key=key, data=answer, on_request_change=asked)
