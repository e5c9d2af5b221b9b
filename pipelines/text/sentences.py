"""Sentences of English, Chinese and mixed text, with exact offsets.

Rules only, no model: a stop ends a sentence unless its surroundings say otherwise (an abbreviation,
an initial, a decimal point, a list number, a small letter after it). A line break ends one unless
the line was merely wrapped.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

from pipelines.text.alignment import Span
from pipelines.text.chinese import word_boundaries, words
from pipelines.text.languages import HAN, has_han, simplified

_LINE_BREAKS = "\n\r\u2028\u2029\v\f"

_LATIN_STOPS = ".!?\u203c\u2047\u2048\u2049"
_HAN_STOPS = "。！？｡"
_STOPS = re.compile(rf"[{re.escape(_LATIN_STOPS)}…{_HAN_STOPS}]+")

_EMOJI = (
    "\u200d\u20e3\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"
    # Keycap digits and tag characters only ever follow one of the above.
    "\U000e0020-\U000e007f"
)
# Quotes, brackets, Markdown emphasis, emoji and marks of references such as [3], [1, 2] and
# 【Source 1】 that stick to the stop.
_CITED = r"\^?(?:[A-Za-z]{1,12}[ _:#.-]{0,2})?\d{1,3}"
_CLOSERS = re.compile(
    rf"(?:[\"'”’»›)\]}}」』）】》〉*_~`⁰¹²³⁴-⁹{_EMOJI}]"
    rf"|\[{_CITED}(?:\s?[,;–-]\s?\d{{1,3}})*\^?\]|【{_CITED}[^】\n]{{0,40}}】|<sup>\d{{1,3}}</sup>)*"
)
# An emoji that stands alone after the stop belongs to what was said before it.
_TRAILING_EMOJI = re.compile(rf"[ \t]+[{_EMOJI}]+(?=\s|$)")

_ABBREVIATIONS = words("en_sentences", "abbreviations")
_NUMBERED_ABBREVIATIONS = words("en_sentences", "numbered_abbreviations")
_MAY_END_ABBREVIATIONS = words("en_sentences", "may_end_abbreviations")
_TIME_ABBREVIATIONS = words("en_sentences", "time_abbreviations")
_CONTINUES_TIME = words("en_sentences", "continues_time")
_STARTERS = words("en_sentences", "starters")
_NAMES_WITH_STOP = words("en_sentences", "names_with_stop")

_BULLET = r"[-*+•‣◦▪●○–—·]|#{1,6}|>"
# A capital letter with a full stop is left out: it is more often an initial, "J. K. Rowling".
_NUMBERING = r"\(?(?:\d{1,3}|[a-z]|[A-Z](?=\))|[ivx]{1,5}|[IVX]{2,5})[.)](?!\d)"
_HAN_NUMBERING = r"(?:[一二三四五六七八九十]{1,3}|\d{1,3})[、．]|（[一二三四五六七八九十\d]{1,3}）"
# At the start of a line; it needs something after it on the same line.
_LIST_MARKER = re.compile(
    rf"[ \t\u3000]*(?:(?:(?:{_BULLET}|{_NUMBERING})[ \t]+|(?:{_HAN_NUMBERING})[ \t]*)"
    rf"(?=[^\s{_LINE_BREAKS}]))+"
)
# "2." or "b." alone in front of what it numbers, and the first of a list after a colon.
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})$")
_FIRST_ENUMERATOR = re.compile(r"\(?[1aAi]$")

# Chinese speech: 「“你好！”他说」 continues after the closing quote.
_SPEECH_FOLLOWS = re.compile(
    rf"[，、；：,;:的地]|[{HAN}]{{0,4}}?(?:说|道|问|答|喊|叫|嚷|回应|表示)"
)

_HAN_CHARACTER = re.compile(f"[{HAN}]")
_WORD = re.compile(r"[^\W\d_]+")
_BEFORE_TOKEN = frozenset("\"'“”‘’([{（《「*_/—–-")
# Looked for at the beginning of the white space only: a long stretch of it is read once.
_BREAK = re.compile(rf"(?<![ \t])[ \t]*(?:\r\n|[{_LINE_BREAKS}])\s*")
_ENDS_CLAUSE = tuple(".!?…。！？:：;；")
_WRAPPED_LINE = 60
# With fewer characters than this after a Chinese closing quote, the speaker may still follow.
_SPEECH_WINDOW = 6
_LOOKAHEAD = 120
_UNFINISHED_MARK = re.compile(r"[\[【]\^?(?:[A-Za-z]{1,12}[ _:#.-]{0,2})?[\d,;– -]{0,12}")
_OPENERS = "\"'“‘([{*_"


def split_sentences(text: str) -> list[Span]:
    """Return the sentences of `text` in order.

    Spans do not overlap; between them are only white space and the markers of list items
    (bullets, numbers, Markdown heading signs), so spans and gaps together give `text` back.
    A last sentence without a stop is a span like any other. While text is still being written,
    every span but the last is final: more text never changes it.
    """
    spans: list[Span] = []
    for first, last in _lines(text):
        marker = _LIST_MARKER.match(text, first, last)
        start = marker.end() if marker else first
        for end in [*_ends(text, start, last), last]:
            while start < end and text[start].isspace():
                start += 1
            stop = end
            while stop > start and text[stop - 1].isspace():
                stop -= 1
            if start < stop:
                spans.append(Span.of(text, start, stop))
            start = end
    return spans


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield stretches of text that no sentence crosses: paragraphs, list items, headings."""
    start = line = 0
    heading = text.lstrip().startswith("#")
    for found in _BREAK.finditer(text):
        # Of a paragraph only the last line is looked at: it may have as many as a book.
        if not heading and _is_wrapped(text, line, found):
            line = found.start() + max(found.group().rfind(mark) for mark in _LINE_BREAKS) + 1
            continue
        yield start, found.start()
        start = line = found.end()
        heading = text.startswith("#", start)
    yield start, len(text)


def _is_wrapped(text: str, start: int, found: re.Match[str]) -> bool:
    """Return whether the break at the end of the line from `start` was put in for width only."""
    breaks = found.group().replace("\r\n", "\n")
    if sum(character in _LINE_BREAKS for character in breaks) > 1:
        return False
    line = text[start : found.start()].rstrip()
    following = text[found.end() : found.end() + 1]
    if not line or not following or _LIST_MARKER.match(text, found.end()):
        return False
    if line.endswith(_ENDS_CLAUSE):
        return False
    if _HAN_CHARACTER.match(line[-1]) or _HAN_CHARACTER.match(following):
        return False
    return following.islower() or (len(line) >= _WRAPPED_LINE and following.isalpha())


def _ends(text: str, start: int, last: int) -> Iterator[int]:
    """Yield where sentences end inside `text[start:last]`, the very last one left out."""
    position = start
    while stop := _STOPS.search(text, position, last):
        end = position = _closed_at(text, start, stop.end(), last)
        if end >= last:
            return
        if _is_end(text, start, stop, end, last):
            emoji = _TRAILING_EMOJI.match(text, end, last)
            position = start = emoji.end() if emoji else end
            yield position


def _closed_at(text: str, start: int, stop: int, last: int) -> int:
    """Return the end of the closing marks after a stop that ends at `stop`."""
    closers = _CLOSERS.match(text, stop, last)
    end = closers.end() if closers else stop
    quote = text.find('"', stop, end)
    # A straight quote closes only what one before it opened.
    if quote >= 0 and text.count('"', start, stop) % 2 == 0:
        return quote
    return end


def _is_end(text: str, start: int, stop: re.Match[str], end: int, last: int) -> bool:
    """Return whether the stop, with closing quotes and brackets to `end`, ends a sentence."""
    marks = stop.group()
    closed = end > stop.end()
    spaced = text[end].isspace()
    following = text[end : min(last, end + _LOOKAHEAD)].strip()
    if not following or _UNFINISHED_MARK.fullmatch(text, end, last):
        return False
    if marks[-1] not in _LATIN_STOPS + "…":
        return _ends_chinese(following, closed)
    before_han = _HAN_CHARACTER.match(following) or following[0] in "“‘「『《（"
    if set(marks) == {"…"} and before_han:
        return False
    if not spaced:
        after_han = _HAN_CHARACTER.match(text, stop.start() - 1) if stop.start() else None
        return bool(before_han) and (marks[-1] in "!?" or after_han is not None)
    if not following.lstrip(_OPENERS):
        return False
    if set(marks) <= {".", "…"}:
        if len(marks) > 1 or marks == "…":
            return not _opens_small(following)
        return _period_ends(text, start, stop.start(), following)
    if f"{_last_token(text, start, stop.start())}{marks}" in _NAMES_WITH_STOP:
        return _starter(following) is True
    return not (closed and _opens_small(following))


def _ends_chinese(following: str, closed: bool) -> bool:
    if not closed:
        return following[0] not in "，、；：,;:"
    if len(following) < _SPEECH_WINDOW and not _STOPS.search(following):
        return False
    return _SPEECH_FOLLOWS.match(following) is None


def _period_ends(text: str, start: int, stop: int, following: str) -> bool:
    """Return whether one full stop before white space ends the sentence `text[start:stop]`."""
    word = _last_token(text, start, stop)
    lowered, begin = word.lower(), _beginning(text, start, stop)
    lead = stop - len(word)
    while lead > begin and text[lead - 1].isspace():
        lead -= 1
    if _ENUMERATOR.match(word) and lead <= begin:
        return False
    if _FIRST_ENUMERATOR.match(word) and text.endswith(":", begin, lead):
        return False
    if lowered in _NUMBERED_ABBREVIATIONS and following[0].isdigit():
        return False
    starter = _starter(following)
    if len(word) > 1 and word.isalpha() and word.isupper():
        # A state code or an acronym, not the abbreviation it may be spelt like: CA, MT, REP.
        return not _opens_small(following)
    if lowered in _ABBREVIATIONS:
        return False
    if len(word) == 1 and word.isalpha() and word.isupper():
        return starter is True
    if lowered in _TIME_ABBREVIATIONS:
        if not following[0].isupper():
            return not following[0].islower() and not following[0].isdigit()
        opening = _WORD.match(following)
        if opening is None or opening.end() == len(following):
            return False
        return opening.group() not in _CONTINUES_TIME
    if lowered in _MAY_END_ABBREVIATIONS or re.fullmatch(r"(?:[a-z]\.)+[a-z]", lowered):
        return starter is True
    if _opens_small(following):
        # In a text without capitals, sentences begin with small letters too.
        return _opens_small(text, begin, stop) and len(word) > 1
    return True


def _beginning(text: str, start: int, end: int) -> int:
    """Return where the first character of `text[start:end]` but white space is, or `end`."""
    while start < end and text[start].isspace():
        start += 1
    return start


def _last_token(text: str, start: int, end: int) -> str:
    """Return the last word of `text[start:end]`, read from its end: the rest may be long."""
    at = end
    while at > start and not text[at - 1].isspace() and text[at - 1] not in _BEFORE_TOKEN:
        at -= 1
    return text[at:end]


def _opens_small(text: str, start: int = 0, end: int | None = None) -> bool:
    """Return whether `text[start:end]` begins in small letters; "iPhone" counts as capitals."""
    end = len(text) if end is None else end
    while start < end and text[start] in _OPENERS:
        start += 1
    opening = _WORD.match(text, start, end)
    if opening is None:
        return False
    return opening.group()[0].islower() and not any(c.isupper() for c in opening.group()[1:])


def _starter(following: str) -> bool | None:
    """Return whether a usual sentence opener follows; `None` while it is incomplete."""
    words = following.lstrip(_OPENERS)
    opening = _WORD.match(words)
    if opening is None:
        return False
    rest = words[opening.end() :]
    if not rest:
        return None
    if len(opening.group()) == 1 and rest.startswith("."):
        return False
    return opening.group() in _STARTERS


# How alike two sequences are, computed fast enough for long texts.
#
# Both functions keep a row of the usual table as the bits of one number and compute the next one
# by a few operations on it: two texts of 8,000 characters take a fraction of a second instead of
# many, during which nothing else in the process would go on. Source: Myers (1999), Hyyrö (2003,
# 2004).


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the Levenshtein distance: items inserted, left out or replaced."""
    if not first:
        return len(second)
    places, every = _places(first), (1 << len(first)) - 1
    last = 1 << (len(first) - 1)
    # Where the table rises and falls by 1 from one row to the next, at the column so far.
    rises, falls, distance = every, 0, len(first)
    for item in second:
        same = places.get(item, 0)
        diagonal = (((same & rises) + rises) ^ rises) | same | falls
        # The same from this column to the next.
        more, less = falls | (every & ~(diagonal | rises)), diagonal & rises
        distance += bool(more & last) - bool(less & last)
        more, less = more << 1 | 1, less << 1
        rises, falls = every & (less | ~(diagonal | more)), every & more & diagonal
    return distance


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence."""
    places, every = _places(first), (1 << len(first)) - 1
    # A bit is 0 where the table rises by 1.
    flat = every
    for item in second:
        same = flat & places.get(item, 0)
        flat = every & ((flat + same) | (flat - same))
    return len(first) - flat.bit_count()


def _places(items: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return where each item stands, as bits: the first place is the lowest."""
    found: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        found[item] = found.get(item, 0) | 1 << place
    return found


# What readers of the csv module read from.


def csv_source(text: str) -> io.StringIO:
    """Return the text of a CSV file, for a reader of the csv module, with cells of any length."""
    # The module's own limit on a cell, 128 KiB, is less than a long article. It holds for the whole
    # process, so that it has to be the same before and after any other file is read.
    csv.field_size_limit(2**31 - 1)
    return io.StringIO(text, newline="")


# Wordings compared: equal texts, repeated questions.

# Marks inside numbers such as 3.14 and signs such as those of C++ and $5 make a difference.
_IGNORED = re.compile(r"(?!(?<=\d)[.:/-](?=\d))[^\w+#%$€£¥°]|_")

_ARTICLES = frozenset({"a", "an", "the"})
_CHARACTER = rf"(?![{HAN}])[^\W_]"
_WHOLE_WORD = re.compile(rf"(?:{_CHARACTER})+(?:[.'’](?:{_CHARACTER})+)*")
_POSSESSIVE = re.compile(r"['’]s$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_ACRONYM_LENGTH = 3


def text_key(text: str) -> str:
    """Return `text` as it is compared with others: two texts with the same key say the same words.

    Case, width, white space, punctuation and traditional or simplified characters make no
    difference, except inside numbers; signs such as % and + do. Empty for a text without letters,
    digits and such signs.
    """
    return _IGNORED.sub("", unicodedata.normalize("NFKC", simplified(text)).casefold())


def repeats_question(entity_text: str, question: str) -> bool:
    """Return True when `entity_text` only repeats the question.

    The question contains its words one after another, compared without articles, case and
    punctuation, so part of a name is enough: "Clinton" when the question says "Bill Clinton". A
    longer name than the question's is new information. Chinese is compared as a substring that
    begins and ends at word boundaries of the question. An entity without letters and digits repeats
    nothing.
    """
    if has_han(entity_text):
        asked_in_chinese = unicodedata.normalize("NFKC", simplified(question))
        return _repeats_chinese(_letters(simplified(entity_text)), asked_in_chinese)
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
    found = (_POSSESSIVE.sub("", word) for word in _WHOLE_WORD.findall(normal))
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
