"""The encoding of a text that does not name it."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 2**16
"""Bytes that show whether every second one is zero."""

_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_CHINESE = {
    # The encoding that decodes, the one with the common characters alone, and the first bytes of
    # their signs and of those characters that are sorted by how they are read or written.
    "gb18030": ("gb2312", ((0xA1, 0xA9), (0xB0, 0xD7))),
    "big5": ("big5", ((0xA1, 0xA3), (0xA4, 0xC6))),
}
_EVERYWHERE = frozenset(
    "的一是了不在人有我他这这個个上们们們來来到时時大地为為子中你说說生国國年着著就那和要她出也得里裡后後自以会會"
    "家可下而过過天去能对對小多然于於心学學之都好看起发發当當没沒成只如事把还還用第样樣道想作种種开開"
    "什么麼吗嗎谁誰哪何问問题題答案是否正确確错誤误文本"
)
"""Characters that stand in most Chinese texts, in both scripts; wrong bytes rarely make them."""

_LEAST_COMMON = 0.5
"""The least share of common characters in real Chinese."""

_MOST_HANGUL = 0.95
_LONG_ENOUGH = 12
"""Korean bytes are common Chinese characters too; in so many of them Chinese has others."""

_LETTERS = re.compile(r"[^\W\d_]")
_MOST_ACCENTED = 0.4
"""No language of Western Europe has more accented letters among its letters."""

# Signs that stand in no word of theirs: bytes of Mac Roman or of an encoding of Eastern Europe.
_SIGN_IN_WORD = re.compile("[^\\W\\d_][¡¤¦§¨©¬®¯°±¶¸»¼½¾¿×÷†‡‰‹›„ˆ˜•]+[^\\W\\d_]")


def marked_encoding(data: bytes) -> str | None:
    """Return the encoding that the first bytes name; None where they name none."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def unmarked_utf_16(head: bytes) -> str | None:
    """Return the kind of UTF-16 that has no mark; of Latin letters every second byte is zero."""
    zeros = {"utf-16-le": head[1::2].count(0), "utf-16-be": head[::2].count(0)}
    name = max(zeros, key=zeros.__getitem__)
    return name if min(zeros.values()) == 0 and zeros[name] > len(head) // 5 else None


def decoded_table(data: bytes) -> tuple[str, str] | None:
    """Return the text of `data` and the name of its encoding; None where none of them fits.

    UTF-8, UTF-16 and UTF-32 come first. GB18030 and Big5 are told by their common characters, of
    which the other one's bytes make rare ones, and Windows-1252 by accents that are rare among
    plain letters. No other guess is made: a wrong one would be silent.
    """
    marked = marked_encoding(data)
    if marked is None and b"\x00" in data[:_HEAD]:
        marked = unmarked_utf_16(data[:_HEAD])
    encoding = marked or "utf-8"
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError:
        if marked:
            return None
    if (found := chinese_encoding(data)) is not None:
        return data.decode(found), found
    return None if _is_korean(data) else _western(data)


def chinese_encoding(data: bytes) -> str | None:
    """Return "gb18030" or "big5" where the text in it has the characters of Chinese."""
    shares = {name: _chinese_share(data, name) for name in _CHINESE}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= _LEAST_COMMON and not _is_korean(data) else None


def _is_korean(data: bytes) -> bool:
    try:
        foreign = "".join(_FOREIGN.findall(data.decode("euc_kr")))
    except UnicodeDecodeError:
        return False
    hangul = sum("\uac00" <= one <= "\ud7a3" for one in foreign)
    return len(foreign) >= _LONG_ENOUGH and hangul >= _MOST_HANGUL * len(foreign)


def _chinese_share(data: bytes, encoding: str) -> float:
    """Return the share of foreign characters that are common Chinese in the company of others, with
    those that stand everywhere counted twice.
    """
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return 0.0
    runs = _FOREIGN.findall(text)
    total = sum(map(len, runs))
    # An accent and the plain letter behind it can make a character of Big5, which then stands
    # alone; the characters of GB 2312 hold no plain letter.
    company = sum(len(run) for run in runs if len(run) > 1 or encoding != "big5")
    if not total or company * 2 < total:
        return 0.0
    characters = "".join(runs)
    common = sum(_is_common(one, encoding) for one in characters)
    return (common + sum(one in _EVERYWHERE for one in characters)) / total


def _is_common(character: str, encoding: str) -> bool:
    narrow, ranges = _CHINESE[encoding]
    try:
        first = character.encode(narrow)[0]
    except UnicodeEncodeError:
        return False
    return any(low <= first <= high for low, high in ranges)


def _western(data: bytes) -> tuple[str, str] | None:
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    if _SIGN_IN_WORD.search(text):
        return None
    letters = _LETTERS.findall(text)
    accented = sum(not one.isascii() for one in letters)
    return None if accented > _MOST_ACCENTED * len(letters) else (text, "windows-1252")
