"""Dense retrieval: passages by the cosine between their vectors and the query's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from pipelines.errors import CapabilityError
from pipelines.retrieval.base import Embedder, Retriever
from pipelines.retrieval.store import PassageStore
from pipelines.retrieval.tokens import terms
from pipelines.text.languages import detect_language
from pipelines.types import Passage

__all__ = ["DenseIndex", "DenseRetriever"]

_VECTORS = "vectors.faiss"
_POSITIONS = "vectors.positions.npy"


class DenseIndex:
    """Unit vectors under exact inner product search, each belonging to a passage's position.

    Not every passage needs a vector: those in a language the embedder cannot read have none.
    """

    def __init__(self, index: faiss.Index, positions: NDArray[np.int64]) -> None:
        self._index = index
        self._positions = positions

    @staticmethod
    def write(folder: Path, vectors: NDArray[np.float32], positions: NDArray[np.int64]) -> None:
        """Save unit `vectors` [n, d] of the passages at ascending `positions` [n], n > 0."""
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        faiss.write_index(index, str(folder / _VECTORS))
        np.save(folder / _POSITIONS, positions)

    @classmethod
    def open(cls, folder: Path) -> DenseIndex:
        """Map what `write` left. `OSError`, `RuntimeError` or `ValueError` when it is unusable."""
        # IO_FLAG_MMAP maps inverted lists only; a flat index would be read into memory.
        index = faiss.read_index(str(folder / _VECTORS), faiss.IO_FLAG_MMAP_IFC)
        positions = np.load(folder / _POSITIONS, mmap_mode="r")
        if index.ntotal != len(positions):
            raise ValueError("The vectors and their positions do not belong together.")
        return cls(index, positions)

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._index.d

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """The `k` passages nearest to a unit vector [d]: positions with cosines, best first."""
        count = min(k, self._index.ntotal)
        if count <= 0:
            return []
        cosines, rows = self._index.search(vector[np.newaxis], count)
        hits = zip(self._positions[rows[0]].tolist(), cosines[0].tolist(), strict=True)
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    def cosines(self, vector: NDArray[np.float32], positions: Sequence[int]) -> dict[int, float]:
        """The cosine of each of the passages at `positions` that has a vector."""
        rows = np.searchsorted(self._positions, positions)
        known = [
            (position, row)
            for position, row in zip(positions, rows.tolist(), strict=True)
            if row < len(self._positions) and self._positions[row] == position
        ]
        return {position: float(self._index.reconstruct(row) @ vector) for position, row in known}

    def vectors(self, start: int, end: int) -> NDArray[np.float32]:
        """The vectors of the passages from position `start` up to `end`, shape [n, d]."""
        first, last = np.searchsorted(self._positions, [start, end]).tolist()
        return self._index.reconstruct_n(first, last - first)


class DenseRetriever(Retriever):
    """Searches by meaning. Every query finds something: the cosine says how near it is."""

    def __init__(self, passages: PassageStore, index: DenseIndex, embedder: Embedder) -> None:
        self.name = embedder.name
        self._passages = passages
        self._index = index
        self._embedder = embedder

    async def search(self, query: str, k: int) -> list[Passage]:
        """The `k` nearest passages; none for mere punctuation.

        Raises `CapabilityError` for a query in a language that the embedder cannot read.
        """
        return await asyncio.to_thread(self._search, query, k)

    def _search(self, query: str, k: int) -> list[Passage]:
        if k <= 0 or not terms(query):
            return []
        language = detect_language(query)
        if language not in self._embedder.languages:
            raise CapabilityError(
                f"The embedding model {self._embedder.name} does not read the language of the "
                f"query ({language}).",
                remedy="Search by BM25 or hybrid, or choose a multilingual embedding model.",
                provider=self._embedder.name,
            )
        [vector] = self._embedder.embed([query])
        hits = self._index.search(vector, k)
        return self._passages.ranked((at, cosine, {"dense": cosine}) for at, cosine in hits)
