"""Files that `export` writes and `import` reads, for runs and profiles alike."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.errors import InvalidInputError
from pipelines.files import write_whole
from pipelines.printable import printable_json


def write_export(text: str, to: Path | None) -> None:
    """JSON `text` to the file `to`, without one to standard output.

    Raises InvalidInputError for a file that cannot be written.
    """
    if to is None:
        # A file is left as it is; what reads a pipe reads the same.
        sys.stdout.write(printable_json(text))
        return
    try:
        write_whole(to, text)
    except OSError as error:
        raise InvalidInputError(
            f"{to} cannot be written ({error.strerror}).",
            remedy="Give the path of a file in a folder that can be written to.",
        ) from None


def read_export(path: Path, command: str) -> str:
    """The text of a file that `command` wrote; raises InvalidInputError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} cannot be read ({type(error).__name__}).",
            remedy=f"Give the path of a file made by `{command}`.",
        ) from None
