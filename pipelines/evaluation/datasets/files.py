"""Files of tables: CSV, TSV, JSON, JSON lines and Parquet, read into rows with their places."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.error_words import Fact, Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.text.sentences import csv_source

MAXIMUM_BYTES = 256 * 2**20
"""The largest file that is read, in bytes; of Parquet, what it holds without compression."""

Unit = Literal["row", "line", "record"]
Row = dict[str, Any]


class DataTable(NamedTuple):
    """The rows of a file. `places` has the number of each, from 1, in the file's own `unit`.

    Cells of CSV are strings; of the other forms they are what JSON has: strings, numbers,
    booleans, None, lists and objects.
    """

    name: str
    rows: list[Row]
    places: list[int]
    unit: Unit

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the order in which they first occur."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def place(self, number: int) -> Phrase:
        """Return where row `number`, counted from 0, is in the file: "line 3"."""
        return phrase(f"place.{self.unit}", number=self.places[number])


def read_table(path: Path) -> DataTable:
    """Return the rows of the file at `path`; its suffix tells the form.

    A file of JSON holds a list of objects, or an object with such a list as "data" or "Data". Text
    is UTF-8 with or without a byte order mark, UTF-16 with one, or GB18030. Raises
    InvalidInputError, which names the file and the place, for what cannot be read.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise failure("files.unknown_form", file=path.name, known=_SUFFIXES)
    table = reader(path)
    if not table.rows:
        raise failure("files.no_records", file=path.name)
    return table


def read_json_lines(path: Path) -> DataTable:
    """Return every line of `path` as an object.

    Empty lines are skipped. Only "\\n" ends a line: texts contain other line separators. Raises
    InvalidInputError, which names the line, for anything else.
    """
    return _lines(path, read_text(path))


def read_text(path: Path) -> str:
    """Return the text of a file; InvalidInputError when it is too large, absent or not
    decodable.
    """
    data = _bytes(path)
    has_utf16_mark = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    for encoding in ["utf-16"] if has_utf16_mark else ["utf-8-sig", "gb18030"]:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding != "gb18030" or _is_chinese(text):
            return text
    raise failure("files.no_encoding", file=path.name)


def unusable(path: Path, problem: Fact, wanted: Fact) -> VeriscopeError:
    """Return the error of a file: what is wrong with it, and what to give instead."""
    # The file's name alone: where it lies is nobody else's business.
    return failure("files.unusable", file=path.name, problem=problem, wanted=wanted)


def _bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAXIMUM_BYTES:
            raise _too_large(path, size)
        return path.read_bytes()
    except OSError as error:
        raise failure("files.unread", file=path.name, said=type(error).__name__) from None


def _too_large(path: Path, size: int) -> VeriscopeError:
    facts = {"size": f"{size / 2**20:.0f}", "most": MAXIMUM_BYTES // 2**20}
    return failure("files.too_large", file=path.name, **facts)


def _is_chinese(text: str) -> bool:
    """Return whether text that was decoded as GB18030 was written in it.

    Nearly any bytes can be decoded so. Real Chinese consists of characters of GB 2312; text of a
    Western encoding becomes rare characters outside of it.
    """
    foreign = [character for character in text if not character.isascii()]
    common = sum(_in_gb2312(character) for character in foreign)
    return common >= 0.9 * len(foreign)


def _in_gb2312(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return unicodedata.category(character) != "Co"


def _read_csv(path: Path) -> DataTable:
    text = read_text(path).replace("\r\n", "\n").replace("\r", "\n")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(text)
    reader = csv.DictReader(csv_source(text), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    try:
        names = [name.strip() for name in reader.fieldnames or []]
        if len(set(names)) != len(names):
            raise failure("files.same_columns", file=path.name)
        for number, row in enumerate(reader, start=1):
            cells = {name.strip(): cell for name, cell in row.items() if name is not None}
            if None in row or None in cells.values():
                found = len(names) + len(row[None]) if None in row else _filled(cells)
                facts = {"row": number, "found": found, "columns": len(names)}
                raise failure("files.wrong_cells", file=path.name, **facts)
            rows.append(cells)
    except csv.Error as error:
        facts = {"row": len(rows) + 1, "said": error}
        raise failure("files.no_csv", file=path.name, **facts) from None
    return DataTable(path.name, rows, list(range(1, len(rows) + 1)), "row")


def _filled(cells: Mapping[str, str | None]) -> int:
    return sum(cell is not None for cell in cells.values())


def _delimiter(text: str) -> str:
    """Return what separates the names in the first line: the most frequent of comma,
    semicolon, tab.
    """
    first = text.partition("\n")[0]
    return max(",;\t", key=first.count)


def _read_json(path: Path) -> DataTable:
    text = read_text(path)
    try:
        value = json.loads(text)
    except RecursionError:
        raise failure("files.too_deep", file=path.name) from None
    except json.JSONDecodeError as error:
        # HaluEval calls files of JSON lines ".json".
        if error.msg == "Extra data" and text.lstrip().startswith("{"):
            return _lines(path, text)
        facts = {"line": error.lineno, "said": error.msg}
        raise failure("files.no_json", file=path.name, **facts) from None
    if isinstance(value, dict):
        lists = [value[name] for name in ("data", "Data") if isinstance(value.get(name), list)]
        value = lists[0] if lists else [value]
    if not isinstance(value, list):
        raise failure("files.no_list", file=path.name)
    for number, row in enumerate(value, start=1):
        if not isinstance(row, dict):
            raise failure("files.no_object", file=path.name, record=number)
    return DataTable(path.name, value, list(range(1, len(value) + 1)), "record")


def _read_lines(path: Path) -> DataTable:
    text = read_text(path)
    return _read_json(path) if text.lstrip().startswith("[") else _lines(path, text)


def _lines(path: Path, text: str) -> DataTable:
    found = list(_numbered_objects(path, text))
    return DataTable(path.name, [row for _, row in found], [place for place, _ in found], "line")


def _numbered_objects(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            what = (
                error.msg if isinstance(error, json.JSONDecodeError) else phrase("detail.too_deep")
            )
            raise _no_record(path, number, what) from None
        if not isinstance(row, dict):
            raise _no_record(path, number, phrase("file_problem.no_records_json"))
        yield number, row


def _no_record(path: Path, number: int, what: Fact) -> VeriscopeError:
    return failure("files.no_record", file=path.name, line=number, said=what)


def _read_parquet(path: Path) -> DataTable:
    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(_bytes(path)))
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        if size > MAXIMUM_BYTES:
            raise _too_large(path, size)
        rows: list[Row] = file.read().to_pylist()
    except pyarrow.ArrowException as error:
        raise failure("files.no_parquet", file=path.name, said=type(error).__name__) from None
    return DataTable(path.name, rows, list(range(1, len(rows) + 1)), "row")


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".parquet": _read_parquet,
}
_SUFFIXES = ", ".join(_READERS)
