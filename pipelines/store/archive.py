"""Several exported runs in one zip file, and such a file read back.

Each run is a file of its own (see `pipelines.store.exchange`), so that one of them can be taken out
and imported alone. A file from elsewhere is not trusted: what it holds unpacked is counted while it
is read, and every run is checked as one that was exported alone.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.store.exchange import MOST_IN_ALL
from pipelines.store.runs import RunStore

MOST_RUNS = 500
"""Runs of one file, written or read."""

MOST_BYTES = 512 * 2**20
"""Bytes that all runs of an archive may have when they are unpacked."""

_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError)
# A fixed moment, so that the same runs give the same file.
_MOMENT = (1980, 1, 1, 0, 0, 0)


class Imported(NamedTuple):
    """`runs`: the ids of the runs that were stored. `refused`: file names and the errors of those
    that could not be stored."""

    runs: tuple[str, ...]
    refused: tuple[tuple[str, VeriscopeError], ...]


def export_archive(store: RunStore, run_ids: Sequence[str], owner: str) -> bytes:
    """Return these runs of `owner` as a zip file.

    Raises InvalidInputError for more than MOST_RUNS runs, NotFoundError if one of them does not
    belong to this owner.
    """
    if len(run_ids) > MOST_RUNS:
        raise failure("storage.many_exported", count=len(run_ids), most=MOST_RUNS)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for run_id in dict.fromkeys(run_ids):
            entry = zipfile.ZipInfo(f"veriscope-{run_id}.jsonl", _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                for line in store.export(run_id, owner):
                    file.write(line.encode())
    return written.getvalue()


def is_archive(data: bytes) -> bool:
    """Return whether these bytes begin like a zip file."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def import_archive(store: RunStore, data: bytes, owner: str) -> Imported:
    """Store every run of a zip file as a new run of `owner`.

    A file that cannot be read does not prevent the others from being stored. Raises
    InvalidInputError for data that is not a zip file, holds no run, or is too large.
    """
    runs: list[str] = []
    refused: list[tuple[str, VeriscopeError]] = []
    for name, text in _texts(data):
        try:
            if isinstance(text, VeriscopeError):
                raise text
            runs.append(store.import_run(text, owner))
        except VeriscopeError as error:
            refused.append((name, error))
    if not runs and not refused:
        raise failure("storage.no_archive", problem=phrase("archive.no_runs"))
    return Imported(tuple(runs), tuple(refused))


def _texts(data: bytes) -> Iterator[tuple[str, str | VeriscopeError]]:
    """Yield the files that may be runs, by name, or why one cannot be read."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise failure("storage.no_archive", problem=phrase("archive.damaged")) from error
    with archive:
        entries = [one for one in archive.infolist() if one.filename.endswith(".jsonl")]
        if len(entries) > MOST_RUNS:
            raise failure("storage.no_archive", problem=phrase("archive.many_runs", most=MOST_RUNS))
        left = MOST_BYTES
        # The newest is written first, and has to be the newest here too.
        for entry in reversed(entries):
            found = _unpacked(archive, entry, min(left, 4 * MOST_IN_ALL))
            if isinstance(found, bytes):
                left -= len(found)
            yield entry.filename, _decoded(found)


def _unpacked(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int
) -> bytes | VeriscopeError:
    """Return at most `most` bytes of a file: what it says of its size is not believed."""
    try:
        with archive.open(entry) as file:
            found = file.read(most + 1)
    except (*_DAMAGED, EOFError, RuntimeError, OSError, ValueError) as error:
        # RuntimeError is what an encrypted file raises.
        problem = phrase("archive.encrypted") if entry.flag_bits & 1 else phrase("archive.damaged")
        refusal = failure("storage.no_archive", problem=problem)
        refusal.__cause__ = error
        return refusal
    if len(found) > most:
        return failure("storage.no_archive", problem=phrase("archive.unpacks"))
    return found


def _decoded(found: bytes | VeriscopeError) -> str | VeriscopeError:
    if isinstance(found, VeriscopeError):
        return found
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError:
        return failure("storage.no_archive", problem=phrase("archive.no_utf8"))
