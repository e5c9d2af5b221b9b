"""Comparisons as files."""

from __future__ import annotations

import csv
import io
import json

from pipelines.evaluation.results.compare import SystemComparison, comparison
from pipelines.evaluation.results.export import (
    comparison_csv,
    comparison_jsonl,
    comparison_latex,
    comparison_markdown,
)
from pipelines.evaluation.results.scores import MetricInfo
from pipelines.evaluation.statistics.estimates import Sampling
from tests.pipelines.evaluation.results.evaluations import binary

SAMPLING = Sampling(resamples=200, permutations=199)


def made() -> SystemComparison:
    return comparison(
        binary(a=[1, 1, 0, 1], b=[1, 0, 0, 0]), ["a", "b"], "accuracy", sampling=SAMPLING
    )


def test_items_as_csv_discordant_first() -> None:
    rows = list(csv.DictReader(io.StringIO(comparison_csv(made()))))
    assert [row["item"] for row in rows] == ["q1", "q3", "q0", "q2"]
    first = rows[0]
    assert (first["a.value"], first["b.value"], first["spread"]) == ("1.0", "0.0", "1.0")
    assert (first["a.run"], first["b.answer"]) == ("run-a-q1-0", "b says q1")


def test_items_as_json_lines_after_the_pairs() -> None:
    head, *items = map(json.loads, comparison_jsonl(made()).splitlines())
    assert head["comparison"]["pairs"][0]["difference"]["value"] == 0.5
    assert "items" not in head["comparison"]
    assert [item["item"] for item in items] == ["q1", "q3", "q0", "q2"]


def test_pairs_as_markdown_and_latex() -> None:
    lines = comparison_markdown(made()).splitlines()
    # Mid-p of 2 against 0 discordant items: 2 * 1/4 - 1/4.
    cells = [cell.strip() for cell in lines[2].strip("|").split(" | ")]
    assert cells[:2] == ["a", "b"]
    assert cells[2].startswith("0.500")
    assert cells[3:] == ["0.25", "0.25", "McNemar, mid-p", "2", "0"]
    assert any(line.startswith("accuracy on the 4 items") for line in lines)
    assert any("Cannot be told apart at 5 %: a, b" in line for line in lines)
    assert any("likely too narrow" in line for line in lines)
    # Of what is wrong where it is 1, nothing is called right.
    wrong = made().model_copy(update={"metric": MetricInfo(name="wrong_answer", better="lower")})
    assert comparison_markdown(wrong).splitlines()[2].endswith("| – | – |")
    text = comparison_latex(made())
    assert r"\begin{tabular}{lrrrrrrr}" in text
    assert r"\label{tab:comparison}" in text
