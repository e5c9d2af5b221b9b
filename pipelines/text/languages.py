"""Which of the two working languages a text is written in, by its script."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

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
    """Return whether `text` is Chinese, and nothing that it follows on holds a Chinese
    character.
    """
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
