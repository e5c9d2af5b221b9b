"""What reading a file gives, what is refused and why; what a file is, and text, tables and JSON."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pipelines.retrieval.markup import plain_markdown
from pipelines.retrieval.reading.encodings import chinese_encoding, marked_encoding, unmarked_utf_16
from pipelines.text.sentences import csv_source
from pipelines.text.separated import separated

Kind = Literal["pdf", "docx", "html", "markdown", "text", "csv", "jsonl"]

Reason = Literal[
    "empty",
    "scanned",
    "no_text",
    "no_map",
    "unreadable",
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


# What a file is by its content. The ending of its name decides only between kinds of text.

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
    (b"version https://git-lfs.github.com/spec/", "Git LFS"),
)
"""First bytes of kinds of files that are not read here, each with the name of the kind."""

# A page that was saved with its pictures, and a letter with attachments.
_MESSAGE = re.compile(
    rb"(?m)^Content-(?:Type:\s*multipart/|Transfer-Encoding:\s*(?:quoted-printable|base64))", re.I
)
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
    if kind := signature_of(head):
        raise RefusedError("other_kind", kind=kind)
    if _MESSAGE.search(head[:2048]) and promised(name) != "markdown":
        raise RefusedError("other_kind", kind="MHTML")
    if b"\x00" in head and not head.startswith(_BOMS) and unmarked_utf_16(head) is None:
        raise RefusedError("binary")
    return _kind_of_text(head, promised(name))


def signature_of(head: bytes) -> str:
    """Return the kind of file that the first bytes are those of; "" for none that is known."""
    kinds = (*_SIGNATURES, (b"PK\x03\x04", "ZIP"), (b"%PDF-", "PDF"), (_OLE, "DOC"))
    found = next((kind for signature, kind in kinds if head.startswith(signature)), "")
    # Two letters may begin a text too.
    return "" if found == "EXE" and b"\x00" not in head else found


def promised(name: str) -> Kind | None:
    """Return the kind that the ending of `name` promises, None for an unknown one."""
    return ENDINGS.get(PurePosixPath(name.lower()).suffix)


def _kind_of_text(head: bytes, promise: Kind | None) -> Kind:
    if promise in ("markdown", "csv", "jsonl", "html"):
        return promise
    if _HTML.search(head[:1024]):
        return "html"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<?xml"):
        raise RefusedError("other_kind", kind="XML")
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


def _holds(path: Path, what: bytes) -> bool:
    """Return whether `what` stands in the file, which is read in pieces."""
    before = b""
    with path.open("rb") as file:
        while piece := file.read(2**20):
            if what in before + piece:
                return True
            before = piece[-len(what) :]
    return False


# Text and Markdown in any usual encoding.

_GUESSED = ("gb18030", "big5", "cp1252", "shift_jis", "euc_kr", "euc_jp", "cp1251")
"""What a text may be written in that is not UTF-8 and does not say so."""

_JIS = re.compile(rb"\x1b\$[@B]|\x1b\(J")
"""What only the Japanese encoding of letters begins its characters with."""

_SAMPLE = 2**18
"""Bytes by which the encoding is guessed."""

_INVISIBLE = re.compile("[\\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]+")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_MOST_CONTROLS = 0.02
"""The share of control characters from which something is no text."""

_FRONT_MATTER = re.compile(r"(---|\+\+\+)\n(.*?)\n(?:\1|\.\.\.)[ \t]*(?:\n|$)", re.S)
# What a terminal draws: colours, and letters that are struck twice or underlined.
_DRAWN = re.compile("\x1b(?:\\[[0-9;?]*[A-Za-z]|\\][^\x07\x1b]*\x07|\\([A-Z])|[^\\n]\x08")
_TITLE = re.compile(r"(?m)^title[ \t]*[:=][ \t]*(.+)$", re.I)
_HEADING = re.compile(r"(?m)^#[ \t]+(.+?)[ \t#]*$|^(\S.*)\n={2,}[ \t]*$")
_BLOCK = re.compile(r"(?ms)^[ ]{0,3}(```|~~~).*?(?:^[ ]{0,3}\1|\Z)")


def decoded(data: bytes) -> tuple[str, str | None]:
    """Return the text of `data`, and the encoding where it had to be guessed: "utf-8" where some
    bytes of it are damaged, each of which becomes U+FFFD.

    Line ends become line feeds. Raises RefusedError for what is no text in any usual encoding.
    """
    encoding = marked_encoding(data) or ("iso2022_jp" if _JIS.search(data) else "utf-8")
    guessed = None
    try:
        text = data.decode(encoding)
        if encoding == "utf-8" and "\x00" in text:
            raise UnicodeError
    except UnicodeError:
        guessed = _guess(data)
        if guessed is None:
            raise RefusedError("binary") from None
        text = data.decode(guessed, "replace")
    if len(text) > MAX_TEXT:
        raise RefusedError("too_long", most=f"{MAX_TEXT:,}")
    text = _DRAWN.sub("", text)
    sample = text[:_SAMPLE]
    if sample and len(_CONTROLS.findall(sample)) > _MOST_CONTROLS * len(sample):
        raise RefusedError("binary")
    return text.replace("\r\n", "\n").replace("\r", "\n"), guessed


def _guess(data: bytes) -> str | None:
    """Return the likeliest encoding; GB18030, which fits nearly all, only where it reads well."""
    if found := unmarked_utf_16(data[:_SAMPLE]):
        return found
    if _is_damaged(data):
        return "utf-8"
    # A character may be cut at the end of the sample: a line never is.
    sample = data[:_SAMPLE]
    sample = sample if len(data) <= _SAMPLE else sample[: sample.rfind(b"\n") + 1] or sample
    if found := chinese_encoding(sample):
        return found
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_GUESSED)).best()
    return best.encoding if best else None


def _is_damaged(data: bytes) -> bool:
    """Return whether bytes are UTF-8 but for a few: of the characters beyond ASCII, one in ten."""
    text = data.decode("utf-8", "replace")
    lost = text.count("\ufffd")
    foreign = sum(not one.isascii() for one in text) - lost
    return "\x00" not in text and lost * 10 <= foreign


def read_text(path: Path, title: str) -> ParsedFile:
    """Return a text file."""
    text, guessed = decoded(path.read_bytes())
    return _whole("text", title, text, guessed)


def read_markdown(path: Path, title: str) -> ParsedFile:
    """Return a Markdown file: its title is that of its front matter, else its first heading."""
    text, guessed = decoded(path.read_bytes())
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    named = _TITLE.search(front.group(2)) if front else None
    heading = named or _HEADING.search(_BLOCK.sub("", body))
    found = next(filter(None, heading.groups()), "").strip().strip("\"'") if heading else ""
    return _whole("markdown", plain_markdown(found) or title, plain_markdown(body), guessed)


def _whole(kind: str, title: str, text: str, guessed: str | None) -> ParsedFile:
    if not _INVISIBLE.sub("", text):
        raise RefusedError("empty")
    kind = "markdown" if kind == "markdown" else "text"
    return ParsedFile(kind, title, iter([DocumentPart(title, text.strip())]), *_told(text, guessed))


# Tables and lines of JSON: every row is a text of its own.

_TEXT = ("text", "content", "body", "passage", "contents", "article", "正文", "内容", "文本")
_TITLE_COLUMNS = ("title", "name", "headline", "标题", "题目", "名称")
_URL = ("url", "link", "网址", "链接")


def read_csv(path: Path, title: str) -> ParsedFile:
    """Return a table whose first row names its columns.

    A column called text, content, body or the like holds the texts; without one, a text is made of
    all cells of the row, each with its column's name.
    """
    text, guessed = decoded(path.read_bytes())
    return ParsedFile("csv", title, _rows(text, title), *_told(text, guessed))


def read_jsonl(path: Path, title: str) -> ParsedFile:
    """Return a JSON object a line, or one array of objects; fields as a table's columns."""
    text, guessed = decoded(path.read_bytes())
    return ParsedFile("jsonl", title, _objects(text, title), *_told(text, guessed))


def _told(text: str, guessed: str | None) -> tuple[tuple[str, ...], dict[str, str | int]]:
    """Return the remark on an encoding that had to be guessed, with its facts."""
    if guessed == "utf-8":
        return ("damaged",), {"damaged": text.count("\ufffd")}
    return (("encoding",), {"encoding": guessed}) if guessed else ((), {})


def _rows(text: str, title: str) -> Iterator[DocumentPart]:
    text, separator, _ = separated(text.lstrip("\n"))
    reader = csv.reader(csv_source(text), delimiter=separator, strict=True)
    found = given = 0
    try:
        first, rows = _header(reader)
        names = [name.strip() or f"column {at}" for at, name in enumerate(first, start=1)]
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) > len(names):
                said = f"{len(row)} > {len(names)}"
                raise RefusedError("bad_line", line=reader.line_num, said=said)
            found += 1
            part = _part(dict(zip(names, row, strict=False)), title, found)
            if part is not None:
                given += 1
                yield part
    except csv.Error as error:
        raise RefusedError("bad_line", line=reader.line_num, said=_said(error)) from None
    if not given:
        raise RefusedError("no_rows")


def _header(rows: Iterator[list[str]]) -> tuple[list[str], Iterator[list[str]]]:
    """Return the row that names the columns, and those below it.

    A single cell is a title where the next row has several, and an empty line or a usual name of a
    column shows that these are names.
    """
    first = next(rows, [])
    if sum(map(bool, map(str.strip, first))) != 1:
        return first, rows
    apart, below = False, next(rows, None)
    while below is not None and not any(map(str.strip, below)):
        apart, below = True, next(rows, None)
    if below is None:
        return first, rows
    usual = {*_TEXT, *_TITLE_COLUMNS, *_URL}
    known = usual.intersection(name.strip().lower() for name in below)
    titled = usual.isdisjoint(name.strip().lower() for name in first)
    if titled and len(below) > 1 and (apart or known):
        return below, rows
    return first, chain([below], rows)


def _objects(text: str, title: str) -> Iterator[DocumentPart]:
    given = 0
    for found, (line, value) in enumerate(_values(text), start=1):
        if not isinstance(value, dict):
            raise RefusedError("bad_line", line=line, said="not an object")
        part = _part({str(name): cell for name, cell in value.items()}, title, found)
        if part is not None:
            given += 1
            yield part
    if not given:
        raise RefusedError("no_rows")


def _values(text: str) -> Iterator[tuple[int, Any]]:
    """Yield every value with the line on which it stands."""
    if text.lstrip().startswith("["):
        yield from ((1, value) for value in _read(text, 1))
        return
    whole = _one_object(text)
    if whole is not None:
        yield from ((1, value) for value in _records(whole))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _read(line, number)


def _one_object(text: str) -> dict[str, Any] | None:
    """Return a file with a single object, which may be written over several lines."""
    first, _, rest = text.lstrip().partition("\n")
    if not first.startswith("{") or (first.rstrip().endswith("}") and rest.strip()):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_LONGEST_NOTE = 200


def _records(value: dict[str, Any]) -> list[Any]:
    """Return the objects that an object holds: by their names, or as its only list beside words
    about it; else the object.
    """
    rows = list(value.values())
    if len(rows) > 1 and all(isinstance(one, dict) and {*_TEXT} & one.keys() for one in rows):
        # By their names.
        return rows
    lists = [one for one in rows if isinstance(one, list) and one]
    held = [one for one in lists if all(isinstance(inner, dict) for inner in one)]
    named = {name.lower() for name in value} & {*_TEXT}
    long = any(isinstance(one, str) and len(one) > _LONGEST_NOTE for one in value.values())
    return held[0] if len(held) == len(lists) == 1 and not named and not long else [value]


def _said(error: Exception) -> str:
    """Return what is wrong, never nothing: a number of too many digits has no message of JSON."""
    return getattr(error, "msg", "") or str(error) or type(error).__name__


def _read(text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise RefusedError("bad_line", line=line, said="too deep") from None
    except ValueError as error:
        line += getattr(error, "lineno", 1) - 1
        raise RefusedError("bad_line", line=line, said=_said(error)) from None


def _part(cells: Mapping[str, Any], title: str, number: int) -> DocumentPart | None:
    """Return a row as a text; None for one without any."""
    if number > MAX_ROWS:
        raise RefusedError("too_long", most=f"{MAX_ROWS:,}")
    by_name = {name.lower(): name for name in cells}
    of_text = next((by_name[name] for name in _TEXT if name in by_name), None)
    of_title = next((by_name[name] for name in _TITLE_COLUMNS if name in by_name), None)
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
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return "\n".join(value).strip()
    return json.dumps(value, ensure_ascii=False)
