"""What kind of answer a question asks for, and whether a sentence holds one of that kind (ours).

"In which year ...?" asks for a date, so a sentence without a date does not answer it, however near
it is. Read from the words of the question; most questions ask for none of these kinds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from pipelines.methods.base import Question
from pipelines.methods.wording import load_wording
from pipelines.retrieval.bm25 import content_terms
from pipelines.text import Entity
from pipelines.types import Language

Kind = Literal["date", "number", "person", "place"]

_WORDING = load_wording("asked")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_KINDS: tuple[Kind, ...] = get_args(Kind)
_ASKS: dict[Language, dict[Kind, re.Pattern[str]]] = {
    code: {
        kind: _WORDING.pattern(f"{kind}_asked_{code}")
        for kind in _KINDS
        if f"{kind}_asked_{code}" in _WORDING.entries
    }
    for code in _LANGUAGES
}
_DATE = {code: _WORDING.pattern(f"date_{code}") for code in _LANGUAGES}
_DATED = {code: _WORDING.pattern(f"dated_{code}") for code in _LANGUAGES}
_NUMBER = {code: _WORDING.pattern(f"number_{code}") for code in _LANGUAGES}
_PLACE = _WORDING.pattern("place_en")
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
        for one in _WORDING.entries["measures"][code].values()
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


def holds_kind(
    kind: Kind, question: Question, sentence: str, names: Sequence[Entity] = (), title: str = ""
) -> bool:
    """Return whether `sentence` holds an answer of this kind that the question does not
    give itself.

    `names` are the sentence's. A person may be called "he" there and be named by the `title`.
    """
    language = question.language
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


def names_same(name: str, text: str) -> bool:
    """Return whether `text` names what `name` names, by its last word at least, as a surname is."""
    terms = content_terms(name)
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
