"""The index of a library: built once, kept on disk, brought up to date when documents change.

The folder of an index holds finished builds that never change, and which of them is in use:

    target/current           name of the build to read
    target/build-<random>/   one build: manifest.json and the files it lists
    target/build.lock        held by the process that builds

A build is written under another name and renamed when complete, and `current` is replaced in one
step, so a reader sees the old index or the new one and never half of either.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from uuid import uuid4

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from pydantic import Field

from pipelines.aio import write_whole
from pipelines.base import Frozen, Language, Passage
from pipelines.errors import failure
from pipelines.retrieval.base import Embedder, PassageStore
from pipelines.retrieval.documents import (
    CUTTING_RULES,
    Document,
    cut_document,
    indexed_text,
    load_library,
)
from pipelines.retrieval.indexes import TERM_RULES, BM25Index, DenseIndex, terms
from pipelines.retrieval.preparing import LANGUAGES, PreparedDocument

_FORMAT = 2


class DocumentEntry(Frozen):
    """A document of an index; `passages` counts its passages, which follow the entry before's.

    All of them have a vector or, when `embedded` is false, none.
    """

    id: str
    digest: str
    language: Language
    passages: int
    embedded: bool


def current_rules() -> str:
    """Return a name for the rules of making an index; one made by others cannot be used."""
    return f"format {_FORMAT}, cutting {CUTTING_RULES}, terms {TERM_RULES}"


class IndexManifest(Frozen):
    """What an index was made of and by which rules. `files` maps every file to its size in bytes.

    `embedder` is None for an index without vectors.
    """

    rules: str = Field(default_factory=current_rules)
    embedder: str | None
    documents: tuple[DocumentEntry, ...]
    files: dict[str, int] = Field(default_factory=dict)

    def serves(self, embedder: Embedder | None) -> bool:
        """Return whether the vectors are the `embedder`'s; without one, any index is right."""
        if embedder is None:
            return True
        return self.embedder == embedder.name and all(
            entry.embedded == (entry.language in embedder.languages) for entry in self.documents
        )

    def describes(self, documents: Sequence[Document]) -> bool:
        """Return whether the index holds just these documents, in this order and unchanged."""
        return [(entry.id, entry.digest) for entry in self.documents] == [
            (document.id, digest(document)) for document in documents
        ]


def digest(document: Document) -> str:
    """Return a hash of everything in a document."""
    content = json.dumps(document.model_dump(), sort_keys=True, ensure_ascii=False)
    return sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class LibraryIndex:
    """An open index. Its files are memory-mapped and only read, so threads may share it.

    `dense` is None when no document is in a language that the embedder reads, or there was no
    embedder. `reused` counts the documents taken over unchanged when the index was made ready.
    """

    manifest: IndexManifest
    passages: PassageStore
    bm25: BM25Index
    dense: DenseIndex | None
    embedder: Embedder | None
    reused: int = 0


def current_index(target: Path) -> LibraryIndex | None:
    """Return the index in `target`, or None when it is missing, damaged or by other rules."""
    tried = None
    # A builder may replace and remove a build while it is being opened: then try the new one.
    while (build := _current_build(target)) != tried:
        tried = build
        try:
            return _open_build(build) if build else None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            continue
    return None


def _open_build(build: Path) -> LibraryIndex:
    manifest = IndexManifest.model_validate_json((build / _MANIFEST).read_bytes())
    if _sizes(build) != manifest.files:
        raise ValueError("The files of the build are not those it was made with.")
    if manifest.rules != current_rules():
        raise ValueError("The index was made by other rules.")
    embedded = any(entry.embedded and entry.passages for entry in manifest.documents)
    index = LibraryIndex(
        manifest=manifest,
        passages=PassageStore.open(build),
        bm25=BM25Index.open(build / "bm25"),
        dense=DenseIndex.open(build) if embedded else None,
        embedder=None,
    )
    if len(index.passages) != sum(entry.passages for entry in manifest.documents):
        raise ValueError("The passages are not those of the documents.")
    return index


Progress = Callable[[int, int], None]
"""Receives (embedded, total) new passages, in the thread that builds."""

_BATCH = 16


def build_index(
    source: Path | Sequence[Document],
    target: Path,
    embedder: Embedder | None,
    progress: Progress | None = None,
    *,
    rebuild: bool = False,
) -> LibraryIndex:
    """Return the index of `source`, documents or their folder, kept in the folder `target`.

    What `target` holds already is opened when it is up to date; otherwise a new index is built, in
    which unchanged documents keep their passages and vectors (with `rebuild`, none do). A missing
    or damaged index is rebuilt. Builders of the same `target`, in any process, take turns, and
    readers keep the index they have. Without an embedder there are no vectors.

    Blocks: call it by `asyncio.to_thread`. Raises `InvalidInputError` for a library without text
    and `VeriscopeError` when `target` cannot be written.
    """
    documents = load_library(source) if isinstance(source, Path) else list(source)
    if not rebuild and (ready := _up_to_date(documents, target, embedder)):
        _tidy(target)
        return ready
    try:
        target.mkdir(parents=True, exist_ok=True)
        with FileLock(target / LOCK):
            # Another builder may have finished it while this one waited.
            if not rebuild and (ready := _up_to_date(documents, target, embedder)):
                return ready
            previous = None if rebuild else current_index(target)
            plan = _plan(documents, embedder, previous)
            _write(plan, target, embedder, progress)
            index = current_index(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise failure("library.unwritten", reason=reason) from error
    if index is None:
        raise failure("library.damaged")
    return replace(index, embedder=embedder, reused=plan.reused)


def _up_to_date(
    documents: Sequence[Document], target: Path, embedder: Embedder | None
) -> LibraryIndex | None:
    index = current_index(target)
    if index is None or not (
        index.manifest.serves(embedder) and index.manifest.describes(documents)
    ):
        return None
    return replace(index, embedder=embedder, reused=len(documents))


@dataclass
class _Plan:
    """What goes into a build: everything but the vectors that have yet to be computed.

    `embedded` are the positions of the passages that have a vector, ascending; `vectors` has those
    that are taken over by these positions.
    """

    entries: list[DocumentEntry]
    passages: list[Passage]
    embedded: list[int]
    vectors: dict[int, NDArray[np.float32]]
    reused: int = 0


def _plan(
    documents: Sequence[Document], embedder: Embedder | None, previous: LibraryIndex | None
) -> _Plan:
    plan = _Plan([], [], [], {})
    # Where each unchanged document's passages are, and their vectors by the same embedder.
    known: dict[tuple[str, str], range] = {}
    dense = None
    if previous:
        ends = accumulate(entry.passages for entry in previous.manifest.documents)
        for entry, end in zip(previous.manifest.documents, ends, strict=True):
            known[entry.id, entry.digest] = range(end - entry.passages, end)
        if embedder and previous.manifest.embedder == embedder.name:
            dense = previous.dense
    for document in documents:
        key = digest(document)
        positions = known.get((document.id, key))
        if previous and positions:
            cut = [previous.passages[position] for position in positions]
            plan.reused += 1
        else:
            cut = cut_document(document)
        embedded = embedder is not None and document.language in embedder.languages
        if embedded:
            first = len(plan.passages)
            plan.embedded += range(first, first + len(cut))
            if dense and positions:
                # All of a document's passages, or none.
                vectors = dense.vectors(positions.start, positions.stop)
                plan.vectors.update(enumerate(vectors, start=first))
        plan.passages += cut
        plan.entries.append(
            DocumentEntry(
                id=document.id,
                digest=key,
                language=document.language,
                passages=len(cut),
                embedded=embedded,
            )
        )
    return plan


def _write(plan: _Plan, target: Path, embedder: Embedder | None, progress: Progress | None) -> None:
    texts = [indexed_text(passage) for passage in plan.passages]
    if not any(map(terms, texts)):
        raise failure("library.no_words")
    with new_build(target) as folder:
        PassageStore.write(folder, plan.passages)
        BM25Index.build(texts).write(folder / "bm25")
        if embedder and plan.embedded:
            _embed(plan, texts, embedder, progress)
            vectors = np.stack([plan.vectors[at] for at in plan.embedded])
            DenseIndex.write(folder, vectors, np.array(plan.embedded))
        name = embedder.name if embedder else None
        publish(folder, IndexManifest(embedder=name, documents=tuple(plan.entries)))


def _embed(
    plan: _Plan, texts: Sequence[str], embedder: Embedder, progress: Progress | None
) -> None:
    missing = [at for at in plan.embedded if at not in plan.vectors]
    for start in range(0, len(missing), _BATCH):
        if progress:
            progress(start, len(missing))
        batch = missing[start : start + _BATCH]
        vectors = embedder.embed([texts[at] for at in batch])
        plan.vectors.update(zip(batch, vectors, strict=True))
    if progress and missing:
        progress(len(missing), len(missing))


# The folder of an index

LOCK = "build.lock"
"""Held by the process that builds."""

_MANIFEST = "manifest.json"
_CURRENT = "current"
_PREFIX = "build-"


def build_name(target: Path) -> str | None:
    """Return the name of the build in use, another for every build; None where there is none."""
    build = _current_build(target)
    return None if build is None else build.name


def _current_build(target: Path) -> Path | None:
    """Return the folder of the build in use, maybe not sound; None when nothing was built."""
    try:
        return target / (target / _CURRENT).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


@contextmanager
def new_build(target: Path) -> Iterator[Path]:
    """Give an empty folder to write a build into, removed at the end unless `publish` took it."""
    folder = target / f"{_PREFIX}{uuid4().hex}.partial"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(partial: Path, manifest: IndexManifest) -> None:
    """Make a written build the current one and remove the others, while the lock is held."""
    target = partial.parent
    sized = manifest.model_copy(update={"files": _sizes(partial)})
    (partial / _MANIFEST).write_text(sized.model_dump_json(indent=1), encoding="utf-8")
    build = partial.rename(partial.with_suffix(""))
    write_whole(target / _CURRENT, build.name)
    _remove_others(target, build)


def withdraw(target: Path) -> None:
    """Withdraw the index in `target`. Readers that have it open can still read it."""
    with suppress(FileNotFoundError):
        (target / _CURRENT).unlink()


def _remove_others(target: Path, build: Path) -> None:
    """Delete all builds but that one; to be called by the process that builds."""
    for other in target.glob(f"{_PREFIX}*"):
        if other != build:
            # A reader may still hold one open, which some systems do not allow to be removed:
            # then the next build removes it.
            shutil.rmtree(other, ignore_errors=True)


def _tidy(target: Path) -> None:
    """Delete what a builder that was killed has left, unless somebody builds right now."""
    build = _current_build(target)
    if build is None or all(one == build for one in target.glob(f"{_PREFIX}*")):
        return
    with suppress(OSError, Timeout), FileLock(target / LOCK, timeout=0):
        if _current_build(target) == build:
            _remove_others(target, build)


def _sizes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _MANIFEST
    }


# One index made of many prepared documents, in memory that does not grow with their number.
#
# Passages and vectors are copied from the documents' files piece by piece. Only what BM25 counts is
# held at once: eight bytes for every word of all passages.

_AT_ONCE = 4096
"""Vectors that are copied together."""

_TOLD = 1000
"""Progress is reported after this many passages."""


class IndexSource(Frozen):
    """A prepared document in its folder. `vectors` is the file of its vectors of `dimension`."""

    id: str
    digest: str
    folder: Path
    vectors: Path | None = None
    dimension: int = 0


class Assembly(Frozen):
    """What an index is made of: documents in their order, and whose vectors they have.

    `embedder` is None for an index without vectors; `readable` are the languages of the passages
    that have one.
    """

    target: Path
    sources: tuple[IndexSource, ...]
    embedder: str | None = None
    readable: tuple[Language, ...] = ()


def assemble(assembly: Assembly, tell: Callable[[int, int], None]) -> int:
    """Write the index of `assembly` in place of the former one; returns its number of passages.

    `tell` is called with the number of indexed passages and the number of all. Raises OSError or
    ValueError where a document's files are damaged or nothing can be written.
    """
    documents = [PreparedDocument(source.folder) for source in assembly.sources]
    total = sum(len(document.passages) for document in documents)
    assembly.target.mkdir(parents=True, exist_ok=True)
    with FileLock(assembly.target / LOCK), new_build(assembly.target) as folder:
        PassageStore.write(folder, (one for document in documents for one in _all(document)))
        BM25Index.build(_texts(PassageStore.open(folder), total, tell)).write(folder / "bm25")
        positions = _positions(documents, assembly)
        if len(positions):
            DenseIndex.write(folder, _vectors(assembly.sources), positions)
        entries = tuple(map(_entry, assembly.sources, documents, [assembly] * len(documents)))
        publish(folder, IndexManifest(embedder=assembly.embedder, documents=entries))
    return total


def readable_rows(document: PreparedDocument, languages: Sequence[Language]) -> NDArray[np.int64]:
    """Return the passages of a document in these languages, ascending."""
    codes = [LANGUAGES.index(language) for language in languages]
    return np.flatnonzero(np.isin(document.languages, codes)).astype(np.int64)


def _all(document: PreparedDocument) -> Iterator[Passage]:
    return (document.passages[at] for at in range(len(document.passages)))


def _texts(passages: PassageStore, total: int, tell: Callable[[int, int], None]) -> Iterator[str]:
    for at in range(total):
        if at % _TOLD == 0:
            tell(at, total)
        yield indexed_text(passages[at])
    tell(total, total)


def _positions(documents: Sequence[PreparedDocument], assembly: Assembly) -> NDArray[np.int64]:
    """Return where in the whole index the passages are that have a vector."""
    if assembly.embedder is None:
        return np.empty(0, np.int64)
    found: list[NDArray[np.int64]] = []
    first = 0
    for document in documents:
        found.append(first + readable_rows(document, assembly.readable))
        first += len(document.passages)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _vectors(sources: Sequence[IndexSource]) -> Iterator[NDArray[np.float32]]:
    for source in sources:
        if source.vectors is None:
            continue
        rows = np.memmap(source.vectors, dtype=np.float32, mode="r")
        rows = rows.reshape(-1, source.dimension)
        for start in range(0, len(rows), _AT_ONCE):
            yield rows[start : start + _AT_ONCE]


def _entry(source: IndexSource, document: PreparedDocument, assembly: Assembly) -> DocumentEntry:
    chinese = int(document.languages.sum()) * 2 > len(document.languages)
    return DocumentEntry(
        id=source.id,
        digest=source.digest,
        language="zh" if chinese else "en",
        passages=len(document.passages),
        embedded=source.vectors is not None,
    )
