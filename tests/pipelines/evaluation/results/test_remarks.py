"""Intervals from few groups are marked in words wherever they stand."""

from __future__ import annotations

import csv
import io

import pytest

from components.base.words import Catalogue
from components.evaluate.table import estimate_cell
from pipelines.evaluation.results.export import (
    caption,
    table_csv,
    table_latex,
    table_markdown,
    table_text,
)
from pipelines.evaluation.results.scores import FEW_NOTE, Evaluation, ScoredSystem, has_few_groups
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.statistics.estimates import Estimate, Sampling
from tests.components.html_tree import read
from tests.pipelines.evaluation.results.evaluations import evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199, seed=7)


def grouped(groups: int) -> Evaluation:
    """Two items in each group; the second is right in every other group."""
    scores = [
        score(f"q{place}", "a", float(place % 4 == 1), group=f"g{place // 2}")
        for place in range(2 * groups)
    ]
    systems = {"a": ScoredSystem(method="a", models={"main": "writer"})}
    versions = {"code": "abc"}
    return evaluation(scores, systems=systems, versions=versions, created=86400.0, seed=7)


def table_of(groups: int) -> ResultsTable:
    return results_table(grouped(groups), sampling=SAMPLING)


@pytest.mark.parametrize(
    ("estimate", "few"),
    [
        (Estimate(value=0.5, low=0.1, high=0.9, n=40, groups=9, method="bca"), True),
        (Estimate(value=0.5, low=0.1, high=0.9, n=40, groups=9, method="percentile"), True),
        (Estimate(value=0.5, low=0.1, high=0.9, n=40, groups=10, method="bca"), False),
        # Wilson's interval is made for few items.
        (Estimate(value=0.5, low=0.1, high=0.9, n=4, groups=4, method="wilson"), False),
        # Without an interval there is nothing to be too narrow.
        (Estimate(value=0.5, n=4, groups=1, reason="too_few_groups"), False),
    ],
)
def test_which_intervals_are_marked(estimate: Estimate, few: bool):
    assert has_few_groups(estimate) is few


def test_a_cell_says_it_in_words():
    t = Catalogue("en")
    few = Estimate(value=0.5, low=0.1, high=0.9, n=8, groups=4, method="bca")
    assert t("evaluate.few.groups", n="4") in read(estimate_cell(few, t)).text()
    items = few.model_copy(update={"n": 4})
    assert t("evaluate.few.items", n="4") in read(estimate_cell(items, t)).text()
    many = few.model_copy(update={"groups": 10})
    assert t("evaluate.few.groups", n="10") not in read(estimate_cell(many, t)).text()


@pytest.mark.parametrize(("groups", "marked"), [(4, True), (12, False)])
def test_tables_mark_it_and_say_what_the_mark_means(groups: int, marked: bool):
    table = table_of(groups)
    text, markdown, latex = table_text(table), table_markdown(table), table_latex(table)
    # A quarter of the items is right: 0.25.
    assert ("]*" in text) is marked
    assert (FEW_NOTE in " ".join(text.split())) is marked
    assert ("]\\*" in markdown or "\\]\\*" in markdown) is marked
    assert ("likely too narrow" in markdown) is marked
    assert ("likely too narrow" in latex) is marked
    (row,) = csv.DictReader(io.StringIO(table_csv(table)))
    assert row["accuracy"] == "0.25"
    assert row["accuracy_remark"] == (f"{groups} groups: too narrow" if marked else "")


def test_a_caption_says_models_seed_date_and_versions():
    words = caption(table_of(4))
    for one in ("Models: writer.", "seed 7", "1970-01-02", "code abc", "numpy "):
        assert one in words, one
