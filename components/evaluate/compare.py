"""Systems compared item by item: the difference and its test, then the items where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import plotly.graph_objects as go

from components.base.elements import (
    Column,
    TableRow,
    answer_text,
    button,
    error_title,
    flag_list,
    table,
)
from components.base.html import Child, Html, tag, visible
from components.base.theme import Theme, plotly_template, tokens
from components.base.words import Catalogue, integer, means_list, system_title, system_titles
from components.evaluate.table import (
    cost_text,
    estimate_cell,
    estimate_text,
    few_words,
    metric_head,
    metric_title,
    number,
    outcome,
    p_text,
    p_words,
    right_badge,
    sampling_text,
)
from components.page import section
from pipelines.evaluation.results.compare import ComparedAnswer, ComparedItem, SystemComparison
from pipelines.evaluation.results.scores import Cost, MetricInfo, has_few_groups
from pipelines.evaluation.results.table import ResultsTable
from pipelines.evaluation.statistics.detection import Curve, ReliabilityPoint
from pipelines.evaluation.statistics.estimates import Estimate, PairedDifference

PAGE = 20
"""Items on a page unless another number is asked for."""


def comparison_view(found: SystemComparison, t: Catalogue) -> str:
    """Return the difference of the systems, its test, and what follows from it."""
    return tag(
        "div.vs-run.vs-evaluation",
        section("pairs", metric_title(found.metric.name, t), *_summary(found, t)),
        key="comparison",
    )


def items_view(
    items: Sequence[ComparedItem],
    t: Catalogue,
    *,
    binary: bool = False,
    start: int = 0,
    count: int = PAGE,
) -> str:
    """Return `count` of the items from `start`, each with every system's answer, value and run.

    With `binary` the values say right or wrong.
    """
    shown = items[start : start + count]
    place = t(
        "evaluate.shown",
        first=integer(min(start + 1, len(items))),
        last=integer(start + len(shown)),
        total=integer(len(items)),
    )
    cards = (_item(item, t, binary=binary) for item in shown)
    listed = [tag("p.vs-note", place), tag("ol.vs-stack", cards, key="items")]
    if not items:
        listed = [tag("p.vs-empty", t("evaluate.no_items"))]
    return tag(
        "div.vs-run.vs-evaluation", section("items", t("evaluate.by_item"), *listed), key="items"
    )


def _summary(found: SystemComparison, t: Catalogue) -> list[Child]:
    counted = t(
        "evaluate.shared",
        n=integer(found.n),
        different=integer(found.discordant),
        left_out=integer(found.left_out),
    )
    pairs = len(found.pairs)
    body = _sentences(found.pairs[0], found, t) if pairs == 1 else [_pairs(found, t)]
    groups = found.estimates[0].groups
    if groups < found.n:
        counted = " · ".join([counted, t("evaluate.groups", n=integer(groups))])
    several = [band for band in found.bands if len(band) > 1]
    bands = "; ".join(system_titles(band, t) for band in several)
    title = metric_title(found.metric.name, t)
    alike = t("evaluate.band", metric=title, list=bands) if several and pairs > 1 else None
    return [
        _means(found, t),
        *body,
        _two_by_two(found, t),
        tag("p.vs-note", alike) if alike else None,
        tag("p.vs-note", counted),
        *(tag("p.vs-note", _lacks(one.system, one, t)) for one in found.lacking),
        tag("p.vs-note", sampling_text(found.sampling, t)),
        means_list((found.metric.name, "confidence_interval", "p_value"), t, anchors=True),
    ]


def _lacks(system: str, one: object, t: Catalogue) -> str:
    counts = {name: integer(getattr(one, name)) for name in ("missing", "failed", "inapplicable")}
    return t("evaluate.lacking", system=system_title(system, t), **counts)


def _means(found: SystemComparison, t: Catalogue) -> Html:
    head, label = metric_head(found.metric, t)
    rows = (
        TableRow(
            f"mean-{system}",
            [
                tag("bdi.vs-strong", system_title(system, t)),
                estimate_cell(one, t, items=found.n),
            ],
        )
        for system, one in zip(found.systems, found.estimates, strict=True)
    )
    columns = [Column(t("evaluate.system")), Column(head, "vs-num", label)]
    return table(t("evaluate.table"), columns, rows, row_names=True)


def _sentences(pair: PairedDifference, found: SystemComparison, t: Catalogue) -> list[Child]:
    """Return the difference in one line, and what follows from it in a sentence."""
    difference = t(
        "evaluate.difference",
        first=system_title(pair.first, t),
        second=system_title(pair.second, t),
        value=estimate_text(pair.difference, t, signed=True),
    )
    line = " · ".join([difference, p_words(pair, len(found.pairs), t)])
    reason, few = pair.difference.reason, has_few_groups(pair.difference)
    return [
        tag("p.vs-num.vs-strong", line),
        tag("p.vs-note", few_words(pair.difference, t)) if few else None,
        tag("p.vs-note", t(f"evaluate.reason.{reason}")) if reason else None,
        tag("p", _follows(pair, found.metric, t)),
    ]


def _follows(pair: PairedDifference, info: MetricInfo, t: Catalogue) -> str:
    first, second = (system_title(one, t) for one in (pair.first, pair.second))
    return t(f"evaluate.outcome.{outcome(pair, info)}", first=first, second=second)


def _pairs(found: SystemComparison, t: Catalogue) -> Html:
    """Return all pairs as a table, with p before and after Holm's correction."""
    columns = [
        t("evaluate.pair"),
        Column(t("evaluate.difference.title"), "vs-num"),
        Column("p", "vs-num"),
        Column(t("evaluate.holm", count=len(found.pairs)), "vs-num"),
        t("evaluate.follows"),
    ]
    rows = (
        TableRow(
            f"pair-{pair.first}-{pair.second}",
            [
                tag(
                    "span",
                    tag("bdi", system_title(pair.first, t)),
                    " − ",
                    tag("bdi", system_title(pair.second, t)),
                ),
                estimate_cell(pair.difference, t, items=found.n, signed=True),
                tag("span", _p(pair.p), tag("span.vs-note", _test(pair, t))),
                _p(pair.adjusted),
                _follows(pair, found.metric, t),
            ],
        )
        for pair in found.pairs
    )
    return table(t("evaluate.pairs"), columns, rows, row_names=True)


def _p(p: float | None) -> str:
    # Under a head that names p there is no need for the sign.
    return p_text(p).removeprefix("= ")


def _test(pair: PairedDifference, t: Catalogue) -> str | None:
    return None if pair.test == "none" else f" {t(f'evaluate.test.{pair.test}')}"


def _two_by_two(found: SystemComparison, t: Catalogue) -> Html | None:
    """Return how many items both, one or none of two systems got right."""
    if found.table is None:
        return None
    first, second = (system_title(one, t) for one in found.systems)
    both, only_first, only_second, none = found.table
    title = t("evaluate.two_by_two", first=first, second=second)
    columns = [
        Column(""),
        Column(t("evaluate.right", system=second), "vs-num"),
        Column(t("evaluate.wrong", system=second), "vs-num"),
    ]
    rows = [
        TableRow(None, [t("evaluate.right", system=first), integer(both), integer(only_first)]),
        TableRow(None, [t("evaluate.wrong", system=first), integer(only_second), integer(none)]),
    ]
    return table(title, columns, rows, row_names=True, caption_css="vs-note")


def _item(item: ComparedItem, t: Catalogue, *, binary: bool) -> Html:
    """Return one item with every system's answer, value and run."""
    tags = (tag("span.vs-chip", one) for one in item.summary.tags)
    head = tag(
        "header",
        tag("p.vs-strong", item.summary.text or item.item, dir="auto"),
        tag("p.vs-chips.vs-note", tag("bdi", item.item), tags),
    )
    answers = (_answer(one, item.item, t, binary=binary) for one in item.answers)
    return tag(
        "li.vs-card.vs-padded.vs-evaluation-item",
        head,
        tag("div.vs-evaluation-answers", answers),
        key=f"item-{item.item}",
    )


def _answer(one: ComparedAnswer, item: str, t: Catalogue, *, binary: bool) -> Html:
    key = f"{item}-{one.system}"
    body: list[Child] = [
        tag(
            "p.vs-label",
            tag("bdi", system_title(one.system, t)),
            " ",
            value_mark(None if isnan(one.value) else one.value, t, binary=binary),
        ),
    ]
    if one.error:
        body.append(tag("p.vs-note", t("evaluate.failed", what=error_title(one.error, t))))
    body.append(answer_text(one.answer) if one.answer else tag("p.vs-note", t("ask.no_answer")))
    if one.repeats > 1:
        body.append(tag("p.vs-note", t("evaluate.repeats", count=one.repeats)))
    body.append(flag_list(one.flags, t, f"{key}-flags"))
    if one.run:
        body.append(
            button(t("evaluate.open_run"), "open_run", one.run, f"{key}-run", of=one.system)
        )
    return tag("div.vs-part", body, key=key)


def value_mark(value: float | None, t: Catalogue, *, binary: bool) -> Html:
    """Return a value of an item: of a `binary` metric right or wrong with its sign, else
    the number.
    """
    if value is None:
        return tag("span.vs-note", "–")
    if binary and value in (0.0, 1.0):
        return right_badge(value == 1.0, t)
    return tag("span.vs-num", number(value, 2))


# Plotly figures of evaluations, in the colours of the theme: each says what better looks like.
#
# Series differ by symbol or dash as well as by colour, so that they survive greyscale.

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
        y=[label(system_title(name, t)) for name, _, _ in known],
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
        text=[label(system_title(name, t)) for _, _, name, _ in points],
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
