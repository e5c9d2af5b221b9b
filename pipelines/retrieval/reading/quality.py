"""Whether what was read is text: unreadable characters, noise, letters, and the language."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from charset_normalizer.md import mess_ratio

from pipelines.text.languages import HAN, detect_language, other_language, simplified, small_words

MOST_UNREADABLE = 0.3
"""The share of visible characters that cannot be read from which a PDF file is refused."""

SOME_UNREADABLE = 0.02
"""The share from which a document has a remark."""

FEW_LETTERS = 0.5
"""The share of letters among visible characters below which a document has a remark."""

SAMPLE = 200_000
"""Characters at the beginning of a document that are looked at."""

_CHUNK = 1_000
_SHORTEST = 40
_SPACES = re.compile(r"\s+")
# What programs leave of a character that a font does not name: (cid:71), /G12, /uni0041, /gid7.
_GLYPHS = re.compile(
    r"(?:\(cid:\d+\)\s*){3,}|(?:/uni[0-9A-F]{4}\s*){3,}|/([A-Za-z]{1,5}[_.]?)\d{1,5}(?:\s*/\1\d{1,5}){4,}"
)
_HAN = re.compile(f"[{HAN}]")
_FOREIGN = frozenset({"Cc", "Co", "Cn", "Cs"})
_LATIN = re.compile(r"(?<![^\W\d_])[a-zà-ÿ]{2,}(?![^\W\d_])")
_VOWEL = re.compile("[aeiouyà-ÿ]")

# The disorder that charset-normalizer measures. No stretch of the bundled articles has more than
# 0.01, a line of mathematics 0.75, and shifted letters 1.7.
_MOST_MESS = 1.0
# Of the bundled Chinese articles 99 % of the characters (in each stretch 96 % or more) are among
# the 3,755 common ones of GB 2312; of characters drawn at random, made simplified, 26 % are.
_FEWEST_COMMON = 0.6
_FEWEST_HAN = 20
# Of the words of the bundled English articles 0.2 % have no vowel, and 42 % are small words.
_FEWEST_WORDS = 30
_MOST_WITHOUT_VOWEL = 0.4
_FEWEST_SMALL = 0.03
_READABLE_SMALL = 0.1


class ReadingCheck(NamedTuple):
    """What a document's text looks like. Shares are of visible characters, in [0, 1].

    `language` is "en", "zh" or the code of another language, by `other_language`.
    """

    letters: float
    unreadable: float
    language: str


def reads(text: str) -> bool:
    """Return whether a text, however short, has common Chinese characters or small words."""
    han = _HAN.findall(text)
    if len(han) * 2 > len(text):
        return sum(map(_is_common, simplified("".join(han)))) >= _FEWEST_COMMON * len(han)
    words = re.findall(r"[^\W\d_]+", text.casefold())
    return sum(word in small_words() for word in words) > _READABLE_SMALL * len(words)


def check_text(text: str) -> ReadingCheck:
    """Return what there is to say of a document's text, by its first 200,000 characters."""
    text = text[:SAMPLE]
    letters = sum(map(str.isalpha, text)) / max(1, visible_length(text))
    return ReadingCheck(
        letters, unreadable_share(text), other_language(text) or detect_language(text)
    )


def visible_length(text: str) -> int:
    """Return how many characters of a text are no white space."""
    return len(_SPACES.sub("", text))


def unreadable_share(text: str) -> float:
    """Return the share of visible characters that no reader can read, or that read as noise.

    Unreadable are replacement and control characters, private and unassigned ones, and names of
    glyphs. A stretch of 1,000 characters is noise as a whole where its letters are mixed as in no
    language, its Chinese characters are none that are in use, or its words have no vowels.
    """
    visible = noise = 0
    for start in range(0, len(text[:SAMPLE]), _CHUNK):
        chunk = text[start : start + _CHUNK]
        count = visible_length(chunk)
        visible += count
        noise += count if _is_noise(chunk) else _unreadable(chunk)
    return noise / visible if visible else 0.0


def _unreadable(text: str) -> int:
    named = sum(visible_length(run[0]) for run in _GLYPHS.finditer(text))
    return named + sum(
        one == "\ufffd" or (not one.isspace() and unicodedata.category(one) in _FOREIGN)
        for one in _GLYPHS.sub("", text)
    )


def _is_noise(text: str) -> bool:
    if len(text) < _SHORTEST:
        return False
    han = _HAN.findall(text)
    if len(han) >= _FEWEST_HAN and sum(map(_is_common, simplified("".join(han)))) < (
        _FEWEST_COMMON * len(han)
    ):
        return True
    words = _LATIN.findall(text.casefold())
    if len(words) >= _FEWEST_WORDS:
        small = small_words()
        bare = sum(_VOWEL.search(word) is None for word in words)
        known = sum(word in small for word in words)
        if bare > _MOST_WITHOUT_VOWEL * len(words) and known < _FEWEST_SMALL * len(words):
            return True
    return mess_ratio(text, maximum_threshold=1.0) > _MOST_MESS


def _is_common(character: str) -> bool:
    """Return whether it is one of the common characters of GB 2312, its first level."""
    try:
        return character.encode("gb2312")[0] <= 0xD7
    except UnicodeEncodeError:
        return False
