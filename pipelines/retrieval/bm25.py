"""BM25: passages by the rarity and frequency of the words they share with the query."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

import bm25s
import numpy as np
from numpy.typing import NDArray

from pipelines.retrieval.base import Retriever
from pipelines.retrieval.store import PassageStore
from pipelines.retrieval.tokens import query_terms, terms
from pipelines.types import Passage

__all__ = ["BM25Index", "BM25Retriever", "best_positions"]

# It sets its own logger to DEBUG, which every handler of the application would then print.
logging.getLogger("bm25s").setLevel(logging.WARNING)

K1 = 1.2
B = 0.75


class BM25Index:
    """An inverted index with the scores worked out beforehand (bm25s; Lù, 2024).

    The variant is Lucene's (Kamphuis et al., "Which BM25 do you mean?", ECIR 2020): a term adds
    `ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean length))`,
    which is above 0, and a term that the query repeats adds as often.
    """

    def __init__(self, engine: bm25s.BM25) -> None:
        self._engine = engine

    @classmethod
    def build(cls, texts: Iterable[str]) -> BM25Index:
        """Index `texts`, at least one of which must hold a word."""
        vocabulary: dict[str, int] = {}
        rows = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in texts
        ]
        engine = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy")
        engine.index((rows, vocabulary), create_empty_token=False, show_progress=False)
        return cls(engine)

    def write(self, folder: Path) -> None:
        """Save into `folder`, which is made if need be."""
        self._engine.save(folder, show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> BM25Index:
        """Open what `write` left, its postings memory-mapped; `OSError` or `ValueError` if bad."""
        engine = bm25s.BM25.load(folder, mmap=True, show_progress=False, backend="numpy")
        return cls(engine)

    def scores(self, query: str) -> NDArray[np.float32]:
        """The score of every text, shape [texts], 0 where it shares no term with `query`."""
        known = self._engine.get_tokens_ids(query_terms(query))
        if not known:
            return np.zeros(self._engine.scores["num_docs"], dtype=np.float32)
        return self._engine.get_scores_from_ids(known)


def best_positions(scores: NDArray[np.float32], k: int) -> list[int]:
    """Positions of the `k` largest scores above 0, best first, equal ones in order of position."""
    found = np.flatnonzero(scores > 0)
    if k <= 0:
        return []
    if k < len(found):
        # Sort only what can be among the first k: everything not below the k-th largest score.
        floor = np.partition(scores[found], -k)[-k]
        found = found[scores[found] >= floor]
    return found[np.argsort(-scores[found], kind="stable")][:k].tolist()


class BM25Retriever(Retriever):
    """Searches by words alone, in either language."""

    name = "BM25"

    def __init__(self, passages: PassageStore, index: BM25Index) -> None:
        self._passages = passages
        self._index = index

    async def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages that share a word with `query`; none for mere punctuation."""
        return await asyncio.to_thread(self._search, query, k)

    def _search(self, query: str, k: int) -> list[Passage]:
        scores = self._index.scores(query)
        hits = [(position, float(scores[position])) for position in best_positions(scores, k)]
        return self._passages.ranked((at, score, {"bm25": score}) for at, score in hits)
