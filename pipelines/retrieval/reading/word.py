"""Text of DOCX files (python-docx): paragraphs, tables, text boxes, equations and notes.

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
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_NOTES = ("footnotes", "endnotes")

# What is no text of the document: deleted text, codes of fields, the copy of a drawing for older
# programs. Text boxes come after the paragraph that they hang on.
_LEFT_OUT = frozenset(
    f"{_W}{name}"
    for name in ("del", "moveFrom", "instrText", "delText", "pPr", "rPr", "sdtPr", "txbxContent")
) | {"{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
# In the line of the text or beside it, as newer and as older programs write them.
_PICTURES = (
    "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic",
    "{urn:schemas-microsoft-com:vml}imagedata",
)
_HOLDERS = frozenset(f"{_W}{name}" for name in ("sdt", "sdtContent", "ins", "customXml"))
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
        elif child.tag in _HOLDERS and not _is_placeholder(child):
            yield from _blocks(child)
        elif child.tag in (f"{_M}oMathPara", f"{_M}oMath"):
            yield "".join(_texts([child]))


def _rows(table: Any) -> Iterator[str]:
    for row in table.iter(qn("w:tr")):
        if next(row.iterancestors(qn("w:tbl"))) is not table:
            # Of a table in a cell, which is part of the text of that cell.
            continue
        own = [one for one in row.iter(qn("w:tc")) if next(one.iterancestors(qn("w:tr"))) is row]
        cells = [" ".join(_cell(cell).split()) for cell in own]
        if any(cells):
            yield " | ".join(filter(None, cells))


def _cell(cell: Any) -> str:
    """Return the text of a cell; the entries of a list are separated by semicolons."""
    said, before = "", False
    for paragraph, line in _paragraphs(cell):
        listed = paragraph is not None and paragraph.find(f"{_W}pPr/{_W}numPr") is not None
        if line.strip():
            said += f"{';' if listed and before else ''} {line.strip()}"
            before = listed
    return said


def _paragraphs(element: Any) -> Iterator[tuple[Any, str]]:
    """Yield the lines of a cell, each with its paragraph where it is of one."""
    for child in element:
        if child.tag == qn("w:p"):
            # With what hangs on it.
            yield child, " ".join(_blocks([child]))
        elif child.tag in _HOLDERS and not _is_placeholder(child):
            yield from _paragraphs(child)
        else:
            yield None, " ".join(_blocks([child]))


def _is_placeholder(element: Any) -> bool:
    """Return whether a content control only asks for what is to be written there."""
    return element.find(f"{_W}sdtPr/{_W}showingPlcHdr") is not None


def _texts(element: Any) -> Iterator[str]:
    for child in element:
        if child.tag in _LEFT_OUT or (child.tag == qn("w:sdt") and _is_placeholder(child)):
            continue
        if child.tag == qn("w:t"):
            yield child.text or ""
        elif child.tag == f"{_M}oMath":
            yield _equation(child)
        elif child.tag in _SPACES:
            yield _SPACES[child.tag]
        else:
            yield from _texts(child)


# Equations, on one line as they are typed: (a+b)/2, x^2, √(x), ∑_(i=1)^n x_i.


def _equation(element: Any) -> str:
    return " ".join("".join(map(_term, element)).split())


def _term(element: Any) -> str:
    """Return a part of an equation on one line."""
    kind = element.tag.removeprefix(_M)
    if element.tag in _LEFT_OUT or kind.endswith("Pr"):
        return ""
    if kind == "t" or element.tag == qn("w:t"):
        return element.text or ""

    def part(name: str, *, whole: bool = True) -> str:
        inner = "".join("".join(map(_term, one)) for one in element.findall(f"{_M}{name}"))
        return inner if whole or len(inner) < 2 or inner.isalnum() else f"({inner})"

    def mark(name: str, usual: str) -> str:
        found = element.find(f"{_M}{kind}Pr/{_M}{name}")
        return usual if found is None else found.get(f"{_M}val", "")

    if kind == "f":
        return f"{part('num', whole=False)}/{part('den', whole=False)}"
    if kind in ("sSup", "sSub", "sSubSup", "sPre", "nary"):
        base = mark("chr", "∫") if kind == "nary" else part("e")
        low, high = part("sub", whole=False), part("sup", whole=False)
        script = (f"_{low}" if low else "") + (f"^{high}" if high else "")
        if kind == "nary":
            return f"{base}{script} {part('e')}"
        return script + base if kind == "sPre" else base + script
    if kind == "rad":
        return f"{part('deg')}√({part('e')})"
    if kind == "d":
        inner = ("".join(map(_term, one)) for one in element.findall(f"{_M}e"))
        return mark("begChr", "(") + mark("sepChr", "|").join(inner) + mark("endChr", ")")
    if kind == "func":
        return f"{part('fName')} {part('e')}"
    if kind in ("limLow", "limUpp"):
        return f"{part('e')}{'_' if kind == 'limLow' else '^'}{part('lim', whole=False)}"
    if kind == "m":
        rows = element.findall(f"{_M}mr")
        return "; ".join(", ".join("".join(map(_term, e)) for e in row) for row in rows)
    if kind == "acc":
        return part("e") + mark("chr", "\u0302")
    return "".join(map(_term, element))


def _first_heading(document: DocumentObject) -> str:
    for paragraph in document.paragraphs[:20]:
        style = paragraph.style.name if paragraph.style is not None else ""
        if (style or "").startswith(("Title", "Heading")) and paragraph.text.strip():
            return " ".join(paragraph.text.split())[:300]
    return ""
