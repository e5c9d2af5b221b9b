"""Sheets of a workbook of Excel as grids of cells (openpyxl)."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.grids import as_text

_HEADERS = 20
"""Rows at the top of a sheet among which a header is looked for."""

_MOST_MERGED = 1_000_000
"""Cells that merged cells are written into."""

# A formula that no program has computed: the file holds none of its values.
_MERGED = re.compile(rb"<mergeCell\s")
_UNCOMPUTED = re.compile(rb"</f>\s*(?:<v\s*/>|<v></v>)?\s*</c>|<f[^>]*/>\s*(?:<v\s*/>)?\s*</c>")


class Sheet(NamedTuple):
    """A sheet with anything in it; `lost` counts cells with an error or a formula without value."""

    name: str
    grid: list[list[Any]]
    lost: int = 0


def sheets_in(data: bytes) -> list[Sheet]:
    """Return the sheets that hold anything, the likeliest first: those that people see before
    hidden ones, and those with columns of usual names before others.

    A cell merged over several rows is in each of them. Empty cells, and those with an error, are
    None; times are texts. Raises ImportError without openpyxl, and what it raises for a file that
    is none.
    """
    import openpyxl

    # Only a workbook that is read as a whole knows which cells are merged; it takes more memory.
    whole = _has(data, _MERGED)
    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True, read_only=not whole)
    # A formula without a value is empty there.
    formulas = (
        openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        if _has(data, _UNCOMPUTED)
        else None
    )
    found: list[tuple[bool, int, Sheet]] = []
    for sheet in book.worksheets:
        lost = 0
        grid: list[list[Any]] = []
        for row in _rows(sheet):
            lost += sum(cell.data_type == "e" for cell in row)
            grid.append([None if cell.data_type == "e" else _shown(cell) for cell in row])
        if formulas is not None:
            written = _rows(formulas[sheet.title])
            lost += sum(
                cell.data_type == "f" and value is None
                for row, values in zip(written, grid, strict=False)
                for cell, value in zip(row, values, strict=False)
            )
        width = max(map(len, grid), default=0)
        grid = [[*row, *[None] * (width - len(row))] for row in grid]
        if whole:
            _fill(grid, sheet)
        if any(cell is not None for row in grid for cell in row):
            one = Sheet(str(sheet.title), grid, lost)
            found.append((sheet.sheet_state != "visible", -_named(grid), one))
    return [one for _, _, one in sorted(found, key=lambda told: told[:2])]


def _named(grid: list[list[Any]]) -> int:
    """Return whether a row near the top names two columns as they are usually called, as 0 or 1."""
    return int(
        any(
            sum(isinstance(cell, str) and bool(part_of(cell)) for cell in row) > 1
            for row in grid[:_HEADERS]
        )
    )


def _fill(grid: list[list[Any]], sheet: Any) -> None:
    room = _MOST_MERGED
    for merged in sheet.merged_cells.ranges:
        top, left = merged.min_row - 1, merged.min_col - 1
        bottom = min(merged.max_row, len(grid))
        if (room := room - max(0, bottom - top)) < 0:
            return
        for row in grid[top + 1 : bottom]:
            row[left] = grid[top][left]


def _has(data: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Return whether a sheet of the workbook holds what the pattern describes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [one for one in archive.namelist() if one.startswith("xl/worksheets/sheet")]
        return any(pattern.search(archive.read(one)) for one in names)


def _rows(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a sheet, also where it says too little of its size."""
    if hasattr(sheet, "reset_dimensions"):
        sheet.reset_dimensions()
    return sheet.iter_rows()


def _shown(cell: Any) -> Any:
    """Return what a cell holds; a share as people see it: "25%"."""
    value = cell.value
    if isinstance(value, int | float) and "%" in str(getattr(cell, "number_format", "")):
        return f"{round(value * 100, 10):.10g}%"
    return _plain(value)


def _plain(cell: Any) -> Any:
    """Return a cell as the other forms of files have it: None where it is empty."""
    from openpyxl.utils.escape import unescape

    if cell is None or cell != cell or cell == "":
        return None
    if isinstance(cell, str):
        return unescape(cell).replace("\r\n", "\n").replace("\r", "\n")
    return cell if isinstance(cell, int | float | bool) else as_text(cell)
