"""A study as a page shows it: a curve over a setting's values, the table beside it, the choice."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from components.base.html import Html, tag
from components.base.theme import Theme, plotly_template, tokens
from components.base.words import Catalogue, integer, means_list, setting_key
from components.evaluate.table import (
    columns_table,
    estimate_text,
    metric_head,
    metric_title,
    number,
    p_text,
)
from pipelines.evaluation.results.columns import held
from pipelines.evaluation.studies.grid import Value, value_text
from pipelines.evaluation.studies.table import (
    Study,
    StudyPoint,
    StudyRow,
    study_columns,
    study_rows,
)
from pipelines.methods.base import field_bound
from pipelines.methods.registry import get_method

_BAND = 0.18
"""How much of the line's colour the band of its interval has."""


def study_figure(study: Study, metric: str, t: Catalogue, theme: Theme = "light") -> go.Figure:
    """Return one metric over the values of the study's setting, with the band of its intervals.

    The recorded settings are a diamond, or a line across where they are no value of the axis; the
    chosen point is a star. Options, and points of two settings, stand beside each other. Raises
    InvalidInputError for an unknown metric.
    """
    info, colour, figure = study.metric(metric), tokens(theme), go.Figure()
    known = [
        (k, one) for k, one in enumerate(study.points) if one.metrics[metric].value is not None
    ]
    places = [place_of(one) for _, one in known]
    numeric = len(study.axes) == 1 and any(isinstance(x, float) for x in places)
    drawn = [
        (place, one)
        for place, (_, one) in zip(places, known, strict=True)
        if not numeric or isinstance(place, float)
    ]
    if numeric:
        drawn.sort(key=lambda pair: float(pair[0]))
        _band(figure, drawn, metric, colour["accent"])
    _points(figure, drawn, metric, t, colour["accent"], colour["ink-2"], line=numeric)
    for number_, one in known:
        chosen = study.choice is not None and study.choice.point == number_
        if one.current:
            _mark(figure, one, metric, t("study.current"), "diamond-open", colour["ink"], numeric)
        if chosen:
            _mark(figure, one, metric, t("study.chosen"), "star", colour["retrieve"], numeric)
    figure.update_layout(template=plotly_template(theme), height=380)
    figure.update_layout(legend={"orientation": "h", "y": -0.25})
    figure.update_xaxes(title_text=axis_title(study, t), automargin=True)
    if not numeric:
        figure.update_xaxes(type="category")
    figure.update_yaxes(title_text=metric_head(info, t)[1] or metric_title(metric, t))
    return figure


def place_of(point: StudyPoint) -> float | str:
    """Return where a point stands on the axis: at its number, else under its words."""
    values = list(point.values.values())
    if len(values) == 1 and isinstance(values[0], int | float) and not isinstance(values[0], bool):
        return float(values[0])
    return ", ".join(map(value_text, values))


def axis_title(study: Study, t: Catalogue) -> str:
    """Return the settings by their names, each with the range that it can have."""
    titles: list[str] = []
    for axis in study.axes:
        if study.kind == "scores":
            low, high = value_text(axis.values[0]), value_text(axis.values[-1])
            titles.append(t("study.axis", name=t("study.threshold"), low=low, high=high))
            continue
        name = setting_title(study.method, axis.name, t)
        field = get_method(study.method).settings_type.model_fields[axis.name]
        low, high = field_bound(field, "ge"), field_bound(field, "le")
        both = low is not None and high is not None
        titles.append(t("study.axis", name=name, low=low, high=high) if both else name)
    return " × ".join(titles)


def setting_title(method: str, name: str, t: Catalogue) -> str:
    """Return what a setting is called."""
    key = setting_key(method, name, t)
    return t(key) if t.has(key) else name


def study_view(study: Study, metrics: Sequence[str], t: Catalogue) -> Html:
    """Return what was chosen and how, then a row for each point with its counts and `metrics`."""
    return tag(
        "div.vs-run.vs-evaluation",
        tag("div.vs-stack", [tag("p", words) for words in choice_words(study, t)]),
        _table(study, metrics, t),
        tag("div.vs-stack", [tag("p.vs-note", words) for words in notes(study, t)]),
        means_list([*metrics, "confidence_interval"], t, anchors=True),
        key="study",
    )


def choice_words(study: Study, t: Catalogue) -> list[str]:
    """Return the chosen point, what it comes to on the items that chose nothing, and on all
    crosswise.
    """
    choice = study.choice
    if choice is None:
        return [t(f"study.no_choice.{study.no_choice}")] if study.no_choice else []
    words = [
        t(
            "study.choice",
            point=point_title(study, study.points[choice.point], t),
            metric=metric_title(choice.metric, t),
            selected=number(choice.selected, 2),
            held_out=estimate_text(choice.held_out, t),
            points=choice.candidates,
            items=integer(choice.items),
        )
    ]
    if choice.held_out_current is not None and choice.point != choice.current:
        current = estimate_text(choice.held_out_current, t)
        words.append(t("study.choice.current", current=current))
        pair = choice.difference
        if pair is not None and pair.difference.value is not None:
            difference = estimate_text(pair.difference, t, signed=True)
            words.append(t("study.choice.difference", difference=difference, p=p_text(pair.p)))
    if choice.point == choice.current:
        words.append(t("study.choice.same"))
    if choice.cross_validated is not None and choice.other_point is not None:
        other = point_title(study, study.points[choice.other_point], t)
        value = estimate_text(choice.cross_validated, t)
        words.append(t("study.choice.crossed", value=value, other=other))
    return words


def point_title(study: Study, point: StudyPoint, t: Catalogue) -> str:
    """Return a point as "setting = value"."""

    def title(name: str) -> str:
        scores = study.kind == "scores"
        return t("study.threshold") if scores else setting_title(study.method, name, t)

    parts = (
        f"{title(name)} = {option_title(study.method, name, value, t)}"
        for name, value in point.values.items()
    )
    return t("list.separator").join(parts)


def option_title(method: str, name: str, value: Value, t: Catalogue) -> str:
    """Return a value as the controls name it."""
    if value is None:
        return t("study.unset")
    key = f"{setting_key(method, name, t)}.{value}"
    return t(key) if isinstance(value, str) and t.has(key) else value_text(value)


def notes(study: Study, t: Catalogue) -> list[str]:
    """Return what the numbers leave out, and why."""
    found = [t("study.note")]
    if any(one.diverged for one in study.points):
        found.append(t("study.diverged.help"))
    if study.unreadable:
        found.append(
            t("study.unreadable", count=integer(study.unreadable), total=integer(study.answers))
        )
    if study.altered:
        found.append(t("study.altered", count=integer(study.altered), total=integer(study.answers)))
    return found


def _table(study: Study, metrics: Sequence[str], t: Catalogue) -> Html:
    rows = study_rows(study)
    columns = held(study_columns(study, metrics), rows)
    shown = [one for one in columns if one.group not in ("name", "file")]
    return columns_table(
        t("study.table"),
        t("study.point"),
        shown,
        rows,
        t,
        name=lambda row: _name(study, row, t),
        key=lambda row: f"point-{row.point.label}",
        items=study.items,
    )


def _name(study: Study, row: StudyRow, t: Catalogue) -> Html:
    marks = [t("study.current")] if row.point.current else []
    if row.chosen:
        marks.append(t("study.chosen"))
    words = t("list.separator").join(
        option_title(study.method, name, value, t) for name, value in row.point.values.items()
    )
    note = tag("span.vs-note", " · ".join(marks)) if marks else None
    return tag("span.vs-estimate-cell", tag("bdi.vs-strong", words), note)


Drawn = Sequence[tuple[float | str, StudyPoint]]


def _band(figure: go.Figure, drawn: Drawn, metric: str, colour: str) -> None:
    """Draw the intervals of the points as one band."""
    bounded = [
        (place, low, high)
        for place, point in drawn
        if (low := point.metrics[metric].low) is not None
        and (high := point.metrics[metric].high) is not None
    ]
    for name, values in (
        ("low", [low for _, low, _ in bounded]),
        ("high", [high for _, _, high in bounded]),
    ):
        figure.add_scatter(
            x=[place for place, _, _ in bounded],
            y=values,
            mode="lines",
            line={"width": 0, "color": colour},
            fill="tonexty" if name == "high" else None,
            fillcolor=_faint(colour) if name == "high" else None,
            hoverinfo="skip",
            showlegend=False,
        )


def _points(
    figure: go.Figure,
    drawn: Drawn,
    metric: str,
    t: Catalogue,
    colour: str,
    ink: str,
    *,
    line: bool,
) -> None:
    estimates = [point.metrics[metric] for _, point in drawn]
    values = [one.value or 0.0 for one in estimates]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if e.high is None else e.high - (e.value or 0.0) for e in estimates],
        "arrayminus": [0.0 if e.low is None else (e.value or 0.0) - e.low for e in estimates],
        "color": ink,
        "thickness": 1.5,
    }
    figure.add_scatter(
        x=[place for place, _ in drawn],
        y=values,
        error_y=None if line else bars,
        customdata=[
            [estimate_text(one, t), integer(point.replayed), integer(point.diverged)]
            for one, (_, point) in zip(estimates, drawn, strict=True)
        ],
        hovertemplate=f"%{{x}}: %{{customdata[0]}}<br>{t('study.replayed')} %{{customdata[1]}} · "
        f"{t('study.diverged')} %{{customdata[2]}}<extra></extra>",
        mode="lines+markers" if line else "markers",
        line={"color": colour, "width": 2},
        marker={"size": 7, "color": colour},
        showlegend=False,
    )


def _mark(
    figure: go.Figure,
    point: StudyPoint,
    metric: str,
    name: str,
    symbol: str,
    colour: str,
    numeric: bool,
) -> None:
    """Draw a point of its own kind; a line across where it has no place on an axis of numbers."""
    place, value = place_of(point), point.metrics[metric].value
    if numeric and not isinstance(place, float):
        line = {"color": colour, "width": 1.5, "dash": "dash"}
        figure.add_hline(y=value, line=line, annotation_text=name)
        return
    figure.add_scatter(
        x=[place],
        y=[value],
        mode="markers",
        name=name,
        marker={"symbol": symbol, "size": 15, "color": colour, "line": {"width": 2}},
        hoverinfo="skip",
    )


def _faint(colour: str) -> str:
    """Return a colour of six hexadecimal digits, nearly transparent."""
    red, green, blue = (int(colour.lstrip("#")[at : at + 2], 16) for at in (0, 2, 4))
    return f"rgba({red}, {green}, {blue}, {_BAND})"
