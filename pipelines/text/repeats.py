"""Whether an entity of an answer says no more than the question did."""

from __future__ import annotations

import re
import unicodedata

from pipelines.text.languages import HAN, has_han
from pipelines.text.segmentation import word_boundaries

__all__ = ["repeats_question"]

_ARTICLES = frozenset({"a", "an", "the"})
_CHARACTER = rf"(?![{HAN}])[^\W_]"
_WORD = re.compile(rf"(?:{_CHARACTER})+(?:[.'’](?:{_CHARACTER})+)*")
_POSSESSIVE = re.compile(r"['’]s$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_ACRONYM_LENGTH = 3


def repeats_question(entity_text: str, question: str) -> bool:
    """True when `entity_text` only repeats the question.

    Its words, without articles, case and punctuation, stand in the question one after another, so
    part of a name is enough: "Clinton" when the question says "Bill Clinton". A longer name than
    the question's is new information. Chinese is compared as a substring that begins and ends at
    word boundaries of the question. An entity without letters and digits repeats nothing.
    """
    if has_han(entity_text):
        return _repeats_chinese(_letters(entity_text), unicodedata.normalize("NFKC", question))
    entity, asked = _words(entity_text), _words(question)
    careless = question.islower()
    width = len(entity)
    return width > 0 and any(
        all(
            _same(said, word, careless)
            for said, word in zip(entity, asked[i : i + width], strict=True)
        )
        for i in range(len(asked) - width + 1)
    )


def _words(text: str) -> list[str]:
    """Words for comparison, without articles, possessive endings and inner dots."""
    normal = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    found = [_undotted(_POSSESSIVE.sub("", word)) for word in _WORD.findall(normal)]
    return [word for word in found if word.casefold() not in _ARTICLES]


def _undotted(word: str) -> str:
    return word if any(c.isdigit() for c in word) else re.sub(r"[.'’]", "", word)


def _same(said: str, word: str, careless: bool) -> bool:
    """Whether two words are one; "US" is not "us", unless the question has no capitals."""
    acronym = 1 < len(said) <= _ACRONYM_LENGTH and said.isupper() and said.isalpha()
    return said.casefold() == word.casefold() and (careless or not acronym or not word.islower())


def _letters(text: str) -> str:
    """`text` without the punctuation, title marks and spaces at its two ends."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", unicodedata.normalize("NFKC", text))


def _repeats_chinese(entity: str, question: str) -> bool:
    folded, wanted = question.casefold(), entity.casefold()
    if not wanted or len(folded) != len(question) or wanted not in folded:
        return False
    edges = word_boundaries(question)
    starts = (found.start() for found in re.finditer(f"(?={re.escape(wanted)})", folded))
    return any(start in edges and start + len(wanted) in edges for start in starts)
