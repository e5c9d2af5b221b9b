"""Documents of a library: a folder of Markdown, text and CSV files read into plain text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.text.languages import detect_language
from pipelines.text.tables import csv_source
from pipelines.types import Frozen, Language


class Document(Frozen):
    """A text that can be searched.

    `id` is unique in its library; `source` says where the text comes from, in words or as the
    file's path relative to the library's folder.
    """

    id: str
    title: str
    language: Language
    text: str
    source: str
    url: str | None = None


def load_library(folder: Path) -> list[Document]:
    """Return every document below `folder`, sorted by id.

    A file's id is its path without suffix relative to `folder` ("en/marie-curie"); a CSV file
    holds one document a row, numbered from 1 ("people:1"). Files with a suffix that is not in
    `READERS`, and hidden ones, are passed over. Files must be UTF-8.

    Raises `NotFoundError` when there is no such folder, `InvalidInputError`, naming the file, when
    one cannot be read or holds no text, and when the folder holds no document at all.
    """
    if not folder.is_dir():
        raise failure("library.no_folder", folder=folder.name)
    documents: dict[str, Document] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        reader = READERS.get(path.suffix.lower())
        hidden = any(part.startswith(".") for part in relative.parts)
        if reader is None or hidden or not path.is_file():
            continue
        for document in reader(path, relative):
            if document.id in documents:
                other = documents[document.id].source
                raise failure("library.same_name", file=document.source, other=other)
            documents[document.id] = document
    if not documents:
        raise failure("library.empty", folder=folder.name, kinds=sorted(READERS))
    return [documents[key] for key in sorted(documents)]


def _read_markdown(path: Path, relative: Path) -> Iterator[Document]:
    fields, body = _front_matter(_decoded(path, relative), relative)
    heading = re.search(r"(?m)^#[ \t]+(.+?)[ \t#]*$", body)
    title = fields.get("title") or (heading.group(1) if heading else path.stem)
    yield _document(relative, fields | {"title": title, "text": plain_markdown(body)})


def _read_text(path: Path, relative: Path) -> Iterator[Document]:
    yield _document(relative, {"title": path.stem, "text": _decoded(path, relative)})


def _read_csv(path: Path, relative: Path) -> Iterator[Document]:
    rows = csv.DictReader(csv_source(_decoded(path, relative)), strict=True)
    try:
        columns = {name.strip().lower() for name in rows.fieldnames or ()}
        if not {"title", "text"} <= columns:
            raise _failure("no_columns", relative)
        for number, row in enumerate(rows, start=1):
            cells = {(name or "").strip().lower(): cell for name, cell in row.items() if name}
            if None in row or None in cells.values():
                raise _failure("wrong_row", relative, row=number)
            yield _document(relative, cells, row=number)
    except csv.Error as error:
        raise _failure("no_csv", relative, said=error) from error


READERS = {".md": _read_markdown, ".txt": _read_text, ".csv": _read_csv}
"""What reads a file of each kind, given its path, and the same relative to the library's folder."""


def _document(relative: Path, fields: Mapping[str, str], row: int = 0) -> Document:
    """Return a document from its fields: title and text, and maybe language, source and url."""
    where = phrase("place.in_row", row=row) if row else ""
    text, title = fields["text"].strip(), " ".join(fields["title"].split())
    if not text:
        raise _failure("no_text", relative, where=where)
    if not title:
        raise _failure("no_title", relative, where=where)
    code = fields.get("language", "").strip().lower().partition("-")[0]
    if code not in ("", "en", "zh"):
        raise _failure("no_language", relative, code=code, where=where)
    name = relative.with_suffix("").as_posix()
    return Document(
        id=f"{name}:{row}" if row else name,
        title=title,
        language=detect_language(text) if code == "" else "zh" if code == "zh" else "en",
        text=text,
        source=fields.get("source", "").strip() or relative.as_posix(),
        url=fields.get("url", "").strip() or None,
    )


def _decoded(path: Path, relative: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _failure("no_utf8", relative) from error
    except OSError as error:
        raise _failure("unreadable", relative) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


_FIELD = re.compile(r"([A-Za-z_-]+)[ \t]*:[ \t]*(.*)")


def _front_matter(text: str, relative: Path) -> tuple[dict[str, str], str]:
    """Return the `key: value` lines between two lines of `---` at the top, and the text below them.

    Other lines there (lists, indented values) are ignored.
    """
    if not text.startswith("---\n"):
        return {}, text
    head, fence, body = f"{text[3:]}\n".partition("\n---\n")
    if not fence:
        raise _failure("no_end", relative)
    found = filter(None, map(_FIELD.fullmatch, head.splitlines()))
    return {field.group(1).lower(): _unquoted(field.group(2).strip()) for field in found}, body


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<!--.*?-->", re.DOTALL), ""),
    (re.compile(r"!\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r"(?m)^#{1,6}[ \t]+(.*?)[ \t]*#*$"), r"\1"),
    (re.compile(r"(?m)^>[ \t]?"), ""),
    (re.compile(r"(?m)^(?:```|~~~).*$"), ""),
    (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])([*_])(?=\S)([^*_\n]+?)(?<=\S)\1(?![\w*])"), r"\2"),
    (re.compile(r"`([^`\n]+)`"), r"\1"),
)


def plain_markdown(markdown: str) -> str:
    """Return the words of a Markdown text without its marks; list signs and tables stay."""
    for pattern, replacement in _MARKS:
        markdown = pattern.sub(replacement, markdown)
    return markdown


def _failure(kind: str, file: Path, **facts: object) -> VeriscopeError:
    return failure(f"library.{kind}", file=file.as_posix(), **facts)
