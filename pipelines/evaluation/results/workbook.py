"""Results as a workbook of Excel: a sheet for each table, numbers as numbers, texts as texts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pipelines.base import printable
from pipelines.errors import failure
from pipelines.evaluation.plan import Reading
from pipelines.evaluation.results.export import caption, score_records, table_frame
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table

if TYPE_CHECKING:
    # Loaded by what makes a table: light commands begin without it.
    import pandas as pd

EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
"""The media type of a workbook."""

MOST_ROWS = 1_048_575
"""Rows that a sheet of Excel holds, without its header."""

_LONGEST = 32_767
"""Characters that a cell of Excel holds, in units of UTF-16; more are cut off."""

_MOST_EXACT = 10**15 - 1
"""Excel keeps fifteen digits of a number: a longer one is written as a text."""

_CODE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def has_excel() -> bool:
    """Return whether workbooks can be written and read here."""
    return find_spec("openpyxl") is not None


def workbook(sheets: Mapping[str, pd.DataFrame]) -> bytes:
    """Return a workbook (.xlsx) with these sheets, in their order.

    A text is a text, also one that begins like a formula or names an error. Raises
    InvalidInputError where openpyxl is not installed, and for more rows than a sheet holds.
    """
    if not has_excel():
        raise failure("files.no_excel_writer")
    for name, frame in sheets.items():
        if len(frame) > MOST_ROWS:
            raise failure("files.many_rows_for_excel", sheet=name, rows=len(frame), most=MOST_ROWS)
    import pandas as pd

    file = io.BytesIO()
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        for name, frame in sheets.items():
            shown = frame.astype(object).where(frame.notna(), None)
            shown = shown.map(_cell).set_axis([_cell(one) for one in frame], axis=1)
            shown.to_excel(writer, sheet_name=name, index=False)
            sheet = writer.sheets[name]
            sheet.freeze_panes = "A2"
            for row in sheet.iter_rows():
                for cell in row:
                    if cell.data_type in ("f", "e"):
                        cell.data_type = "s"
    return file.getvalue()


def _cell(value: Any) -> Any:
    """Return a value that Excel holds as it is, or the text that comes nearest to it."""
    if isinstance(value, datetime):
        return value.isoformat() if value.tzinfo else value
    if isinstance(value, list | dict | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, int) and abs(value) > _MOST_EXACT:
        return str(value)
    if not isinstance(value, str):
        return value
    text = printable(value.replace("\r\n", "\n"))
    # What Excel would take for the code of a character.
    text = _CODE.sub("_x005F_", _NO_XML.sub("\ufffd", text))
    units = text.encode("utf-16-le")[: 2 * _LONGEST]
    return units.decode("utf-16-le", "ignore")


def evaluation_workbook(evaluation: Evaluation, reading: Reading | None = None) -> bytes:
    """Return the table of an evaluation, every score of every item, and what they are of."""
    table = results_table(evaluation)
    about = {"evaluation": evaluation.name, "data": evaluation.data_set, "note": caption(table)}
    if reading is not None:
        about["read as"] = reading.form or "columns"
        about |= {
            f"{one.part} from": ", ".join(one.columns) for one in reading.parts if one.columns
        }
        about |= {
            f"label {one.value}": {True: "hallucinated", False: "supported", None: ""}[
                one.hallucinated
            ]
            for one in reading.labels
            if one.value
        }
        about["rows left out"] = str(reading.left_out_count)
    import pandas as pd

    return workbook(
        {
            "results": table_frame(table),
            "items": pd.DataFrame(score_records(evaluation), dtype=object),
            "about": pd.DataFrame(about.items(), columns=["what", "value"], dtype=object),
        }
    )
