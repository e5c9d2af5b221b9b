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

from pipelines.retrieval.markup import raised
from pipelines.retrieval.reading.parsed import MAX_TEXT, DocumentPart, ParsedFile, RefusedError

_DECLARATION = b"<!DOCTYPE"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_NOTES = ("footnotes", "endnotes")

# What is no text of the document: deleted text, codes of fields, the copy of a drawing for older
# programs. Text boxes come after the paragraph that they hang on.
_LEFT_OUT = frozenset(
    f"{_W}{name}"
    for name in (
        *("del", "moveFrom", "instrText", "delText", "pPr", "rPr", "sdtPr", "txbxContent"),
        # How a character is pronounced.
        *("rt", "rubyPr"),
    )
) | {"{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
# In the line of the text or beside it, as newer and as older programs write them.
_PICTURES = (
    "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic",
    "{urn:schemas-microsoft-com:vml}imagedata",
)
_HOLDERS = frozenset(f"{_W}{name}" for name in ("sdt", "sdtContent", "ins", "customXml"))
_GONE = ("vanish", "strike", "dstrike")
"""What hides a text or crosses it out."""

# The letters of Word's font of symbols; other signs of such fonts are pictures.
_SYMBOLS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "αβχδεφγηιϕκλμνοπθρστυϖωξψζΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ",
        strict=True,
    )
)
_STRICT = b"http://purl.oclc.org/ooxml"
_SPACES = {
    f"{_W}ptab": "\t",
    f"{_W}tab": "\t",
    f"{_W}br": "\n",
    f"{_W}cr": "\n",
    f"{_W}noBreakHyphen": "-",
}


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
                    head = file.read(4096)
                if _DECLARATION in head:
                    raise RefusedError("entities")
                if _STRICT in head and one.filename == "word/document.xml":
                    raise RefusedError("other_kind", kind="DOCX (Strict Open XML)")
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
    """Yield the rows of a table. Empty cells keep their place; a cell that spans several rows is
    written in each.
    """
    for cells in _cells(table):
        if any(cells):
            yield " | ".join(cells).strip()


def _cells(table: Any) -> Iterator[list[str]]:
    above: dict[int, str] = {}
    for row in table.iter(qn("w:tr")):
        if next(row.iterancestors(qn("w:tbl"))) is not table:
            # Of a table in a cell, which is part of the text of that cell.
            continue
        if row.find(f"{_W}trPr/{_W}del") is not None:
            continue
        cells: list[str] = []
        for cell in row.iter(qn("w:tc")):
            if next(cell.iterancestors(qn("w:tr"))) is not row:
                continue
            text = " ".join(_cell(cell).split())
            merged = cell.find(f"{_W}tcPr/{_W}vMerge")
            if merged is not None and merged.get(f"{_W}val", "continue") == "continue":
                text = text or above.get(len(cells), "")
            above[len(cells)] = text
            width = cell.find(f"{_W}tcPr/{_W}gridSpan")
            span = str(1 if width is None else width.get(f"{_W}val"))
            cells += [text, *[""] * ((int(span) if span.isdecimal() and len(span) < 3 else 1) - 1)]
        yield cells


def _cell(cell: Any) -> str:
    """Return the text of a cell; the entries of a list are separated by semicolons."""
    said, before = "", False
    for paragraph, line in _paragraphs(cell):
        listed = paragraph is not None and _is_listed(paragraph)
        if line.strip():
            ended = said.endswith(tuple(".!?。！？;；"))
            said += f"{';' if before and not ended else ''} {line.strip()}"
            before = listed
    return said


def _is_listed(paragraph: Any) -> bool:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    named = style is not None and str(style.get(f"{_W}val")).startswith("List")
    return named or paragraph.find(f"{_W}pPr/{_W}numPr") is not None


def _paragraphs(element: Any) -> Iterator[tuple[Any, str]]:
    """Yield the lines of a cell, each with its paragraph where it is of one."""
    for child in element:
        if child.tag == qn("w:p"):
            # With what hangs on it.
            yield child, " ".join(_blocks([child]))
        elif child.tag in _HOLDERS and not _is_placeholder(child):
            yield from _paragraphs(child)
        elif child.tag == qn("w:tbl"):
            # A table in a cell: its rows are those of a list.
            yield None, "; ".join(", ".join(filter(None, row)) for row in _cells(child) if any(row))
        else:
            yield None, " ".join(_blocks([child]))


def _is_placeholder(element: Any) -> bool:
    """Return whether a content control only asks for what is to be written there."""
    return element.find(f"{_W}sdtPr/{_W}showingPlcHdr") is not None


def _texts(element: Any) -> Iterator[str]:
    for child in element:
        if child.tag in _LEFT_OUT or (child.tag == qn("w:sdt") and _is_placeholder(child)):
            continue
        if child.tag == qn("w:r"):
            yield _run(child)
        elif child.tag == qn("w:t"):
            yield child.text or ""
        elif child.tag == f"{_M}oMath":
            yield _equation(child)
        elif child.tag == f"{_W}sym":
            yield _symbol(child)
        elif child.tag in _SPACES:
            yield _SPACES[child.tag]
        else:
            yield from _texts(child)


def _run(run: Any) -> str:
    """Return the text of a run: none where it is hidden or crossed out."""
    look = run.find(f"{_W}rPr")
    if look is None:
        return "".join(_texts(run))
    for name in _GONE:
        found = look.find(f"{_W}{name}")
        if found is not None and found.get(f"{_W}val", "true") not in ("0", "false", "off"):
            return ""
    text = "".join(_texts(run))
    place = look.find(f"{_W}vertAlign")
    return raised(text) if place is not None and place.get(f"{_W}val") == "superscript" else text


def _symbol(sign: Any) -> str:
    """Return a sign of a font of signs: a Greek letter, or U+FFFD for what only that font draws."""
    code = int(sign.get(f"{_W}char", "0") or "0", 16) & 0xFF
    known = _SYMBOLS.get(chr(code)) if sign.get(f"{_W}font") == "Symbol" else None
    return known or "\ufffd"


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

    if kind == "f" and mark("type", "") == "noBar":
        return f"{part('num')} over {part('den')}"
    if kind == "eqArr":
        return "; ".join("".join(map(_term, one)) for one in element.findall(f"{_M}e"))
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
