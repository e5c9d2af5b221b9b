"""Workbooks of Excel: results and items, numbers as numbers, and no text that is a formula."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipelines.evaluation.datasets.files import read_table
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


TEXTS = (
    "=1+1", "+1", "-x", "@SUM(A1)", "#N/A", "#REF!", "_x0041_", "'quoted", "TRUE", "007", "1e5",
    "2024-01-02", "  lead", "one\ntwo", "中文😀", "<a> & b", "y" * 32_767,
)  # fmt: skip


def test_texts_come_back_as_they_went(tmp_path: Path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    frame = pd.DataFrame({"question": "Q?", "text": TEXTS}, dtype=object)
    path.write_bytes(workbook({"results": frame}))
    assert [row["text"] for row in read_table(path).rows] == list(TEXTS)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("\ud800x\ufffe", "\ufffdx\ufffd"),
        ("z" * 32_768, "z" * 32_767),
        # A cell counts units of UTF-16.
        ("😀" * 20_000, "😀" * 16_383),
        (10**20, "1" + "0" * 20),
        (float("inf"), "inf"),
        ([1, "甲"], '[1, "甲"]'),
        (datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02T00:00:00+00:00"),
    ],
)
def test_what_a_cell_cannot_hold_is_written_as_what_comes_nearest(value: Any, kept: str):
    openpyxl = pytest.importorskip("openpyxl")
    data = workbook({"one": pd.DataFrame({"a": [value]}, dtype=object)})
    assert openpyxl.load_workbook(io.BytesIO(data))["one"]["A2"].value == kept


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
