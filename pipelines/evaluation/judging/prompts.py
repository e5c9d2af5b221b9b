"""The prompt of a judge of answers: the one that ships, or a file of the user's own, checked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from string import Template
from typing import Any

from pipelines.base import ASSETS, Language
from pipelines.error_words import Fact, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.replies.verdicts import GRADES
from pipelines.models.base import parse_choice
from pipelines.prompts import Prompts

REQUIRED = frozenset({"question", "references", "answer"})
"""Placeholders that the prompt must have."""

ALLOWED = REQUIRED | {"wrong_answers"}
"""Placeholders that it may have."""

_SHIPPED = ASSETS / "prompts" / "answer_judge.toml"
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_KEYS = ("judge", "reminder")


def shipped_source() -> str:
    """Return the text of the prompt file that ships."""
    return _SHIPPED.read_text(encoding="utf-8")


def read_source(path: Path) -> str:
    """Return the text of a prompt file of the user's own, checked. Raises InvalidInputError."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise failure("judging.unreadable", file=path, problem=type(error).__name__) from None
    checked_prompts(source, path.name)
    return source


def checked_prompts(source: str, name: str = "answer_judge") -> Prompts:
    """Return the prompts in `source`, once they were checked.

    There is a table for at least one language, with the prompts "judge" and "reminder". The first
    has the placeholders of `REQUIRED`, and none but those of `ALLOWED`; the second has none. Both
    name the four grades, so that a verdict can be read from the reply. Raises InvalidInputError,
    which says what is missing.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise _unusable(name, phrase("prompt.no_toml", said=error)) from None
    found: list[Language] = [language for language in _LANGUAGES if language in tables]
    if not found or set(tables) - set(_LANGUAGES):
        raise _unusable(name, phrase("prompt.tables"))
    for language in found:
        texts = tables[language]
        if not isinstance(texts, dict):
            raise _unusable(name, phrase("prompt.no_table", language=language))
        for key in _KEYS:
            text = texts.get(key)
            if not isinstance(text, str) or not text.strip():
                raise _unusable(name, phrase("prompt.no_prompt", key=key, language=language))
            _check_placeholders(name, language, key, text)
            _check_grades(name, language, key, text)
    return Prompts(name, source)


def _check_placeholders(name: str, language: Language, key: str, text: str) -> None:
    template = Template(text)
    facts = {"key": key, "language": language}
    if not template.is_valid():
        raise _unusable(name, phrase("prompt.dollar", **facts))
    held = set(template.get_identifiers())
    required, allowed = (REQUIRED, ALLOWED) if key == "judge" else (frozenset(), frozenset())
    if missing := sorted(required - held):
        raise _unusable(name, phrase("prompt.lacks", name=missing[0], **facts))
    if unknown := sorted(held - allowed):
        raise _unusable(name, phrase("prompt.unfilled", name=unknown[0], **facts))


def _check_grades(name: str, language: Language, key: str, text: str) -> None:
    options = GRADES[language]
    for option in options:
        if not any(word in text for word in option.spellings):
            words = ", ".join(one.spellings[0] for one in options)
            raise _unusable(name, phrase("prompt.grades", words=words, key=key, language=language))
    # What is asked for is what is read.
    assert all(parse_choice(one.spellings[0], options) == one.label for one in options)


def _unusable(name: str, why: Fact) -> VeriscopeError:
    return failure("judging.bad_prompt", name=name, problem=why)
