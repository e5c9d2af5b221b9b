"""Text of PDF files, page by page (pypdf)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError

from pipelines.retrieval.markup import raised
from pipelines.retrieval.reading.parsed import (
    MAX_PAGES,
    MAX_TEXT,
    DocumentPart,
    ParsedFile,
    RefusedError,
)
from pipelines.retrieval.reading.quality import (
    MOST_UNREADABLE,
    SOME_UNREADABLE,
    reads,
    unreadable_share,
    visible_length,
)
from pipelines.text.languages import HAN

# It logs every repair of a damaged file, which no user needs to see.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)

_BETWEEN = "\n\n"
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n(?=[a-zà-ÿ])")
# What divides no word: a hyphen of a compound, before a capital, and between numbers.
_KEPT_HYPHEN = re.compile(
    r"(?<=[^\W\d_])([-\u2010])[ \t]*\n(?=[^\W\d_a-zà-ÿ])|(?<=\d)([-\u2010\u2013])[ \t]*\n(?=\d)"
    r"|(?<=-)([^\W\d_]+[-\u2010])\n(?=[a-zà-ÿ])"
)
_ENDED = re.compile(r"[.!?:;。！？：；…\"”’)\]）】」』]\s*$")
_EAST = re.compile(rf"[{HAN}\u3000-\u303f\uff00-\uffef]")
# Fonts draw two letters as one sign, and Chinese characters as the radicals that look the same:
# who searches types the letters and the characters.
_SIGNS = {
    code: normalize("NFKC", chr(code)) for code in (*range(0x2E80, 0x2FD6), *range(0xFB00, 0xFB07))
}
_NUMBER = re.compile(r"\s*[+\-−]?\d{1,4}\s*")
_UNSEEN = 2 | 32
"""The flags of an annotation that is hidden, or not shown on a screen."""

_SMALLER = 0.9
"""A number smaller than this, and higher by what is missing at least, stands raised."""

_USELESS = re.compile(r"(?i)(microsoft word - |untitled)|.*\.(docx?|html?|pdf|tex|dvi|indd)$")
_SURROGATES = re.compile("[\ud800-\udfff]")


def read_pdf(path: Path, title: str) -> ParsedFile:
    """Return a PDF file; pages without text are passed over, and a remark says so.

    Raises RefusedError for one that needs a password, one whose pages hold only images, one with
    too many pages, and one of whose characters too many cannot be read: its fonts have no map to
    Unicode, or what they say is noise. Other errors mean that it is damaged.
    """
    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise RefusedError("encrypted")
    try:
        count = len(reader.pages)
    except (FileNotDecryptedError, DependencyError):
        raise RefusedError("encrypted") from None
    if count == 0:
        raise RefusedError("empty")
    if count > MAX_PAGES:
        raise RefusedError("too_many_pages", pages=count, most=MAX_PAGES)
    pages, damaged, unmapped = _pages(reader, count)
    if not any(pages):
        if damaged == count:
            raise RefusedError("broken")
        raise RefusedError("scanned" if _has_images(reader) else "no_text", pages=count)
    text, breaks = _joined(pages)
    unread = _unread(text, unmapped)
    own = _own_title(reader) or title
    remarks, facts = _remarks(pages)
    if unread >= SOME_UNREADABLE:
        facts["unreadable"] = round(100 * unread)
    return ParsedFile("pdf", own, iter([DocumentPart(own, text, breaks=breaks)]), remarks, facts)


class _Pages(NamedTuple):
    """The text of every page, how many pages are damaged, and what fonts without a map drew."""

    texts: list[str]
    damaged: int
    unmapped: str


def _pages(reader: PdfReader, count: int) -> _Pages:
    pages: list[str] = []
    unmapped: list[str] = []
    damaged = size = 0

    drawn: list[_Drawn] = []

    def draw(text: str, cm: Any, tm: Any, font: Any, size: Any) -> None:
        if text.strip() and not _has_map(font):
            unmapped.append(text)
        drawn.append(_placed(text, cm, tm, size))

    for number in range(count):
        drawn.clear()
        try:
            text = reader.pages[number].extract_text(visitor_text=draw) or ""
            text = flowing(_with_powers(text, drawn))
            text = "\n".join(filter(None, (text, *_filled_in(reader.pages[number]))))
        except (MemoryError, RecursionError):
            raise
        except Exception:
            # A library for damaged files too has no list of what they make it raise.
            text = ""
            damaged += 1
        size += len(text)
        if size > MAX_TEXT:
            raise RefusedError("too_long", most=f"{MAX_TEXT:,}")
        pages.append(text)
    return _Pages(pages, damaged, "".join(unmapped))


def _filled_in(page: Any) -> list[str]:
    """Return what people wrote into a form, and notes that are shown on the page."""
    try:
        found = [_written_in(one.get_object()) for one in page.get("/Annots") or ()]
    except (AttributeError, KeyError, TypeError, ValueError):
        # A damaged form leaves the text of its page.
        return []
    return list(filter(None, found))


def _written_in(one: Any) -> str:
    above = one["/Parent"].get_object() if "/Parent" in one else {}
    kind, value = one.get("/Subtype"), one.get("/V", above.get("/V"))
    if int(one.get("/F", 0)) & _UNSEEN:
        return ""
    if kind == "/FreeText":
        return str(one.get("/Contents") or "").strip()
    # What was ticked is a name, and no text.
    if kind != "/Widget" or not isinstance(value, str) or value.startswith("/"):
        return ""
    names = (one.get("/TU"), above.get("/TU"), one.get("/T"), above.get("/T"))
    name = str(next(filter(None, names), ""))
    return ": ".join(filter(None, (name, value.strip()))) if value.strip() else ""


class _Drawn(NamedTuple):
    """A piece of a page: its `height` above the bottom and its `size`, both in points."""

    text: str
    height: float
    size: float


def _placed(text: str, cm: Any, tm: Any, size: Any) -> _Drawn:
    try:
        height = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
        return _Drawn(text, height, abs(size * tm[3] * cm[3]))
    except (TypeError, IndexError, ValueError):
        return _Drawn(text, 0.0, 0.0)


def _with_powers(text: str, drawn: list[_Drawn]) -> str:
    """Return a page with small numbers above the line as raised ones: the 8 of 10⁸."""
    if "".join(one.text for one in drawn) != text:
        return text
    said: list[str] = []
    before: _Drawn | None = None
    for one in drawn:
        if before is not None and before.size and _NUMBER.fullmatch(one.text):
            size, rise = one.size / before.size, (one.height - before.height) / before.size
            if 0 < size < _SMALLER and 1 - _SMALLER < rise < _SMALLER:
                said.append(raised(one.text))
                continue
        said.append(one.text)
        if one.text.strip():
            before = one
    return "".join(said)


def _has_map(font: Any) -> bool:
    """Return whether a font says which characters it draws.

    One that numbers its glyphs by itself ("Identity") and has no table to Unicode does not.
    """
    if not font or font.get("/Subtype") != "/Type0" or "/ToUnicode" in font:
        return True
    return str(font.get("/Encoding")) not in ("/Identity-H", "/Identity-V")


def _unread(text: str, unmapped: str) -> float:
    """Return the share of unreadable characters, in [0, 1]; RefusedError for too many."""
    # Some programs number glyphs by their characters: what such a font draws can be read.
    nameless = 0 if reads(unmapped) else visible_length(unmapped)
    without = min(1.0, nameless / max(1, visible_length(text)))
    noise = unreadable_share(text)
    if without > MOST_UNREADABLE:
        raise RefusedError("no_map", percent=round(100 * without))
    if noise > MOST_UNREADABLE:
        raise RefusedError("unreadable", percent=round(100 * noise))
    return max(without, noise)


def _joined(pages: list[str]) -> tuple[str, tuple[int, ...]]:
    breaks: list[int] = []
    at = 0
    for page in pages:
        breaks.append(at)
        at += len(page) + len(_BETWEEN)
    return _BETWEEN.join(pages), tuple(breaks)


def _remarks(pages: list[str]) -> tuple[tuple[str, ...], dict[str, str | int]]:
    silent = sum(not page for page in pages)
    return (("silent_pages",), {"silent": silent, "pages": len(pages)}) if silent else ((), {})


def flowing(text: str) -> str:
    """Return the text of a page as it would be written without pages: lines of a sentence
    are joined.

    A line that ends a sentence, and one much shorter than the others, such as a heading, end a
    paragraph. Words divided at the end of a line are put together, and signs that only a font needs
    are written as what they stand for.
    """
    text = _SURROGATES.sub("\ufffd", text).replace("\x00", "").translate(_SIGNS)
    text = text.replace("\r", "\n")
    text = _HYPHEN.sub("", _KEPT_HYPHEN.sub(lambda found: next(filter(None, found.groups())), text))
    lines = [" ".join(line.split()) for line in text.split("\n")]
    longest = sorted(map(len, filter(None, lines)))
    usual = longest[len(longest) * 3 // 4] if longest else 0
    return "\n".join(_paragraphs(lines, usual))


def _paragraphs(lines: list[str], usual: int) -> Iterator[str]:
    paragraph = ""
    for line in lines:
        if not line:
            if paragraph:
                yield paragraph
            paragraph = ""
            continue
        if paragraph:
            close = _EAST.match(paragraph[-1]) and _EAST.match(line[0])
            paragraph += line if close else f" {line}"
        else:
            paragraph = line
        if _ENDED.search(line) or len(line) < usual * 0.6:
            yield paragraph
            paragraph = ""
    if paragraph:
        yield paragraph


def _own_title(reader: PdfReader) -> str:
    """Return the title in its properties, unless it is what a program put there for a file name."""
    try:
        found = " ".join(str((reader.metadata or {}).get("/Title") or "").split())
    except Exception:
        return ""
    found = _SURROGATES.sub("\ufffd", found)
    useless = _USELESS.match(found)
    return "" if useless or len(found) < 3 else found[:300]


def _has_images(reader: PdfReader) -> bool:
    """Return whether the first pages hold images: then they are probably photographs of pages."""
    for page in reader.pages[:3]:
        try:
            objects = page["/Resources"]["/XObject"]  # type: ignore[index]
            if any(one.get_object().get("/Subtype") == "/Image" for one in objects.values()):
                return True
        except Exception:
            continue
    return False
