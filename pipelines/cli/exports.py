"""Files that `export` writes and `import` reads, for runs and profiles alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.cli.shared import text_of_file
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.files import write_bytes, write_whole
from pipelines.printable import printable_json


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
    """Write `data` to the file `to`, completely or not at all.

    Raises InvalidInputError for a file that cannot be written.
    """
    with _writing(to):
        write_bytes(to, data)


@contextmanager
def _writing(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure("command.unwritable_path", file=to, problem=error.strerror) from None


def read_bytes(path: Path, command: str) -> bytes:
    """Return the bytes of a file that `command` wrote; raises InvalidInputError if it cannot
    be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise failure(
            "command.unreadable_export", file=path, problem=type(error).__name__, command=command
        ) from None


def read_export(path: Path, command: str) -> str:
    """Return the text of a file that `command` wrote; raises InvalidInputError if it cannot
    be read.
    """
    return text_of_file(path, phrase("wanted.made_by", command=command))
