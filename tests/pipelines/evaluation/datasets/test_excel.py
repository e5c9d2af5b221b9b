"""Workbooks of Excel as people make them: dates, formulas, merged cells, several sheets."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest

from pipelines.error_words import phrase_in
from pipelines.evaluation.datasets.files import read_table

openpyxl = pytest.importorskip("openpyxl")
HEAD, FIRST = ["question", "text", "more"], ["Q?", "A.", None]
ABOUT = [["This file was made by us"], ["on Monday"]]


def made(*rows: list[Any], then: Callable[[Any], None] = lambda book: None) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    then(book)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def more(name: str, *rows: list[Any], then: Callable[[Any], None] = lambda book: None) -> Any:
    def add(book: Any) -> None:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        then(book)

    return add


def hide(book: Any) -> None:
    book.worksheets[0].sheet_state = "hidden"
    book.active = 1


def merge(where: str) -> Callable[[Any], None]:
    return lambda book: book.active.merge_cells(where)


def errors(book: Any) -> None:
    book.active["C2"].data_type = "e"


@pytest.mark.parametrize(
    ("data", "cells", "said"),
    [
        (made(HEAD, ["Q?", "A.", datetime(2024, 1, 2, 3, 4)]), ["2024-01-02T03:04:00"], []),
        (made(HEAD, ["Q?", "A.", date(2024, 1, 2)]), ["2024-01-02"], []),
        (made(HEAD, ["Q?", "A.", time(3, 4)]), ["03:04:00"], []),
        (made(HEAD, ["Q?", "A.", "007"], ["Q?", "B.", 7], ["Q?", "C.", 0.5]), ["007", 7, 0.5], []),
        (made(HEAD, ["Q?", "A.", "a_x0007_b_x000D_\nc _x005F_x0041_"]),
         ["a\x07b\nc _x0041_"], []),
        (made(HEAD, ["Q?", "A.", "x"], ["Q?", "B.", None], ["Q?", "C.", None],
              then=merge("C2:C4")), ["x", "x", "x"], []),
        (made([None], [None, *HEAD], [None, "Q?", "A.", "x"], [None, "Q?", "B.", None],
              then=merge("D3:D4")), ["x", "x"], ["the names of the columns are in row 2"]),
        (made(["A survey", None, None], HEAD, ["Q?", "A.", "x"], then=merge("A1:C1")), ["x"],
         ["the names of the columns are in row 2"]),
        # A formula that no program has computed, and an error, are said.
        (made(HEAD, ["Q?", "A.", "=1+1"], ["Q?", "B.", 2]), [None, 2],
         ["cells read as empty because they hold an error, or a formula that no program has"
          " computed: 1"]),
        (made(HEAD, ["Q?", "A.", "#N/A"], then=errors), [None],
         ["cells read as empty because they hold an error, or a formula that no program has"
          " computed: 1"]),
        # The sheet with the table, and the one that people see.
        (made(*ABOUT, then=more("Data", HEAD, ["Q?", "A.", "x"])), ["x"],
         ["the sheet 'Data' is read, and not Sheet"]),
        (made(HEAD, ["H?", "H.", "h"], then=more("Data", HEAD, ["Q?", "A.", "x"], then=hide)),
         ["x"], ["the sheet 'Data' is read, and not Sheet"]),
    ],
)  # fmt: skip
def test_cells_and_sheets(tmp_path: Path, data: bytes, cells: list[Any], said: list[str]):
    path = tmp_path / "a.xlsx"
    path.write_bytes(data)
    table = read_table(path)
    assert [row["more"] for row in table.rows] == cells
    assert [phrase_in(one, "en") for one in table.notes] == said
    assert {row["question"] for row in table.rows} == {"Q?"}
