"""What many commands share: the owner of what they store, lists of names, text files, messages."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.errors import InvalidInputError
from pipelines.printable import printable

OWNER = "command-line"
"""Who owns what is stored by a command."""


def listed_names(listed: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def text_of_file(path: Path, remedy: str) -> str:
    """The text of a file in UTF-8. Raises InvalidInputError with `remedy` if it cannot be read."""
    try:
        # Some programs mark the beginning of a text.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} cannot be read ({type(error).__name__}).", remedy=remedy
        ) from None


def say(text: str) -> None:
    """Print a message on standard error: a program may read standard output."""
    print(printable(text), file=sys.stderr)
