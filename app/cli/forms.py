"""Makes options: of the fields of a form (`components/forms.py`), or worded by the catalogue."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import inf
from typing import Any

from app.cli.shared import amount, listed_names, listed_of, whole
from components.base.words import Catalogue
from components.forms import FormField
from pipelines.error_words import language_of_terminal

_UNITS = {"money": "AMOUNT", "read": "AMOUNT", "written": "AMOUNT", "hours": "HOURS"}
"""What an option calls its number, where that is not N."""


def terminal_words() -> Catalogue:
    """Return the words of the terminal's language."""
    return Catalogue(language_of_terminal())


def add_option(
    parser: argparse._ActionsContainer, field: FormField, option: str = "", **look: Any
) -> None:
    """Add a field's option, --NAME by default; `look` adds to what the parser is told."""
    told = {"help": field.option(terminal_words()).replace("%", "%%"), **_taken(field), **look}
    parser.add_argument(option or f"--{field.name.replace('_', '-')}", **told)


def add_command(
    commands: Any, key: str, command: Callable[..., Awaitable[int]]
) -> argparse.ArgumentParser:
    """Add the command whose name ends `key`, the key of its help."""
    parser = commands.add_parser(key.rpartition(".")[2], help=terminal_words()(key))
    parser.set_defaults(command=command)
    return parser


def add_group(commands: Any, key: str) -> Any:
    """Add a command that only holds others; return what these are added to."""
    group = commands.add_parser(key.rpartition(".")[2], help=terminal_words()(key))
    return group.add_subparsers(required=True)


def add_worded(
    parser: argparse._ActionsContainer,
    key: str,
    *names: str,
    facts: Mapping[str, object] | None = None,
    **look: Any,
) -> None:
    """Add an option or argument whose help is the text under `key`, filled with `facts`."""
    parser.add_argument(*names, help=terminal_words()(key, **(facts or {})), **look)


def number(field: FormField, text: str) -> float:
    """Return the number for a field, in the unit of its model; raises ArgumentTypeError.

    A number that is too small for anything but a whole one is left to the model.
    """
    high = field.high
    if field.kind is int:
        return whole(text, int(field.low or 0), None if high is None else int(high))
    return field.kept(amount(text, inf if high is None else high))


def _taken(field: FormField) -> dict[str, Any]:
    """Return what the parser is told of the kind of a field."""
    if field.kind is bool:
        return {"action": "store_true"}
    if field.several:
        read = partial(listed_of, field.choices) if field.choices else listed_names
        return {"type": read, "metavar": "A,B"}
    if field.choices:
        return {"choices": field.choices}
    if field.kind in (int, float):
        return {"type": partial(number, field), "metavar": _UNITS.get(field.name, "N")}
    return {}
