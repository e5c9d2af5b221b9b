"""Texts as they are compared by exact match and F1."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache

from pipelines.text.languages import HAN

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WORDS = re.compile(rf"[{HAN}]|[^\s{HAN}]+")


def normalised_words(text: str) -> list[str]:
    """Return the words of `text` by the normalisation of SQuAD's evaluation; Chinese as characters.

    Small letters; no punctuation, which is taken out and not replaced; no English articles. On
    ASCII these are the words of SQuAD's own script (Rajpurkar and others 2016). Beyond ASCII,
    typographic punctuation goes too and full-width forms become ordinary ones, as in the
    evaluation of MLQA (Lewis and others 2020).
    """
    return list(_normalised(text))


# Several metrics compare the same texts.
@lru_cache(maxsize=4096)
def _normalised(text: str) -> tuple[str, ...]:
    lowered = unicodedata.normalize("NFKC", text).lower()
    bare = "".join(one for one in lowered if not _is_punctuation(one))
    return tuple(_WORDS.findall(_ARTICLES.sub(" ", bare)))


@lru_cache(maxsize=4096)
def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def contains_words(text: list[str], words: list[str]) -> bool:
    """Return whether `words`, one at least, follow each other somewhere in `text`."""
    size = len(words)
    return bool(words) and any(text[at : at + size] == words for at in range(len(text) - size + 1))
