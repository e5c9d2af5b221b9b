"""Tables and lines of JSON: every row is a text of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.retrieval.reading.parsed import MAX_ROWS, DocumentPart, ParsedFile, RefusedError
from pipelines.retrieval.reading.plain import decoded
from pipelines.text.tables import csv_source

_TEXT = ("text", "content", "body", "passage", "contents", "article", "正文", "内容", "文本")
_TITLE = ("title", "name", "headline", "标题", "题目", "名称")
_URL = ("url", "link", "网址", "链接")
_DELIMITERS = ",;\t|"


def read_csv(path: Path, title: str) -> ParsedFile:
    """Return a table whose first row names its columns.

    A column called text, content, body or the like holds the texts; without one, a text is made of
    all cells of the row, each with its column's name.
    """
    text, guessed = decoded(path.read_bytes())
    return ParsedFile("csv", title, _rows(text, title), *_told(guessed))


def read_jsonl(path: Path, title: str) -> ParsedFile:
    """Return a JSON object on every line, or one array of objects; fields as the columns of
    a table.
    """
    text, guessed = decoded(path.read_bytes())
    return ParsedFile("jsonl", title, _objects(text, title), *_told(guessed))


def _told(guessed: str | None) -> tuple[tuple[str, ...], dict[str, str | int]]:
    return (("encoding",), {"encoding": guessed}) if guessed else ((), {})


def _rows(text: str, title: str) -> Iterator[DocumentPart]:
    line = text.lstrip("\n").partition("\n")[0]
    delimiter = max(_DELIMITERS, key=line.count)
    rows = csv.reader(csv_source(text.lstrip("\n")), delimiter=delimiter, strict=True)
    found = 0
    try:
        names = [name.strip() or f"column {at}" for at, name in enumerate(next(rows, ()), start=1)]
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) > len(names):
                raise RefusedError(
                    "bad_line", line=rows.line_num, said=f"{len(row)} > {len(names)}"
                )
            found += 1
            part = _part(dict(zip(names, row, strict=False)), title, found)
            if part is not None:
                yield part
    except csv.Error as error:
        raise RefusedError("bad_line", line=rows.line_num, said=str(error)) from None
    if not found:
        raise RefusedError("no_rows")


def _objects(text: str, title: str) -> Iterator[DocumentPart]:
    found = 0
    for line, value in _values(text):
        if not isinstance(value, dict):
            raise RefusedError("bad_line", line=line, said="not an object")
        found += 1
        part = _part({str(name): cell for name, cell in value.items()}, title, found)
        if part is not None:
            yield part
    if not found:
        raise RefusedError("no_rows")


def _values(text: str) -> Iterator[tuple[int, Any]]:
    """Yield every value with the line on which it stands."""
    if text.lstrip().startswith("["):
        yield from ((1, value) for value in _read(text, 1))
        return
    whole = _one_object(text)
    if whole is not None:
        yield 1, whole
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _read(line, number)


def _one_object(text: str) -> dict[str, Any] | None:
    """Return a file with a single object, which may be written over several lines."""
    first = text.lstrip().partition("\n")[0]
    if not first.startswith("{") or first.rstrip().endswith("}"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read(text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise RefusedError("bad_line", line=line, said="too deep") from None
    except ValueError as error:
        line += getattr(error, "lineno", 1) - 1
        raise RefusedError("bad_line", line=line, said=getattr(error, "msg", "")) from None


def _part(cells: Mapping[str, Any], title: str, number: int) -> DocumentPart | None:
    """Return a row as a text; None for one without any."""
    if number > MAX_ROWS:
        raise RefusedError("too_long", most=f"{MAX_ROWS:,}")
    by_name = {name.lower(): name for name in cells}
    of_text = next((by_name[name] for name in _TEXT if name in by_name), None)
    of_title = next((by_name[name] for name in _TITLE if name in by_name), None)
    of_url = next((by_name[name] for name in _URL if name in by_name), None)
    if of_text is not None:
        text = _words(cells[of_text])
    else:
        rest = (name for name in cells if name not in (of_title, of_url))
        text = "\n".join(f"{name}: {words}" for name in rest if (words := _words(cells[name])))
    if not text:
        return None
    own = " ".join(_words(cells[of_title]).split()) if of_title else ""
    url = _words(cells[of_url]) if of_url else ""
    return DocumentPart(own[:300] or title, text, str(number), url or None)


def _words(value: Any) -> str:
    """Return a cell in words; nested values as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value, ensure_ascii=False)
