"""Plotly figures of token and entity confidence, in the colours of the theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from components.base.elements import VERDICT_SIGNS, distinct
from components.base.html import visible
from components.base.theme import Theme, plotly_template, tokens
from components.base.words import Catalogue, named, nats, probability
from components.run.text import EntityMark
from pipelines.base import Token
from pipelines.run.events import Verdict

_LOOKS: dict[Verdict, tuple[str, str]] = {
    "supported": ("circle", "supported"),
    "contradicted": ("x", "contradicted"),
    "not_enough": ("diamond", "undecided"),
    "doubtful": ("triangle-up", "undecided"),
    "confident": ("circle-open", "ink-2"),
    "aligned": ("square-open", "ink-2"),
    "not_aligned": ("square", "undecided"),
    "unchecked": ("line-ew-open", "unchecked"),
}
"""Symbol and colour of the points of each verdict."""

_SURE: tuple[Verdict, ...] = ("supported", "confident")
# Names of neighbouring points are put on different sides of them.
_SIDES = ("top center", "bottom center", "middle right", "middle left")


def profile_figure(
    generated: Sequence[Token],
    t: Catalogue,
    theme: Theme = "light",
    *,
    theta_1: float | None = None,
    theta_2: float | None = None,
) -> go.Figure:
    """Return probability (above) and entropy (below) of every token along the text, with
    thresholds.

    `theta_1` is a probability, `theta_2` an entropy in nats. Where the backend reported nothing
    the profile has a gap.
    """
    colour = tokens(theme)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    words = [_quoted(token.text) for token in generated]
    probabilities = [token.probability for token in generated]
    entropies = [token.entropy for token in generated]
    panels = (
        ("probability", probabilities, probability, theta_1, "θ₁"),
        ("entropy", entropies, nats, theta_2, "θ₂"),
    )
    for row, (name, values, worded, threshold, symbol) in enumerate(panels, start=1):
        title = t(f"figure.{name}")
        place: dict[str, Any] = {"row": row, "col": 1}
        hover = f"%{{x}} “%{{customdata[0]}}”<br>{title} %{{customdata[1]}}<extra></extra>"
        figure.add_bar(
            x=list(range(1, len(generated) + 1)),
            y=values,
            customdata=[[word, worded(value)] for word, value in zip(words, values, strict=True)],
            hovertemplate=hover,
            marker={"color": [_bar_colour(row, v, threshold, colour) for v in values]},
            showlegend=False,
            **place,
        )
        figure.update_yaxes(title_text=title, rangemode="tozero", **place)
        if threshold is not None:
            line = _threshold(f"{symbol} = {threshold:g}", colour, "top right")
            figure.add_hline(y=threshold, **(line | place))
    figure.update_yaxes(range=[0, 1.05], row=1, col=1)
    figure.update_xaxes(showgrid=False, row=1, col=1)
    figure.update_xaxes(showgrid=False, title_text=t("figure.token"), row=2, col=1)
    figure.update_layout(template=plotly_template(theme), height=340, bargap=0.15)
    return figure


def entities_figure(
    text: str,
    entities: Sequence[EntityMark],
    t: Catalogue,
    theme: Theme = "light",
    *,
    theta_1: float | None = None,
    theta_2: float | None = None,
) -> go.Figure:
    """Return P(E) against H(E) of every entity with both, one symbol a verdict, thresholds
    as lines.

    What lies left of `theta_1` or above `theta_2` is doubtful.
    """
    colour = tokens(theme)
    figure = go.Figure()
    placed = [m for m in entities if m.probability is not None and m.entropy is not None]
    for verdict in distinct(mark.verdict for mark in placed):
        group = [mark for mark in placed if mark.verdict == verdict]
        symbol, shade = _LOOKS[verdict][0], colour[_LOOKS[verdict][1]]
        figure.add_scatter(
            x=[mark.probability for mark in group],
            y=[mark.entropy for mark in group],
            # Names of confident entities would cover each other: many have P near 1.
            mode="markers" if verdict in _SURE else "markers+text",
            name=f"{VERDICT_SIGNS[verdict]} {t(f'verdict.{verdict}')}",
            text=[_quoted(text[mark.start : mark.end]) for mark in group],
            textposition=[_SIDES[place % len(_SIDES)] for place in range(len(group))],
            textfont={"color": colour["ink-2"], "size": 12},
            customdata=[
                [named("entity.label", m.label, t), probability(m.probability), nats(m.entropy)]
                for m in group
            ],
            hovertemplate="%{text} · %{customdata[0]}<br>P(E) %{customdata[1]} · "
            "H(E) %{customdata[2]}<extra></extra>",
            marker={
                "symbol": symbol,
                "size": 11,
                "color": shade,
                "line": {"width": 1.5, "color": shade},
            },
        )
    if theta_1 is not None:
        figure.add_vline(x=theta_1, **_threshold(f"θ₁ = {theta_1:g}", colour, "bottom right"))
    if theta_2 is not None:
        figure.add_hline(y=theta_2, **_threshold(f"θ₂ = {theta_2:g}", colour, "top right"))
    highest = max([0.5, theta_2 or 0.0, *(m.entropy or 0.0 for m in placed)])
    # A sum of probabilities may be larger than 1.
    widest = max([1.0, *(m.probability or 0.0 for m in placed)])
    figure.update_layout(template=plotly_template(theme), height=360)
    figure.update_xaxes(title_text=t("figure.entity_probability"), range=[-0.03, 1.06 * widest])
    figure.update_yaxes(title_text=t("figure.entity_entropy"), range=[-0.05, highest * 1.18])
    return figure


def _bar_colour(
    row: int, value: float | None, threshold: float | None, colour: dict[str, str]
) -> str:
    if value is None or threshold is None:
        return colour["heat-4"]
    wrong = value < threshold if row == 1 else value > threshold
    return colour["heat-line"] if wrong else colour["heat-3"]


def _threshold(label: str, colour: dict[str, str], position: str) -> dict[str, Any]:
    """Return the look of a line at a threshold, with its name beside it."""
    font = {"size": 12, "color": colour["ink-2"]}
    note = {"text": label, "font": font, "bgcolor": colour["surface"], "borderpad": 2}
    line = {"color": colour["ink-3"], "width": 1.5, "dash": "dash"}
    return {"line": line, "annotation": note, "annotation_position": position}


def _quoted(text: str) -> str:
    """Return a token for a plotly label: markup characters escaped, white space visible."""
    plain = visible(text).replace("\n", "↵").strip() or "␣"
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
