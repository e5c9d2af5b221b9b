"""The figures of an evaluation: estimates, cost against quality, and the curves of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import streamlit as st
from plotly.graph_objects import Figure

from app.page import choose_one, show_figure
from app.results import Filter, ResultKey, computed, curves_of, detection_of
from app.session import theme
from components.base.html import tag
from components.base.words import Catalogue
from components.evaluate.compare import (
    cost_figure,
    precision_recall_figure,
    reliability_figure,
    roc_figure,
    table_forest,
)
from components.evaluate.table import metric_title
from pipelines.evaluation.results.scores import COSTS, Cost
from pipelines.evaluation.results.table import ResultsTable

_Kind = Literal["forest", "cost", "roc", "precision_recall", "reliability"]

_FIRST_METRIC = "accuracy"


def draw_figures(key: ResultKey, part: Filter, table: ResultsTable, t: Catalogue) -> None:
    """Draw one figure at a time, of those that there is something to draw in."""
    # What has no better direction, such as a length, is compared by none.
    metrics = [name for name in table.held if table.metric(name).better is not None]
    drawn = computed(curves_of, key, part)
    shown: dict[_Kind, bool] = {
        "forest": bool(metrics),
        "cost": bool(metrics),
        "roc": bool(drawn.roc),
        "precision_recall": bool(drawn.precision_recall),
        "reliability": bool(drawn.reliability),
    }
    possible = [kind for kind, there_is in shown.items() if there_is]
    if not possible:
        st.html(tag("p", t("evaluate.figures.none"), class_="workbench-empty"))
        return
    kind = choose_one(
        t("evaluate.figures"),
        possible,
        f"evaluate.figure.{'.'.join(possible)}",
        lambda name: t(f"evaluate.figure.{name}"),
        label_visibility="collapsed",
    )
    look = theme()
    figure: Figure
    if kind == "roc":
        figure = roc_figure(drawn.roc, t, look)
    elif kind == "precision_recall":
        ranked = computed(detection_of, key, part)
        rate = ranked.base_rate if ranked else None
        figure = precision_recall_figure(drawn.precision_recall, t, look, base_rate=rate)
    elif kind == "reliability":
        figure = reliability_figure(drawn.reliability, t, look)
    else:
        left, right = st.columns(2, gap="medium")
        with left:
            metric = metric_select(metrics, "evaluate.figure_metric", t)
        if kind == "forest":
            figure = table_forest(table, metric, t, look)
        else:
            with right:
                figure = cost_figure(table, metric, _cost(table, t), t, look)
    show_figure(figure, key=f"evaluation-{kind}")
    st.caption(t(f"evaluate.figure.{kind}.help"))


def metric_select(names: Sequence[str], key: str, t: Catalogue) -> str:
    """Return one of `names`, the accuracy at first where it is among them."""
    if st.session_state.get(key) not in (None, *names):
        # It was chosen for another table.
        st.session_state.pop(key)
    return st.selectbox(
        t("evaluate.metric"),
        list(names),
        index=names.index(_FIRST_METRIC) if _FIRST_METRIC in names else 0,
        key=key,
        format_func=lambda name: metric_title(name, t),
    )


def _cost(table: ResultsTable, t: Catalogue) -> Cost:
    """Return one of the costs that a system has."""
    paid = [name for name in COSTS if any(row.costs[name].total for row in table.rows)]
    chosen = st.selectbox(
        t("evaluate.figure.cost_of"),
        paid or list(COSTS[:1]),
        key="evaluate.figure_cost",
        format_func=lambda name: t(f"evaluate.cost.{name}"),
    )
    return cast(Cost, chosen)
