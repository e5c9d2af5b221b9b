"""The Compare page: methods of one run, or of several, side by side.

The address says what is compared, and the controls follow it: `?runs=a,b` names runs, whose
methods are chosen here, `?runs=a:drad,b:drad` methods of runs. Without it, the run that is looked
at is taken. Of two runs, `&view=changes` shows what changed from one to the other.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import get_args

import streamlit as st

from app import page
from app.engine import PERIOD, engine
from app.page import (
    choose_one,
    disambiguate,
    draw_again,
    draw_error,
    guarded,
    page_title,
    remembered,
    show_error,
    show_html,
)
from app.screens.runs import COMPARE_VIEW, TO_COMPARE, local_time
from app.session import messages, owner
from components.ask import run_bar
from components.base.elements import notice
from components.base.words import Catalogue, named
from components.run.compare import MOST_COMPARED, Against, CompareColumn, changes_view, compare_view
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS

_FEWEST = 2
_LISTED = 100
_AGAINST: tuple[Against, ...] = get_args(Against)
_OPENED = "_compare.opened"
_RUNS = "compare.runs"
_COLUMNS = "compare.columns"
_VIEW = "compare.view"
_VIEWS = ("side", "changes")
_TWO = 2


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("compare.title"), t("compare.note"))
    draw_error("compare")
    asked = _asked()
    opened = _follow(asked)
    labels = _labels(opened)
    if not labels:
        page.draw_no_run("compare", t("compare.no_runs"), METHODS, t)
        return
    # The address decides: what the control shows is set to it before every drawing.
    st.session_state[_RUNS] = list(opened)
    st.multiselect(
        t("compare.runs"),
        list(labels),
        key=_RUNS,
        format_func=labels.__getitem__,
        max_selections=MOST_COMPARED,
        placeholder=t("compare.nothing"),
        on_change=_take_runs,
    )
    if len(opened) == _TWO and _chosen_view(t) == "changes":
        _draw_changes(list(opened.values()), t)
        return
    columns = _choose_columns(asked, opened, t) if opened else []
    running = any(not opened[_run_of(column)].view.over for column in columns)
    draw_again(partial(_draw, columns, running), PERIOD if running else None)


def _run_of(part: str) -> str:
    """Return the run of a part of the address, which may be followed by a colon and a method."""
    return part.partition(":")[0]


def _asked() -> list[str]:
    """Return the parts of the address, or what another page has just asked for."""
    wanted = st.session_state.pop(TO_COMPARE, None)
    if wanted:
        st.query_params["runs"] = ",".join(wanted)
        _take_view(st.session_state.pop(COMPARE_VIEW, None))
    parts = [text.strip() for text in st.query_params.get("runs", "").split(",")]
    asked = list(dict.fromkeys(part for part in parts if _run_of(part)))
    if asked:
        return asked
    missing = page.follow_address()
    if missing is not None:
        show_error(missing, key="compare-missing")
    watched = page.current()
    return [watched.run_id] if watched is not None else []


def _follow(asked: Sequence[str]) -> dict[str, page.Watched]:
    """Return the runs that can be shown, as they are now; for the others, the reason why
    they cannot.
    """
    known: dict[str, page.Watched] = st.session_state.get(_OPENED, {})
    opened: dict[str, page.Watched] = {}
    for number, run in enumerate(list(dict.fromkeys(map(_run_of, asked)))[:MOST_COMPARED]):
        try:
            opened[run] = known.get(run) or page.watch(run)
        except VeriscopeError as error:
            show_error(error, key=f"compare-missing-{number}")
        else:
            opened[run].pull()
    for run, watched in known.items():
        if run not in opened:
            watched.close()
    st.session_state[_OPENED] = opened
    return opened


def _labels(opened: Mapping[str, page.Watched]) -> dict[str, str]:
    """Return the runs there are to choose from, with words that distinguish each from
    all others.
    """
    words = {run: watched.spec.question for run, watched in opened.items()}
    for run in engine().service.store.list(owner(), limit=_LISTED):
        words[run.id] = f"{run.title} · {local_time(run)}"
    return disambiguate(words)


def _take_runs() -> None:
    st.query_params["runs"] = ",".join(st.session_state[_RUNS])


def _chosen_view(t: Catalogue) -> str:
    """Return how two runs are shown; the address decides, as it does for the runs."""
    # Not bound by Streamlit: the address would hold the words of one language.
    asked = st.query_params.get("view")
    st.session_state[_VIEW] = asked if asked in _VIEWS else _VIEWS[0]
    st.segmented_control(
        t("compare.view"),
        _VIEWS,
        required=True,
        format_func=lambda name: t(f"compare.view.{name}"),
        key=_VIEW,
        on_change=lambda: _take_view(st.session_state[_VIEW]),
    )
    return st.session_state[_VIEW]


def _take_view(view: str | None) -> None:
    if view == "changes":
        st.query_params["view"] = view
    else:
        st.query_params.pop("view", None)


def _draw_changes(opened: Sequence[page.Watched], t: Catalogue) -> None:
    """Draw what changed between two runs, once both are over."""
    views = [watched.pull() for watched in opened]
    if not all(view.over for view in views):
        show_html(notice(t("changes.running"), "running"), key="changes-running")
        return
    with guarded(t("compare.view.changes")):
        show_html(changes_view(views[0], views[1], t), key="changes-view")


def _choose_columns(
    asked: Sequence[str], opened: Mapping[str, page.Watched], t: Catalogue
) -> list[str]:
    labels = {
        f"{run}:{method}": named("method", method, t)
        if len(opened) == 1
        else t("compare.option", number=number, method=named("method", method, t))
        for number, run in enumerate(opened, start=1)
        for method in opened[run].methods
    }
    if any(":" in part for part in asked):
        chosen = [part for part in asked if part in labels]
    else:
        chosen = _suggested({run: watched.methods for run, watched in opened.items()})
    st.session_state[_COLUMNS] = chosen[:MOST_COMPARED]
    left, right = st.columns([3, 1.4], gap="medium", vertical_alignment="bottom")
    with left:
        picked = st.multiselect(
            t("compare.methods"),
            list(labels),
            key=_COLUMNS,
            format_func=labels.__getitem__,
            max_selections=MOST_COMPARED,
            placeholder=t("compare.hint"),
            on_change=_take_columns,
            args=(list(opened),),
        )
    with right:
        choose_one(
            t("compare.against"),
            _AGAINST,
            "compare.against",
            lambda name: t(f"compare.against.{name}"),
            persist_state="session",
        )
    if len(picked) < _FEWEST:
        st.caption(t("compare.hint"))
    return picked


def _take_columns(runs: Sequence[str]) -> None:
    picked = st.session_state[_COLUMNS]
    used = set(map(_run_of, picked))
    # A run none of whose methods is chosen stays available, without a suggestion for it.
    left = [f"{run}:" for run in runs if run not in used]
    st.query_params["runs"] = ",".join([*picked, *left])


def _suggested(methods: Mapping[str, Sequence[str]]) -> list[str]:
    """Return, of one run, all methods; of several, the same ones of each, those that judge
    before others.
    """
    runs = list(methods)
    if len(runs) == 1:
        return [f"{runs[0]}:{method}" for method in methods[runs[0]]]
    common = [name for name in methods[runs[0]] if all(name in methods[run] for run in runs)]
    if not common:
        return [f"{run}:{_telling(methods[run])[0]}" for run in runs]
    fitting = _telling(common)[: max(1, MOST_COMPARED // len(runs))]
    return [f"{run}:{name}" for name in fitting for run in runs]


def _telling(methods: Sequence[str]) -> list[str]:
    return sorted(methods, key=lambda name: name in METHODS and not METHODS[name].judges)


def _draw_bars(runs: Mapping[str, page.Watched], used: Collection[str], t: Catalogue) -> None:
    """Draw what those `used` of the `runs` that were followed here have taken, each with Stop while
    it goes on.
    """
    for number, (run, watched) in enumerate(runs.items(), start=1):
        if run not in used or watched.account is None:
            continue
        with st.container(key=f"run-bar-{number}", horizontal=True, vertical_alignment="center"):
            with guarded(t("nav.compare"), key=f"bar-{number}"):
                bar = run_bar(watched.view, t, now=time.time(), account=watched.account)
                show_html(bar, key=f"compare-bar-{number}")
            if not watched.view.over:
                # With several runs, each button says which of them it stops.
                word = t("compare.stop", number=number) if len(runs) > 1 else t("action.stop")
                st.button(word, key=f"stop-{number}", on_click=_stop, args=(run,))


def _stop(run: str) -> None:
    with remembered("compare"):
        engine().call(engine().service.stop(run, owner=owner()))


def _draw(columns: Sequence[str], running: bool) -> None:
    """Draw, from a fragment, the columns as they are now."""
    t = messages()
    opened: dict[str, page.Watched] = st.session_state.get(_OPENED, {})
    present = [column for column in columns if _run_of(column) in opened]
    views = {run: opened[run].pull() for run in dict.fromkeys(map(_run_of, present))}
    parts = (column.partition(":") for column in present)
    compared = [CompareColumn(views[run], method) for run, _, method in parts]
    against = st.session_state.get("compare.against") or _AGAINST[0]
    _draw_bars(opened, views, t)
    with guarded(t("nav.compare")):
        html = compare_view(compared, t, against=against, now=time.time())
        show_html(html, key="compare-view")
    if running and all(view.over for view in views.values()):
        st.rerun()
