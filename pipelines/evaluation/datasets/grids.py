"""Grids of cells: what separates the cells of a text, which row names the columns, and lists."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pipelines.evaluation.datasets.columns import part_of
from pipelines.text.sentences import csv_source
from pipelines.text.separated import separated

Row = dict[str, Any]
Grid = Sequence[Sequence[Any]]
"""The cells of a table row by row, its header and what stands above it too."""


class TornTextError(ValueError):
    """A text that is no table at a row, from 1 without its header."""

    def __init__(self, row: int, said: str) -> None:
        super().__init__(said)
        self.row = row


_LOOKED_AT = 30
"""Rows by which a header is told."""

_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def grid_of_text(text: str, *, tabs: bool = False) -> Grid:
    """Return the cells of CSV, or with `tabs` of tab-separated values, row by row.

    A first line "sep=;", which Excel reads, names the separator; else it is the one that divides
    most of the first rows alike. Between tabs, quotation marks that close no cell are part of the
    text. Raises TornTextError for a quotation mark that is never closed.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text, separator, named = separated(text)
    if tabs and not named:
        separator = "\t"
    # Names behind a space say that all cells stand behind one, also those in quotation marks.
    spaced = separator + " " in text.partition("\n")[0]
    if separator == "\t" and _has_bare_quotes(text):
        return [line.split("\t") for line in text.split("\n") if line.strip()]
    rows = list[list[str]]()
    try:
        source = csv_source(text)
        rows.extend(csv.reader(source, delimiter=separator, strict=True, skipinitialspace=spaced))
    except csv.Error as error:
        raise TornTextError(max(1, len(rows)), str(error)) from None
    return [row for row in rows if row]


def _has_bare_quotes(text: str) -> bool:
    """Return whether a cell between tabs begins with a quotation mark that does not enclose it.

    Tables without any quoting have the same number of cells in every line.
    """
    lines = [line.split("\t") for line in text.split("\n") if line.strip()]
    if len({len(line) for line in lines}) > 1:
        return False
    return any(
        cell.startswith('"') and not _QUOTED.fullmatch(cell) for line in lines for cell in line
    )


class NamedRows(NamedTuple):
    """The records of a grid: for each its row in the grid from 1, its cells by name, or None where
    there are too few or too many, and their number. `header` is the row of the names, from 0;
    `again` counts rows that only repeat it.
    """

    names: tuple[str, ...]
    header: int
    rows: list[tuple[int, Row | None, int]]
    repeated: bool = False
    again: int = 0


def named_rows(grid: Grid) -> NamedRows:
    """Return the records below the header of a grid; rows without any text are left out.

    Rows above the header, such as a title, have a single cell, or stand above a row that names at
    least two parts of an item as `part_of` knows them. A column without a name and without a text
    is left out, and so are rows that repeat the header. "NaN" is no value.
    """
    header = _header(grid)
    first = list(grid[header]) if grid else []
    body = [(at, list(row)) for at, row in enumerate(grid, start=1) if at > header + 1]
    body = [(at, row) for at, row in body if any(map(_is_filled, row))]
    while first and not _is_filled(first[-1]):
        if any(_is_filled(row[len(first) - 1]) for _, row in body if len(row) >= len(first)):
            break
        first.pop()
    before = len(body)
    body = [(at, row) for at, row in body if row != first or len(set(first)) < 2]
    empty = {
        at
        for at, name in enumerate(first)
        if not _is_filled(name)
        and not any(_is_filled(one) for _, row in body for one in row[at : at + 1])
    }
    names = [str(name).strip() if _is_filled(name) else "" for name in first]
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    rows = list[tuple[int, Row | None, int]]()
    for at, row in body:
        while len(row) > len(names) and not _is_filled(row[-1]):
            row.pop()
        fits = len(row) == len(names)
        cells = None
        if fits:
            named = enumerate(zip(names, map(_value, row), strict=True))
            cells = {name: cell for place, (name, cell) in named if place not in empty}
        rows.append((at, cells, len(row)))
    again = before - len(body)
    return NamedRows(tuple(names), header, rows, len(set(names)) < len(names), again)


def _is_filled(cell: Any) -> bool:
    return cell is not None and bool(str(cell).strip())


def _value(cell: Any) -> Any:
    return None if isinstance(cell, str) and cell in ("NaN", "nan") else cell


def _header(grid: Grid) -> int:
    """Return the number of the row that names the columns."""
    top = next((at for at, row in enumerate(grid) if any(map(_is_filled, row))), 0)
    if top:
        return top + _header(grid[top:])
    known = [sum(bool(part_of(str(cell))) for cell in row if _is_filled(cell)) for row in grid[:10]]
    filled = [sum(map(_is_filled, row)) for row in grid[:_LOOKED_AT]]
    if not known or known[0]:
        return 0
    named = next((at for at, count in enumerate(known) if count), 0)
    if named and known[named] > 1:
        return named
    first = next((at for at, count in enumerate(filled) if count > 1), 0)
    # A single cell above a table of several columns is its title, and not the name of one column.
    return first if first < len(known) and filled[first] >= max(filled[first:]) else 0


def without_index(rows: list[Row]) -> list[Row]:
    """Return the rows without a first column that has no name and only counts them."""
    name = next(iter(rows[0]), "") if rows else ""
    if not re.fullmatch(r"Unnamed: \d+", name):
        return rows
    counted = [str(row.get(name)).strip().removesuffix(".0") for row in rows]
    if not all(one.isdigit() for one in counted) or len(set(counted)) < len(counted):
        return rows
    return [{key: cell for key, cell in row.items() if key != name} for row in rows]


# Lists and objects that a cell of text holds, as JSON, Python or numpy write them.

_OPENING = ("[", "{", "(", "array(")
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_NUMPY_LIST = re.compile(rf"\[\s*(?:{_STRING})(?:\s+(?:{_STRING}))*\s*\]", re.S)
_NUMPY_CALL = re.compile(r"array\((\[.*?\])(?:,\s*dtype=[\w'<>]+)?\)", re.S)
_NO_VALUE = re.compile(rf"({_STRING})|\bnan\b", re.S)
_LONGEST = 2**20


def with_lists(rows: list[Row]) -> list[Row]:
    """Return the rows; columns of which every text is a list or an object hold these instead."""
    names = dict.fromkeys(name for row in rows for name in row)
    read = {name: _read_column([row.get(name) for row in rows]) for name in names}
    changed = {name: cells for name, cells in read.items() if cells is not None}
    if not changed:
        return rows
    return [
        {name: changed[name][at] if name in changed else cell for name, cell in row.items()}
        for at, row in enumerate(rows)
    ]


def _read_column(cells: Sequence[Any]) -> list[Any] | None:
    texts = [isinstance(cell, str) and bool(cell.strip()) for cell in cells]
    if not any(texts):
        return None
    read = list[Any]()
    for cell, is_text in zip(cells, texts, strict=True):
        value = value_in(cell) if is_text else cell
        if is_text and value is None:
            return None
        read.append(value)
    return read


def as_text(cell: Any) -> str:
    """Return what a table holds that is no text, number or truth as a text: a day without its
    time at midnight.
    """
    told = cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
    return told.removesuffix("T00:00:00")


def value_in(text: str) -> list[Any] | dict[Any, Any] | None:
    """Return the list or the object that `text` writes; None for any other text."""
    bare = text.strip()
    if not bare.startswith(_OPENING) or len(bare) > _LONGEST:
        return None
    for read in (json.loads, _python):
        try:
            found = read(bare)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, tuple | set):
            found = list(found)
        return found if isinstance(found, list | dict) else None
    return None


def _python(text: str) -> Any:
    text = _NUMPY_CALL.sub(r"\1", text)
    if _NUMPY_LIST.fullmatch(text):
        # Python would join texts that stand side by side.
        return [ast.literal_eval(one) for one in _strings(text)]
    return ast.literal_eval(_NO_VALUE.sub(lambda found: found[1] or "None", text))


def _strings(text: str) -> Iterable[str]:
    return (found[0] for found in re.finditer(_STRING, text, re.S))
