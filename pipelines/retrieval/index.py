"""The index of a library: built once, kept on disk, brought up to date when documents change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import CapabilityError, InvalidInputError, NotFoundError, VeriscopeError
from pipelines.retrieval import builds
from pipelines.retrieval.base import Embedder, Retriever
from pipelines.retrieval.bm25 import BM25Index, BM25Retriever
from pipelines.retrieval.dense import DenseIndex, DenseRetriever
from pipelines.retrieval.documents import Document, load_library
from pipelines.retrieval.embedders import default_embedder
from pipelines.retrieval.hybrid import HybridRetriever
from pipelines.retrieval.library import LibraryIndex, current_index
from pipelines.retrieval.manifest import DocumentEntry, Manifest, digest
from pipelines.retrieval.passages import cut_document, indexed_text
from pipelines.retrieval.store import PassageStore
from pipelines.retrieval.tokens import terms
from pipelines.types import Frozen, Passage

__all__ = [
    "IndexReport",
    "LibraryIndex",
    "Progress",
    "RetrievalMode",
    "build_index",
    "index_library",
    "library_retriever",
    "open_index",
]

RetrievalMode = Literal["bm25", "dense", "hybrid"]

Progress = Callable[[int, int], None]
"""Is told how many of how many new passages are embedded, from the thread that builds."""

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
    or damaged index is built anew. Builders of the same `target`, in any process, take turns, and
    readers keep the index they have. Without an embedder there are no vectors.

    Blocks: call it by `asyncio.to_thread`. Raises `InvalidInputError` for a library without text
    and `VeriscopeError` when `target` cannot be written.
    """
    documents = load_library(source) if isinstance(source, Path) else list(source)
    if not rebuild and (ready := _up_to_date(documents, target, embedder)):
        return ready
    try:
        with builds.building(target):
            # Somebody else may have built it while this one waited.
            if not rebuild and (ready := _up_to_date(documents, target, embedder)):
                return ready
            previous = None if rebuild else current_index(target)
            plan = _plan(documents, embedder, previous)
            _write(plan, target, embedder, progress)
            index = current_index(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise VeriscopeError(
            f"The index of the library could not be written ({reason}).",
            remedy="Make room on the disk, or choose a data folder that can be written to.",
        ) from error
    if index is None:
        raise VeriscopeError(
            "The index of the library was removed or damaged while it was built.",
            remedy="Build it again.",
        )
    return replace(index, embedder=embedder, reused=plan.reused)


def open_index(target: Path, embedder: Embedder | None = None) -> LibraryIndex:
    """The index in `target` as it is, without a look at the documents.

    Raises `NotFoundError` when there is none, it is damaged or older than this version's rules,
    or its vectors are not the `embedder`'s.
    """
    index = current_index(target)
    if index is None or not index.manifest.serves(embedder):
        raise NotFoundError(
            "There is no usable index of the library.",
            remedy="Index the library first.",
        )
    return replace(index, embedder=embedder)


def index_library(
    folder: Path,
    target: Path,
    rebuild: bool = False,
    progress: Progress | None = None,
    embedder: Embedder | None = None,
) -> IndexReport:
    """Bring the index of the library in `folder` up to date and say what was done.

    Without an `embedder` the embedded one is taken; where that is not installed the index has no
    vectors and serves BM25 alone.
    """
    began = time.monotonic()
    index = build_index(folder, target, embedder or default_embedder(), progress, rebuild=rebuild)
    return IndexReport(
        documents=len(index.manifest.documents),
        passages=len(index.passages),
        reused=index.reused,
        seconds=time.monotonic() - began,
    )


def library_retriever(index: LibraryIndex, mode: RetrievalMode) -> Retriever:
    """A retriever over `index`. Hybrid works without vectors too, by BM25 alone.

    Raises `CapabilityError` for dense retrieval from an index without vectors or embedder.
    """
    if mode == "bm25":
        return BM25Retriever(index.passages, index.bm25)
    if mode == "hybrid":
        return HybridRetriever(index.passages, index.bm25, index.dense, index.embedder)
    if index.dense is None or index.embedder is None:
        raise CapabilityError(
            "This library has no vectors to search by.",
            remedy="Search by BM25, or index the library with an embedding model that reads its "
            "language.",
        )
    return DenseRetriever(index.passages, index.dense, index.embedder)


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
    ready: list[tuple[int, NDArray[np.float32]]]
    """Vectors taken over, each block with the position of its first passage."""
    missing: list[int]
    """Positions of the passages to embed."""
    reused: int = 0


def _plan(
    documents: Sequence[Document],
    embedder: Embedder | None,
    previous: LibraryIndex | None,
) -> _Plan:
    plan = _Plan([], [], [], [])
    known = _places(previous) if previous else {}
    for document in documents:
        key = digest(document)
        here = len(plan.passages)
        place = known.get((document.id, key))
        if previous and place:
            cut = [previous.passages[position] for position in place]
            plan.reused += 1
        else:
            cut = cut_document(document)
        plan.passages += cut
        embedded = False
        if embedder and document.language in embedder.languages:
            embedded = True
            vectors = _vectors(previous, place, embedder) if previous and place else None
            if vectors is None:
                plan.missing += range(here, here + len(cut))
            else:
                plan.ready.append((here, vectors))
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


def _places(index: LibraryIndex) -> dict[tuple[str, str], range]:
    """Where the passages of each document stand, by its id and digest."""
    ends = accumulate(entry.passages for entry in index.manifest.documents)
    return {
        (entry.id, entry.digest): range(end - entry.passages, end)
        for entry, end in zip(index.manifest.documents, ends, strict=True)
    }


def _vectors(index: LibraryIndex, place: range, embedder: Embedder) -> NDArray[np.float32] | None:
    """The `embedder`'s vectors of the passages at `place`, where `index` has them."""
    if index.dense is None or index.manifest.embedder != embedder.name:
        return None
    vectors = index.dense.vectors(place.start, place.stop)
    return vectors if len(vectors) == len(place) else None


def _write(plan: _Plan, target: Path, embedder: Embedder | None, progress: Progress | None) -> None:
    texts = [indexed_text(passage) for passage in plan.passages]
    if not any(map(terms, texts)):
        raise InvalidInputError("The library holds no words.", remedy="Add documents to it.")
    with builds.new_build(target) as folder:
        PassageStore.write(folder, plan.passages)
        BM25Index.build(texts).write(folder / "bm25")
        blocks = list(plan.ready)
        if embedder and plan.missing:
            new = _embedded([texts[position] for position in plan.missing], embedder, progress)
            blocks += [(at, new[row : row + 1]) for row, at in enumerate(plan.missing)]
        if blocks:
            blocks.sort(key=lambda block: block[0])
            positions = np.concatenate([at + np.arange(len(block)) for at, block in blocks])
            DenseIndex.write(folder, np.concatenate([block for _, block in blocks]), positions)
        name = embedder.name if embedder else None
        builds.publish(folder, Manifest(embedder=name, documents=tuple(plan.entries)))


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
