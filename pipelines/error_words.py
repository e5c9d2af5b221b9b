"""The words of errors, looked up by key where an error is shown, in the reader's language.

An error, and a part of it that has words of its own, is a key and facts. assets/errors.toml has the
words of each key in both languages, and is their only place.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from string import Formatter
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from pipelines.base import ASSETS, Frozen, Language, WrongValueError


class Phrase(Frozen):
    """A part of an error's words that has words of its own: a key ("detail.cut_off") and facts.

    Of another error it is what happened (`part` 0), or what to do about it (1).
    """

    key: str
    part: Literal[0, 1] = 0
    facts: dict[str, Fact] = Field(default_factory=dict)


_One = str | int | float | Phrase
Fact = _One | tuple[_One, ...]
"""What the words of an error name. Several are written one after another; texts of libraries and
names are texts, the same in every language."""
Phrase.model_rebuild()


class PhraseError(ValueError):
    """What is wrong with a value, as a phrase, for validators of models; `str` is English."""

    def __init__(self, key: str, /, **facts: object) -> None:
        self.phrase = phrase(key, **facts)
        super().__init__(phrase_in(self.phrase, "en"))

    def __reduce__(self) -> tuple[object, ...]:
        return _phrase_error, (self.phrase,)


def _phrase_error(found: Phrase) -> PhraseError:
    return PhraseError(found.key, **found.facts)


class FailureText(NamedTuple):
    """What the file has under a key.

    `words` are what happened and what to do about it for an error, one text for a phrase. `code`
    names the class of an error; a phrase has none.
    """

    code: str
    words: Mapping[Language, tuple[str, ...]]


@cache
def entries() -> dict[str, FailureText]:
    """Return every key ("service.timeout") with its entry."""
    groups = tomllib.loads((ASSETS / "errors.toml").read_text(encoding="utf-8"))
    return {
        f"{group}.{name}": FailureText(
            said.get("code", ""), {"en": _parts(said["en"]), "zh": _parts(said["zh"])}
        )
        for group, entries in groups.items()
        for name, said in entries.items()
    }


def _parts(said: str | list[str]) -> tuple[str, ...]:
    return (said,) if isinstance(said, str) else tuple(said)


@cache
def facts_of(key: str) -> frozenset[str]:
    """Return the names of the facts that the words of `key` have places for."""
    said = (part for parts in entries()[key].words.values() for part in parts)
    return frozenset(name for part in said for _, name, _, _ in Formatter().parse(part) if name)


def phrase(key: str, /, **facts: object) -> Phrase:
    """Return the phrase `key` with its facts."""
    return Phrase(key=key, facts=as_facts(facts))


def as_facts(facts: Mapping[str, object]) -> dict[str, Fact]:
    """Return `facts` as they are stored: what is no number and no phrase is a text."""
    return {name: _fact(value) for name, value in facts.items()}


def _fact(value: object) -> Fact:
    if isinstance(value, tuple | list):
        return tuple(_one(one) for one in value)
    return _one(value)


def _one(value: object) -> _One:
    if isinstance(value, str | float | Phrase) or type(value) is int:
        return value
    return str(value)


def words_of(key: str, facts: Mapping[str, Fact], language: Language) -> tuple[str, ...] | None:
    """Return the words of `key` with `facts` put into them.

    None where there is no such key, or the facts are not those of its words, as in a record of
    another release.
    """
    try:
        return _filled(key, facts, language)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def phrase_in(found: Phrase, language: Language) -> str:
    """Return the words of a phrase. Raises KeyError for an unknown one, or one that lacks facts."""
    return _filled(found.key, found.facts, language)[found.part]


def _in_order(facts: Iterable[Fact], language: Language) -> str:
    """Return several facts as one text: with commas, or semicolons where one has commas."""
    said = [str(_shown(one, language)) for one in facts]
    comma, semicolon = ("、", "；") if language == "zh" else (", ", "; ")
    held = any(mark in one for one in said for mark in ",，")
    return (semicolon if held else comma).join(said)


def _filled(key: str, facts: Mapping[str, Fact], language: Language) -> tuple[str, ...]:
    shown = {name: _shown(value, language) for name, value in facts.items()}
    return tuple(part.format_map(shown) for part in entries()[key].words[language])


def _shown(value: Fact, language: Language) -> str | int | float:
    if isinstance(value, Phrase):
        # After the text of another error the sentence goes on.
        return phrase_in(value, language).rstrip(".。")
    return _in_order(value, language) if isinstance(value, tuple) else value


def kind_words(code: str, language: Language) -> tuple[str, str]:
    """Return the title of errors of this code, and what usually helps; a title of its own for
    those that nobody expected has every other code."""
    key = f"kind.{code}"
    title, remedy = entries()[key if key in entries() else "kind.unexpected"].words[language]
    return title, remedy


def language_of_terminal(environment: Mapping[str, str] | None = None) -> Language:
    """Return the language that the environment of a command asks for; English unless Chinese."""
    variables = os.environ if environment is None else environment
    named = (variables.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, named), "").lower().startswith("zh") else "en"


def first_problem(error: ValidationError) -> tuple[str, Fact]:
    """Return where the first mistake is ("methods.0.name", empty for the whole), and what it is.

    Mistakes that pydantic finds are phrases too where the file has their kind ("value.missing").
    """
    problem = error.errors(include_url=False, include_input=False)[0]
    return ".".join(str(part) for part in problem["loc"]), what_is_wrong(problem)


def what_is_wrong(problem: Mapping[str, Any]) -> Fact:
    """Return what pydantic found to be wrong, as a phrase where the file has it."""
    context = problem.get("ctx") or {}
    if isinstance(own := context.get("error"), PhraseError):
        return own.phrase
    if isinstance(own, WrongValueError):
        return phrase(f"value.{own}")
    found = phrase(f"value.{problem['type']}", **context)
    if words_of(found.key, found.facts, "en") is not None:
        return found
    return problem["msg"].removeprefix("Value error, ")


def problem_at(error: ValidationError) -> Fact:
    """Return the first mistake together with its place."""
    place, problem = first_problem(error)
    return phrase("detail.at", place=place, problem=problem) if place else problem
