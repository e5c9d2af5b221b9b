"""BM25 and dense retrieval together, joined by reciprocal rank fusion."""

from __future__ import annotations

import asyncio

from pipelines.retrieval.base import Embedder, PassageStore, Retriever, reciprocal_rank_fusion
from pipelines.retrieval.bm25 import BM25Index, best_positions, terms
from pipelines.retrieval.dense import DenseIndex
from pipelines.text.languages import detect_language
from pipelines.types import Passage

__all__ = ["HybridRetriever"]

_DEPTH = 100
"""Passages that each of the two retrievers contributes."""


class HybridRetriever(Retriever):
    """Fuses the first hundred passages of BM25 with those of dense retrieval.

    A query in a language that the embedder cannot read is searched by BM25 alone. `scores` of a
    passage says who took part: "bm25", 0 where no word is shared, and "dense", the cosine, which
    is missing where the query or the passage could not be embedded. `score` is the fused one.
    """

    def __init__(
        self,
        passages: PassageStore,
        bm25: BM25Index,
        dense: DenseIndex | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._passages = passages
        self._bm25 = bm25
        self._dense = (dense, embedder) if dense and embedder else None
        self.name = f"BM25 + {embedder.name}" if dense and embedder else "BM25"

    async def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages; none for mere punctuation."""
        return await asyncio.to_thread(self._search, query, k)

    def _search(self, query: str, k: int) -> list[Passage]:
        if k <= 0 or not terms(query):
            return []
        depth = max(k, _DEPTH)
        words = self._bm25.scores(query)
        rankings = [best_positions(words, depth)]
        cosines: dict[int, float] = {}
        if self._dense and detect_language(query) in self._dense[1].languages:
            index, embedder = self._dense
            [vector] = embedder.embed([query])
            rankings.append([position for position, _ in index.search(vector, depth)])
            fused = reciprocal_rank_fusion(rankings)[:k]
            cosines = index.cosines(vector, [position for position, _ in fused])
        else:
            fused = reciprocal_rank_fusion(rankings)[:k]
        return self._passages.ranked(
            (
                at,
                score,
                {"bm25": float(words[at])} | ({"dense": cosines[at]} if at in cosines else {}),
            )
            for at, score in fused
        )
