"""Indexing of a collection, a job: fetch pages, read, embed, and build the index.

Every step is stored as soon as it is done: a page that was fetched, a document that was read, every
batch of vectors. So an indexing that was stopped or killed continues where it ended.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Literal

import numpy as np
from filelock import FileLock, Timeout

from pipelines.aio import write_bytes
from pipelines.error_words import phrase
from pipelines.errors import ErrorInfo, NotFoundError, VeriscopeError, failure
from pipelines.jobs import Job, JobStoppedError
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.documents import indexed_text
from pipelines.retrieval.embedders import vectors_name
from pipelines.retrieval.library import (
    Assembly,
    IndexSource,
    current_index,
    readable_rows,
    withdraw,
)
from pipelines.retrieval.preparing import PREPARED_BY, PreparedDocument, PreparedSummary
from pipelines.retrieval.reading.parsed import RefusedError
from pipelines.retrieval.web import fetch
from pipelines.retrieval.worker import (
    SECONDS,
    PreparationStoppedError,
    PreparationWorker,
    WorkerFailedError,
)
from pipelines.store.collections import (
    CollectionStore,
    DocumentFacts,
    DocumentState,
    StoredDocument,
)

MAX_PASSAGES = 250_000
"""Passages of a collection."""

Stage = Literal[
    "waiting", "elsewhere", "fetch", "read", "embed", "index", "done", "stopped", "failed"
]
"""`waiting` for its turn in this process; `elsewhere`: another process indexes the collection."""

_BATCH = 64
_LOOK = 0.2
"""Seconds after which it is looked again whether another process has ended its indexing."""

_PARTIAL = ".partial"
_OLD = 3600.0
"""Seconds after which a file that is not listed is taken to be left over, and is deleted."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexingProgress:
    """How far it is: `done` of `total` documents while they are read, else passages.

    `name` is the document that is being read; `since` when the stage began and `first` what was
    done then, for an estimate of the time that is left; `error` why it failed.
    """

    stage: Stage = "waiting"
    done: int = 0
    total: int = 0
    name: str = ""
    since: float = field(default_factory=time.monotonic)
    first: int = 0
    error: ErrorInfo | None = None

    @property
    def going_on(self) -> bool:
        """Whether it still works, or waits for its turn."""
        return self.stage not in ("done", "stopped", "failed")

    @property
    def seconds_left(self) -> float | None:
        """At the speed so far; None while too little is known."""
        passed, done = time.monotonic() - self.since, self.done - self.first
        if passed < 2.0 or done <= 0 or self.total <= self.done:
            return None
        return passed / done * (self.total - self.done)


@dataclass(frozen=True)
class IndexingTask:
    """What is indexed: a collection of `owner` in `folder`, by an embedder of that `identity`."""

    owner: str
    collection: str
    name: str
    folder: Path
    embedder: Embedder | None
    identity: str | None
    public_only: bool
    seconds: float = SECONDS


def document_folder(folder: Path, document: str) -> Path:
    """Return where the files of a document are."""
    return folder / "documents" / document


def original_of(folder: Path, document: str) -> Path:
    """Return the file as it was added."""
    return document_folder(folder, document) / "original"


IndexingJob = Job[IndexingProgress, None]
"""An indexing; one that is stopped keeps what is done."""


def progress_of(job: IndexingJob) -> IndexingProgress:
    """Return how far an indexing is, or how it ended."""
    state = job.state
    if state in ("waiting", "running"):
        return job.progress
    return replace(job.progress, stage=state, error=job.error)


class Indexing:
    """The work of one indexing."""

    def __init__(self, job: IndexingJob, task: IndexingTask, store: CollectionStore) -> None:
        self._job = job
        self._task = task
        self._store = store

    def run(self) -> None:
        """Bring the index up to date. Raises VeriscopeError, and JobStoppedError."""
        try:
            # What is up to date is left alone, so that those who only read never wait.
            if not self._is_up_to_date():
                with self._lock():
                    self._index()
        except (JobStoppedError, VeriscopeError):
            raise
        except PreparationStoppedError:
            raise JobStoppedError from None
        except Exception as error:
            _log.exception("A collection could not be indexed")
            said = str(error) if isinstance(error, WorkerFailedError) else type(error).__name__
            raise failure("library.failed", said=said) from error

    def _is_up_to_date(self) -> bool:
        documents = self._documents()
        if any(map(is_waiting, documents)):
            return False
        return self._is_current([self._source(one) for one in documents if one.state == "ready"])

    def _lock(self) -> AbstractContextManager[object]:
        """Take the lock of the collection; while another process has it, say so and wait."""
        self._task.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._task.folder / "indexing.lock")
        while True:
            try:
                return lock.acquire(timeout=0)
            except Timeout:
                self._tell("elsewhere", 0, 0)
                self._job.go_on(after=_LOOK)

    def _index(self) -> None:
        """Index until nothing is left to do: documents may be added and deleted meanwhile."""
        while True:
            self._job.go_on()
            self._prepare_all()
            ready = [one for one in self._documents() if one.state == "ready"]
            try:
                if self._build(ready):
                    return
            except (OSError, ValueError, WorkerFailedError):
                # The files of a document that was deleted meanwhile are gone.
                if not self._some_gone(ready):
                    raise

    def _build(self, ready: Sequence[StoredDocument]) -> bool:
        """Bring vectors and index up to date; return whether nothing else is left to do."""
        total = sum(one.passages for one in ready)
        if total > MAX_PASSAGES:
            count, most = f"{total:,}", f"{MAX_PASSAGES:,}"
            raise failure("library.too_many_passages", count=count, most=most)
        sources = self._embed_all(ready)
        if not self._is_current(sources):
            self._assemble(sources, total)
        if self._some_gone(ready):
            withdraw(self._task.folder / "index")
            return False
        if any(map(is_waiting, self._documents())):
            return False
        self._tidy(ready)
        return True

    def _some_gone(self, documents: Sequence[StoredDocument]) -> bool:
        there = {one.id for one in self._documents()}
        return any(one.id not in there for one in documents)

    # What there is to read

    def _prepare_all(self) -> None:
        waiting = [one for one in self._documents() if is_waiting(one)]
        if not waiting:
            return
        worker = PreparationWorker(self._stopped)
        try:
            for number, document in enumerate(waiting):
                stage = "fetch" if document.state == "address" else "read"
                self._tell(stage, number, len(waiting), document.name)
                try:
                    self._prepare(document, worker)
                except NotFoundError:
                    # It was deleted meanwhile.
                    continue
        finally:
            worker.close()

    def _prepare(self, document: StoredDocument, worker: PreparationWorker) -> None:
        folder, path = self._places(document)
        try:
            if document.state == "address":
                document = self._fetch(document, path)
            if not path.is_file():
                raise RefusedError("lost")
            found = self._read(document, folder, path, worker)
        except RefusedError as error:
            # An address is tried again when the page is added again.
            self._keep(
                document,
                "refused",
                DocumentFacts(reason=error.reason, facts=error.facts, url=document.url),
            )
            return
        for former in folder.glob("vectors-*"):
            former.unlink()
        facts = DocumentFacts(
            **found.model_dump(exclude={"passages"}), url=document.url, rules=PREPARED_BY
        )
        self._keep(document, "ready", facts, passages=found.passages)

    def _read(
        self, document: StoredDocument, folder: Path, path: Path, worker: PreparationWorker
    ) -> PreparedSummary:
        """Return what is in a document's file, written beside what is there and then put in
        its place.

        The process that read for a process that was killed may still be writing.
        """
        for former in folder.glob(f"*{_PARTIAL}"):
            shutil.rmtree(former, ignore_errors=True)
        partial = folder / f"{token_hex(8)}{_PARTIAL}"
        try:
            found = worker.prepare(
                path, document.name, partial, document.id, document.url, self._task.seconds
            )
            for one in partial.iterdir():
                one.replace(folder / one.name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return found

    def _fetch(self, document: StoredDocument, path: Path) -> StoredDocument:
        page = asyncio.run(fetch(document.url or "", public_only=self._task.public_only))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, page.data)
        digest, size = sha256(page.data).hexdigest(), len(page.data)
        facts = DocumentFacts(url=page.url)
        self._keep(document, "stored", facts, digest=digest, size=size)
        return document.model_copy(update={"digest": digest, "size": size, "url": page.url})

    def _keep(
        self,
        document: StoredDocument,
        state: DocumentState,
        facts: DocumentFacts,
        *,
        passages: int = 0,
        digest: str | None = None,
        size: int | None = None,
    ) -> None:
        task = self._task
        self._store.update(
            task.owner,
            task.collection,
            document.id,
            state,
            facts,
            passages=passages,
            digest=digest,
            size=size,
        )

    # Vectors

    def _embed_all(self, documents: Sequence[StoredDocument]) -> list[IndexSource]:
        """Return the documents as sources of an index; those without vectors get them first."""
        embedder, identity = self._task.embedder, self._task.identity
        if embedder is None or identity is None:
            return [self._source(one) for one in documents]
        total = sum(one.passages for one in documents)
        done = 0
        known = [self._kept_vectors(one, vectors_name(identity)) for one in documents]
        kept = sum(vectors.count for vectors in known)
        self._tell("embed", kept, total)
        sources: list[IndexSource] = []
        for document, vectors in zip(documents, known, strict=True):
            vectors = self._embed(document, vectors, embedder, done, total)
            done += document.passages
            sources.append(self._source(document, vectors))
        return sources

    def _embed(
        self,
        document: StoredDocument,
        vectors: _Vectors,
        embedder: Embedder,
        before: int,
        total: int,
    ) -> _Vectors:
        """Return every vector that is missing, each batch added to the file as it comes."""
        folder, _ = self._places(document)
        prepared = PreparedDocument(folder)
        rows = readable_rows(prepared, sorted(embedder.languages))
        for start in range(vectors.count, len(rows), _BATCH):
            self._advance(before + start, total, document.name)
            texts = [indexed_text(prepared.passages[at]) for at in rows[start : start + _BATCH]]
            found = np.ascontiguousarray(embedder.embed(texts), dtype="<f4")
            if vectors.path is None:
                name = f"vectors-{vectors.name}-{found.shape[1]}.f32"
                vectors = replace(vectors, path=folder / name, dimension=found.shape[1])
            if found.shape[1] != vectors.dimension:
                raise failure(
                    "embedding.invalid", host=embedder.name, said=phrase("detail.other_vectors")
                )
            assert vectors.path is not None
            with vectors.path.open("ab") as file:
                file.write(found.tobytes())
            vectors = replace(vectors, count=vectors.count + len(found))
        self._advance(before + document.passages, total, document.name)
        return vectors

    def _kept_vectors(self, document: StoredDocument, name: str) -> _Vectors:
        """Return what is there of an earlier time; half a vector at its end is cut off."""
        folder, _ = self._places(document)
        for path in folder.glob(f"vectors-{name}-*.f32"):
            dimension = int(path.stem.rpartition("-")[2])
            count, rest = divmod(path.stat().st_size, 4 * dimension)
            if rest or count > document.passages:
                count = min(count, document.passages)
                with path.open("r+b") as file:
                    file.truncate(count * 4 * dimension)
            return _Vectors(name, path, dimension, count)
        return _Vectors(name)

    def _source(self, document: StoredDocument, vectors: _Vectors | None = None) -> IndexSource:
        folder, _ = self._places(document)
        has = vectors is not None and vectors.count > 0
        return IndexSource(
            id=document.id,
            digest=f"{document.digest} {document.rules}",
            folder=folder,
            vectors=vectors.path if vectors and has else None,
            dimension=vectors.dimension if vectors and has else 0,
        )

    # The index

    def _assemble(self, sources: Sequence[IndexSource], total: int) -> None:
        target = self._task.folder / "index"
        if not sources:
            withdraw(target)
            return
        embedder = self._task.embedder
        self._tell("index", 0, total)
        worker = PreparationWorker(self._stopped)
        assembly = Assembly(
            target=target.resolve(),
            sources=tuple(sources),
            embedder=self._task.identity,
            readable=tuple(sorted(embedder.languages)) if embedder else (),
        )
        try:
            worker.assemble(assembly, lambda done, whole: self._advance(done, whole, ""))
        finally:
            worker.close()

    def _is_current(self, sources: Sequence[IndexSource]) -> bool:
        index = current_index(self._task.folder / "index")
        if index is None:
            return not sources
        return index.manifest.embedder == self._task.identity and [
            (entry.id, entry.digest) for entry in index.manifest.documents
        ] == [(source.id, source.digest) for source in sources]

    def _tidy(self, documents: Sequence[StoredDocument]) -> None:
        """Remove vectors of other embedders, and files that a killed process had not listed yet."""
        listed = {one.id for one in self._documents()}
        for folder in (self._task.folder / "documents").glob("*"):
            # One that is being added is listed within moments.
            with suppress(OSError):
                if folder.name not in listed and time.time() - folder.stat().st_mtime > _OLD:
                    shutil.rmtree(folder, ignore_errors=True)
        identity = self._task.identity
        ours = f"vectors-{vectors_name(identity)}-" if identity else "vectors-none"
        for document in documents:
            folder, _ = self._places(document)
            for path in folder.glob("vectors-*"):
                if not path.name.startswith(ours):
                    path.unlink(missing_ok=True)

    def _documents(self) -> list[StoredDocument]:
        return self._store.documents(self._task.owner, self._task.collection)

    def _places(self, document: StoredDocument) -> tuple[Path, Path]:
        folder = self._task.folder.resolve()
        return document_folder(folder, document.id), original_of(folder, document.id)

    def _stopped(self) -> bool:
        return self._job.stopped

    def _tell(self, stage: Stage, done: int, total: int, name: str = "") -> None:
        if self._job.progress.stage == stage:
            self._advance(done, total, name)
        else:
            self._job.tell(IndexingProgress(stage, done, total, name, first=done))

    def _advance(self, done: int, total: int, name: str) -> None:
        self._job.tell(replace(self._job.progress, done=done, total=total, name=name))


@dataclass(frozen=True)
class _Vectors:
    """The file of a document's vectors, None before the first; `count` are there."""

    name: str
    path: Path | None = None
    dimension: int = 0
    count: int = 0


def is_waiting(document: StoredDocument) -> bool:
    """Return whether a document has to be read, for the first time or by newer rules."""
    if document.state == "ready":
        return document.rules != PREPARED_BY
    return document.state in ("address", "stored")
