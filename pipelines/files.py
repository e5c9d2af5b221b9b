"""Files that are there whole or not at all, also when the process is killed while it writes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from pipelines.errors import failure

_PARTIAL = ".partial"


def make_data_folder(folder: Path, name: str = "The path") -> None:
    """Create the data folder if it is not there. Raises InvalidInputError where it cannot be one.

    `name` is what the error calls it. It is the path only where the reader of the error gave that
    path.
    """
    try:
        # What people asked is nobody else's on this machine.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise failure("storage.no_folder", folder=name, reason=error.strerror) from error


def write_whole(
    path: Path, text: str, mode: int | None = None, *, unless_there: bool = False
) -> None:
    """Write `text` into the file `path`, which until then stays as it was.

    It is written beside it and moved into its place; the next call uses up what a killed one left.
    A device or a pipe is written to as it is. `mode` are the permissions of a file that holds a
    secret. With `unless_there` a file that holds anything is left as it is: of several processes
    the first one writes it. Raises OSError.
    """
    if _is_special(path):
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    with _partial(path.with_name(f".{path.name}{_PARTIAL}"), mode) as (partial, file):
        if unless_there and path.exists() and path.stat().st_size:
            partial.unlink()
            return
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        if mode is None and path.exists():
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
        partial.replace(path)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` into the file `path`, which is there whole or not at all, and on the disk.

    For a file that nobody else writes. A device or a pipe is written to as it is. Raises OSError.
    """
    if _is_special(path):
        path.write_bytes(data)
        return
    path = path.resolve()
    partial = path.with_name(f".{path.name}{_PARTIAL}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _is_special(path: Path) -> bool:
    """Return whether there is something at `path` that is no file and cannot be replaced by one.

    Asked of the path as it is given: what /dev/stdout resolves to has no name where it is a pipe.
    """
    return path.exists() and not path.is_file()


@contextmanager
def _partial(path: Path, mode: int | None) -> Iterator[tuple[Path, TextIO]]:
    """Give the empty file `path`, ours alone until the end of the block, and removed if it
    is left.
    """
    with _locked(path, 0o666 if mode is None else mode) as file:
        file.truncate()
        try:
            yield path, file
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise


def _locked(path: Path, mode: int) -> TextIO:
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, mode), "w", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(OSError):
            # Another process, which had it before, may have moved it away meanwhile.
            if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file
        file.close()
