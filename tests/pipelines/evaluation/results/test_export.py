"""Exports are read back by what they are for, and run nothing in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.export import (
    csv_text,
    estimate_words,
    harmless,
    inspect_jsonl,
    latex,
    paper_numbers,
    scores_csv,
    scores_jsonl,
    table_csv,
    table_latex,
    table_markdown,
)
from pipelines.evaluation.results.packed import ItemScore
from pipelines.evaluation.results.scores import Evaluation, ItemSummary, ScoredSystem
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.statistics.estimates import Estimate, Sampling
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)


def results(made: Evaluation, **part: Any) -> ResultsTable:
    return results_table(made, sampling=SAMPLING, **part)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def printed() -> Evaluation:
    """A system whose figures papers print, with a name that needs escaping."""
    return evaluation(
        [score("q0", "R&D_1", 1, cost={"calls": 4}), score("q1", "R&D_1", 0, cost={"calls": 2})],
        data_set="StrategyQA",
        systems={"R&D_1": ScoredSystem(method="rowen", models={"main": "tiny"})},
    )


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+SUM(A1)", "'+SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("@cmd", "'@cmd"),
        ("  =1", "'  =1"),
        ("\t=1", "'\t=1"),
        ("＝1+1", "'＝1+1"),
        ("-0.5", "-0.5"),
        ("+1e-3", "+1e-3"),
        ("Paris = 1", "Paris = 1"),
        ("", ""),
    ],
)
def test_what_a_spreadsheet_would_run_is_made_harmless(cell: str, safe: str) -> None:
    assert harmless(cell) == safe


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_no_text_cell_begins_a_formula(cells: list[str]) -> None:
    enumerated = ((f"n{number}", cell) for number, cell in enumerate(cells))
    (row,) = list(csv.reader(io.StringIO(csv_text([dict(enumerated)]), newline="")))[1:]
    for cell, before in zip(row, cells, strict=True):
        # The reader of the test turns line ends into \n, as the writer does not.
        assert cell in (before, f"'{before}")
        if cell.lstrip()[:1] in ("=", "@"):
            pytest.fail(cell)


def test_the_table_of_a_part_says_of_which() -> None:
    made = binary(a=[1, 0, 1, 0], b=[1, 1, 0, 0])
    whole, part = results(made), results(made, tags=("even",), language="en")
    assert "only" not in read(table_csv(whole))[0]
    assert [(row["only"], row["items"]) for row in read(table_csv(part))] == [("even; en", "2")] * 2
    assert ", only even, en" in table_markdown(part)


def test_length_and_overlap_stand_below_the_detectors() -> None:
    # The longer answers are the hallucinated ones, and hold the fewer words of the passages.
    scores = [
        score(f"q{n}", "slm", None, answer="word " * (n + 1), values={
            "hallucination_score": 0.5, "hallucinated": float(n > 1), "passage_overlap": 1 - n / 4,
        })
        for n in range(4)
    ]  # fmt: skip
    table = results(evaluation(scores))
    assert table.controls == ("answer_words", "passage_overlap")
    _, _, *rows = table_markdown(table).splitlines()
    names = [row.strip("| ").split(" | ")[0] for row in rows[:3]]
    assert names == ["slm", r"answer\_words (control)", r"passage\_overlap (control)"]
    # They have nothing else.
    assert rows[1].endswith("– |")
    assert r"{}passage\_overlap (control) & " in table_latex(table)
    read_back = {row["system"]: row["auroc"] for row in read(table_csv(table))}
    assert read_back == {"slm": "0.5", "answer_words": "1.0", "passage_overlap": "1.0"}


def test_each_printed_figure_leads_to_a_note_with_its_model_data_and_date() -> None:
    table = results(printed())
    lines = table_markdown(table).splitlines()
    cells = [cell.strip() for cell in lines[2].strip("|").split(" | ")]
    assert cells[:2] == [r"R&amp;D\_1", r"0.500 \[0.095, 0.905\]"]
    numbers = re.findall(r"\((\d+)\)", cells[2])
    assert len(numbers) == 3
    for number in numbers:
        (note,) = [line for line in lines if line.startswith(f"({number}) ")]
        assert "gpt-3.5-turbo" in note
        assert "rowen 2024-02" in note
    assert len(paper_numbers(table)) == sum(line.startswith("(") for line in lines)


def test_a_pipe_or_a_line_end_does_not_break_a_row() -> None:
    name = "a|b\n| c"
    text = table_markdown(results(evaluation([score("q", name, 1)])))
    assert text.splitlines()[2].startswith(r"| a\|b \| c | ")


def test_the_table_as_latex() -> None:
    text = table_latex(results(printed()), label="tab:mine")
    assert r"{}R\&D\_1 & 0.500 [0.095, 0.905] &" in text
    assert r"\label{tab:mine}" in text
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 1
    columns = re.search(r"\\begin\{tabular\}\{(l+r+)\}", text)
    assert columns is not None
    head = next(line for line in text.splitlines() if "System" in line)
    assert head.count("&") == len(columns[1]) - 1
    with pytest.raises(InvalidInputError, match="label"):
        table_latex(results(printed()), label="}\\input{x}")


def test_latex_is_escaped() -> None:
    assert latex("50 % of A_1 & {B}") == r"50 \% of A\_1 \& \{B\}"
    # LaTeX refuses control characters.
    assert latex("a\x1b\u202eb") == r"a\textbackslash{}x1b\textbackslash{}u202eb"
    assert latex(r"\input{x}") == r"\textbackslash{}input\{x\}"
    assert latex("a – b − c\n~^") == r"a -- b $-$ c \textasciitilde{}\textasciicircum{}"


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (Estimate(value=0.5, low=0.25, high=0.75), "0.500 [0.250, 0.750]"),
        (Estimate(value=0.5, reason="all_equal"), "0.500"),
        # What rounds to zero has no sign.
        (Estimate(value=-0.0004, low=-0.1, high=-0.0), "0.000 [-0.100, 0.000]"),
        (Estimate(value=None, reason="no_items"), "–"),
    ],
)
def test_an_estimate_in_words(estimate: Estimate, words: str) -> None:
    assert estimate_words(estimate) == words


def test_scores_as_csv() -> None:
    made = evaluation(
        [score("q0", "a", 1, answer='=HYPERLINK("x")', flags=("abstained", "unverified"))],
        items={"q0": ItemSummary(text="Line one\nline two, with a comma")},
    )
    (row,) = read(scores_csv(made))
    assert row["answer"] == """'=HYPERLINK("x")"""
    assert row["question"] == "Line one\nline two, with a comma"
    assert (row["accuracy"], row["flags"], row["run"]) == (
        "1.0",
        "abstained;unverified",
        "run-a-q0-0",
    )


def test_scores_as_json_lines_hold_everything() -> None:
    made = binary(a=[1, 0], b=[1, 1])
    head, *lines = [json.loads(line) for line in scores_jsonl(made).splitlines()]
    assert Evaluation.model_validate(head["evaluation"] | {"scores": lines}) == made
    assert [ItemScore.model_validate(line) for line in lines] == list(made.scores)


def test_the_form_of_inspect() -> None:
    scores = [
        score("q0", "a", 1), score("q0", "a", 0, repeat=1), score("q0", "b", 0),
        score("q1", "a", None),
    ]  # fmt: skip
    lines = [json.loads(line) for line in inspect_jsonl(evaluation(scores), "a").splitlines()]
    assert [(one["id"], one["epoch"], one["value"]) for one in lines] == [
        ("q0", 1, {"accuracy": 1.0}),
        ("q0", 2, {"accuracy": 0.0}),
    ]
    assert lines[0]["metadata"]["run"] == "run-a-q0-0"
    with pytest.raises(InvalidInputError, match="no system 'c'"):
        inspect_jsonl(evaluation(scores), "c")


def test_columns_stand_there_without_records_and_integers_stay_integers() -> None:
    assert csv_text([], ["a", "=b"]) == "a,'=b\r\n"
    assert csv_text([{"n": 1}, {"m": 0.1, "n": None}]) == "n,m\r\n1,\r\n,0.1\r\n"
