"""Studies on the page: the curve, the table beside it, and what is said of the choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from components.base.words import Catalogue
from components.evaluate.study import axis_title, choice_words, study_figure, study_view
from pipelines.errors import InvalidInputError
from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.evaluation.studies.grid import Axis, Value
from pipelines.evaluation.studies.named import named_studies
from pipelines.evaluation.studies.table import Study, StudyMeasurements, study_table
from tests.components.html_rules import faults
from tests.components.html_tree import read

SAMPLING = Sampling(resamples=100, permutations=99)
ROWS = [[1, 0, 1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0, 1, 0], [1, 1, 0, 1, 0, 0, 1, 0]]


def study(
    name: str = "theta_1",
    values: Sequence[Value] = (0.5, 0.6, 0.7),
    method: str = "drad",
    diverged: Sequence[int] = (0, 0, 0),
) -> Study:
    measured = StudyMeasurements(
        points=[{name: value} for value in values],
        values={"accuracy": np.array(ROWS, dtype=float)},
        groups=[""] * 8,
        replayed=[8 - one for one in diverged],
        diverged=diverged,
        current=0,
    )
    table = study_table(measured, SAMPLING)
    return Study(
        name="e",
        kind="replay",
        evaluation="e",
        data_set="d",
        data_hash="h",
        system=method,
        method=method,
        axes=(Axis(name=name, values=tuple(values)),),
        metrics=table.metrics,
        points=table.points,
        items=8,
        groups=8,
        answers=8,
        choice=table.choice,
        no_choice=table.no_choice,
        sampling=SAMPLING,
    )


def test_a_curve_with_its_band_and_both_marked_points(t: Catalogue):
    figure: Any = study_figure(study(), "accuracy", t)
    low, high, line, current, chosen = figure.data
    assert list(line.x) == [0.5, 0.6, 0.7]
    assert list(line.y) == [3 / 8, 6 / 8, 4 / 8]
    assert len(low.x) == len(high.x) == 3
    assert all(a < b < c for a, b, c in zip(low.y, line.y, high.y, strict=True))
    assert (current.name, list(current.x)) == (t("study.current"), [0.5])
    # On even items (0, 2, 4, 6) the points have 2, 4 and 2 of 4.
    assert (chosen.name, list(chosen.x)) == (t("study.chosen"), [0.6])
    assert figure.layout.xaxis.title.text == axis_title(study(), t)
    assert "0–1" in figure.layout.yaxis.title.text
    with pytest.raises(InvalidInputError, match="no metric 'f1'"):
        study_figure(study(), "f1", t)


def test_settings_without_a_place_on_the_axis_are_a_line_across(t: Catalogue):
    found = study("tau_a", (None, 0.4, 0.6), "haarag")
    figure: Any = study_figure(found, "accuracy", t)
    assert list(figure.data[2].x) == [0.4, 0.6]
    assert [shape.y0 for shape in figure.layout.shapes] == [3 / 8]
    assert t("study.unset") in study_view(found, ["accuracy"], t)


def test_options_stand_beside_each_other(t: Catalogue):
    figure: Any = study_figure(study("pooling", ("mean", "min", "max")), "accuracy", t)
    points = figure.data[0]
    assert list(points.x) == ["mean", "min", "max"]
    assert points.mode == "markers"
    assert len(points.error_y.array) == 3


def test_the_table_says_what_each_value_comes_to(t: Catalogue):
    found = study(diverged=(0, 0, 3))
    html = study_view(found, ["accuracy"], t)
    assert list(faults(html)) == []
    page = read(html)
    rows = [row.text() for row in page.all("tr")[1:]]
    assert len(rows) == 3
    assert t("study.current") in rows[0]
    assert t("study.chosen") in rows[1]
    assert t("study.diverged.help") in page.text()
    # One that needs new calls for three of eight is not compared.
    assert found.choice is not None
    assert found.choice.candidates == 2


def test_the_choice_is_told_in_words(t: Catalogue):
    words = " ".join(choice_words(study(), t))
    # Odd items: 1, 3, 5, 7 have 2 of 4 at the chosen point and 1 of 4 at the recorded one.
    assert "0.50" in words
    assert t("study.choice.current", current="").split("{")[0][:6] in words
    nothing = study(diverged=(4, 4, 4))
    assert choice_words(nothing, t) == [t("study.no_choice.all_diverge")]


def test_figures_of_the_paper_stand_beside_ours_with_their_model(t: Catalogue):
    found, known = study("mean", ("harmonic", "max", "min"), "slm"), named_studies()["slm-mean"]
    points = [one.model_copy(update={"papers": known.figures(one.label)}) for one in found.points]
    text = read(
        study_view(found.model_copy(update={"points": tuple(points)}), ["accuracy"], t)
    ).text()
    assert "0.81" in text
    assert "MiniCPM-2B" in text


def test_what_was_left_out_is_counted(t: Catalogue):
    found = study().model_copy(update={"unreadable": 2, "altered": 1})
    text = read(study_view(found, ["accuracy"], t)).text()
    assert t("study.unreadable", count="2", total="8") in text
    assert t("study.altered", count="1", total="8") in text
