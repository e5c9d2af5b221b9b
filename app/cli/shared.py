"""What many commands share: the owner of what they store, messages, and how they are given numbers,
names, settings and text files."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from pipelines.aio import write_bytes, write_whole
from pipelines.base import printable, printable_json
from pipelines.error_words import Phrase, language_of_terminal, phrase, phrase_in
from pipelines.errors import ErrorInfo, failure

OWNER = "command-line"
"""Who owns what is stored by a command."""


def option_error(key: str, /, **facts: object) -> ArgumentTypeError:
    """Return what is wrong with the text of an option, in the language of the terminal."""
    return ArgumentTypeError(phrase_in(phrase(key, **facts), language_of_terminal()))


def _range(least: object, most: object | None) -> Phrase:
    if most is None:
        return phrase("option.range_from", least=least)
    return phrase("option.range_between", least=least, most=most)


def whole(text: str, least: int = 0, most: int | None = None) -> int:
    """Return a whole number from `least` to `most`."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        raise option_error("option.no_whole_number", text=text, range=_range(least, most))
    return number


def folder_named(text: str) -> Path:
    """Return the folder of that name; no name is none, and not the folder of now."""
    if not text.strip():
        raise option_error("option.no_folder")
    return Path(text)


def count(text: str) -> int:
    """Return a whole number from 1."""
    return whole(text, 1)


def amount(text: str, most: float = inf) -> float:
    """Return a finite number from 0 to `most`."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most or number == inf:
        wanted = _range(0, None if most == inf else f"{most:g}")
        raise option_error("option.no_number", text=text, range=wanted)
    return number


def listed_names(listed: str) -> list[str]:
    """Return names with commas between them."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def listed_of(known: Sequence[str], listed: str) -> list[str]:
    """Return names with commas between them, each of which has to be `known`."""
    names = listed_names(listed)
    if odd := [name for name in names if name not in known]:
        raise option_error("option.none_of", text=odd[0], known=known)
    return names


def read_settings(
    names: Iterable[str], assignments: Sequence[str], form: str, example: str
) -> dict[str, dict[str, Any]]:
    """Return a map from name to settings, from assignments "NAME.SETTING=VALUE"; values are JSON,
    else text.

    Raises InvalidInputError, which names `form` and `example`, for an assignment that names no
    setting of these.
    """
    settings: dict[str, dict[str, Any]] = {name: {} for name in names}
    for assignment in assignments:
        target, _, value = assignment.partition("=")
        name, _, field = target.partition(".")
        if name not in settings or not field or not value:
            raise failure("command.no_setting", assignment=assignment, form=form, example=example)
        try:
            settings[name][field] = json.loads(value)
        except json.JSONDecodeError:
            settings[name][field] = value
    return settings


def text_of_file(path: Path, wanted: Phrase) -> str:
    """Return the text of a file in UTF-8. Raises InvalidInputError if it cannot be read.

    `wanted` says what to give instead.
    """
    try:
        # Some programs mark the beginning of a text.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise failure(
            "command.unreadable_text", file=path, problem=type(error).__name__, wanted=wanted
        ) from None


def said(error: ErrorInfo) -> str:
    """Return what happened and what to do about it, in the language of the terminal."""
    return error.sentence(language_of_terminal())


def happened(error: ErrorInfo | None) -> str:
    """Return what happened, in the language of the terminal; "" without an error."""
    return "" if error is None else error.said(language_of_terminal())[0]


def say(text: str) -> None:
    """Print a message on standard error: a program may read standard output."""
    print(printable(text), file=sys.stderr)


# Files that `export` writes and `import` reads, for runs and profiles alike.


def write_export(text: str, to: Path | None, *, json: bool = True) -> None:
    """Write JSON `text` to the file `to`, or to standard output where `to` is None.

    With `json` False it is text of another kind, which must already be safe for a terminal. Raises
    InvalidInputError for a file that cannot be written.
    """
    if to is None:
        # A file is left as it is; what reads a pipe reads the same.
        sys.stdout.write(printable_json(text) if json else text)
        return
    with _writing(to):
        write_whole(to, text)


def write_archive(data: bytes, to: Path) -> None:
    """Write `data` to the file `to`, completely or not at all; raises InvalidInputError."""
    with _writing(to):
        write_bytes(to, data)


@contextmanager
def _writing(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure("command.unwritable_path", file=to, problem=error.strerror) from None


def read_bytes(path: Path, command: str) -> bytes:
    """Return the bytes of a file that `command` wrote; raises InvalidInputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise failure(
            "command.unreadable_export", file=path, problem=type(error).__name__, command=command
        ) from None


def read_export(path: Path, command: str) -> str:
    """Return the text of a file that `command` wrote; raises InvalidInputError."""
    return text_of_file(path, phrase("wanted.made_by", command=command))
