"""An index of a library, open for reading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipelines.retrieval import builds
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.bm25 import BM25Index
from pipelines.retrieval.dense import DenseIndex
from pipelines.retrieval.manifest import Manifest, current_rules
from pipelines.retrieval.store import PassageStore

__all__ = ["LibraryIndex", "current_index"]


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
    while (build := builds.current_build(target)) != tried:
        tried = build
        try:
            return _open_build(build) if build else None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            continue
    return None


def _open_build(build: Path) -> LibraryIndex:
    manifest = builds.read_manifest(build)
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
