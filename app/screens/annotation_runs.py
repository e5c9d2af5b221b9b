"""Choosing among this browser's runs, and the recorded samples: by text, method and date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import streamlit as st

from app.engine import engine
from app.screens.run_row import local_time
from app.session import owner
from components.markup import shown, tag
from components.messages import Catalogue, integer, named
from pipelines.methods.registry import METHODS
from pipelines.store.recordings import recordings

MOST_RUNS = 5_000
"""The newest runs, among which is chosen."""

_PAGE = 10
_KEPT: Any = {"persist_state": "session"}


class RunLine(NamedTuple):
    """A run as it is chosen; `when` is empty for a sample, which belongs to nobody."""

    id: str
    question: str
    methods: tuple[str, ...]
    when: str = ""


def draw_runs(place: str, t: Catalogue) -> dict[str, str]:
    """Draw the filters and the runs that match; return those that are picked, with their
    questions.
    """
    with st.container(key=f"{place}-filters"):
        text, methods, since, until = _filters(place, t)
    found = [one for one in _lines(text) if _matches(one, methods, since, until)]
    everything = st.checkbox(
        t("annotate.runs.all", count=integer(len(found))),
        key=f"{place}.all",
        disabled=not found,
        help=t("annotate.runs.all.help"),
        **_KEPT,
    )
    if not found:
        st.html(tag("p", t("annotate.runs.none"), class_="workbench-empty"))
        return {}
    if everything:
        return {one.id: one.question for one in found}
    _rows(place, found, t)
    return {one.id: one.question for one in found if st.session_state.get(f"{place}.pick.{one.id}")}


def _filters(place: str, t: Catalogue) -> tuple[str, Sequence[str], date | None, date | None]:
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        text = st.text_input(
            t("runs.search"),
            type="search",
            key=f"{place}.text",
            max_chars=200,
            live="300ms",
            **_KEPT,
        )
    with right:
        methods = st.multiselect(
            t("annotate.runs.methods"),
            list(METHODS),
            key=f"{place}.methods",
            format_func=lambda name: named("method", name, t),
            placeholder=t("annotate.runs.methods.any"),
            **_KEPT,
        )
    dates: list[date | None] = []
    for column, name in zip(st.columns(2, gap="medium"), ("since", "until"), strict=True):
        with column:
            dates.append(
                st.date_input(
                    t(f"annotate.runs.{name}"), value=None, key=f"{place}.{name}", **_KEPT
                )
            )
    return text or "", methods, dates[0], dates[1]


def _lines(text: str) -> list[RunLine]:
    """Return the runs whose question contains `text`, the newest first, then the samples."""
    stored = engine().service.store.list(owner(), limit=MOST_RUNS, text=text or None)
    own = [
        RunLine(one.id, one.question, one.methods, local_time(one))
        for one in stored
        if one.status != "running"
    ]
    samples = [
        RunLine(one.id, one.question, one.methods)
        for one in recordings()
        if text.casefold() in one.question.casefold()
    ]
    return own + samples


def _matches(line: RunLine, methods: Sequence[str], since: date | None, until: date | None) -> bool:
    if methods and not set(methods) & set(line.methods):
        return False
    if not (since or until):
        return True
    # A sample has no date of this browser's.
    day = line.when[:10]
    return bool(day) and (str(since or day) <= day <= str(until or day))


def _rows(place: str, found: Sequence[RunLine], t: Catalogue) -> None:
    shown_count = f"_{place}.shown"
    limit = st.session_state.get(shown_count, _PAGE)
    for line in found[:limit]:
        with st.container(
            border=True, horizontal=True, vertical_alignment="center", key=f"card-{place}-{line.id}"
        ):
            st.checkbox(
                t("annotate.runs.pick.one", question=line.question),
                key=f"{place}.pick.{line.id}",
                label_visibility="collapsed",
                **_KEPT,
            )
            facts = [t("list.separator").join(named("method", one, t) for one in line.methods)]
            facts.append(line.when or t("annotate.runs.sample"))
            st.html(
                tag(
                    "div.workbench-run",
                    tag("p.workbench-run-question", shown(line.question), dir="auto"),
                    tag("p.workbench-run-facts", " · ".join(facts)),
                )
            )
    if len(found) > limit:
        st.button(
            t("runs.more"), key=f"{place}.more", on_click=_show_more, args=(shown_count, limit)
        )


def _show_more(name: str, limit: int) -> None:
    st.session_state[name] = limit + 2 * _PAGE
