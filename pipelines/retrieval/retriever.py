"""Searches of a library: by words (BM25), by vectors, or both joined by rank fusion."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.base import Language, Passage
from pipelines.errors import failure
from pipelines.retrieval.base import (
    HYBRID_DEPTH,
    Embedder,
    RetrievalMode,
    Retriever,
    ranked,
    reciprocal_rank_fusion,
)
from pipelines.retrieval.indexes import DenseIndex, best_positions, embedded_queries, terms
from pipelines.retrieval.library import LibraryIndex
from pipelines.text.languages import detect_language

Hit = tuple[int, float, dict[str, float]]
"""The position of a passage, its score, and its scores by retriever."""


_FAR: dict[Language, float] = {"en": 0.015, "zh": 0.04}
"""By how much a passage in another language has to be nearer to a question in this one than all in
its own language.

Of even-numbered XQuAD questions searched for in both languages at once, 2 % of the English and 3 %
of the Chinese ones then find the other language's passages although their own paragraph is there,
and 53 % and 45 % where it is missing and other paragraphs of its article are there.
"""


class _Near(NamedTuple):
    """The nearest passages with their cosines, and those among them in another language."""

    hits: list[tuple[int, float]]
    foreign: list[int]


class LibraryRetriever(Retriever):
    """Searches the passages of `index`.

    `mode` "bm25" searches by words alone, in either language. "dense" searches by meaning: every
    query finds something, and the cosine says how near it is. It raises CapabilityError, here
    without vectors or embedder, in `search` for a query in a language that the embedder cannot
    read. "hybrid" fuses the first hundred passages of both, and is BM25 alone where there are no
    vectors or the embedder cannot read the query.

    `scores` of a passage has an entry for each search: "bm25", 0 where no word is shared, and
    "dense", the cosine, missing where the query or the passage could not be embedded. `score` is
    the fused score in a hybrid search.

    Passages in another language than the query's come after all others, unless one of them is
    nearer in meaning than all in its own language: where the library says it in the other alone.
    """

    def __init__(self, index: LibraryIndex, mode: RetrievalMode) -> None:
        self._index = index
        self._mode = mode
        self._dense: tuple[DenseIndex, Embedder] | None = None
        self.name = "BM25"
        if mode != "bm25" and index.dense and index.embedder:
            self._dense = index.dense, index.embedder
            self.name = index.embedder.name if mode == "dense" else f"BM25 + {index.embedder.name}"
        elif mode == "dense":
            raise failure("search.no_vectors")

    @property
    def languages(self) -> frozenset[Language]:
        """The languages of which passages have vectors; none where it searches by words alone."""
        return self._dense[1].languages if self._dense else frozenset()

    async def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages; none for mere punctuation."""
        return await asyncio.to_thread(self._search, query, k)

    def _search(self, query: str, k: int) -> list[Passage]:
        if k <= 0 or not terms(query):
            return []
        if self._mode == "bm25":
            hits = self._by_words(query, k)
        elif self._mode == "dense" and self._dense:
            hits = self._by_vectors(query, k, *self._dense)
        else:
            hits = self._by_both(query, k)
        return ranked(self._index.passages, hits)

    def _by_words(self, query: str, k: int) -> Iterable[Hit]:
        scores = self._index.bm25.scores(query)
        for position in best_positions(scores, k):
            yield position, float(scores[position]), {"bm25": float(scores[position])}

    def _by_vectors(
        self, query: str, k: int, index: DenseIndex, embedder: Embedder
    ) -> Iterable[Hit]:
        language = detect_language(query)
        if language not in embedder.languages:
            name = embedder.name
            raise failure("search.other_language", name, name=name, language=language)
        [vector] = embedded_queries(embedder, [query])
        near = self._near(index.search(vector, max(k, HYBRID_DEPTH)), language)
        for position, cosine in near.hits[:k]:
            yield position, cosine, {"dense": cosine}

    def _by_both(self, query: str, k: int) -> Iterable[Hit]:
        depth = max(k, HYBRID_DEPTH)
        language = detect_language(query)
        words = self._index.bm25.scores(query)
        rankings: list[Sequence[int]] = [best_positions(words, depth)]
        index = vector = None
        if self._dense and language in self._dense[1].languages:
            index, embedder = self._dense
            [vector] = embedded_queries(embedder, [query])
            near = self._near(index.search(vector, depth), language)
            # Across languages no words are shared: there, meaning stands for both.
            rankings += [[position for position, _ in near.hits], near.foreign]
        fused = reciprocal_rank_fusion(rankings)[:k]
        positions = [position for position, _ in fused]
        cosines = {} if index is None or vector is None else index.cosines(vector, positions)
        for position, score in fused:
            near_by = {"dense": cosines[position]} if position in cosines else {}
            yield position, score, {"bm25": float(words[position]), **near_by}

    def _near(self, hits: list[tuple[int, float]], language: Language) -> _Near:
        """Return the nearest passages; other languages last, unless one is nearest by far."""
        foreign = {
            position
            for position, _ in hits
            if detect_language(self._index.passages[position].text) != language
        }
        best = max((cosine for position, cosine in hits if position in foreign), default=-1.0)
        own = max((cosine for position, cosine in hits if position not in foreign), default=-1.0)
        if best > own + _FAR[language]:
            return _Near(hits, [position for position, _ in hits if position in foreign])
        # Stable: those of either language keep their order.
        return _Near(sorted(hits, key=lambda hit: hit[0] in foreign), [])
