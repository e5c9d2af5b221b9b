"""Wordings compared and cleaned: equal texts, repeated questions, thinking blocks."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from pipelines.text.languages import HAN, has_han
from pipelines.text.segmentation import word_boundaries

# Marks inside numbers such as 3.14 and signs such as those of C++ and $5 make a difference.
_IGNORED = re.compile(r"(?!(?<=\d)[.:/-](?=\d))[^\w+#%$€£¥°]|_")

_ARTICLES = frozenset({"a", "an", "the"})
_CHARACTER = rf"(?![{HAN}])[^\W_]"
_WORD = re.compile(rf"(?:{_CHARACTER})+(?:[.'’](?:{_CHARACTER})+)*")
_POSSESSIVE = re.compile(r"['’]s$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_ACRONYM_LENGTH = 3


def text_key(text: str) -> str:
    """Return `text` as it is compared with others: two texts with the same key say the same words.

    Case, width, white space and punctuation make no difference, except inside numbers; signs such
    as % and + do. Empty for a text without letters, digits and such signs.
    """
    return _IGNORED.sub("", unicodedata.normalize("NFKC", text).casefold())


def repeats_question(entity_text: str, question: str) -> bool:
    """Return True when `entity_text` only repeats the question.

    The question contains its words one after another, compared without articles, case and
    punctuation, so part of a name is enough: "Clinton" when the question says "Bill Clinton". A
    longer name than the question's is new information. Chinese is compared as a substring that
    begins and ends at word boundaries of the question. An entity without letters and digits repeats
    nothing.
    """
    if has_han(entity_text):
        return _repeats_chinese(_letters(entity_text), unicodedata.normalize("NFKC", question))
    entity, asked = _words(entity_text), _asked(question)
    careless = question.islower()
    width = len(entity)
    return width > 0 and any(
        all(
            _same(said, word, careless)
            for said, word in zip(entity, asked[i : i + width], strict=True)
        )
        for i in range(len(asked) - width + 1)
    )


@lru_cache(maxsize=16)
def _asked(question: str) -> list[str]:
    return _words(question)


def _words(text: str) -> list[str]:
    """Return words for comparison, without articles, possessive endings and inner dots."""
    normal = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    found = (_POSSESSIVE.sub("", word) for word in _WORD.findall(normal))
    plain = (w if any(c.isdigit() for c in w) else re.sub(r"[.'’]", "", w) for w in found)
    return [word for word in plain if word.casefold() not in _ARTICLES]


def _same(said: str, word: str, careless: bool) -> bool:
    """Return whether two words are one; "US" is not "us", unless the question has no capitals."""
    acronym = 1 < len(said) <= _ACRONYM_LENGTH and said.isupper() and said.isalpha()
    return said.casefold() == word.casefold() and (careless or not acronym or not word.islower())


def _letters(text: str) -> str:
    """Return `text` without the punctuation, title marks and spaces at its two ends."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=16)
def _edges(question: str) -> frozenset[int]:
    """Return the boundaries of its words, which every entity of a text is held against."""
    return frozenset(word_boundaries(question))


def _repeats_chinese(entity: str, question: str) -> bool:
    folded, wanted = question.casefold(), entity.casefold()
    if not wanted or len(folded) != len(question) or wanted not in folded:
        return False
    edges = _edges(question)
    starts = (found.start() for found in re.finditer(f"(?={re.escape(wanted)})", folded))
    return any(start in edges and start + len(wanted) in edges for start in starts)


_NAMES = "(think|thinking|thought)"
_BLOCK = re.compile(rf"<{_NAMES}>.*?(?:</\1>|\Z)", re.S | re.I)
_NEVER_OPENED = re.compile(rf"\A.*</{_NAMES}>", re.S | re.I)
_OPENING = re.compile(f"<{_NAMES}>", re.I)


def without_thinking(text: str) -> str:
    """Return `text` without its thinking blocks, whatever they are called.

    A block that was never closed reaches to the end, one that was never opened to the beginning.
    """
    return _NEVER_OPENED.sub("", _BLOCK.sub("", text))


def is_thinking(text: str) -> bool:
    """Return whether `text` holds the beginning of a thinking block."""
    return _OPENING.search(text) is not None
