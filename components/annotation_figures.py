"""Plotly figures of a session's labels beside those of evaluations: how scores are spread."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from components.messages import Catalogue, integer
from components.theme import Theme, plotly_template, tokens
from pipelines.evaluation.statistics.resampling import Floats

_BINS = 20
_LOOKS = ((0.0, "right", "supported", ""), (1.0, "wrong", "contradicted", "/"))


def distribution_figure(
    doubts: Floats,
    labels: Floats,
    t: Catalogue,
    theme: Theme = "light",
    *,
    cut: float | None = None,
    whole: bool = False,
) -> go.Figure:
    """Return how often a detector had each doubt, on items that people found right and wrong.

    Both arguments are [items], NaN where one is missing. Shares are of each kind of items, so that
    a rare kind is seen as well; wrong items are hatched. `cut` is the fitted threshold in the
    doubt. With `whole` the axis goes from 0 to 1.
    """
    colour, figure = tokens(theme), go.Figure()
    known = np.isfinite(doubts) & np.isfinite(labels)
    values, truth = doubts[known], labels[known]
    if whole or not values.size:
        low, high = 0.0, 1.0
    else:
        low, high = float(values.min()), float(values.max())
        high = high if high > low else low + 1.0
    edges = np.linspace(low, high, _BINS + 1)
    for kind, name, shade, hatch in _LOOKS:
        own = values[truth == kind]
        counts = np.histogram(own, edges)[0]
        shares = counts / len(own) if len(own) else np.zeros(_BINS)
        figure.add_bar(
            x=((edges[:-1] + edges[1:]) / 2).tolist(),
            y=shares.tolist(),
            width=(edges[1] - edges[0]) * 0.98,
            offset=None,
            customdata=[
                [f"{begin:.3g}", f"{end:.3g}", integer(int(count)), integer(len(own))]
                for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
            ],
            hovertemplate="%{fullData.name}<br>%{customdata[0]} – %{customdata[1]}<br>"
            "%{customdata[2]} / %{customdata[3]}<extra></extra>",
            name=t(f"annotate.results.grade.{name}"),
            marker={
                "color": colour[shade],
                "opacity": 0.7,
                "pattern": {"shape": hatch, "size": 7, "solidity": 0.4},
                "line": {"width": 1, "color": colour[shade]},
            },
        )
    if cut is not None:
        figure.add_vline(
            x=cut,
            line={"color": colour["ink-3"], "width": 1.5, "dash": "dash"},
            annotation={
                "text": t("annotate.results.figure.cut", value=f"{cut:.3g}"),
                "font": {"size": 12, "color": colour["ink-2"]},
                "bgcolor": colour["surface"],
                "borderpad": 2,
            },
            annotation_position="top right",
        )
    figure.update_layout(
        template=plotly_template(theme), height=320, barmode="overlay", bargap=0.02
    )
    figure.update_xaxes(title_text=t("annotate.results.figure.doubt"), range=[low, high])
    figure.update_yaxes(title_text=t("annotate.results.figure.share"), rangemode="tozero")
    return figure
