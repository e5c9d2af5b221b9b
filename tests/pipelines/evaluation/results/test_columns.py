"""Every column of a table of results stands in every rendering, with the same value."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from components.base.words import Catalogue
from components.evaluate.table import ranking_view, results_view
from pipelines.evaluation.results.columns import held, lines, results_columns, typed_frame
from pipelines.evaluation.results.export import table_csv, table_latex, table_markdown, table_text
from pipelines.evaluation.results.scores import ScoredSystem
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.statistics.estimates import Sampling
from tests.components.html_tree import read
from tests.pipelines.evaluation.results.evaluations import evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)
NAME = "R&D_1"
Cells = dict[str, str]


@pytest.fixture(scope="module")
def table() -> ResultsTable:
    """A system that rewrites, detects, costs and declines, whose figures papers print."""
    scores = [
        score(
            f"q{n}", NAME, n % 2, answer="word " * (n + 1),
            original="before", original_values={"accuracy": 0},
            values={"hallucination_score": n / 4, "hallucinated": n > 1},
            cost={"calls": 2 + n},
            flags=("abstained",) if n == 3 else (),
        )
        for n in range(4)
    ]  # fmt: skip
    made = evaluation(
        scores,
        data_set="StrategyQA",
        systems={NAME: ScoredSystem(method="rowen", models={"main": "tiny"})},
    )
    return results_table(made, sampling=SAMPLING)


class Case(NamedTuple):
    """A column: its title in print, in a terminal and on the page; its cells for programs; and the
    words of its cell, with three digits and with two."""

    title: str
    short: str
    label: str
    cells: Cells
    words: str
    brief: str


# Wilson's interval of 2 of 4 is [0.150, 0.850], that of 1 of 4 [0.046, 0.699].
HALF = "0.500 [0.150, 0.850]", "0.50 [0.15, 0.85]"
CASES = {
    "metric": Case(
        "accuracy ↑", "accuracy", "Accuracy 0–1 ↑",
        {"accuracy": "0.5", "accuracy_n": "4", "accuracy_interval": "wilson"}, *HALF,
    ),
    "papers": Case(
        "accuracy, papers ↑", "", "Accuracy, as printed in papers",
        {}, "74.00 % (1); 72.40 % (2)", "",
    ),
    # The longer answers are the hallucinated ones.
    "measure": Case(
        "auroc ↑", "auroc", "AUROC 0–1 ↑", {"auroc": "1.0", "auroc_n": "4"}, "1.00", "1.00",
    ),
    "correction": Case(
        "corrected (accuracy) ↑", "corrected", "Corrected (Accuracy) 0–1 ↑",
        {"accuracy_corrected": "0.5", "accuracy_spoiled": ""}, *HALF,
    ),
    "items": Case("n", "n", "Items", {"n": "4", "repeats": "1"}, "4", "4"),
    "errors": Case("errors ↓", "", "Errors ↓", {"errors": "0"}, "0", ""),
    "abstained": Case(
        "abstained", "abstained", "Declined to answer",
        {"abstained": "0.25"}, "0.250 [0.046, 0.699]", "0.25 [0.05, 0.70]",
    ),
    "cost": Case(
        "calls per item ↓", "calls", "Model calls per item",
        {"calls_mean": "3.5", "calls_total": "14.0", "money_usd_mean": ""}, "3.5", "3.5",
    ),
    "origin": Case(
        "", "", "",
        {"system": NAME, "method": "rowen", "models": "main: tiny", "seed": "0", "level": "0.95"},
        "", "",
    ),
}  # fmt: skip


def from_csv(table: ResultsTable) -> Cells:
    return next(csv.DictReader(io.StringIO(table_csv(table))))


def from_markdown(table: ResultsTable) -> Cells:
    head, _, row = table_markdown(table).replace("\\", "").splitlines()[:3]
    heads, cells = (line.strip("| ").split(" | ") for line in (head, row))
    return dict(zip(heads, cells, strict=True))


def from_latex(table: ResultsTable) -> Cells:
    signs = {r"$\uparrow$": "↑", r"$\downarrow$": "↓", r"\_": "_", r"\%": "%", r"\&": "and"}
    text = table_latex(table)
    for sign, plain in signs.items():
        text = text.replace(sign, plain)
    body = [line.strip().removesuffix(r" \\") for line in text.splitlines() if " & " in line]
    heads, cells = (line.split(" & ") for line in body[:2])
    return dict(zip(heads, cells, strict=True))


def from_terminal(table: ResultsTable) -> Cells:
    found: Cells = {}
    for part in table_text(table).split("\n\n")[:-1]:
        head, row, *_ = part.splitlines()
        found |= dict(zip(head.split(), re.split(r"  +", row)[1:], strict=True))
    return found


def from_page(table: ResultsTable) -> Cells:
    t = Catalogue("en")
    assert table.detection is not None
    found: Cells = {}
    for view in (results_view(table, t), ranking_view(table.detection, table, t)):
        # What does not decide stands in a table of its own, one press away.
        for part in read(view).all("table"):
            cells = part.one("tbody").all("tr")[0].all("td")
            found |= {one.attributes.get("data-label", ""): one.text("vs-sr") for one in cells}
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_column_stands_in_every_rendering(name: str, table: ResultsTable) -> None:
    case = CASES[name]
    told = from_csv(table)
    assert {key: told[key] for key in case.cells} == case.cells
    for title, words, rendered in (
        (case.title, case.words, from_markdown),
        (case.title, case.words, from_latex),
        (case.short, case.brief, from_terminal),
        (case.label, case.brief, from_page),
    ):
        if title:
            assert rendered(table)[title].startswith(words), rendered


@pytest.mark.parametrize("rendered", [from_markdown, from_latex])
def test_a_printed_table_has_the_same_columns_in_every_form(
    rendered: Callable[[ResultsTable], Cells], table: ResultsTable
) -> None:
    found = rendered(table)
    assert list(found)[:3] == ["System", "accuracy ↑", "accuracy, papers ↑"]
    # What nothing is known of is no column: nobody was spoiled, and no passages were given.
    assert not any("spoiled" in head or "passage_overlap" in head for head in found)


def test_the_frame_for_programs_has_typed_columns(table: ResultsTable) -> None:
    rows = lines(table)
    frame = typed_frame(held(results_columns(table), rows), rows)
    types = {name: str(frame[name].dtype) for name in ("system", "n", "accuracy", "calls_mean")}
    assert types == {
        "system": "object",
        "n": "Int64",
        "accuracy": "Float64",
        "calls_mean": "Float64",
    }
    # A control is no system: it has measures alone.
    assert list(frame["system"]) == [NAME, "answer_words"]
    assert list(frame["method"]) == ["rowen", "control"]
    assert frame["n"].isna().tolist() == [False, True]
    assert frame["auroc"].isna().tolist() == [False, False]
    assert frame["accuracy"].isna().tolist() == [False, True]
