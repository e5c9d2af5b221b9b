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
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from uuid import uuid4

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from pydantic import Field

from pipelines.errors import failure
from pipelines.retrieval.base import Embedder, PassageStore
from pipelines.retrieval.bm25 import TERM_RULES, BM25Index, terms
from pipelines.retrieval.dense import DenseIndex
from pipelines.retrieval.documents import Document, load_library
from pipelines.retrieval.passages import CUTTING_RULES, cut_document, indexed_text
from pipelines.types import Frozen, Language, Passage

_FORMAT = 1


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
    """Names the rules by which an index is made. An index with other rules cannot be used."""
    return f"format {_FORMAT}, cutting {CUTTING_RULES}, terms {TERM_RULES}"


class Manifest(Frozen):
    """What an index was made of and by which rules. `files` maps every file to its size in bytes.

    `embedder` is None for an index without vectors.
    """

    rules: str = Field(default_factory=current_rules)
    embedder: str | None
    documents: tuple[DocumentEntry, ...]
    files: dict[str, int] = Field(default_factory=dict)

    def serves(self, embedder: Embedder | None) -> bool:
        """Whether the vectors are the `embedder`'s; without one, any index is right."""
        if embedder is None:
            return True
        return self.embedder == embedder.name and all(
            entry.embedded == (entry.language in embedder.languages) for entry in self.documents
        )

    def describes(self, documents: Sequence[Document]) -> bool:
        """Whether the index holds just these documents, in this order and unchanged."""
        return [(entry.id, entry.digest) for entry in self.documents] == [
            (document.id, digest(document)) for document in documents
        ]


def digest(document: Document) -> str:
    """A hash of everything in a document."""
    content = json.dumps(document.model_dump(), sort_keys=True, ensure_ascii=False)
    return sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class LibraryIndex:
    """An open index. Its files are memory-mapped and only read, so threads may share it.

    `dense` is None when no document is in a language that the embedder reads, or there was no
    embedder. `reused` counts the documents taken over unchanged when the index was made ready.
    """

    manifest: Manifest
    passages: PassageStore
    bm25: BM25Index
    dense: DenseIndex | None
    embedder: Embedder | None
    reused: int = 0


def current_index(target: Path) -> LibraryIndex | None:
    """The index in `target`, or None when it is missing, damaged or by other rules."""
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
    manifest = Manifest.model_validate_json((build / _MANIFEST).read_bytes())
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

_BATCH = 32


class IndexReport(Frozen):
    """What indexing did: sizes of the index, documents taken over unchanged, time in seconds."""

    documents: int
    passages: int
    reused: int
    seconds: float


def build_index(
    source: Path | Sequence[Document],
    target: Path,
    embedder: Embedder | None,
    progress: Progress | None = None,
    *,
    rebuild: bool = False,
) -> LibraryIndex:
    """The index of `source`, documents or their folder, kept in the folder `target`.

    What `target` holds already is opened when it is up to date; otherwise a new index is built, in
    which unchanged documents keep their passages and vectors (with `rebuild`, none do). A missing
    or damaged index is rebuilt. Builders of the same `target`, in any process, take turns, and
    readers keep the index they have. Without an embedder there are no vectors.

    Blocks: call it by `asyncio.to_thread`. Raises `InvalidInputError` for a library without text
    and `VeriscopeError` when `target` cannot be written.
    """
    documents = load_library(source) if isinstance(source, Path) else list(source)
    if not rebuild and (ready := _up_to_date(documents, target, embedder)):
        return ready
    try:
        target.mkdir(parents=True, exist_ok=True)
        with FileLock(target / "build.lock"):
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


def index_library(
    folder: Path,
    target: Path,
    embedder: Embedder | None,
    progress: Progress | None = None,
    *,
    rebuild: bool = False,
) -> IndexReport:
    """`build_index` for the library in `folder`, with a report of what was done."""
    began = time.monotonic()
    index = build_index(folder, target, embedder, progress, rebuild=rebuild)
    return IndexReport(
        documents=len(index.manifest.documents),
        passages=len(index.passages),
        reused=index.reused,
        seconds=time.monotonic() - began,
    )


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
    """What goes into a build: everything but the vectors that have yet to be computed."""

    entries: list[DocumentEntry]
    passages: list[Passage]
    vectors: dict[int, NDArray[np.float32]]
    """Vectors taken over, by the position of their passage."""
    missing: list[int]
    """Positions of the passages to embed."""
    reused: int = 0


def _plan(
    documents: Sequence[Document],
    embedder: Embedder | None,
    previous: LibraryIndex | None,
) -> _Plan:
    plan = _Plan([], [], {}, [])
    known = _positions(previous) if previous else {}
    for document in documents:
        key = digest(document)
        positions = known.get((document.id, key))
        if previous and positions:
            cut = [previous.passages[position] for position in positions]
            plan.reused += 1
        else:
            cut = cut_document(document)
        embedded = embedder is not None and document.language in embedder.languages
        here = range(len(plan.passages), len(plan.passages) + len(cut))
        vectors = _vectors(previous, positions, embedder) if embedded and positions else ()
        if len(vectors) == len(cut):
            plan.vectors.update(zip(here, vectors, strict=True))
        elif embedded:
            plan.missing += here
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


def _positions(index: LibraryIndex) -> dict[tuple[str, str], range]:
    """The positions of each document's passages, by its id and digest."""
    ends = accumulate(entry.passages for entry in index.manifest.documents)
    return {
        (entry.id, entry.digest): range(end - entry.passages, end)
        for entry, end in zip(index.manifest.documents, ends, strict=True)
    }


def _vectors(
    index: LibraryIndex | None, positions: range, embedder: Embedder | None
) -> Sequence[NDArray[np.float32]]:
    """The `embedder`'s vectors of the passages at `positions`, where `index` has them."""
    if not (index and index.dense and embedder) or index.manifest.embedder != embedder.name:
        return ()
    return list(index.dense.vectors(positions.start, positions.stop))


def _write(plan: _Plan, target: Path, embedder: Embedder | None, progress: Progress | None) -> None:
    texts = [indexed_text(passage) for passage in plan.passages]
    if not any(map(terms, texts)):
        raise failure("library.no_words")
    with _new_build(target) as folder:
        PassageStore.write(folder, plan.passages)
        BM25Index.build(texts).write(folder / "bm25")
        vectors = dict(plan.vectors)
        if embedder and plan.missing:
            new = _embedded([texts[position] for position in plan.missing], embedder, progress)
            vectors.update(zip(plan.missing, new, strict=True))
        if vectors:
            positions = sorted(vectors)
            DenseIndex.write(
                folder, np.stack([vectors[at] for at in positions]), np.array(positions)
            )
        name = embedder.name if embedder else None
        _publish(folder, Manifest(embedder=name, documents=tuple(plan.entries)))


def _embedded(
    texts: Sequence[str], embedder: Embedder, progress: Progress | None
) -> NDArray[np.float32]:
    rows: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        if progress:
            progress(start, len(texts))
        rows.append(embedder.embed(texts[start : start + _BATCH]))
    if progress:
        progress(len(texts), len(texts))
    return np.concatenate(rows)


# The folder of an index

_MANIFEST = "manifest.json"
_CURRENT = "current"
_PREFIX = "build-"


def _current_build(target: Path) -> Path | None:
    """The folder of the build in use, which need not be sound; None when nothing was built."""
    try:
        return target / (target / _CURRENT).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


@contextmanager
def _new_build(target: Path) -> Iterator[Path]:
    """An empty folder to write a build into, removed at the end unless `_publish` took it."""
    folder = target / f"{_PREFIX}{uuid4().hex}.partial"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(partial: Path, manifest: Manifest) -> None:
    """Make a written build the current one and remove the others."""
    target = partial.parent
    sized = manifest.model_copy(update={"files": _sizes(partial)})
    (partial / _MANIFEST).write_text(sized.model_dump_json(indent=1), encoding="utf-8")
    build = partial.rename(partial.with_suffix(""))
    pointer = target / f"{_CURRENT}.partial"
    pointer.write_text(build.name, encoding="utf-8")
    pointer.replace(target / _CURRENT)
    for other in target.glob(f"{_PREFIX}*"):
        if other != build:
            # A reader may still hold one open, which some systems do not allow to be removed:
            # then the next build removes it.
            shutil.rmtree(other, ignore_errors=True)


def _sizes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _MANIFEST
    }
