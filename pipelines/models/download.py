"""Downloads of models from the hub: one at a time, in a thread, to be paused and continued.

What has arrived of a file is kept beside it as `.part`. The file gets its own name only when its
checksum is right, so that what has that name can be used.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pipelines.errors import ErrorInfo, VeriscopeError, failure, failure_words
from pipelines.models.catalogue import (
    CatalogueEntry,
    Manifest,
    ModelFile,
    bytes_arrived,
    folder_of,
    forget_manifest,
    is_complete,
    manifest_of,
    part_of,
    write_manifest,
)
from pipelines.models.local.loading import BESIDE_WEIGHTS, SECOND_COPIES, hub_failure

Stage = Literal["absent", "waiting", "asking", "running", "checking", "paused", "failed", "done"]
ACTIVE: frozenset[Stage] = frozenset({"waiting", "asking", "running", "checking"})
"""The stages in which something goes on."""

Then = Callable[[], object]

_TIMEOUT = 20.0
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


class _StopError(Exception):
    """Somebody wants the download to end here."""


@dataclass
class _Job:
    entry: CatalogueEntry
    folder: Path
    then: list[Then]
    stage: Stage = "waiting"
    done: int = 0
    total: int = 0
    error: ErrorInfo | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    forget: bool = False
    """Whether what has arrived is deleted, once stopped."""
    marks: deque[tuple[float, int]] = field(default_factory=deque)

    def check(self) -> None:
        """Raise _StopError if it is to end here."""
        if self.stop.is_set():
            raise _StopError

    def count(self, size: int) -> None:
        """That many bytes more have arrived."""
        self.done += size
        now = time.monotonic()
        if self.marks and now - self.marks[-1][0] < _MARK_EVERY:
            return
        self.marks.append((now, self.done))
        while now - self.marks[0][0] > _SPEED_WINDOW:
            self.marks.popleft()

    def lose(self, size: int) -> None:
        """That many bytes are of no use; the speed is measured anew."""
        self.done -= size
        self.marks.clear()

    @property
    def state(self) -> DownloadState:
        marks = list(self.marks) if self.stage == "running" else []
        # Until now: a connection that stands still becomes slower and slower.
        passed = time.monotonic() - marks[0][0] if marks else 0.0
        speed = (marks[-1][1] - marks[0][1]) / passed if passed > _MARK_EVERY else None
        return DownloadState(self.stage, self.done, self.total, speed, self.error)


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
        self._jobs: dict[str, _Job] = {}
        self._queue: deque[_Job] = deque()
        self._at_work: _Job | None = None
        self._worker: threading.Thread | None = None

    def state(self, entry: CatalogueEntry) -> DownloadState:
        """How far it is; what an earlier process left is "paused" or "done"."""
        with self._lock:
            job = self._jobs.get(entry.name)
        if job is not None:
            return job.state
        folder = folder_of(entry.repository, self._models)
        manifest = manifest_of(entry, folder)
        if manifest is None:
            return DownloadState("absent", 0, entry.size)
        stage: Stage = "done" if is_complete(folder, manifest) else "paused"
        return DownloadState(stage, bytes_arrived(folder, manifest), manifest.size)

    def path(self, entry: CatalogueEntry) -> Path:
        """The file or folder of the downloaded model."""
        return folder_of(entry.repository, self._models) / entry.file

    def start(self, entry: CatalogueEntry, then: Then | None = None) -> None:
        """Download it, or continue that, after those that were started before; once at a time.

        `then` is called, in the thread of the downloads, when the model is there.
        """
        with self._lock:
            job = self._jobs.get(entry.name)
            if job is None or job.stage == "failed" or job.stop.is_set():
                left = self.state(entry)
                folder = folder_of(entry.repository, self._models)
                job = _Job(entry, folder, [], done=left.done, total=left.total)
                self._jobs[entry.name] = job
                self._queue.append(job)
            if then is not None:
                job.then.append(then)
            if self._worker is None:
                self._worker = threading.Thread(
                    target=self._work, name="veriscope-downloads", daemon=True
                )
                self._worker.start()

    def pause(self, entry: CatalogueEntry) -> None:
        """Stop it and keep what has arrived."""
        self._stop(entry, forget=False)

    def delete(self, entry: CatalogueEntry) -> None:
        """Stop it and delete what has arrived, or what was downloaded."""
        self._stop(entry, forget=True)

    def close(self) -> None:
        """Pause everything, and wait until it stands still."""
        with self._lock:
            for job in list(self._jobs.values()):
                self._stop(job.entry, forget=False)
            worker = self._worker
        if worker is not None:
            worker.join(2 * _TIMEOUT)

    def _stop(self, entry: CatalogueEntry, *, forget: bool) -> None:
        with self._lock:
            job = self._jobs.pop(entry.name, None)
            if job is not None:
                job.stop.set()
                if job in self._queue:
                    self._queue.remove(job)
            if forget:
                # One that was paused may still be at work.
                working, folder = self._at_work, folder_of(entry.repository, self._models)
                if working is not None and working.folder == folder:
                    # It deletes the rest as soon as it has stopped.
                    working.forget = True
                    forget_manifest(folder)
                else:
                    _delete(folder)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._worker = None
                    return
                job = self._at_work = self._queue.popleft()
                job.stage = "asking"
            self._carry_out(job)

    def _carry_out(self, job: _Job) -> None:
        try:
            self._fetch(job)
        except _StopError:
            pass
        except VeriscopeError as error:
            job.error = error.info()
        except Exception as error:
            job.error = _explained(error, job.entry).info()
        if job.error is None and not job.stop.is_set():
            # Before the state says "done": by then the model is saved and can be used.
            self._tell(job)
        with self._lock:
            self._at_work = None
            if job.forget:
                try:
                    _delete(job.folder)
                except OSError as error:
                    # Without a manifest it belongs to no download any more.
                    _logger.warning("%s is not deleted: %s", job.folder.name, error)
            elif job.error is not None:
                job.stage = "failed"
            elif self._jobs.get(job.entry.name) is job:
                del self._jobs[job.entry.name]

    def _tell(self, job: _Job) -> None:
        told = 0
        while True:
            with self._lock:
                if told == len(job.then):
                    job.stop.set()
                    return
                then = job.then[told]
            told += 1
            try:
                then()
            except Exception as error:
                # The model is there all the same, and the next download waits for this thread.
                _logger.warning("%s is not saved: %s", job.entry.name, error)

    def _fetch(self, job: _Job) -> None:
        from filelock import FileLock, Timeout

        self._models.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._models / f"{job.folder.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise failure("downloads.elsewhere", None, label=job.entry.name) from error
        try:
            manifest = manifest_of(job.entry, job.folder)
            if manifest is None:
                manifest = _ask(job.entry)
                _delete(job.folder)
                write_manifest(job.folder, manifest)
            job.check()
            job.done, job.total = bytes_arrived(job.folder, manifest), manifest.size
            _check_space(job)
            for file in manifest.files:
                self._fetch_file(job, manifest, file)
        finally:
            lock.release()

    def _fetch_file(self, job: _Job, manifest: Manifest, file: ModelFile) -> None:
        path = job.folder / file.name
        if path.is_file() and path.stat().st_size == file.size:
            return
        job.check()
        if path.is_file():
            # A file of another size is none of this download.
            job.lose(path.stat().st_size)
            path.unlink()
        part = _Part(job, part_of(path), file)
        part.read()
        failures = 0
        while part.size < file.size:
            before = part.size
            try:
                self._stream(job, manifest, part)
            except Exception as error:
                if not _may_pass(error):
                    raise
                failures = failures + 1 if part.size <= before else 1
                if failures >= self._attempts:
                    raise
            else:
                failures = failures + 1 if part.size <= before else 0
                if failures >= self._attempts:
                    raise ConnectionError("The answer ended early.")
            if part.size < file.size and job.stop.wait(self._pause * 2 ** max(0, failures - 1)):
                raise _StopError
        if part.size != file.size or not part.is_right():
            part.path.unlink()
            job.lose(part.size)
            raise failure("downloads.checksum", _host(), file=file.name)
        part.path.replace(path)

    def _stream(self, job: _Job, manifest: Manifest, part: _Part) -> None:
        """Receive what is missing of the file, until it ends or is asked to stop."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        name, repository = part.file.name, job.entry.repository
        url = hf_hub_url(repository, name, revision=manifest.commit, endpoint=_endpoint())
        headers = build_hf_headers(library_name="veriscope")
        # Compressed, it would be counted and checked as something else.
        headers["Accept-Encoding"] = "identity"
        if part.size:
            headers["Range"] = f"bytes={part.size}-"
        job.stage = "running"
        with get_session().stream(
            "GET", url, headers=headers, timeout=_TIMEOUT, follow_redirects=True
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
                    job.check()
                    if part.size > part.file.size:
                        return


class _Part:
    """What has arrived of a file, with the checksum of it."""

    def __init__(self, job: _Job, path: Path, file: ModelFile) -> None:
        self.path = path
        self.file = file
        self.size = 0
        self._job = job
        self._checksum: Any = self._new()

    def _new(self) -> Any:
        if self.file.sha256:
            return hashlib.sha256()
        # Files that are no LFS objects are known by the id that git gives them.
        return hashlib.sha1(f"blob {self.file.size}\0".encode(), usedforsecurity=False)

    def read(self) -> None:
        """Take in what an earlier attempt has left; raises _StopError when asked to stop."""
        self.path.touch()
        if self.path.stat().st_size > self.file.size:
            self._job.lose(self.path.stat().st_size)
            self.path.write_bytes(b"")
        self._job.stage = "checking"
        with self.path.open("rb") as file:
            while chunk := file.read(1 << 22):
                self._job.check()
                self._checksum.update(chunk)
                self.size += len(chunk)

    def add(self, chunk: bytes, out: Any) -> None:
        out.write(chunk)
        self._checksum.update(chunk)
        self.size += len(chunk)
        self._job.count(len(chunk))

    def clear(self) -> None:
        self.path.write_bytes(b"")
        self._job.lose(self.size)
        self.size, self._checksum = 0, self._new()

    def is_right(self) -> bool:
        return self._checksum.hexdigest() == (self.file.sha256 or self.file.blob_id)


def _ask(entry: CatalogueEntry) -> Manifest:
    """What the hub has under the entry's revision; raises what asking it raises."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils import filter_repo_objects

    api = HfApi(endpoint=_endpoint(), library_name="veriscope")
    found = api.model_info(
        entry.repository, revision=entry.revision, files_metadata=True, timeout=_TIMEOUT
    )
    # A name with a folder in it would lead out of the model's own folder.
    listed = {one.rfilename: one for one in found.siblings or () if not {*one.rfilename} & {*"/\\"}}
    patterns = [entry.file] if entry.file else ["*.safetensors", *BESIDE_WEIGHTS]
    unwanted: list[str] = [] if entry.file else [*SECOND_COPIES]
    names = list(filter_repo_objects(listed, allow_patterns=patterns, ignore_patterns=unwanted))
    if not names or not found.sha:
        raise _failed("not_on_the_hub", entry)
    files = tuple(
        ModelFile(
            name=name,
            size=one.size or 0,
            sha256=one.lfs.sha256 if one.lfs else "",
            blob_id=one.blob_id or "",
        )
        for name, one in ((name, listed[name]) for name in names)
    )
    if entry.sha256 and files[0].sha256 != entry.sha256:
        raise failure("downloads.changed", _host(), label=entry.name)
    return Manifest(revision=entry.revision, commit=found.sha, files=files)


def _check_space(job: _Job) -> None:
    needed = job.total - job.done
    free = shutil.disk_usage(job.folder).free
    if needed and free < needed + _RESERVE:
        sizes = {"needed": in_gigabytes(needed + _RESERVE), "free": in_gigabytes(free)}
        raise failure("downloads.disk_full", None, label=job.entry.name, **sizes)


def in_gigabytes(size: float) -> str:
    """A number of bytes as "0.64 GB"."""
    return f"{size / 1e9:.2f} GB" if size < 1e10 else f"{size / 1e9:.1f} GB"


def _delete(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _may_pass(error: Exception) -> bool:
    """Whether the next attempt may succeed."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    if isinstance(error, _StopError | OfflineModeIsEnabled):
        return False
    found = hub_failure(error)
    return found is not None and found[0] in ("no_connection", "hub_failed", "slow_down")


def _explained(error: Exception, entry: CatalogueEntry) -> VeriscopeError:
    found = hub_failure(error)
    if found is not None and found[0] == "disk_full":
        return failure("downloads.filled", None, label=entry.name)
    if found is not None:
        return _failed(found[0], entry, status=found[1])
    if isinstance(error, OSError):
        said = error.strerror or type(error).__name__
        return failure("downloads.unwritten", None, label=entry.name, said=said)
    _logger.error("The download of %s failed.", entry.name, exc_info=error)
    return failure("asking.unexpected")


def _failed(kind: str, entry: CatalogueEntry, status: int | None = None) -> VeriscopeError:
    group = "downloads" if kind in failure_words()["downloads"] else "loading"
    facts = {"label": entry.name, "files": entry.file or "the files", "host": _host()}
    return failure(f"{group}.{kind}", _host(), status=status, **facts)


def _endpoint() -> str | None:
    """The address of the hub that the environment names, read when it is needed."""
    return os.environ.get("HF_ENDPOINT") or None


def _host() -> str:
    from huggingface_hub import constants

    return urlsplit(_endpoint() or constants.ENDPOINT).netloc
