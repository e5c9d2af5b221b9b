"""Lists as models write them: JSON, marked lines, bare lines, or one line of short items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from operator import eq
from typing import Any

from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.parsing import (
    embedded_json,
    is_citation,
    is_nothing,
    is_refusal,
    load_json,
    visible,
)
from pipelines.models.base import Option, parse_choice
from pipelines.retrieval.indexes import content_terms
from pipelines.text import split_sentences, text_key
from pipelines.text.languages import HAN


def parse_list(text: str, *, limit: int | None = None) -> list[str]:
    """Return the items of a list in the reply, at most `limit`; [] when there is none.

    Reads JSON, numbered, bulleted and quoted lists and bare lines, English and Chinese, and one
    line of short items between commas or semicolons. Headings, introductions, closing remarks,
    blanks, "None" and repetitions (by letters and digits alone) are left out, and so is the whole
    of a refusal.
    """
    text = visible(text)
    if not text or is_nothing(text) or is_refusal(text):
        return []
    found = _json_items(text)
    if found is None:
        found = _line_items(text)
    items: dict[str, str] = {}
    for raw in found:
        item = visible(_STRONG.sub(r"\2", raw).strip().rstrip(",;，；、").rstrip())
        key = text_key(item)
        if key and not is_nothing(item) and not is_refusal(item):
            items.setdefault(key, item)
    return list(items.values())[:limit]


_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_BEFORE_JSON = re.compile(r"(?:\A|[\n:：]|```|```json)\s*\Z")
_CUT_OFF = re.compile(
    r"\A(?:[^\[{]{0,200}[:：\n])?\s*(?:\{\s*\"[^\"]*\"\s*:\s*)?\[\s*(?=[\"\[{])(.*)\Z", re.S
)
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"(?!\s*:)")


def _json_items(text: str) -> list[str] | None:
    """Return the items of a JSON reply; None when the reply is no JSON."""
    is_json, value = load_json(text)
    if is_json:
        return _items_of(value)
    for before, value in embedded_json(text):
        if not is_citation(value) and _BEFORE_JSON.search(before):
            return _items_of(value)
    cut_off = _CUT_OFF.match(text)
    if cut_off is None:
        return None
    # The reply ended before its list did: what was finished counts.
    loaded = [load_json(string) for string in _STRING.findall(cut_off[1])]
    return [value for is_json, value in loaded if is_json]


def _items_of(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for element in value for text in _item(element)]
    if not isinstance(value, dict):
        return _item(value)
    lists = [part for part in value.values() if isinstance(part, list)]
    if len(lists) == 1:
        return _items_of(lists[0])
    numbered = all(re.search(r"\d\Z", key) for key in value)
    return [text for part in value.values() for text in _item(part)] if numbered else []


def _item(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [part for part in value.values() if isinstance(part, str)][:1]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [str(value)]
    return []


_HAN_NUMBER = "[一二三四五六七八九十]"
_MARK = re.compile(
    # Nothing of the white space is given back: a mark does not begin with any.
    r"(?P<indent>[\s>]*+)(?:#{1,6}\s++)?(?P<bold>\*\*|__)?\s*+(?:"
    r"[-*+•·‣▪●○◦–—]\s+(?:\[[ xX]?\]\s*)?|[•·●]"
    rf"|[(（\[【]\s*(?:\d{{1,2}}|{_HAN_NUMBER}{{1,3}}|[a-hA-H]|[ivx]{{1,4}})\s*[)）\]】][.、:：]?"
    r"|\d{1,2}\s*(?:[)）、]|[.．:：](?!\d))"
    r"|(?:[a-hA-H]|[ivx]{1,4})[)）]"
    r"|[①-⑳]"
    rf"|{_HAN_NUMBER}{{1,3}}[、.．:：]"
    rf"|第(?:{_HAN_NUMBER}{{1,3}}|\d{{1,2}})[个条项点种句]?[,，、:：]"
    r"|(?:question|query|paraphrase|rephrasing|version|item|concept|q|问题|改写|问法|表述)"
    r"\s*(?:\d{1,2}|[一二三四五六七八九十])\s*[.:：)）]"
    r"|(?:first|second|third|fourth|fifth|sixth|seventh|eighth)(?:ly)?:"
    r")\s*(?P<item>.*?)\s*\Z",
    re.I,
)
_FENCE_OR_RULE = re.compile(r"\s*(?:`{3,}.*|~{3,}.*|[-*_=]{3,})\s*\Z")
_CLOSED = (".", "?", "!", "。", "？", "！", ":", "：", "”", '"', "」")


def _line_items(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not _FENCE_OR_RULE.match(line)]
    marked = [_MARK.match(line) for line in lines]
    if not any(marked):
        return _bare_items([line.strip() for line in lines if line.strip()])
    only = [line for line, mark in zip(lines, marked, strict=True) if mark]
    return (len(only) == 1 and _in_sequence(only[0])) or _marked_items(lines, marked)


def _marked_items(lines: Sequence[str], marked: Sequence[re.Match[str] | None]) -> list[str]:
    """Return the items of the outer list; the inner one where the outer holds headings only."""
    top = next(len(mark["indent"]) for mark in marked if mark)
    items: list[str] = []
    under_heading = False
    for line, mark in zip(lines, marked, strict=True):
        if mark is None:
            words = line.strip()
            inside = len(line) - len(line.lstrip()) > top
            if items and words and (not items[-1] or (inside and not _ends(items[-1], words))):
                items[-1] = f"{items[-1]} {words}".strip()
            continue
        inner = len(mark["indent"]) >= top + 2
        if inner and not under_heading:
            continue
        item = _without_odd_mark(mark["item"], mark["bold"])
        heading = item.rstrip("*_ ").endswith((":", "："))
        if not inner:
            under_heading = heading
        if not heading:
            items.append(item)
    return items


def _without_odd_mark(item: str, bold: str | None) -> str:
    # In "**1. Who?**" and "**1.** Who?" the second half of the emphasis is left behind.
    return item.replace(bold, "", 1).strip() if bold and item.count(bold) % 2 else item


def _ends(item: str, following: str) -> bool:
    return item.endswith(_CLOSED) or bool(re.match(r"[(（]|[\w ]{1,20}[:：]", following))


_BREAK = r"(?:^|(?<=[\s,;.?!，；。？！、]))"


def _in_sequence(line: str) -> list[str]:
    """Return the items of "1. one 2. two" or "①one②two" on one line; [] when it is no such line."""
    for numbers in (range(1, 21), "①②③④⑤⑥⑦⑧⑨⑩"):
        starts: list[re.Match[str]] = []
        for number in numbers:
            form = (
                number if isinstance(number, str) else rf"{_BREAK}[(（]?{number}\s*[.．、)）](?!\d)"
            )
            at = re.compile(form).search(line, starts[-1].end() if starts else 0)
            if at is None:
                break
            starts.append(at)
        if len(starts) > 1:
            ends = [start.start() for start in starts[1:]] + [len(line)]
            return [line[a.end() : b].strip() for a, b in zip(starts, ends, strict=True)]
    return []


_INTRODUCTION = load_wording("replies").pattern("introduction")
_REMARK = load_wording("replies").pattern("remark")
_MAX_CHARACTERS = 400


def _bare_items(lines: list[str]) -> list[str]:
    lines = [line for line in lines if not re.match(r"#{1,6}\s", line)]
    if len(lines) > 1 and (lines[0].rstrip("*_ ").endswith((":", "：")) or introduces(lines[0])):
        lines = lines[1:]
    if len(lines) > 1 and _REMARK.match(lines[-1]):
        lines = lines[:-1]
    if len(lines) == 1:
        return _one_line(lines[0])
    return [line for line in lines if not _is_prose(line) and not line.endswith((":", "："))]


def introduces(line: str) -> bool:
    """Return whether a line only announces what comes: "Sure!", "Here are three:"."""
    # "以下哪座城市……？" begins like an introduction and is a question of its own.
    return bool(_INTRODUCTION.match(line)) and not line.endswith(("?", "？"))


def _is_prose(line: str) -> bool:
    return len(line) > _MAX_CHARACTERS or len(split_sentences(line)) > 2


_QUOTED = r"(?:\"[^\"]+\"|“[^”]+”|「[^」]+」|『[^』]+』|'[^']+'(?!\w))"
_QUOTED_LINE = re.compile(rf"{_QUOTED}(?:\s*(?:[,;，；、|]|and\b|和)?\s*{_QUOTED})+[.。]?", re.I)
_SEPARATORS = (r"[;；]", r"、", r"\s\|\s", r"(?:,(?!\d)|，)")
_DATE_COMMA = re.compile(r"([a-z]\.? \d{1,2}), (?=\d{4}\b)", re.I)
_MASK = "\0 "


_LABEL = re.compile(r"[*_]{0,2}[^\W\d]+(?: [^\W\d]+){0,3}[*_]{0,2}[:：][*_]{0,2}\s*(?=\S)")


def _one_line(line: str) -> list[str]:
    head = re.match(r"([^:：\n]{1,120}?)[:：!！]\s*(?=\S)", line)
    if head and introduces(head[0].strip()):
        line = line[head.end() :]
    elif introduces(line) and line.endswith((":", "：", ".", "。", "!")):
        return []
    label = _LABEL.match(line)
    for whole in (line[label.end() :] if label else "", line):
        bare = whole.strip("*_ ")
        if _QUOTED_LINE.fullmatch(bare):
            return re.findall(_QUOTED, bare)
        parts = _short_items(bare)
        if parts:
            return parts
    return [] if _is_prose(line) or line.endswith((":", "：")) else [line]


def _short_items(line: str) -> list[str]:
    """Return the items of "Paris, 1995, Ulm"; [] where the line may just as well be a sentence."""
    if line.endswith((".", "?", "!", "。", "？", "！")) or len(split_sentences(line)) > 1:
        return []
    masked = _DATE_COMMA.sub(rf"\1{_MASK}", line)
    for separator in _SEPARATORS:
        parts = [part.replace(_MASK, ", ").strip() for part in re.split(separator, masked)]
        parts = [re.sub(r"\A(?:and |or |和|及|以及)", "", part) for part in parts if part]
        if len(parts) > 1:
            return parts if all(map(_is_short, parts)) else []
    return []


def _is_short(part: str) -> bool:
    # Chinese clauses, too, stand between commas: only what is shorter than most is an item.
    return len(part.split()) <= 6 and len(part) <= 48 and len(_HAN.findall(part)) <= 10


_HAN = re.compile(r"[\u3400-\u9fff]")


# How questions and answers of yes or no are recognised, and whether a text is about a question.

_WORDING = load_wording("replies")
_YES_NO_QUESTION = {code: _WORDING.pattern(f"yes_no_question_{code}") for code in ("en", "zh")}
_ASKED_FOR = _WORDING.pattern("asked_for")
_EVENT_WORDS = load_wording("events")
_YES_NO = [
    Option(label=label, spellings=words) for label, words in _WORDING.entries["says"].items()
]


@cache
def _events() -> Mapping[str, re.Pattern[str]]:
    # Compiled by the first question: it takes a third of a second, which no other command needs.
    return {
        name: re.compile(
            rf"(?<![^\W\d_{HAN}])(?:{_EVENT_WORDS.pattern(name).pattern})(?![^\W\d_{HAN}])", re.I
        )
        for name in _EVENT_WORDS.entries
    }


def asks_yes_or_no(question: Question) -> bool:
    """Return whether a question is answered by yes or no, as far as its wording tells."""
    return _YES_NO_QUESTION[question.language].search(question.text) is not None


def says_yes(answer: str) -> bool | None:
    """Return yes or no as an answer says it in any of the languages; None where it says neither."""
    label = parse_choice(answer, _YES_NO)
    return None if label is None else label == "yes"


def echoes(answer: str, question: Question) -> bool:
    """Return whether an answer only says the question again, so that it is none.

    A text that nobody asked for repeats none: its own beginning may stand where a question has to.
    """
    return not question.about and text_key(answer) == text_key(question.text)


def shares_words(text: str, question: str) -> bool:
    """Return whether a content word of the question stands in `text`; true where it has none."""
    return words_shared(text, question) > 0


def words_shared(text: str, question: str) -> float:
    """Return how many of the question's content words stand in `text`, in [0, 1]; 1 where it
    has none.

    "Discovered" stands in "discover", and "vanished" says the same as "disappear". What the
    question asks for by its name, as the year in "In which year", counts for nothing.
    """
    question = _ASKED_FOR.sub(" ", question)
    phrases = 0
    given = 0
    for event in _events().values():
        if (asked := event.search(question)) is not None and " " in asked[0]:
            # "Take place" is one thing that is asked about.
            question = f"{question[: asked.start()]} {question[asked.end() :]}"
            phrases += 1
            given += event.search(text) is not None
    wanted = set(content_terms(question))
    said = set(content_terms(text))
    given += sum(
        any(is_form(word, other) for other in said) or _says_event(word, text) for word in wanted
    )
    count = len(wanted) + phrases
    return given / count if count else 1.0


def events_in(text: str) -> frozenset[str]:
    """Return the events and properties of `assets/wording/events.toml` that `text` says,
    by name.
    """
    bare = _ASKED_FOR.sub(" ", text)
    return frozenset(name for name, words in _events().items() if words.search(bare))


def expresses(text: str, question: str) -> bool:
    """Return whether `text` says the event or the property that the question asks with, in whatever
    words; true where it asks with none that is known.
    """
    asked = [event for event in _events().values() if event.search(_ASKED_FOR.sub(" ", question))]
    return not asked or any(event.search(text) for event in asked)


def _says_event(word: str, text: str) -> bool:
    """Return whether `text` says in other words the event or the property that `word` names."""
    return any(event.fullmatch(word) and event.search(text) for event in _events().values())


def is_form(word: str, other: str) -> bool:
    """Return whether two terms are the same or look like forms of one English word."""
    if word == other:
        return True
    if not (word.isascii() and other.isascii() and word.isalpha() and other.isalpha()):
        return False
    shorter, longer = sorted((word, other), key=len)
    alike = sum(takewhile(bool, map(eq, word, other)))
    if len(shorter) < _STEM:
        return shorter.endswith("e") and longer == f"{shorter}d"
    # "Discover" and "discovered", "study" and "studies"; not "Iran" and "Iraq".
    stays = len(shorter) - (shorter[-1] in "ey" and len(longer) > len(shorter))
    return alike >= stays and len(longer) - alike <= _ENDING


def is_of(place: str, word: str) -> bool:
    """Return whether a term looks like the English adjective of a place: "Chinese" of "China"."""
    stem = place[: max(_STEM, len(place) - 2)]
    return len(stem) >= _STEM and word.startswith(stem) and word.endswith(_OF_A_PLACE)


_OF_A_PLACE = ("ese", "ian", "ish", "an")

_STEM, _ENDING = 4, 3
"""Letters: a word of fewer than the first takes only a d ("die", "died"), others an ending of at
most the second."""
