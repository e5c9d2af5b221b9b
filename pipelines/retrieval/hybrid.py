"""BM25 and dense retrieval together, joined by reciprocal rank fusion."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from pipelines.retrieval.base import Embedder, Retriever
from pipelines.retrieval.bm25 import BM25Index, best_positions
from pipelines.retrieval.dense import DenseIndex
from pipelines.retrieval.store import PassageStore
from pipelines.retrieval.tokens import terms
from pipelines.text.languages import detect_language
from pipelines.types import Passage

__all__ = ["RRF_K", "HybridRetriever", "reciprocal_rank_fusion"]

RRF_K = 60
"""The constant of the paper: the larger it is, the less the very first ranks stand out."""

_DEPTH = 100

T = TypeVar("T", bound=Hashable)


def reciprocal_rank_fusion(
    rankings: Iterable[Sequence[T]], k: int = RRF_K
) -> list[tuple[T, float]]:
    """Join rankings into one, best first: an item scores the sum of `1 / (k + rank)`.

    Ranks count from 1, and a ranking without the item adds nothing. Equal scores keep the order
    in which the items first appear. Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion
    outperforms Condorcet and individual Rank Learning Methods", SIGIR 2009.
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (k + rank)
    return sorted(scores.items(), key=lambda entry: -entry[1])


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

    def takes_part(self, query: str) -> tuple[str, ...]:
        """Which retrievers search for `query`: "bm25", and "dense" where the embedder reads it."""
        if self._dense and detect_language(query) in self._dense[1].languages:
            return ("bm25", "dense")
        return ("bm25",)

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
        vector = None
        if self._dense and "dense" in self.takes_part(query):
            index, embedder = self._dense
            [vector] = embedder.embed([query])
            rankings.append([position for position, _ in index.search(vector, depth)])
        fused = reciprocal_rank_fusion(rankings)[:k]
        if self._dense and vector is not None:
            cosines = self._dense[0].cosines(vector, [position for position, _ in fused])
        return self._passages.ranked(
            (position, score, _scores(float(words[position]), cosines.get(position)))
            for position, score in fused
        )


def _scores(words: float, cosine: float | None) -> dict[str, float]:
    return {"bm25": words} if cosine is None else {"bm25": words, "dense": cosine}
