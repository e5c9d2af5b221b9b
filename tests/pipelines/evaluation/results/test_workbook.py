"""Workbooks of Excel: results and items, numbers as numbers, and no text that is a formula."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from pipelines.evaluation.plan import LabelRead, PartRead, Reading
from pipelines.evaluation.results.table import results_table, unmeasured
from pipelines.evaluation.results.workbook import evaluation_workbook, workbook
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score


def sheets_of(data: bytes) -> dict[str, pd.DataFrame]:
    return pd.read_excel(io.BytesIO(data), sheet_name=None, keep_default_na=False)


def test_texts_stay_texts_and_numbers_numbers():
    openpyxl = pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"a": ["=1+1", "x\x07"], "b": pd.array([1, None], dtype="Int64")})
    data = workbook({"one": frame, "two": frame.head(0)})
    sheet = openpyxl.load_workbook(io.BytesIO(data))["one"]
    cells = [[(cell.value, cell.data_type) for cell in row] for row in sheet.iter_rows()]
    assert cells[1] == [("=1+1", "s"), (1, "n")]
    assert cells[2][0][1] == "s"
    assert "\x07" not in cells[2][0][0]
    assert cells[2][1][0] is None


def test_an_evaluation_has_its_table_its_items_and_how_it_was_read():
    pytest.importorskip("openpyxl")
    found = binary(a=[1, 0, 1], b=[0, 0, 1])
    reading = Reading(
        parts=(PartRead(part="hallucinated", columns=("label",)),),
        labels=(LabelRead(value="1", hallucinated=False, count=3),),
    )
    sheets = sheets_of(evaluation_workbook(found, reading))
    assert list(sheets) == ["results", "items", "about"]
    assert len(sheets["items"]) == len(found.scores)
    table = results_table(found)
    assert list(sheets["results"]["system"])[: len(table.rows)] == [
        one.system for one in table.rows
    ]
    about = dict(sheets["about"].itertuples(index=False))
    assert (about["hallucinated from"], about["label 1"]) == ("label", "supported")


def test_items_without_a_value_are_counted():
    found = evaluation(
        [
            score("q0", "a", 1.0),
            score("q0", "b", None),
            score("q1", "a", 0.0),
            score("q1", "b", 1.0),
            score("q2", "a", 1.0),
            score("q2", "b", None, error="timeout"),
        ]
    )
    # Of b one answer has no value, and one failed.
    assert unmeasured(found) == {"b": 2}
    assert [(row.n, row.values) for row in results_table(found).rows] == [(3, 3), (2, 1)]
    assert unmeasured(binary(a=[1, 0])) == {}
