"""Figures of evaluations: what is drawn where, in both themes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.base.theme import Theme, tokens
from components.base.words import Catalogue
from components.evaluate.compare import (
    cost_figure,
    forest_figure,
    label,
    precision_recall_figure,
    reliability_figure,
    roc_figure,
    table_forest,
)
from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.scores import MetricInfo
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.statistics.detection import curves, reliability
from pipelines.evaluation.statistics.estimates import Estimate, Sampling
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)
LABELS = np.array([1, 1, 0, 0.0])
SCORES = np.array([0.9, 0.4, 0.6, 0.1])


def plain(figure: Any) -> dict[str, Any]:
    return figure.to_plotly_json()


ESTIMATES = {
    "middle": Estimate(value=0.5, low=0.4, high=0.7, n=9, groups=9),
    "none": Estimate(value=None, reason="no_items"),
    "best": Estimate(value=0.8, n=9, groups=9, reason="all_equal"),
    "worst": Estimate(value=0.2, low=0.1, high=0.3, n=9, groups=9),
}


def test_a_forest_has_the_best_at_the_top(t: Catalogue) -> None:
    (points,) = plain(forest_figure(ESTIMATES, MetricInfo(name="accuracy"), t))["data"]
    assert list(points["y"]) == ["worst", "middle", "best"]
    assert list(points["error_x"]["array"]) == pytest.approx([0.1, 0.2, 0])
    assert list(points["error_x"]["arrayminus"]) == pytest.approx([0.1, 0.1, 0])
    assert points["customdata"][1][0] == "0.50 [0.40, 0.70]"
    lower = MetricInfo(name="errors", better="lower")
    (points,) = plain(forest_figure(ESTIMATES, lower, t))["data"]
    assert list(points["y"]) == ["best", "middle", "worst"]


def test_the_axis_says_range_and_direction(t: Catalogue) -> None:
    figure = plain(forest_figure(ESTIMATES, MetricInfo(name="accuracy"), t))
    assert figure["layout"]["xaxis"]["title"]["text"] == "Accuracy 0–1 ↑"


def test_a_forest_of_a_table(t: Catalogue) -> None:
    table = results_table(binary(a=[1, 0], b=[1, 1]), sampling=SAMPLING)
    (points,) = plain(table_forest(table, "accuracy", t))["data"]
    assert list(points["x"]) == [0.5, 1]
    with pytest.raises(InvalidInputError):
        table_forest(table, "bleu", t)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_the_themes(theme: Theme, t: Catalogue) -> None:
    (points,) = plain(forest_figure(ESTIMATES, MetricInfo(name="accuracy"), t, theme))["data"]
    assert points["marker"]["color"] == tokens(theme)["accent"]


def test_curves(t: Catalogue) -> None:
    found = curves(SCORES, LABELS)
    assert found is not None
    roc, pr = found
    drawn = plain(roc_figure({"one": roc, "two": roc}, t))
    first, second = drawn["data"]
    assert (list(first["x"]), list(first["y"])) == (list(roc.x), list(roc.y))
    # Series differ by more than colour.
    assert first["line"]["dash"] != second["line"]["dash"]
    assert drawn["layout"]["shapes"][0]["x1"] == 1
    drawn = plain(precision_recall_figure({"one": pr}, t, base_rate=0.5))
    assert drawn["data"][0]["line"]["shape"] == "vh"
    assert drawn["layout"]["shapes"][0]["y0"] == 0.5
    assert "0.50" in drawn["layout"]["annotations"][0]["text"]


def test_reliability(t: Catalogue) -> None:
    bins = reliability(np.array([0.15, 0.15, 0.15, 0.15, 0.85]), np.array([0, 0, 0, 1, 1.0]))
    (points,) = plain(reliability_figure({"one": bins}, t))["data"]
    assert list(points["x"]) == pytest.approx([0.15, 0.85])
    assert list(points["y"]) == [0.25, 1]
    # The bin with four items is the largest; its area grows with the items.
    sizes = points["marker"]["size"]
    assert sizes[0] == pytest.approx(16)
    assert sizes[1] == pytest.approx(7 + 9 * 0.5)


def test_cost_against_quality(t: Catalogue) -> None:
    values = {"cheap": (1, 0.0), "middle": (2, 0.0), "good": (3, 1.0), "dear": (9, 1.0)}
    made = evaluation([
        score(f"q{n}", name, value if n else 0.0, cost={"calls": calls})
        for n in range(4) for name, (calls, value) in values.items()
    ] + [score("q0", "free", 1)])  # fmt: skip
    table = results_table(made, sampling=SAMPLING)
    front, points = plain(cost_figure(table, "accuracy", "calls", t))["data"]
    # Dearer systems that are no better are not on the line; one without the cost is not drawn.
    assert list(zip(front["x"], front["y"], strict=True)) == [(1, 0), (3, 0.75)]
    assert list(points["text"]) == list(values)
    assert points["customdata"][2][1] == "3"


def test_without_a_direction_there_is_no_line(t: Catalogue) -> None:
    made = evaluation([score("q", name, 1, cost={"calls": n}) for n, name in enumerate("ab")])
    table = results_table(made, sampling=SAMPLING)
    assert len(plain(cost_figure(table, "answer_words", "calls", t))["data"]) == 1


def test_names_are_no_markup(t: Catalogue) -> None:
    assert label("<b>&\u202e") == "&lt;b&gt;&amp;⟨U+202E⟩"
    name = "<b>%{x}"
    found = curves(SCORES, LABELS)
    assert found is not None
    (line,) = plain(roc_figure({name: found[0]}, t))["data"]
    assert line["name"] == "&lt;b&gt;%{x}"
    # A name in a template could ask for values: it is not part of it.
    assert "&lt;b" not in line["hovertemplate"]
