"""How often a judge that comes along is right: in one line, in a table, and in a figure."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from components.markup import Html, tag
from components.messages import Catalogue
from components.numbers import integer, two_digits
from components.theme import Theme, plotly_template, tokens
from pipelines.calibration import calibration

__all__ = ["judge_quality", "judge_report", "reliability_figure"]

_SHOWN = ("biographies", "stances", "answers")
"""Suites whose reliability is drawn."""

_SYMBOLS = ("circle", "diamond", "square")


def _measured(name: str) -> dict[str, Any]:
    return calibration("judges").get("quality", {}).get(name, {})


def judge_quality(name: str, t: Catalogue) -> Html | None:
    """What was measured of the judge called `name`; None for one that was never measured."""
    measured = _measured(name)
    if not measured:
        return None
    sentences, answers = measured["biographies"], measured["answers_same_kind"]
    base = max(sentences["supported"], 1 - sentences["supported"])
    words = t(
        "models.quality",
        right=integer(sentences["right"]),
        count=integer(sentences["examples"]),
        base=integer(round(base * sentences["examples"])),
        sentences=two_digits(sentences["auroc"]),
        answers=two_digits(answers["auroc"]),
    )
    return tag("p", words, class_="vs-note", data_key="quality")


def judge_report(name: str, t: Catalogue) -> str:
    """Every suite the judge was measured on as a row; empty for one that was never measured."""
    measured = _measured(name)
    if not measured:
        return ""
    columns = ("suite", "examples", "auroc", "ece", "macro_f1")
    names = [t(f"judged.column.{column}") for column in columns]
    head = tag(
        "tr", (tag("th", one, scope="col", role="columnheader") for one in names), role="row"
    )
    rows = (_row(suite, found, names, t) for suite, found in measured.items())
    table = tag(
        "table",
        tag("caption", t("judged.caption", name=name), class_="vs-sr"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_="vs-table",
        role="table",
    )
    return tag("div", table, tag("p", t("judged.note"), class_="vs-note"), class_="vs-stack")


def _row(suite: str, found: dict[str, Any], names: list[str], t: Catalogue) -> Html:
    cells = (
        t(f"judged.suite.{suite}"),
        integer(found["examples"]),
        two_digits(found["auroc"]),
        two_digits(found["ece"]),
        two_digits(found["macro_f1"]) if "macro_f1" in found else "–",
    )
    return tag(
        "tr",
        (
            tag("td", cell, role="cell", data_label=name, class_="vs-num" if place else None)
            for place, (cell, name) in enumerate(zip(cells, names, strict=True))
        ),
        role="row",
        data_key=suite,
    )


def reliability_figure(name: str, t: Catalogue, theme: Theme = "light") -> go.Figure:
    """What share of statements holds, against the probability that the judge gave them.

    A judge that means what it says lies on the diagonal. A point stands for a tenth of the scale;
    the larger, the more statements.
    """
    colour = tokens(theme)
    figure = go.Figure()
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": colour["ink-3"], "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    measured = _measured(name)
    shades = (colour["accent"], colour["ink-2"], colour["undecided"])
    for suite, symbol, shade in zip(_SHOWN, _SYMBOLS, shades, strict=True):
        points = measured.get(suite, {}).get("reliability", [])
        total = sum(count for *_, count in points)
        figure.add_scatter(
            x=[said for said, _, _ in points],
            y=[true for _, true, _ in points],
            mode="lines+markers",
            name=t(f"judged.suite.{suite}"),
            customdata=[integer(count) for *_, count in points],
            hovertemplate="P %{x:.2f} · %{y:.2f} · n = %{customdata}<extra></extra>",
            line={"color": shade, "width": 1},
            marker={
                "symbol": symbol,
                "color": shade,
                "size": [7 + 15 * (count / total) ** 0.5 for *_, count in points],
            },
        )
    figure.update_layout(template=plotly_template(theme), height=380)
    figure.update_xaxes(title_text=t("judged.said"), range=[-0.03, 1.03])
    figure.update_yaxes(title_text=t("judged.true"), range=[-0.03, 1.03])
    return figure
