"""Text of web pages (trafilatura): the article without menus, notices and scripts."""

from __future__ import annotations

import copy
import logging
import re
from pathlib import Path
from typing import Any

from pipelines.retrieval.markup import raised
from pipelines.retrieval.reading.encodings import marked_encoding
from pipelines.retrieval.reading.parsed import DocumentPart, ParsedFile, RefusedError, decoded

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_CHARSET = re.compile(
    rb"<(?:meta\b[^>]+charset=|\?xml\b[^>]+encoding=)[\"'\s]*([\w-]+)", re.IGNORECASE
)
# Browsers read more by these names than they say.
_WIDER = {
    "iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252",
    "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs",
    "shift_jis": "cp932", "shift-jis": "cp932", "euc-kr": "cp949", "ks_c_5601-1987": "cp949",
}  # fmt: skip
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)
_HIDDEN = re.compile(
    r"(?i)(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d]*[1-9])|font-size\s*:\s*0(?![.\d]*[1-9]))"
)
_MATH = "name()='math' or name()='m:math' or name()='mml:math'"
_BLOCKS = frozenset(
    {"p", "div", "li", "ul", "ol", "dl", "dt", "dd", "br", "tr", "td", "table", "section"}
)
# What the library passes over with its words.
_INLINE = frozenset({"time", "output", "meter", "rb", "slot"})
_LIKE_DIV = frozenset({"center", "summary", "hgroup", "dir", "menu", "search"})
_HEAD = 2**16
_MOST_REPEATED = 20_000
"""Cells of a table that are written again because they span several rows."""

_LITTLE = 200
"""Characters of an article below which the whole text of the page is taken if it is longer."""


def read_html(path: Path, title: str) -> ParsedFile:
    """Return a web page; raises RefusedError without text, as of one that a script fills."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    data = path.read_bytes()
    page = _decoded(data)
    found = trafilatura.bare_extraction(
        _plainer(page), include_comments=False, include_tables=True, with_metadata=True
    )
    text = (getattr(found, "text", None) or "").strip()
    if len(text) < _LITTLE:
        # Without an article, such as a list or a form: everything that is to be read.
        whole = (trafilatura.html2txt(_plainer(page)) or "").strip()
        text = whole if len(whole) > len(text) else text
    if not text:
        # Elements inside each other without end, for one, no program shows either.
        readable = trafilatura.load_html(page) is not None
        raise RefusedError("no_text", pages=1) if readable else RefusedError("broken")
    own = _best_title(getattr(found, "title", None) or "", _title(page))
    url = getattr(found, "url", None)
    return ParsedFile("html", own or title, iter([DocumentPart(own or title, text, url=url)]))


def _plainer(page: str) -> Any:
    """Return a page with the same words in elements that the library reads.

    It leaves out lists inside table cells, captions, formulas, and elements that it does not know,
    such as times. It takes terms and definitions apart, reads what is hidden or crossed out, and
    writes the 6 of 10⁶ as that of 106.
    """
    import trafilatura

    tree = trafilatura.load_html(page)
    if tree is None:
        return page
    for found in tree.xpath("//*[@hidden] | //template | //*[@style] | //del | //s | //strike"):
        style = found.get("style")
        shown = style is not None and found.get("hidden") is None and not _HIDDEN.search(style)
        if not shown or found.tag in ("del", "s", "strike"):
            _replace(found, "")
    for found in tree.xpath("//*[contains(@class, 'mw-editsection')]"):
        _replace(found, "")
    for found in tree.xpath("//*"):
        _rename(found)
    for found in tree.xpath("//sup"):
        words = "".join(found.itertext())
        # A link to a note is no power.
        linked = found.find(".//a") is not None and not words.startswith("[")
        _replace(found, f"[{words}]" if linked else raised(words))
    for found in tree.xpath("//script[starts-with(@type, 'math/tex')]"):
        _replace(found, f"\\({found.text or ''}\\)")
    for found in tree.xpath(f"//*[{_MATH}][not(@alttext)][not(.//annotation)]"):
        _replace(found, _formula(found))
    for found in tree.xpath("//q"):
        _replace(found, f"“{_words(found)}”")
    for found in tree.xpath("//li//table"):
        rows = (
            ", ".join(filter(None, map(_words, row.xpath("./td|./th")))) for row in found.iter("tr")
        )
        _replace(found, f" ({'; '.join(rows)}) ")
    for found in tree.xpath("//dd[not(ancestor::dl)] | //dt[not(ancestor::dl)]"):
        found.tag = "p"
    for found in tree.xpath("//*[contains(@class, 'caption')][not(self::table)]"):
        # The library takes it for what stands beside the article.
        found.attrib.pop("class")
        found.tag = "p" if found.tag == "div" else found.tag
    for found in tree.xpath("//figcaption"):
        found.tag = "p"
        figure = found.getparent()
        if figure is not None and figure.tag == "figure":
            figure.addnext(found)
    for found in tree.xpath("//table[.//td[@rowspan] or .//th[@rowspan]]"):
        _repeat_cells(found)
    for found in tree.xpath("//dl[not(ancestor::dl)]"):
        _as_list(found)
    for found in tree.xpath("//*[self::td or self::th]//*[self::ul or self::ol]"):
        if not any(one.tag in ("ul", "ol") for one in found.iterancestors()):
            _replace(found, f" {_entries(found)} ")
    return tree


def _rename(found: Any) -> None:
    """Call an element by a name that the library reads; bare text of a section is a paragraph."""
    if found.tag in _LIKE_DIV or ("-" in found.tag and any(one.tag in _BLOCKS for one in found)):
        found.tag = "div"
    elif found.tag in _INLINE or "-" in found.tag:
        found.tag = "span"
    elif found.tag in ("section", "article", "main") and (found.text or "").strip():
        paragraph = found.makeelement("p")
        paragraph.text, found.text = found.text, None
        while len(found) and found[0].tag not in _BLOCKS:
            paragraph.append(found[0])
        found.insert(0, paragraph)
    elif found.tag == "footer" and next(found.iterancestors("blockquote"), None) is not None:
        # Who is quoted.
        found.tag = "p"


def _replace(found: Any, text: str) -> None:
    """Put a text in the place of an element; what follows it stays."""
    tail = found.tail
    found.clear()
    found.tag, found.text, found.tail = "span", text, tail


def _words(element: Any) -> str:
    """Return the words of an element; those of different blocks are apart."""
    parts: list[str] = [element.text or ""]
    for child in element:
        block = child.tag in _BLOCKS
        inner = _words(child)
        if child.tag in ("ul", "ol", "dl"):
            inner = f"({_terms(child) if child.tag == 'dl' else _entries(child)})"
        parts += [" " if block else "", inner, " " if block else "", child.tail or ""]
    return " ".join("".join(parts).split())


def _entries(found: Any) -> str:
    """Return the entries of a list on one line: "one; two (a; b)"."""
    return "; ".join(filter(None, map(_words, found.xpath("./li"))))


def _terms(found: Any) -> str:
    return "; ".join(": ".join(filter(None, one)) for one in _defined(found))


def _defined(found: Any) -> list[tuple[str, str]]:
    """Return the terms of a list with their definitions."""
    entries: list[tuple[list[str], list[str]]] = []
    for one in found.xpath("./dt|./dd|./div/dt|./div/dd"):
        is_term = one.tag == "dt"
        # Terms that follow each other have one definition; a further one continues it.
        if not entries or (is_term and entries[-1][1]):
            entries.append(([], []))
        entries[-1][0 if is_term else 1].append(_words(one))
    return [(", ".join(filter(None, words)), " ".join(said)) for words, said in entries]


def _as_list(found: Any) -> None:
    """Make an entry of each term with its definitions: "Ebb: falling water"."""
    entries = _defined(found)
    tail = found.tail
    found.clear()
    found.tag, found.tail = "ul", tail
    for one in entries:
        entry = found.makeelement("li")
        entry.text = ": ".join(filter(None, one))
        found.append(entry)


def _repeat_cells(table: Any) -> None:
    """Write a cell that spans several rows in each of them."""
    above: dict[int, tuple[int, Any]] = {}
    room = _MOST_REPEATED
    for row in table.iter("tr"):
        if next(row.iterancestors("table")) is not table:
            continue
        below: dict[int, tuple[int, Any]] = {}
        cells: list[Any] = row.xpath("./td|./th")
        row[:], at = [], 0
        while cells or at in above:
            left, cell = above.pop(at, (0, None))
            if cell is None:
                cell = cells.pop(0)
                rows = str(cell.attrib.pop("rowspan", ""))
                left = int(rows) - 1 if rows.isdecimal() and len(rows) < 5 else 0
                row.append(cell)
            else:
                row.append(copy.deepcopy(cell))
                left, room = left - 1, room - 1
            if left > 0 and room > 0:
                below[at] = (left, cell)
            width = str(cell.get("colspan", ""))
            at += max(1, int(width)) if width.isdecimal() and len(width) < 4 else 1
        above = below


def _formula(element: Any) -> str:
    """Return a formula of MathML on one line: x=(a+b)/2."""
    tag = str(element.tag).rpartition("}")[2].rpartition(":")[2]
    parts = [_formula(child) for child in element]
    if tag in ("mfrac", "msup", "msub", "msubsup") and len(parts) >= 2:
        first, *rest = [part if len(part) < 2 or part.isalnum() else f"({part})" for part in parts]
        marks = {"mfrac": "/", "msup": "^", "msub": "_", "msubsup": "_^"}[tag]
        return first + "".join(mark + part for mark, part in zip(marks, rest, strict=False))
    if tag in ("mtable", "mtr"):
        return ("; " if tag == "mtable" else ", ").join(parts)
    inner = (element.text or "").strip() + "".join(parts)
    return f"√({inner})" if tag in ("msqrt", "mroot") else inner


def _best_title(guessed: str, named: str) -> str:
    """Return the guess where the page's own title holds it, as "Guess - Name of the site" does."""
    guessed, named = " ".join(guessed.split()), " ".join(named.split())
    return (guessed if guessed and guessed in named else named or guessed)[:300]


def _decoded(data: bytes) -> str:
    """Return the text by its mark, by the encoding that the page names, else as any text."""
    named = _CHARSET.search(_COMMENT.sub(b"", data[:_HEAD]))
    if named and marked_encoding(data) is None:
        name = named.group(1).decode("ascii").lower()
        try:
            return data.decode(_WIDER.get(name, name))
        except (LookupError, UnicodeError):
            pass
    return decoded(data)[0]


def _title(page: str) -> str:
    from html import unescape

    found = _TITLE.search(page)
    return unescape(re.sub(r"<[^>]+>", "", found.group(1))) if found else ""
