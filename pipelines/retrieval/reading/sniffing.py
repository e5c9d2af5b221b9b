"""What a file is by its content. The ending of its name decides only between kinds of text."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pipelines.retrieval.reading.parsed import MAX_UNPACKED, Kind, RefusedError

ENDINGS: Mapping[str, Kind] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
"""The kind that the ending of a name promises."""

_HEAD = 8192
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"RIFF", "RIFF"),
    (b"{\\rtf", "RTF"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"7z\xbc\xaf", "7z"),
    (b"Rar!", "RAR"),
    (b"\xfd7zXZ", "xz"),
    (b"%!PS", "PostScript"),
    (b"\x7fELF", "ELF"),
    (b"MZ", "EXE"),
    (b"SQLite format 3", "SQLite"),
    (b"PAR1", "Parquet"),
)
"""First bytes of kinds of files that are not read here, each with the name of the kind."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_OFFICE = {"xl/": "XLSX", "ppt/": "PPTX", "META-INF/container.xml": "EPUB"}
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.I)
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def kind_of(path: Path, name: str) -> Kind:
    """Return the kind of the file at `path`, which is called `name`.

    Raises RefusedError for an empty file and for one that holds something else than text.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip(b"\x00 \t\r\n"):
        raise RefusedError("empty")
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(_OLE):
        # An encrypted DOCX file is packed into a container of the older Office.
        raise (
            RefusedError("encrypted")
            if _holds(path, _PACKAGE)
            else RefusedError("other_kind", kind="DOC")
        )
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_archive(path)
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            raise RefusedError("other_kind", kind=kind)
    if b"\x00" in head and not head.startswith(_BOMS) and unmarked_utf_16(head) is None:
        raise RefusedError("binary")
    return _kind_of_text(head, promised(name))


def promised(name: str) -> Kind | None:
    """Return the kind that the ending of `name` promises, None for an unknown one."""
    return ENDINGS.get(PurePosixPath(name.lower()).suffix)


def _kind_of_text(head: bytes, promise: Kind | None) -> Kind:
    if promise in ("markdown", "csv", "jsonl", "html"):
        return promise
    if _HTML.search(head[:1024]):
        return "html"
    if _begins_with_objects(head):
        return "jsonl"
    return "text"


def _begins_with_objects(head: bytes) -> bool:
    """Return whether the first line is a JSON object as a whole, and the next one begins as one."""
    line, _, rest = head.lstrip().partition(b"\n")
    if not line.startswith(b"{") or not (rest.lstrip().startswith(b"{") or not rest.strip()):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _kind_of_archive(path: Path) -> Kind:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            # What is unpacked is never more than what is declared here.
            size = sum(one.file_size for one in archive.infolist())
            locked = any(one.flag_bits & 1 for one in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise RefusedError("broken") from None
    if "word/document.xml" not in names:
        for start, kind in _OFFICE.items():
            if any(name.startswith(start) for name in names):
                raise RefusedError("other_kind", kind=kind)
        raise RefusedError("other_kind", kind="OpenDocument" if "content.xml" in names else "ZIP")
    if locked:
        raise RefusedError("encrypted")
    if size > MAX_UNPACKED:
        raise RefusedError("unpacks", most=MAX_UNPACKED // 2**20)
    return "docx"


def unmarked_utf_16(head: bytes) -> str | None:
    """Return the kind of UTF-16 that has no mark; of Latin letters every second byte is zero."""
    zeros = {"utf-16-le": head[1::2].count(0), "utf-16-be": head[::2].count(0)}
    name = max(zeros, key=zeros.__getitem__)
    return name if min(zeros.values()) == 0 and zeros[name] > len(head) // 5 else None


def _holds(path: Path, what: bytes) -> bool:
    """Return whether `what` stands in the file, which is read in pieces."""
    before = b""
    with path.open("rb") as file:
        while piece := file.read(2**20):
            if what in before + piece:
                return True
            before = piece[-len(what) :]
    return False
