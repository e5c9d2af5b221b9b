"""Text and Markdown in any usual encoding."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from pipelines.retrieval.documents import plain_markdown
from pipelines.retrieval.reading.parsed import MAX_TEXT, DocumentPart, ParsedFile, RefusedError
from pipelines.retrieval.reading.sniffing import unmarked_utf_16

_GUESSED = ("gb18030", "big5", "cp1252", "shift_jis", "euc_kr", "euc_jp", "cp1251")
"""What a text may be written in that is not UTF-8 and does not say so."""

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 2**18
"""Bytes by which the encoding is guessed."""

_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_MOST_CONTROLS = 0.02
"""The share of control characters from which something is no text."""

_FRONT_MATTER = re.compile(r"---\n(.*?)\n---[ \t]*(?:\n|$)", re.S)
_TITLE = re.compile(r"(?m)^title[ \t]*:[ \t]*(.+)$", re.I)
_HEADING = re.compile(r"(?m)^#[ \t]+(.+?)[ \t#]*$")


def decoded(data: bytes) -> tuple[str, str | None]:
    """Return the text of `data`, and the encoding where it had to be guessed.

    Line ends become line feeds. Raises RefusedError for what is no text in any usual encoding.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
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
    sample = text[:_SAMPLE]
    if sample and len(_CONTROLS.findall(sample)) > _MOST_CONTROLS * len(sample):
        raise RefusedError("binary")
    return text.replace("\r\n", "\n").replace("\r", "\n"), guessed


def _guess(data: bytes) -> str | None:
    """Return the likeliest encoding; GB18030, which nearly everything fits, only where it
    reads well.
    """
    if found := unmarked_utf_16(data[:_SAMPLE]):
        return found
    from charset_normalizer import from_bytes

    # A character may be cut at the end of the sample: a line never is.
    sample = data[:_SAMPLE]
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    best = from_bytes(sample, cp_isolation=list(_GUESSED)).best()
    return best.encoding if best else None


def read_text(path: Path, title: str) -> ParsedFile:
    """Return a text file."""
    text, guessed = decoded(path.read_bytes())
    return _whole("text", title, text, guessed)


def read_markdown(path: Path, title: str) -> ParsedFile:
    """Return a Markdown file: its title is that of its front matter, else its first heading."""
    text, guessed = decoded(path.read_bytes())
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    named = _TITLE.search(front.group(1)) if front else None
    heading = named or _HEADING.search(body)
    found = heading.group(1).strip().strip("\"'") if heading else ""
    return _whole("markdown", plain_markdown(found) or title, plain_markdown(body), guessed)


def _whole(kind: str, title: str, text: str, guessed: str | None) -> ParsedFile:
    if not text.strip():
        raise RefusedError("empty")
    return ParsedFile(
        "markdown" if kind == "markdown" else "text",
        title,
        iter([DocumentPart(title, text.strip())]),
        ("encoding",) if guessed else (),
        {"encoding": guessed} if guessed else {},
    )
