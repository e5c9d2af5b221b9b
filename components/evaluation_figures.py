"""Plotly figures of evaluations, in the colours of the theme: each says what better looks like.

Series differ by symbol or dash as well as by colour, so that they survive greyscale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from components.evaluation_numbers import (
    cost_text,
    estimate_text,
    metric_head,
    metric_title,
    number,
)
from components.markup import visible
from components.messages import Catalogue, integer
from components.theme import Theme, plotly_template, tokens
from pipelines.evaluation.results.scores import Cost, MetricInfo
from pipelines.evaluation.results.table import ResultsTable
from pipelines.evaluation.statistics.detection import Curve, ReliabilityPoint
from pipelines.evaluation.statistics.resampling import Estimate

_SERIES = ("generate", "retrieve", "score", "choose", "accent", "heat-line", "ink-2")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def forest_figure(
    estimates: Mapping[str, Estimate], info: MetricInfo, t: Catalogue, theme: Theme = "light"
) -> go.Figure:
    """Return the estimate of each system with its interval, the best at the top.

    Systems without a value are left out; one without an interval has a point alone.
    """
    known = [(name, one, one.value) for name, one in estimates.items() if one.value is not None]
    # The axis runs upwards: the best comes last. A metric without a direction counts as higher.
    known.sort(key=lambda entry: entry[2], reverse=info.better == "lower")
    colour = tokens(theme)
    figure = go.Figure()
    above = [0.0 if one.high is None else one.high - value for _, one, value in known]
    below = [0.0 if one.low is None else value - one.low for _, one, value in known]
    figure.add_scatter(
        x=[value for _, _, value in known],
        y=[label(name) for name, _, _ in known],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "color": colour["ink-2"],
            "thickness": 1.5,
        },
        customdata=[[estimate_text(one, t), integer(one.n)] for _, one, _ in known],
        hovertemplate="%{y}: %{customdata[0]} (n = %{customdata[1]})<extra></extra>",
        mode="markers",
        marker={"size": 10, "color": colour["accent"]},
        showlegend=False,
    )
    figure.update_layout(template=plotly_template(theme), height=90 + 34 * len(known))
    figure.update_xaxes(title_text=_axis(info, t))
    figure.update_yaxes(type="category", showgrid=False)
    return figure


def table_forest(
    results: ResultsTable, metric: str, t: Catalogue, theme: Theme = "light"
) -> go.Figure:
    """Return `forest_figure` of one metric of a table. Raises InvalidInputError for an
    unknown one.
    """
    info = results.metric(metric)
    return forest_figure({row.system: row.metrics[metric] for row in results.rows}, info, t, theme)


def reliability_figure(
    bins: Mapping[str, Sequence[ReliabilityPoint]], t: Catalogue, theme: Theme = "light"
) -> go.Figure:
    """Return how often each detector's predictions came true; on the diagonal they are calibrated.

    Bars at the points are Wilson intervals; a point is the larger the more items it holds.
    """
    colour, figure = tokens(theme), go.Figure()
    _diagonal(figure, colour)
    largest = max((one.n for found in bins.values() for one in found), default=1)
    for place, (name, found) in enumerate(bins.items()):
        look = _look(place, colour)
        figure.add_scatter(
            x=[one.predicted for one in found],
            y=[one.observed for one in found],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [one.high - one.observed for one in found],
                "arrayminus": [one.observed - one.low for one in found],
                "color": look["color"],
                "thickness": 1,
            },
            customdata=[
                [number(one.predicted, 2), number(one.observed, 2), integer(one.n)] for one in found
            ],
            hovertemplate=f"%{{fullData.name}}<br>{t('evaluate.figure.predicted')} "
            f"%{{customdata[0]}}<br>{t('evaluate.figure.observed')} %{{customdata[1]}}"
            "<br>n = %{customdata[2]}<extra></extra>",
            mode="lines+markers",
            name=label(name),
            line={"color": look["color"], "dash": look["dash"], "width": 1.5},
            marker={
                "symbol": look["symbol"],
                "color": look["color"],
                "size": [7 + 9 * (one.n / largest) ** 0.5 for one in found],
            },
        )
    return _square(figure, t("evaluate.figure.predicted"), t("evaluate.figure.observed"), theme)


def roc_figure(curves: Mapping[str, Curve], t: Catalogue, theme: Theme = "light") -> go.Figure:
    """Return ROC curves: the further to the upper left, the better; the diagonal is chance."""
    colour, figure = tokens(theme), go.Figure()
    _diagonal(figure, colour)
    _lines(figure, curves, t, colour, shape="linear")
    x, y = t("evaluate.figure.false_positive"), t("evaluate.figure.true_positive")
    return _square(figure, x, y, theme)


def precision_recall_figure(
    curves: Mapping[str, Curve],
    t: Catalogue,
    theme: Theme = "light",
    *,
    base_rate: float | None = None,
) -> go.Figure:
    """Return precision-recall curves: the further up, the better; the dashed line is the
    base rate.
    """
    colour, figure = tokens(theme), go.Figure()
    if base_rate is not None:
        figure.add_hline(
            y=base_rate,
            line={"color": colour["ink-3"], "width": 1.5, "dash": "dash"},
            annotation_text=t("evaluate.figure.base_rate", value=number(base_rate, 2)),
            annotation_font={"size": 12, "color": colour["ink-2"]},
            annotation_position="bottom right",
        )
    # Between two points precision does not run straight (Davis and Goadrich 2006).
    _lines(figure, curves, t, colour, shape="vh")
    x, y = t("evaluate.figure.recall"), t("evaluate.figure.precision")
    return _square(figure, x, y, theme)


def cost_figure(
    results: ResultsTable,
    metric: str,
    cost: Cost,
    t: Catalogue,
    theme: Theme = "light",
) -> go.Figure:
    """Return a metric against a cost per item: systems on the line are not beaten in both.

    Systems without the metric or the cost are left out. Raises InvalidInputError for an unknown
    metric.
    """
    info, colour, figure = results.metric(metric), tokens(theme), go.Figure()
    points = [
        (mean, one.value, row.system, one)
        for row in results.rows
        if (one := row.metrics[metric]).value is not None
        and (mean := row.costs[cost].mean) is not None
    ]
    front = _unbeaten([(x, y) for x, y, _, _ in points], lower=info.better == "lower")
    if info.better is not None and len(front) > 1:
        figure.add_scatter(
            x=[x for x, _ in front],
            y=[y for _, y in front],
            mode="lines",
            line={"color": colour["ink-3"], "width": 1.5, "dash": "dot"},
            name=t("evaluate.figure.unbeaten"),
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=[x for x, _, _, _ in points],
        y=[y for _, y, _, _ in points],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [0.0 if e.high is None else e.high - y for _, y, _, e in points],
            "arrayminus": [0.0 if e.low is None else y - e.low for _, y, _, e in points],
            "color": colour["ink-3"],
            "thickness": 1,
        },
        text=[label(name) for _, _, name, _ in points],
        textposition="top center",
        textfont={"color": colour["ink-2"], "size": 12},
        customdata=[[estimate_text(e, t), cost_text(cost, x, t)] for x, _, _, e in points],
        hovertemplate="%{text}<br>%{customdata[0]} · %{customdata[1]}<extra></extra>",
        mode="markers+text",
        marker={"size": 11, "color": colour["accent"]},
        showlegend=False,
    )
    figure.update_layout(template=plotly_template(theme), height=400)
    figure.update_xaxes(title_text=t("evaluate.per_item", name=t(f"evaluate.cost.{cost}")) + " ↓")
    figure.update_yaxes(title_text=_axis(info, t))
    return figure


def _unbeaten(points: Sequence[tuple[float, float]], *, lower: bool) -> list[tuple[float, float]]:
    """Return the points that no other beats in both cost (lower) and value, from the
    cheapest on.
    """
    found: list[tuple[float, float]] = []
    for cost, value in sorted(points, key=lambda one: (one[0], one[1] if lower else -one[1])):
        if not found or (value < found[-1][1] if lower else value > found[-1][1]):
            found.append((cost, value))
    return found


def _lines(
    figure: go.Figure,
    curves: Mapping[str, Curve],
    t: Catalogue,
    colour: dict[str, str],
    shape: str,
) -> None:
    threshold = t("evaluate.figure.threshold")
    for place, (name, curve) in enumerate(curves.items()):
        look = _look(place, colour)
        figure.add_scatter(
            x=list(curve.x),
            y=list(curve.y),
            customdata=[["–" if cut is None else f"{cut:.3g}"] for cut in curve.thresholds],
            hovertemplate=f"%{{fullData.name}}<br>(%{{x:.2f}}, %{{y:.2f}})<br>"
            f"{threshold} %{{customdata[0]}}<extra></extra>",
            mode="lines",
            name=label(name),
            line={"color": look["color"], "dash": look["dash"], "width": 2, "shape": shape},
        )


def _diagonal(figure: go.Figure, colour: dict[str, str]) -> None:
    line = {"color": colour["ink-3"], "width": 1.5, "dash": "dash"}
    figure.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line=line, layer="below")


def _look(place: int, colour: dict[str, str]) -> dict[str, Any]:
    """Return the colour, dash and symbol of a series."""
    return {
        "color": colour[_SERIES[place % len(_SERIES)]],
        "dash": _DASHES[place % len(_DASHES)],
        "symbol": _SYMBOLS[place % len(_SYMBOLS)],
    }


def _square(figure: go.Figure, x: str, y: str, theme: Theme) -> go.Figure:
    """Return the figure with both axes from 0 to 1, as long as each other."""
    figure.update_layout(template=plotly_template(theme), height=440)
    figure.update_xaxes(title_text=x, range=[-0.02, 1.02], constrain="domain")
    figure.update_yaxes(title_text=y, range=[-0.02, 1.02], scaleanchor="x", constrain="domain")
    return figure


def _axis(info: MetricInfo, t: Catalogue) -> str:
    _, words = metric_head(info, t)
    return words or metric_title(info.name, t)


def label(text: str) -> str:
    """Return a name for a plotly label: markup characters escaped, nothing hidden."""
    plain = visible(text)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
