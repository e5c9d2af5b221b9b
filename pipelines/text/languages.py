"""Which language a text is written in: one of the two working languages, or another one."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipelines.base import Language

if TYPE_CHECKING:
    from opencc import OpenCC

# The inside of a character class: ideographs of the basic block, extension A, compatibility and
# the supplementary planes, and the two signs for zero and for a repetition.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"

_HAN_CHARACTER = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+(?:['’-][A-Za-z\u00c0-\u024f]+)*")
_HAN_PER_WORD = 2


def has_han(text: str) -> bool:
    """Return whether `text` holds at least one Chinese character."""
    return _HAN_CHARACTER.search(text) is not None


def changes_to_chinese(text: str, *before: str) -> bool:
    """Return whether `text` is Chinese, and nothing before it holds a Chinese character."""
    return detect_language(text) == "zh" and not any(has_han(one) for one in before)


def detect_language(text: str) -> Language:
    """Return `"zh"` when at least as many words of `text` are Chinese as are Latin, else `"en"`.

    Two Chinese characters count as one word, a run of Latin letters as one, so a Chinese sentence
    full of foreign product names stays Chinese and an English one that quotes a Chinese name stays
    English. Digits and punctuation do not count. Only these two languages are distinguished: any
    other text without Chinese characters, such as French, and text without letters, is `"en"`.
    """
    han = len(_HAN_CHARACTER.findall(text))
    if not han:
        return "en"
    return "zh" if han / _HAN_PER_WORD >= len(_LATIN_WORD.findall(text)) else "en"


# Other languages: by script, and in Latin letters by the small words that no text goes without.

OTHER = "other"
"""Stands for a language that is neither English nor Chinese and has no name here."""

_SCRIPTS = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "CYRILLIC": "ru",
    "GREEK": "el",
    "ARABIC": "ar",
    "HEBREW": "he",
    "THAI": "th",
    "DEVANAGARI": "hi",
    "LATIN": "",
    "CJK": "",
    "FULLWIDTH": "",
    "IDEOGRAPHIC": "",
}
"""Scripts by the first word of the names of their letters; what is not here is `OTHER`."""

_SAMPLE = 20_000
_SMALL_WORDS = re.compile(r"[^\W\d_]+")
_FEWEST_LETTERS = 4
_FEWEST_HITS = 3
_SHARE = 0.2
_KANA = 0.1


class _SmallWords(NamedTuple):
    english: frozenset[str]
    others: dict[str, frozenset[str]]


@cache
def _small_words() -> _SmallWords:
    path = Path(__file__).parent / "lexicons" / "languages.toml"
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    others = {code: frozenset(words.split(", ")) for code, words in found["other"].items()}
    return _SmallWords(frozenset(found["en"].split(", ")), others)


@cache
def small_words() -> frozenset[str]:
    """Return the small words, in lower case, of English and the other languages together."""
    known = _small_words()
    return known.english.union(*known.others.values())


@lru_cache(maxsize=4096)
def other_language(text: str) -> str | None:
    """Return the ISO 639-1 code of a language that is neither English nor Chinese, else None.

    None also where a text says too little to tell: a few words in Latin letters, a name, a number.
    Every language in Cyrillic letters is "ru", every one in Arabic letters "ar", and so on;
    `OTHER` where a script has no language here. Of Latin letters, three different small words of
    the language have to stand there (an accent counts as one), a fifth of all words have to be
    such words, and more of them than English ones. At most 20,000 characters are looked at.
    """
    text = text[:_SAMPLE]
    scripts = Counter(map(_script, filter(str.isalpha, text)))
    letters = scripts.total()
    kana, east = scripts["ja"], scripts["ja"] + scripts["CJK"]
    if kana >= _FEWEST_LETTERS and kana >= _KANA * east and east > letters / 2:
        return "ja"
    first, count = max(scripts.items(), key=lambda one: one[1], default=("", 0))
    if first == "LATIN":
        return None if detect_language(text) == "zh" else _in_latin(text)
    return (
        first if first not in ("", "CJK") and count >= max(_FEWEST_LETTERS, letters / 2) else None
    )


@lru_cache(maxsize=8192)
def _script(letter: str) -> str:
    first = unicodedata.name(letter, "").partition(" ")[0].partition("-")[0]
    if first in ("LATIN", "CJK"):
        return first
    return _SCRIPTS.get(first, OTHER)


def _in_latin(text: str) -> str | None:
    words = _SMALL_WORDS.findall(text)
    if not words:
        return None
    counts = Counter(word.casefold() for word in words)
    accents = any(word.islower() and not word.isascii() for word in words)
    known = _small_words()

    def hits(entries: frozenset[str]) -> int:
        return sum(counts[word] for word in entries & counts.keys())

    found = {code: hits(entries) for code, entries in known.others.items()}
    # Neighbouring languages share small words: the one with more different ones is meant.
    best = max(found, key=lambda code: (found[code], len(known.others[code] & counts.keys())))
    different = len(known.others[best] & counts.keys()) + accents
    enough = different >= _FEWEST_HITS and found[best] >= _SHARE * len(words)
    return best if enough and found[best] > 1.5 * hits(known.english) else None


@cache
def _converter() -> OpenCC:
    from opencc import OpenCC

    return OpenCC("t2s")


def simplified(text: str) -> str:
    """Return `text` in simplified Chinese characters (OpenCC), each at the offset where it was.

    "他出生於臺北" becomes "他出生于台北". A text without Chinese characters stays as it is.
    """
    if not has_han(text):
        return text
    # A lone surrogate is no character, and cannot be given to the library.
    converted = _converter().convert(text.encode("utf-8", "replace").decode())
    if len(converted) == len(text):
        return converted
    # A phrase that would change its length is converted character by character.
    parts = ((one, _converter().convert(one)) for one in text.encode("utf-8", "replace").decode())
    return "".join(new if len(new) == 1 else one for one, new in parts)


def unaccented(text: str) -> str:
    """Return the text without accents: "Gödel" is "Godel"."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))
