"""Passages in a Qdrant collection: uploaded once, searched by words, by vectors, or by both.

Every passage has two vectors. The dense one is the embedder's and bears its name, so that vectors
of different embedders are never compared. The sparse one holds the weights of BM25 (see `bm25.py`):
Qdrant multiplies them with ln(1 + (N - df + 0.5) / (df + 0.5)), so that its scores are those of
BM25. The library `qdrant-client` is no requirement of the application: requirements-qdrant.txt.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import NAMESPACE_URL, uuid5
from zlib import crc32

from pipelines.base import Passage
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.remote import read_address
from pipelines.retrieval.base import (
    HYBRID_DEPTH,
    OF_A_SEARCH,
    Embedder,
    RetrievalMode,
    Retriever,
    reciprocal_rank_fusion,
)
from pipelines.retrieval.documents import indexed_text
from pipelines.retrieval.indexes import K1, TERM_RULES, B, embedded_queries, query_terms, terms
from pipelines.text.languages import detect_language

T = TypeVar("T")

WORDS = f"bm25-{TERM_RULES}"
"""The name of the sparse vectors; terms of other rules have another name."""

_BATCH = 64
_SECONDS, _LONGEST = 30, 120.0
"""Until the next bytes of an answer come, and until all of it is there."""


class Configured(NamedTuple):
    """The Qdrant server that the environment names, its key, and the collection to search."""

    url: str
    key: str | None
    collection: str


def configured() -> Configured | None:
    """Return the server of VERISCOPE_QDRANT_URL, _KEY, _COLLECTION (or "sample"); None without."""
    url = os.environ.get("VERISCOPE_QDRANT_URL")
    if not url:
        return None
    address = read_address(url, example="http://localhost:6333", what=phrase("server.qdrant"))
    key = os.environ.get("VERISCOPE_QDRANT_KEY") or None
    return Configured(address.url, key, configured_collection())


def configured_collection() -> str:
    """Return the collection that the environment names; "sample" where it names none."""
    return os.environ.get("VERISCOPE_QDRANT_COLLECTION") or "sample"


def is_installed() -> bool:
    """Return whether the client is there."""
    return importlib.util.find_spec("qdrant_client") is not None


def open_client(url: str, key: str | None = None) -> Any:
    """Return an asynchronous client of the server at `url`; ":memory:" is an empty one in this
    process.

    Raises InvalidInputError where the client is not installed.
    """
    library = _library("qdrant_client")
    if url == ":memory:":
        return library.AsyncQdrantClient(":memory:")
    # A key that is sent over http is warned of by every call: on one machine it is meant.
    return library.AsyncQdrantClient(
        url=url, api_key=key, timeout=_SECONDS, check_compatibility=False
    )


class _Hit(NamedTuple):
    """A passage that was found, and its score."""

    id: str
    score: float
    passage: Passage


class QdrantRetriever(Retriever):
    """Searches the passages of `collection`, which `upload` has written.

    Modes, and `scores` of passages, are as those of a `LibraryRetriever`: "dense" raises
    CapabilityError for a query in a language that the embedder cannot read, and "hybrid" is BM25
    alone there. Raises NotFoundError where there is no such collection, InvalidInputError where
    another program has written it, and UnreachableError.
    """

    def __init__(
        self, client: Any, collection: str, mode: RetrievalMode, embedder: Embedder | None
    ) -> None:
        self._client = client
        self._collection = collection
        self._mode: RetrievalMode = mode
        self._embedder = embedder
        self._checked = False
        self.name = f"Qdrant: {collection}"

    async def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages; none for mere punctuation."""
        if k <= 0 or not terms(query):
            return []
        if not self._checked:
            await self._check()
        embedder, language = self._embedder, detect_language(query)
        readable = embedder is not None and language in embedder.languages
        if self._mode == "dense" and not readable:
            if embedder is None:
                raise failure("search.no_vectors")
            name = embedder.name
            raise failure("search.other_language", name, name=name, language=language)
        depth = k if self._mode != "hybrid" else max(k, HYBRID_DEPTH)
        found: dict[str, Passage] = {}
        scores: dict[str, dict[str, float]] = {}
        rankings: list[list[str]] = []
        if self._mode != "dense":
            hits = await self._query(WORDS, _sparse(Counter(query_terms(query))), depth)
            # A passage that shares no word is not found.
            hits = [hit for hit in hits if hit.score > 0]
            rankings.append(_taken("bm25", hits, found, scores))
        if self._mode != "bm25" and readable and embedder is not None:
            [vector] = await asyncio.to_thread(embedded_queries, embedder, [query])
            hits = await self._query(embedder.name, vector.tolist(), depth)
            rankings.append(_taken("dense", hits, found, scores))
        if self._mode == "hybrid":
            ranked = reciprocal_rank_fusion(rankings)[:k]
        else:
            ranked = [(id, next(iter(scores[id].values()))) for id in rankings[0]]
        return [
            found[id].model_copy(update={"score": score, "rank": rank, "scores": scores[id]})
            for rank, (id, score) in enumerate(ranked, start=1)
        ]

    async def _query(self, using: str, query: Any, limit: int) -> list[_Hit]:
        reply = await _asked(
            lambda: self._client.query_points(
                self._collection, query=query, using=using, limit=limit, with_payload=True
            )
        )
        try:
            return [
                _Hit(str(point.id), float(point.score), Passage.model_validate(point.payload))
                for point in reply.points
            ]
        except (TypeError, ValueError):
            # Another program has written into it.
            raise failure("qdrant.foreign_collection", name=self._collection) from None

    async def _check(self) -> None:
        """See that the collection can be searched like that."""
        if not await _asked(lambda: self._client.collection_exists(self._collection)):
            raise failure("qdrant.no_collection", name=self._collection)
        info = await _asked(lambda: self._client.get_collection(self._collection))
        if WORDS not in (info.config.params.sparse_vectors or {}):
            raise failure("qdrant.foreign_collection", name=self._collection)
        vectors = info.config.params.vectors
        held = vectors if isinstance(vectors, dict) else {}
        if self._embedder is not None and self._embedder.name not in held:
            self._embedder = None
        self._checked = True


async def upload(
    client: Any,
    collection: str,
    passages: Sequence[Passage],
    embedder: Embedder | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write `passages` into a new collection of this name; return how many have a dense vector.

    They are written as a whole: BM25 needs their mean length. Raises InvalidInputError where there
    is a collection of that name, or no passage with a word, and UnreachableError.
    """
    models = _library("qdrant_client.models")
    texts = [indexed_text(passage) for passage in passages]
    counted = [Counter(terms(text)) for text in texts]
    total = sum(map(Counter.total, counted))
    if not total:
        raise failure("library.no_words")
    if await _asked(lambda: client.collection_exists(collection)):
        raise failure("qdrant.taken", name=collection)
    size = 0 if embedder is None else int(embedder.embed(["size"]).shape[1])
    await _asked(
        lambda: client.create_collection(
            collection,
            vectors_config={}
            if embedder is None
            else {embedder.name: models.VectorParams(size=size, distance=models.Distance.COSINE)},
            sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
    )
    mean = total / len(passages)
    embedded = 0
    for start in range(0, len(passages), _BATCH):
        progress(start, len(passages))
        batch = range(start, min(start + _BATCH, len(passages)))
        readable = [
            at
            for at in batch
            if embedder is not None and detect_language(passages[at].text) in embedder.languages
        ]
        vectors: dict[int, list[float]] = {}
        if embedder is not None and readable:
            rows = await asyncio.to_thread(embedder.embed, [texts[at] for at in readable])
            vectors = dict(zip(readable, rows.tolist(), strict=True))
        embedded += len(vectors)
        points = [
            models.PointStruct(
                # The position keeps passages of equal ids apart.
                id=str(uuid5(NAMESPACE_URL, f"{at}/{passages[at].id}")),
                payload=passages[at].model_dump(mode="json", exclude=OF_A_SEARCH),
                vector={WORDS: _sparse(_weights(counted[at], mean))}
                | ({embedder.name: vectors[at]} if embedder and at in vectors else {}),
            )
            for at in batch
        ]
        await _asked(lambda points=points: client.upsert(collection, points=points, wait=True))
    progress(len(passages), len(passages))
    return embedded


def read_passages(lines: Iterable[str]) -> Iterator[Passage]:
    """Yield passages of JSON Lines with `text`, and `id`, `title`, `source` and `url` where known.

    Raises InvalidInputError, which names the line.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            read = _json_object(line)
            given = {name: read[name] for name in ("title", "url") if read.get(name)}
            text, id = read["text"], str(read.get("id") or number)
            source = str(read.get("source") or id)
            yield Passage(**{"title": "", **given, "id": id, "text": text, "source": source})
        except (KeyError, TypeError, ValueError):
            raise failure("qdrant.bad_line", line=number) from None


def _json_object(line: str) -> dict[str, Any]:
    read = json.loads(line)
    if not isinstance(read, dict):
        raise TypeError("Not an object.")
    return read


def _weights(counts: Counter[str], mean: float) -> dict[str, float]:
    """Return the part of BM25 that depends on the passage alone, by term."""
    norm = K1 * (1 - B + B * counts.total() / mean)
    return {term: count / (count + norm) for term, count in counts.items()}


def _sparse(weights: dict[str, Any]) -> Any:
    """Return a sparse vector of weights by term. Two of 4 billion numbers are seldom equal."""
    by_number: dict[int, float] = {}
    for term, weight in weights.items():
        number = crc32(term.encode())
        by_number[number] = by_number.get(number, 0.0) + float(weight)
    models = _library("qdrant_client.models")
    order = sorted(by_number)
    return models.SparseVector(indices=order, values=[by_number[number] for number in order])


def _taken(
    name: str, hits: Sequence[_Hit], found: dict[str, Passage], scores: dict[str, dict[str, float]]
) -> list[str]:
    """Add hits to what was found; return their ids, the best first."""
    for hit in hits:
        found.setdefault(hit.id, hit.passage)
        scores.setdefault(hit.id, {})[name] = hit.score
    return [hit.id for hit in hits]


async def _asked(ask: Callable[[], Awaitable[T]]) -> T:
    """Return what the server answers; its refusals as errors that say what to do."""
    exceptions = _library("qdrant_client.http.exceptions")
    try:
        async with asyncio.timeout(_LONGEST):
            return await ask()
    except exceptions.UnexpectedResponse as error:
        if error.status_code in (401, 403):
            raise failure("qdrant.key") from None
        raise failure("qdrant.refused", status=error.status_code) from None
    except (exceptions.ResponseHandlingException, OSError, ValueError) as error:
        if isinstance(error, VeriscopeError):
            raise
        raise failure("qdrant.unreachable") from None


def _library(name: str) -> Any:
    """Return a module of the client. Raises InvalidInputError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise failure("qdrant.no_library") from None
