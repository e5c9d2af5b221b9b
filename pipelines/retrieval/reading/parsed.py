"""What reading a file gives, what is refused and why, and the limits of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Kind = Literal["pdf", "docx", "html", "markdown", "text", "csv", "jsonl"]

Reason = Literal[
    "empty",
    "scanned",
    "no_text",
    "encrypted",
    "broken",
    "other_kind",
    "binary",
    "bad_line",
    "no_rows",
    "too_large",
    "too_long",
    "too_many_pages",
    "unpacks",
    "entities",
    "slow",
    "crashed",
    "memory",
    "address",
    "lost",
]
"""Why a file is not part of a collection. The words are in assets/errors.toml under "reading"."""

MAX_FILE = 50 * 2**20
"""Bytes of a file."""

MAX_TEXT = 20_000_000
"""Characters of a file's text: about eight times the Bible."""

MAX_PAGES = 5_000
"""Pages of a PDF file."""

MAX_ROWS = 200_000
"""Rows of a table, or lines of JSON."""

MAX_UNPACKED = 300 * 2**20
"""Bytes of what a DOCX file, which is an archive, unpacks to."""


class RefusedError(Exception):
    """A file cannot be used. `facts` are the values in the words of its `reason`."""

    def __init__(self, reason: Reason, **facts: str | int) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.facts = facts


class DocumentPart(NamedTuple):
    """A text of its own: a whole document, or a row of a table.

    `label` is the number of its row, counted from 1. `breaks` are the offsets at which the pages
    of a document with pages begin, the first of them 0.
    """

    title: str
    text: str
    label: str = ""
    url: str | None = None
    breaks: tuple[int, ...] = ()


class ParsedFile(NamedTuple):
    """A file that can be read. Asking for the next of `parts` may raise RefusedError.

    `title` is the document's own, or its file name without the ending. `remarks` are what people
    should know of it, each a key under "library.remark", with values in `facts`.
    """

    kind: Kind
    title: str
    parts: Iterator[DocumentPart]
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, str | int] = MappingProxyType({})
