"""Text of DOCX files (python-docx): paragraphs, tables, text boxes and notes.

The library opens the file; what is in it is walked here, because its own lists leave out content
controls, text boxes, notes, and what was inserted while changes were tracked.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docx import Document
from docx.document import Document as DocumentObject
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml

from pipelines.retrieval.reading.parsed import MAX_TEXT, DocumentPart, ParsedFile, RefusedError

_DECLARATION = b"<!DOCTYPE"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NOTES = ("footnotes", "endnotes")

# What is no text of the document: deleted text, codes of fields, the copy of a drawing for older
# programs. Text boxes come after the paragraph that they hang on.
_LEFT_OUT = frozenset(
    f"{_W}{name}"
    for name in ("del", "moveFrom", "instrText", "delText", "pPr", "rPr", "txbxContent")
) | {"{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
# In the line of the text or beside it, as newer and as older programs write them.
_PICTURES = (
    "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic",
    "{urn:schemas-microsoft-com:vml}imagedata",
)
_SPACES = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def read_docx(path: Path, title: str) -> ParsedFile:
    """Return a DOCX file, whose unpacked size was looked at before. Headings are lines of
    their own.

    Raises RefusedError for one that declares XML entities: no program for writing texts does that,
    and they can fill the memory. Other errors mean that it is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        for one in archive.infolist():
            if one.filename.endswith((".xml", ".rels")):
                with archive.open(one) as file:
                    if _DECLARATION in file.read(4096):
                        raise RefusedError("entities")
    document = Document(str(path))
    lines: list[str] = []
    size = 0
    for line in _lines(document):
        size += len(line)
        if size > MAX_TEXT:
            raise RefusedError("too_long", most=f"{MAX_TEXT:,}")
        lines.append(line)
    text = "\n".join(lines).strip()
    if not text:
        pictures = next(document.element.body.iter(*_PICTURES), None)
        raise RefusedError("no_text" if pictures is None else "scanned", pages=1)
    own = " ".join((document.core_properties.title or "").split())[:300]
    own = own or _first_heading(document) or title
    return ParsedFile("docx", own, iter([DocumentPart(own, text)]))


def _lines(document: DocumentObject) -> Iterator[str]:
    yield from _blocks(document.element.body)
    for relation in document.part.rels.values():
        kind = relation.reltype.rpartition("/")[2]
        if kind in _NOTES and not relation.is_external:
            for note in parse_xml(relation.target_part.blob):
                # Those with a type are the lines between text and notes.
                if note.get(f"{_W}type") is None:
                    yield from _blocks(note)


def _blocks(element: Any) -> Iterator[str]:
    """Yield the lines of everything that holds paragraphs and tables."""
    for child in element:
        if child.tag == qn("w:p"):
            yield "".join(_texts(child))
            for box in child.iter(f"{_W}txbxContent"):
                if not any(parent.tag in _LEFT_OUT for parent in box.iterancestors()):
                    yield from _blocks(box)
        elif child.tag == qn("w:tbl"):
            yield from _rows(child)
        elif child.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:customXml")):
            yield from _blocks(child)


def _rows(table: Any) -> Iterator[str]:
    for row in table.iter(qn("w:tr")):
        if next(row.iterancestors(qn("w:tbl"))) is not table:
            # Of a table in a cell, which is part of the text of that cell.
            continue
        own = [one for one in row.iter(qn("w:tc")) if next(one.iterancestors(qn("w:tr"))) is row]
        cells = [" ".join(" ".join(_blocks(cell)).split()) for cell in own]
        if any(cells):
            yield " | ".join(filter(None, cells))


def _texts(element: Any) -> Iterator[str]:
    for child in element:
        if child.tag in _LEFT_OUT:
            continue
        if child.tag == qn("w:t"):
            yield child.text or ""
        elif child.tag in _SPACES:
            yield _SPACES[child.tag]
        else:
            yield from _texts(child)


def _first_heading(document: DocumentObject) -> str:
    for paragraph in document.paragraphs[:20]:
        style = paragraph.style.name if paragraph.style is not None else ""
        if (style or "").startswith(("Title", "Heading")) and paragraph.text.strip():
            return " ".join(paragraph.text.split())[:300]
    return ""
