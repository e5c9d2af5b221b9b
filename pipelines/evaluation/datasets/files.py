"""Files of tables, read into rows with their places: the one reader for all that takes tables."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.engine.speakers import is_message
from pipelines.error_words import Fact, Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.excel import sheets_in
from pipelines.evaluation.datasets.grids import (
    Grid,
    Row,
    TornTextError,
    as_text,
    grid_of_text,
    named_rows,
    with_lists,
    without_index,
)
from pipelines.retrieval.reading.encodings import decoded_table
from pipelines.retrieval.reading.parsed import signature_of

MAXIMUM_BYTES = 256 * 2**20
"""The largest file that is read, in bytes, without its compression."""

Unit = Literal["row", "line", "record"]


class BadRow(NamedTuple):
    """A row that cannot be read: where it is, what is wrong with it, and the error that says so.

    `place` is None where `problem` names it too.
    """

    place: Phrase | None
    problem: Fact
    error: VeriscopeError

    def told(self) -> Phrase:
        """Return where it is and what is wrong with it."""
        if self.place is None and isinstance(self.problem, Phrase):
            return self.problem
        return phrase("detail.at", place=self.place or "", problem=self.problem)


class DataTable(NamedTuple):
    """The rows of a file. `places` has the number of each, from 1, in the file's own `unit`.

    Cells of CSV are strings, None where "NaN" stands, and lists where a whole column holds lists
    as JSON or Python writes them; of the other forms they are what JSON has: strings, numbers,
    booleans, None, lists and objects. `bad` are rows that cannot be read and are not among `rows`.
    `notes` say how it was read where that is not plain: its encoding, the rows above its header,
    which of several sheets.
    """

    name: str
    rows: list[Row]
    places: list[int]
    unit: Unit
    bad: tuple[BadRow, ...] = ()
    notes: tuple[Phrase, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which they first occur."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def place(self, number: int) -> Phrase:
        """Return where row `number`, counted from 0, is in the file: "line 3"."""
        return phrase(f"place.{self.unit}", number=self.places[number])


class _File(NamedTuple):
    """What is read of a file: its path, its ending without that of a compression, its bytes."""

    path: Path
    suffix: str
    data: bytes


def read_table(path: Path, *, keep_bad: bool = False) -> DataTable:
    """Return the rows of the file at `path`; its suffix tells the form.

    CSV and TSV may be separated by commas, semicolons, tabs or "|", name that in a first line
    "sep=;", and have a title above their header. JSON holds a list of objects, an object with such
    a list as "data", "rows" and the like, or a table as pandas writes it. Of a workbook of Excel
    one sheet is read (`sheets_in`). All may be compressed (.gz). Text is decoded by
    `decoded_table`.

    Raises InvalidInputError, which names the file and the place, for what cannot be read; with
    `keep_bad` rows that cannot be read are listed in `bad` instead.
    """
    suffix = _suffix(path)
    reader = _READERS.get(".xlsx" if suffix in _OLD_EXCEL else suffix)
    if reader is None:
        raise failure("files.unknown_form", file=path.name, known=_SUFFIXES)
    table = reader(_File(path, suffix, _bytes(path)))
    if table.bad and not (keep_bad and table.rows):
        raise table.bad[0].error
    if not table.rows:
        raise failure("files.no_records", file=path.name)
    return table


def bad_rows(name: str, bad: Sequence[BadRow]) -> VeriscopeError:
    """Return the error that lists rows which cannot be read; of one row it is the row's own."""
    if len(bad) == 1:
        return bad[0].error
    shown = [one.told() for one in bad[:_LISTED]]
    if len(bad) > _LISTED:
        shown.append(phrase("detail.more_rows", count=len(bad) - _LISTED))
    return failure("files.bad_rows", file=name, count=len(bad), rows=shown)


_LISTED = 5
"""Bad rows that an error names."""

ROW_ERRORS = frozenset(
    {
        *("files.bad_rows", "files.wrong_cells", "files.no_record", "files.no_object"),
        *("files.unusable", "data.bad_cell", "data.yes_or_no"),
    }
)
"""Keys of errors that may go away where rows are left out."""


def read_json_lines(path: Path) -> DataTable:
    """Return every line of `path` as an object.

    Empty lines are skipped. Only "\\n" ends a line: texts contain other line separators. Raises
    InvalidInputError, which names the line, for anything else.
    """
    table = _lines(path, read_text(path))
    if table.bad:
        raise table.bad[0].error
    return table


def read_text(path: Path) -> str:
    """Return the text of a file; InvalidInputError when it is too large, absent or not
    decodable.
    """
    return _text(path, _bytes(path))[0]


def unusable(path: Path, problem: Fact, wanted: Fact) -> VeriscopeError:
    """Return the error of a file: what is wrong with it, and what to give instead."""
    # The file's name alone: where it lies is nobody else's business.
    return failure("files.unusable", file=path.name, problem=problem, wanted=wanted)


def _suffix(path: Path) -> str:
    return table_ending(path.name).removesuffix(".gz")


def table_ending(name: str) -> str:
    """Return the ending of a file's name, with that of its compression: ".csv", ".jsonl.gz"."""
    suffixes = [one.lower() for one in Path(name).suffixes[-2:]]
    return "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAXIMUM_BYTES:
            raise _too_large(path, size)
        data = path.read_bytes()
    except OSError as error:
        raise failure("files.unread", file=path.name, said=type(error).__name__) from None
    if path.suffix.lower() != ".gz":
        return data
    try:
        with gzip.open(io.BytesIO(data)) as file:
            data = file.read(MAXIMUM_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise failure("files.no_gzip", file=path.name, said=type(error).__name__) from None
    if len(data) > MAXIMUM_BYTES:
        raise _too_large(path, len(data))
    return data


def _too_large(path: Path, size: int) -> VeriscopeError:
    facts = {"size": f"{size / 2**20:.0f}", "most": MAXIMUM_BYTES // 2**20}
    return failure("files.too_large", file=path.name, **facts)


def _text(path: Path, data: bytes) -> tuple[str, tuple[Phrase, ...]]:
    if kind := signature_of(data):
        raise failure("files.other_kind", file=path.name, kind=kind)
    found = decoded_table(data)
    if found is None:
        raise failure("files.no_encoding", file=path.name)
    text, encoding = found
    said = () if encoding.startswith("utf") else (phrase("note.encoding", encoding=encoding),)
    # A mark that was written twice, and the sign by which DOS ended files.
    return text.lstrip("\ufeff").removesuffix("\x1a"), said


def _read_csv(file: _File) -> DataTable:
    text, said = _text(file.path, file.data)
    try:
        grid = grid_of_text(text, tabs=file.suffix == ".tsv")
    except TornTextError as error:
        facts = {"row": error.row, "said": error}
        raise failure("files.no_csv", file=file.path.name, **facts) from None
    return _of_grid(file.path, grid, said, lambda number, _at: number)


def _of_grid(
    path: Path, grid: Grid, said: tuple[Phrase, ...], place: Callable[[int, int], int]
) -> DataTable:
    """Return the table in a grid; `place` makes the number of a row from that of the record and
    that of the grid's row, both from 1.
    """
    found = named_rows(grid)
    if found.repeated:
        raise failure("files.same_columns", file=path.name)
    if found.header:
        said = (*said, phrase("note.header", row=found.header + 1))
    if found.again:
        said = (*said, phrase("note.header_again", count=found.again))
    rows, places, bad = list[Row](), list[int](), list[BadRow]()
    for number, (at, row, cells) in enumerate(found.rows, start=1):
        if row is None:
            facts = {"row": number, "found": cells, "columns": len(found.names)}
            error = failure("files.wrong_cells", file=path.name, **facts)
            problem = phrase("file_problem.cells", found=cells, columns=len(found.names))
            bad.append(BadRow(phrase("place.row", number=place(number, at)), problem, error))
        else:
            rows.append(row)
            places.append(place(number, at))
    return DataTable(path.name, with_lists(without_index(rows)), places, "row", tuple(bad), said)


def _read_excel(file: _File) -> DataTable:
    if file.data.startswith(_COMPOUND):
        # Excel encrypts a whole workbook into the container that its old form has.
        locked = "EncryptedPackage".encode("utf-16-le") in file.data
        kind = "files.locked_excel" if locked else "files.old_excel"
        raise failure(kind, file=file.path.name)
    if file.suffix in _OLD_EXCEL and not zipfile.is_zipfile(io.BytesIO(file.data)):
        raise failure("files.old_excel", file=file.path.name)
    try:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            size = sum(one.file_size for one in archive.infolist())
        if size > MAXIMUM_BYTES:
            raise _too_large(file.path, size)
        sheets = sheets_in(file.data)
    except ImportError:
        raise failure("files.no_excel_reader", file=file.path.name) from None
    except VeriscopeError:
        raise
    except Exception as error:
        # Damaged workbooks make the library raise errors of every kind.
        raise failure("files.no_excel", file=file.path.name, said=type(error).__name__) from None
    if not sheets:
        raise failure("files.no_records", file=file.path.name)
    sheet, *rest = sheets
    said: tuple[Phrase, ...] = ()
    if rest:
        said = (phrase("note.sheet", sheet=sheet.name, others=tuple(one.name for one in rest)),)
    if sheet.lost:
        said = (*said, phrase("note.no_values", count=sheet.lost))
    return _of_grid(file.path, sheet.grid, said, lambda _number, at: at)


_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_EXCEL = (".xls", ".xlsm", ".xlsb", ".xlt")

_WRAPPERS = ("data", "Data", "rows", "records", "examples", "items", "instances", "goldens",
             "request_states")  # fmt: skip
"""Where an object holds its list of records."""


def _read_json(file: _File) -> DataTable:
    text, said = _text(file.path, file.data)
    try:
        value = json.loads(text)
    except RecursionError:
        raise failure("files.too_deep", file=file.path.name) from None
    except json.JSONDecodeError as error:
        # HaluEval calls files of JSON lines ".json".
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return _lines(file.path, text, said)
        facts = {"line": error.lineno, "said": error.msg}
        raise failure("files.no_json", file=file.path.name, **facts) from None
    if isinstance(value, dict):
        value = _listed(value)
    if not isinstance(value, list):
        raise failure("files.no_list", file=file.path.name)
    if any(isinstance(row, list) and row and isinstance(row[0], dict) for row in value):
        # Batches, and no rows of cells.
        value = [one for row in value for one in (row if isinstance(row, list) else [row])]
    if len(value) > 1 and all(isinstance(row, list) for row in value):
        # A header, and rows of cells.
        return _of_grid(file.path, value, said, lambda number, _at: number)
    rows, places, bad = list[Row](), list[int](), list[BadRow]()
    for number, row in enumerate(value, start=1):
        if not isinstance(row, dict):
            error = failure("files.no_object", file=file.path.name, record=number)
            problem = phrase("file_problem.no_records_json")
            bad.append(BadRow(phrase("place.record", number=number), problem, error))
            continue
        # The hub's viewer wraps each row with its number.
        inner = row.get("row") if "row_idx" in row else None
        rows.append(inner if isinstance(inner, dict) else row)
        places.append(number)
    return DataTable(file.path.name, rows, places, "record", tuple(bad), said)


def _listed(value: dict[str, Any]) -> list[Any]:
    """Return the records that an object holds: as a list, or as one of the tables of pandas."""
    names, cells = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(cells, list):
        rows = [row for row in cells if isinstance(row, list) and len(row) == len(names)]
        if len(rows) == len(cells):
            return [dict(zip(map(str, names), row, strict=True)) for row in rows]
    for name in _WRAPPERS:
        if isinstance(value.get(name), list):
            return value[name]
    if value.keys() == {"questions"} and all(isinstance(one, dict) for one in value["questions"]):
        # BioASQ calls its records so; where columns are lists, other columns stand beside it.
        return list(value["questions"])
    inside = [
        found
        for one in value.values()
        if _are_records(found := _listed(one) if isinstance(one, dict) else one)
    ]
    # What was found for a conversation does not stand for it.
    others = (one for one in value.values() if isinstance(one, list) and one not in inside)
    told = any(any(map(is_message, one)) for one in others)
    named = any(isinstance(value[name], str) and part_of(name) for name in value)
    if len(inside) == 1 and not told and not named:
        return inside[0]
    columns, named = list(value.values()), any(map(part_of, value))
    if named and all(isinstance(one, list) for one in columns):
        if len({len(one) for one in columns}) == 1:
            return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    elif columns and all(isinstance(one, dict) for one in columns):
        # Records under their ids have a name in common; what has none is a record of several parts.
        alike = set[str].intersection(*map(set, columns))
        if not named and alike and any(part_of(name) for one in columns for name in one):
            return columns
        if named and all(one.keys() == columns[0].keys() for one in columns):
            return [{name: one[key] for name, one in value.items()} for key in columns[0]]
    return [value]


def _are_records(found: Any) -> bool:
    """Return whether something is a list of objects that have a question or a text, and more."""
    first = found[0] if isinstance(found, list) and found else None
    parts = {part_of(name) for name in first} - {""} if isinstance(first, dict) else set[str]()
    return len(parts) > 1 and not parts.isdisjoint(("question", "text"))


def _read_lines(file: _File) -> DataTable:
    text, said = _text(file.path, file.data)
    one_list = text.lstrip().startswith("[") and not _has_lists(text)
    return _read_json(file) if one_list else _lines(file.path, text, said)


def _lines(path: Path, text: str, said: tuple[Phrase, ...] = ()) -> DataTable:
    rows, places, bad = list[Row](), list[int](), list[BadRow]()
    for number, found in _objects(text):
        if isinstance(found, Mapping):
            rows.append(dict(found))
            places.append(number)
        else:
            error = failure("files.no_record", file=path.name, line=number, said=found)
            bad.append(BadRow(phrase("place.line", number=number), found, error))
    return DataTable(path.name, rows, places, "line", tuple(bad), said)


def _objects(text: str) -> Iterator[tuple[int, Row | Fact]]:
    """Yield each line that is not empty with its number, as an object or as what is wrong."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            yield number, error.msg
        except RecursionError:
            yield number, phrase("detail.too_deep")
        else:
            if isinstance(row, list) and row and all(isinstance(one, dict) for one in row):
                # The turns of a conversation.
                row = {"conversation": row}
            yield number, row if isinstance(row, dict) else phrase("file_problem.no_records_json")


def _has_lists(text: str) -> bool:
    """Return whether lines are lists, each by itself."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    listed = all(line[0] == "[" and line[-1] == "]" for line in lines)
    return listed and len(lines) > 1 and "{" in lines[0]


_INDEX = "__index_level_0__"
"""What pandas calls the numbers of rows in Parquet."""


def _read_parquet(file: _File) -> DataTable:
    import pyarrow
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(io.BytesIO(file.data))
        groups = range(opened.metadata.num_row_groups)
        size = sum(opened.metadata.row_group(group).total_byte_size for group in groups)
        if size > MAXIMUM_BYTES:
            raise _too_large(file.path, size)
        rows: list[Row] = opened.read().to_pylist()
    except pyarrow.ArrowException as error:
        said = type(error).__name__
        raise failure("files.no_parquet", file=file.path.name, said=said) from None
    rows = [{name: _plain(cell) for name, cell in row.items() if name != _INDEX} for row in rows]
    places = list(range(1, len(rows) + 1))
    return DataTable(file.path.name, with_lists(rows), places, "row")


def _plain(cell: Any) -> Any:
    """Return what a cell of Parquet holds as JSON has it: dates, decimals and bytes as texts."""
    if isinstance(cell, list | tuple):
        return [_plain(one) for one in cell]
    if isinstance(cell, dict):
        return {str(name): _plain(one) for name, one in cell.items()}
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return cell if cell is None or isinstance(cell, str | int | float) else as_text(cell)


_READERS: dict[str, Callable[[_File], DataTable]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}
_SUFFIXES = ", ".join(_READERS)
TABLE_ENDINGS: tuple[str, ...] = (*(one.removeprefix(".") for one in _READERS), "gz")
"""The endings of files of tables, without the dot; "gz" stands behind any other one."""
