"""Reads what models really write: the visible text, JSON and labelled fields in it, refusals.

Nothing here guesses: what cannot be read comes back empty, and the caller says so.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from pipelines.base import Language
from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.abstaining import declines as declines
from pipelines.retrieval.indexes import content_terms
from pipelines.text import Entity, without_thinking

_WORDING = load_wording("replies")
_WHOLE_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[\w-]*[ \t]*\n(.*?)\n?\s*(?:\1\s*)?\Z", re.S)
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[\w-]*[ \t]*\n(.*?)(?:^[ \t]*\1|\Z)", re.S | re.M)
_EMPHASIS = ("***", "**", "__", "*", "_", "`")
_QUOTES = {'"': '"', "“": "”", "„": "“", "‘": "’", "「": "」", "『": "』", "«": "»", "'": "'"}


def visible(text: str) -> str:
    """Return `text` without thinking blocks, trimmed, out of one code fence, one emphasis and
    one quote.

    A block that was never closed reaches to the end, one that was never opened to the beginning.
    Emphasis and quotation marks go only when the pair surrounds everything.
    """
    text = without_thinking(text).strip()
    fence = _WHOLE_FENCE.match(text)
    if fence and fence[1] not in fence[2]:
        text = fence[2].strip()
    return _unquoted(_unemphasised(text))


def _unemphasised(text: str) -> str:
    for mark in _EMPHASIS:
        inner = text[len(mark) : -len(mark)]
        if text.startswith(mark) and text.endswith(mark) and inner and mark not in inner:
            return inner.strip()
    return text


def _unquoted(text: str) -> str:
    closing = _QUOTES.get(text[:1])
    inner = text[1:-1]
    if closing is None or not inner.strip() or text[-1] != closing:
        return text
    # Apostrophes inside words do not end what stands between single quotes.
    bare = re.sub(r"(?<=\w)['’](?=\w)", "", inner) if closing in "'’" else inner
    return text if text[0] in bare or closing in bare else inner.strip()


_REFUSAL, _NOTHING = _WORDING.pattern("refusal"), _WORDING.pattern("nothing")


def is_refusal(text: str) -> bool:
    """Return whether the reply declines the task: begins with an apology or with being
    unable to.
    """
    return bool(_REFUSAL.match(visible(text)))


def is_nothing(text: str) -> bool:
    """Return whether the reply says that there is nothing to list; an empty reply says
    nothing at all.
    """
    plain = unicodedata.normalize("NFKC", visible(text))
    is_json, value = load_json(plain)
    if is_json:
        only = [*value.values()] if isinstance(value, dict) else [value]
        return only in ([], [[]], [None])
    return bool(_NOTHING.fullmatch(plain.strip(" \t\n.,;:!。、*-\"'()[]")))


_TRAILING_COMMA = re.compile(r",(\s*[\]}])")
_OPENING = re.compile(r"[\[{]")
_MAX_STARTS = 64


def load_json(text: str) -> tuple[bool, Any]:
    """Return whether the whole of `text` is a JSON value, and the value."""
    for attempt in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            return True, json.loads(attempt, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            continue
    return False, None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; the texts of a key that occurs twice are joined, so that neither
    is lost.
    """
    read: dict[str, Any] = {}
    for key, value in pairs:
        before = read.get(key)
        both = isinstance(before, str) and isinstance(value, str) and before != value
        read[key] = f"{before}\n{value}" if both else value
    return read


def parse_json(text: str) -> Any | None:
    """Return the first JSON value of the reply, None when it holds none.

    The reply as a whole or a fenced block may be any value; within prose an object or array is
    looked for, and arrays of numbers, which citations look like, come last. Commas before a
    closing bracket are forgiven.
    """
    text = visible(text)
    for whole in (text, *(match[2] for match in _FENCED.finditer(text))):
        is_json, value = load_json(whole)
        if is_json:
            return value
    found = [value for _, value in embedded_json(text)]
    return next((value for value in found if not is_citation(value)), found[0] if found else None)


def embedded_json(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects and arrays that stand in `text`, each with the text before it."""
    text = _TRAILING_COMMA.sub(r"\1", text)
    decoder, past = json.JSONDecoder(object_pairs_hook=_object), 0
    for number, opening in enumerate(_OPENING.finditer(text)):
        if number == _MAX_STARTS:
            return
        start = opening.start()
        if start < past:
            continue
        try:
            value, past = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield text[:start], value


def is_citation(value: Any) -> bool:
    """Return whether a JSON value looks like the citation [1] or [1, 2]."""
    return isinstance(value, list) and all(isinstance(item, int) for item in value)


def parse_fields(text: str, names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the labelled parts of the reply: name -> text, for each name that has a label there.

    `names` gives the labels accepted for each name, in any case. A label stands at the beginning
    of a line or, capitalised, further on; bare, emphasised or bracketed with a colon of either
    width, or as a heading of its own. Its field runs to the next label; the parts of a label that
    occurs twice are joined by a line break. JSON objects are read by their keys, which may also be
    the names themselves.
    """
    text = visible(text)
    accepted = {_label(label): name for name, labels in names.items() for label in labels}
    value = parse_json(text)
    if isinstance(value, dict):
        keys = {_label(name): name for name in names} | accepted
        read = _joined(
            (keys[_label(key)], _text(part))
            for one in _objects(text, value)
            for key, part in one.items()
            if _label(key) in keys
        )
        if read:
            return {name: part for name, part in read.items() if part}
    if not accepted:
        return {}
    starts = list(_labels(accepted).finditer(text))
    ends = [*(start.start() for start in starts), len(text)][1:]
    return _joined(
        (name, part)
        for start, end in zip(starts, ends, strict=True)
        if (name := accepted.get(_label(start["label"]))) is not None
        and (part := _loose(text[start.end() : end]))
    )


def _objects(text: str, first: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON objects of a reply; a second one may say something else than the `first`."""
    if load_json(text)[0]:
        return [first]
    return [one for _, one in embedded_json(text) if isinstance(one, dict)] or [first]


def _joined(parts: Iterable[tuple[str, str]]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, part in parts:
        before = fields.get(name)
        fields[name] = f"{before}\n{part}" if before and part != before else part or before or ""
    return fields


def _label(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).replace("_", " ").casefold().split())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_OPENED = r"(?P<opened>#{1,6}[ \t]+[【\[*_`]{0,3}|[【\[*_`]{1,3})?"


def _labels(labels: Iterable[str]) -> re.Pattern[str]:
    words = sorted(labels, key=len, reverse=True)
    label = "|".join(re.escape(word).replace(r"\ ", r"[\s_]+") for word in words)
    return re.compile(
        # At the beginning of a line, behind a sentence, or capitalised behind white space.
        r"(?:^[ \t]*(?:(?:[-*+•>]|\d{1,2}[.)、])[ \t]+)*|(?<=[.。!！?？;；|])|(?=[【\[])|"
        r"(?<=\s)(?-i:(?=[【\[*_`]{0,3}[^\Wa-z])))"
        rf"{_OPENED}\s*(?P<label>{label})\s*?[】\]*_`]{{0,3}}[ \t]*"
        # Only what is set apart can do without a colon: [Verdict] True, or a heading.
        r"(?:(?:[:：=]|[-–—](?=\s))[*_`]{0,3}|(?<=[】\]])|(?(opened)$|(?!)))",
        re.I | re.M,
    )


def _loose(part: str) -> str:
    part = visible(part)
    for mark in ("**", "__"):
        if part.count(mark) % 2:
            part = part.removeprefix(mark).removesuffix(mark).strip()
    return part


# What kind of answer a question asks for, and whether a sentence holds one of that kind (ours).
#
# "In which year ...?" asks for a date, so a sentence without a date does not answer it, however
# near it is. Read from the words of the question; most questions ask for none of these kinds.

Kind = Literal["date", "number", "person", "place", "language", "colour"]

_QUESTIONS_WORDING = load_wording("asked")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_KINDS: tuple[Kind, ...] = get_args(Kind)
_ASKS: dict[Language, dict[Kind, re.Pattern[str]]] = {
    code: {
        kind: _QUESTIONS_WORDING.pattern(f"{kind}_asked_{code}")
        for kind in _KINDS
        if f"{kind}_asked_{code}" in _QUESTIONS_WORDING.entries
    }
    for code in _LANGUAGES
}
_DATE = {code: _QUESTIONS_WORDING.pattern(f"date_{code}") for code in _LANGUAGES}
_DATED = {code: _QUESTIONS_WORDING.pattern(f"dated_{code}") for code in _LANGUAGES}
_NUMBER = {code: _QUESTIONS_WORDING.pattern(f"number_{code}") for code in _LANGUAGES}
_PLACE = _QUESTIONS_WORDING.pattern("place_en")
_WORDS_OF: dict[Kind, dict[Language, re.Pattern[str]]] = {
    kind: {code: _QUESTIONS_WORDING.pattern(f"{kind}_{code}") for code in _LANGUAGES}
    for kind in ("language", "colour")
}
"""Kinds of which all words are known."""

_DIGITS, _SEPARATOR = re.compile(r"\d+(?:[.,]\d+)*"), re.compile(r",(?=\d{3}(?!\d))")
_WHOLE: dict[Language, str] = {"en": r"\b(?:{})\b", "zh": "(?:{})"}
_FIGURE: dict[Language, str] = {
    "en": r"(?P<figure>{})(?P<times>(?:[ -](?:hundred|thousand|million|billion|trillion|square"
    r"|and|a|half|quarters?|more|[a-z]{{3,9}}ty|nautical)){{0,4}})[ -]?(?P<unit>{})(?!\w)",
    "zh": r"(?P<figure>{})(?P<times>[多余几]?[万亿]?[多余]?)个?(?P<unit>{})",
}
_MEASURES: dict[Language, list[tuple[re.Pattern[str], re.Pattern[str]]]] = {
    code: [
        (
            re.compile(_WHOLE[code].format(one["asked"]), re.I),
            re.compile(_FIGURE[code].format(_NUMBER[code].pattern, one["unit"]), re.I),
        )
        for one in _QUESTIONS_WORDING.entries["measures"][code].values()
    ]
    for code in _LANGUAGES
}
"""How a question asks for a measure, and a figure with a unit of it."""

_NAMES: dict[Kind, frozenset[str]] = {
    "person": frozenset({"PERSON", "NORP", "ORG", "MISC"}),
    "place": frozenset({"GPE", "LOC", "FAC", "ORG", "NORP", "MISC"}),
}
"""Kinds of names that can answer; "MISC" is a name whose kind the rules cannot tell."""


def asked_kind(question: Question) -> Kind | None:
    """Return what a question asks for, as far as its wording tells."""
    asks = _ASKS[question.language].items()
    return next((kind for kind, words in asks if words.search(question.text)), None)


def is_named(kind: Kind) -> bool:
    """Return whether an answer of this kind is a name, so that a sentence's names have to
    be known.
    """
    return kind in _NAMES


def is_word(kind: Kind) -> bool:
    """Return whether an answer of this kind is one of a list of words, a language or a colour."""
    return kind in _WORDS_OF


def holds_kind(
    kind: Kind, question: Question, sentence: str, names: Sequence[Entity] = (), title: str = ""
) -> bool:
    """Return whether `sentence` holds an answer of this kind that the question does not
    give itself.

    `names` are the sentence's. A person may be called "he" there and be named by the `title`.
    """
    language = question.language
    if is_word(kind):
        found = _WORDS_OF[kind][language].finditer(sentence)
        return any(one[0].casefold() not in question.text.casefold() for one in found)
    if kind == "date":
        return any(_is_new(found[0], question) for found in _DATE[language].finditer(sentence))
    if kind == "number":
        numbers = _NUMBER[language]
        asked = {found[0].casefold() for found in numbers.finditer(question.text)}
        rest = _DATED[language].sub(" ", sentence)
        if (measure := _measure(question)) is not None:
            return any(one["figure"].casefold() not in asked for one in measure.finditer(rest))
        return any(found[0].casefold() not in asked for found in numbers.finditer(rest))
    if kind == "person" and title and not names_same(title, question.text):
        return True
    if kind == "place" and _PLACE.search(sentence):
        return True
    return any(name.label in _NAMES[kind] and _is_new(name.text, question) for name in names)


def names_person(names: Sequence[Entity], question: Question) -> bool:
    """Return whether a person is among `names` whom the question does not name itself."""
    return any(name.label == "PERSON" and _is_new(name.text, question) for name in names)


def new_names(kind: Kind, names: Sequence[Entity], question: Question) -> tuple[str, ...]:
    """Return the names among `names` that can be the answer of this kind, in order."""
    found = (name for name in names if name.label in _NAMES[kind])
    return tuple(name.text for name in found if _is_new(name.text, question))


def names_same(name: str, text: str, known: str = "") -> bool:
    """Return whether `text` names what `name` names, by its last word at least, as a surname is.

    A word of `known` does not count: Eiffel is nobody's name in what answers who designed the
    Eiffel Tower.
    """
    named = set(content_terms(known))
    terms = [term for term in content_terms(name) if term not in named]
    return bool(terms) and terms[-1] in content_terms(text)


def figures_in(text: str) -> frozenset[str]:
    """Return the figures in `text`, without separators of thousands."""
    return frozenset(_SEPARATOR.sub("", one) for one in _DIGITS.findall(text))


def figures(question: Question, sentence: str) -> frozenset[tuple[str, str]]:
    """Return the figures with their units in `sentence` where the question asks for a measure,
    else none.

    Each is written without separators, its unit without the plural: ("330", "metre").
    """
    measure = _measure(question)
    if measure is None:
        return frozenset()
    return frozenset(
        (
            f"{one['figure']}{one['times']}".replace(",", "").casefold(),
            one["unit"].casefold().removesuffix("s").replace("meter", "metre"),
        )
        for one in measure.finditer(_DATED[question.language].sub(" ", sentence))
    )


def _measure(question: Question) -> re.Pattern[str] | None:
    """Return a figure with its unit, as a question that asks for a measure wants it."""
    measures = _MEASURES[question.language]
    return next((figure for asked, figure in measures if asked.search(question.text)), None)


def _is_new(text: str, question: Question) -> bool:
    return not set(content_terms(text)) <= set(content_terms(question.text))
