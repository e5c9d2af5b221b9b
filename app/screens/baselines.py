"""What the page Baselines has beside its runs: all of them in a table, and a run of some."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import page as live
from app.page import draw_again, redraw_whole, remembered, section_title, show_html
from app.screens.setup import asked_of, chosen_estimates
from app.session import messages
from components.base.words import Catalogue, integer, method_names, named
from components.run.calls import flow_diagram
from components.run.report import PAGES, paper_section
from pipelines.evaluation.results.papers import has_paper
from pipelines.methods.registry import METHODS, grouped_methods

_PAGE = "baselines"
_QUESTION = "baselines.question"
_TABLE = "baselines.table"
_AT_FIRST = 2
"""So many of them are chosen until somebody chooses: enough to see how a choice looks."""


def draw_overview(question: str = "") -> None:
    """Draw the table, what those that are chosen do, and the form that asks them `question`."""
    st.session_state.setdefault(_QUESTION, question)

    # A fragment: a choice in the table does not draw the runs again.
    def body() -> None:
        t = messages()
        names = PAGES[_PAGE]
        chosen = [names[row] for row in _table(names, t) if row < len(names)]
        line = {"horizontal": True, "vertical_alignment": "bottom"}
        with st.form("baselines-form", border=False), st.container(key="ask-baselines", **line):
            st.text_input(
                t("ask.question"),
                key=_QUESTION,
                placeholder=t("ask.placeholder"),
                autocomplete="off",
                persist_state="session",
            )
            run = partial(_run, tuple(chosen))
            st.form_submit_button(
                t("action.run"), type="primary", key="baselines-run", on_click=run
            )
        listed = method_names(chosen, t) if chosen else t("baselines.choose")
        st.caption(t("baselines.chosen", list=listed) if chosen else listed)
        for name in chosen:
            _explain(name, t)

    draw_again(body, None)


def _table(names: Sequence[str], t: Catalogue) -> Sequence[int]:
    """Draw what each baseline is and takes; return the rows that are chosen."""
    group = {name: kind for kind, some in grouped_methods().items() for name in some}
    calls = chosen_estimates(names)
    rows = {
        t("baselines.method"): [named("method", name, t) for name in names],
        t("baselines.kind"): [t(f"baselines.kind.{group[name]}") for name in names],
        t("baselines.calls"): [integer(round(calls[name])) for name in names],
        t("baselines.does"): [t(f"method.{name}.summary") for name in names],
    }
    method, kind, count, does = rows
    found = st.dataframe(
        rows,
        key=_TABLE,
        hide_index=True,
        height="content",
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={
            "selection": {"rows": list(range(_AT_FIRST)), "columns": [], "cells": []}
        },
        column_config={
            method: st.column_config.TextColumn(pinned=True, width=170),
            kind: st.column_config.TextColumn(width=130),
            count: st.column_config.TextColumn(width=70, help=t("baselines.calls.help")),
            does: st.column_config.TextColumn(width=780),
        },
        alt=t("baselines.table", count=len(names)),
    )
    return found.selection.rows


def _explain(name: str, t: Catalogue) -> None:
    """Draw what a baseline does, step by step, and what its paper reports."""
    section_title(named("method", name, t))
    st.caption(t(f"method.{name}.summary"))
    if (steps := flow_diagram(name, None, t)) is not None:
        show_html(steps, key=f"flow-{name}")
    if has_paper(name):
        show_html(paper_section(name, t), key=f"paper-{name}")


def _run(names: Sequence[str]) -> None:
    with remembered(_PAGE):
        question = (st.session_state.get(_QUESTION) or "").strip()
        live.start(asked_of([name for name in METHODS if name in names], question))
    redraw_whole()
