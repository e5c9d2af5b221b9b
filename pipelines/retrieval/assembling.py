"""One index made of many prepared documents, in memory that does not grow with their number.

Passages and vectors are copied from the documents' files piece by piece. Only what BM25 counts is
held at once: eight bytes for every word of all passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from pipelines.retrieval.base import PassageStore
from pipelines.retrieval.bm25 import BM25Index
from pipelines.retrieval.dense import DenseIndex
from pipelines.retrieval.library import LOCK, DocumentEntry, IndexManifest, new_build, publish
from pipelines.retrieval.passages import indexed_text
from pipelines.retrieval.preparing import LANGUAGES, PreparedDocument
from pipelines.types import Frozen, Language, Passage

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
