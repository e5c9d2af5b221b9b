"""Texts that pairs are made from, as sentences whose subject is named where it was a pronoun."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from pipelines.text import split_sentences
from pipelines.types import Frozen, Language

__all__ = [
    "LIBRARY",
    "Text",
    "article_body",
    "library_texts",
    "statements",
    "text_of",
]

_SAMPLES = Path(__file__).parents[2] / "sample_data"

LIBRARY = _SAMPLES / "library"
"""The sample articles, one folder a language."""

_STATEMENTS = _SAMPLES / "statements.csv"
"""Statements about some of these articles, true ones, wrong ones and others, by hand."""

_FEWEST_WORDS, _MOST_WORDS = 5, 45


class Text(Frozen):
    """A text about one thing; `name` tells it from all others.

    Texts of one `group` are about the same thing: their pairs are never parted.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    group: str


def text_of(name: str, title: str, text: str, group: str = "") -> Text:
    """`text` cut into sentences; what is no whole sentence is left out."""
    found = (" ".join(span.text.split()) for span in split_sentences(text))
    sentences = tuple(filter(_is_sentence, found))
    return Text(name=name, title=title, sentences=sentences, group=group or name)


def library_texts(folder: Path) -> Iterator[Text]:
    """Every English article of a library folder (Markdown under a front matter with a title)."""
    for path in sorted(folder.glob("*.md")):
        head = path.read_text(encoding="utf-8").split("---", 2)[1]
        title = re.search(r"^title:\s*(.+)$", head, re.M)
        yield text_of(path.stem, title[1].strip() if title else "", article_body(path))


def article_body(path: Path) -> str:
    """The text of an article of a library folder."""
    return path.read_text(encoding="utf-8").split("---", 2)[2].strip()


def statements(language: Language) -> list[dict[str, str]]:
    """The statements in `language`, each with its article, label and kind."""
    with _STATEMENTS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["language"] == language]


def _is_sentence(sentence: str) -> bool:
    words = sentence.split()
    whole = sentence[-1:] in ".!?" and (sentence[0].isupper() or sentence[0].isdigit())
    return whole and _FEWEST_WORDS <= len(words) <= _MOST_WORDS
