"""Text of web pages (trafilatura): the article without menus, notices and scripts."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from pipelines.retrieval.reading.parsed import DocumentPart, ParsedFile, RefusedError, decoded

_CHARSET = re.compile(rb"<meta[^>]+charset=[\"'\s]*([\w-]+)", re.I)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)
_LISTS = re.compile(r"<(?:dl|td|th)[\s>]", re.I)
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
        raise RefusedError("no_text", pages=1)
    own = _best_title(getattr(found, "title", None) or "", _title(page))
    url = getattr(found, "url", None)
    return ParsedFile("html", own or title, iter([DocumentPart(own or title, text, url=url)]))


def _plainer(page: str) -> Any:
    """Return a page with the same words in elements that the library reads.

    It leaves out lists inside table cells, and takes terms and definitions apart.
    """
    import trafilatura

    tree = trafilatura.load_html(page) if _LISTS.search(page) else None
    if tree is None:
        return page
    for found in tree.xpath("//dl"):
        _as_list(found)
    for found in tree.xpath("//*[self::td or self::th]//*[self::ul or self::ol]"):
        _in_words(found)
    return tree


def _in_words(found: Any) -> None:
    """Put the entries of a list into one line: "one; two"."""
    entries = [" ".join(" ".join(one.itertext()).split()) for one in found.xpath("./li")]
    tail = found.tail
    found.clear()
    found.tag, found.tail = "span", tail
    found.text = f" {'; '.join(filter(None, entries))} "


def _as_list(found: Any) -> None:
    """Make an entry of each term with its definitions: "Ebb: falling water"."""
    entries: list[tuple[list[str], list[str]]] = []
    for one in found.xpath("./dt|./dd|./div/dt|./div/dd"):
        text = " ".join(one.text_content().split())
        is_term = one.tag == "dt"
        # Terms that follow each other have one definition; a further one continues it.
        if not entries or (is_term and entries[-1][1]):
            entries.append(([], []))
        entries[-1][0 if is_term else 1].append(text)
    tail = found.tail
    found.clear()
    found.tag, found.tail = "ul", tail
    for words, said in entries:
        entry = found.makeelement("li")
        entry.text = ": ".join(filter(None, (", ".join(words), " ".join(said))))
        found.append(entry)


def _best_title(guessed: str, named: str) -> str:
    """Return the guess where the page's own title holds it, as "Guess - Name of the site" does."""
    guessed, named = " ".join(guessed.split()), " ".join(named.split())
    return (guessed if guessed and guessed in named else named or guessed)[:300]


def _decoded(data: bytes) -> str:
    """Return the text decoded by the encoding that the page names, else as any text."""
    named = _CHARSET.search(data[:4096])
    if named:
        try:
            return data.decode(named.group(1).decode("ascii"))
        except (LookupError, UnicodeError):
            pass
    return decoded(data)[0]


def _title(page: str) -> str:
    from html import unescape

    found = _TITLE.search(page)
    return unescape(re.sub(r"<[^>]+>", "", found.group(1))) if found else ""
