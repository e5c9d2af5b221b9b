"""Passages in Qdrant, in the client's own engine, against BM25 and cosines worked out here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.base import Language, Passage
from pipelines.engine.library import Libraries
from pipelines.errors import (
    AuthenticationError,
    CapabilityError,
    InvalidInputError,
    NotFoundError,
    RefusedRequestError,
    UnreachableError,
)
from pipelines.retrieval import qdrant
from pipelines.retrieval.base import reciprocal_rank_fusion
from pipelines.retrieval.documents import indexed_text
from pipelines.retrieval.indexes import BM25Index
from pipelines.retrieval.qdrant import (
    QdrantRetriever,
    configured,
    open_client,
    read_passages,
    upload,
)
from pipelines.run.events import EvidenceSpec
from tests.scripted.wire import Handler, Seen, drips, says, serve

TEXTS = {
    "cats": "The cat sat on the mat. Cats purr.",
    "park": "A dog chased cats all day long in the park by the river.",
    "delft": "Delft is a city on a river.",
    "zh": "鲁迅写了《狂人日记》。",
}
PASSAGES = [
    Passage(id=id, title="T", text=text, source="s", url="https://example.org", start=3, end=9)
    for id, text in TEXTS.items()
]


class Lengths:
    """A text is the direction (number of words, 1)."""

    name = "lengths"
    languages: frozenset[Language] = frozenset({"en"})

    def embed(self, texts: Any) -> NDArray[np.float32]:
        rows = np.array([[len(text.split()), 1.0] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
async def client() -> AsyncIterator[Any]:
    found = open_client(":memory:")
    yield found
    await found.close()


@pytest.mark.parametrize("query", ["cats", "cat river delft delft", "the river", "鲁迅", "zebra"])
async def test_scores_of_words_are_those_of_bm25(client: Any, query: str) -> None:
    assert await upload(client, "mine", PASSAGES, None) == 0
    ours = BM25Index.build(map(indexed_text, PASSAGES)).scores(query)
    found = await QdrantRetriever(client, "mine", "bm25", None).search(query, 10)
    wanted = {PASSAGES[at].id: float(score) for at, score in enumerate(ours) if score > 0}
    assert {one.id: one.score for one in found} == pytest.approx(wanted, rel=1e-5)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert [one.rank for one in found] == list(range(1, len(found) + 1))


async def test_vectors_are_searched_by_their_cosine(client: Any) -> None:
    # Three passages are English; the title is a word of each indexed text.
    assert await upload(client, "mine", PASSAGES, Lengths()) == 3
    found = await QdrantRetriever(client, "mine", "dense", Lengths()).search("one two", 2)
    # (2, 1) with (9, 1), (13, 1) and (8, 1): the fewest words are nearest.
    assert [one.id for one in found] == ["delft", "cats"]
    assert found[0].scores == {"dense": pytest.approx(17 / (5**0.5 * 65**0.5), rel=1e-5)}
    assert found[0].model_copy(update={"score": 0.0, "rank": 0, "scores": {}}) == PASSAGES[
        2
    ].model_copy(update={"score": 0.0, "rank": 0, "scores": {}})


async def test_both_are_fused_by_rank(client: Any) -> None:
    await upload(client, "mine", PASSAGES, Lengths())

    async def ids(mode: Any) -> list[str]:
        retriever = QdrantRetriever(client, "mine", mode, Lengths())
        return [one.id for one in await retriever.search("cats river", 10)]

    found = await QdrantRetriever(client, "mine", "hybrid", Lengths()).search("cats river", 3)
    wanted = reciprocal_rank_fusion([await ids("bm25"), await ids("dense")])[:3]
    assert [(one.id, one.score) for one in found] == wanted
    assert set(found[0].scores) == {"bm25", "dense"}


async def test_what_the_embedder_cannot_read_is_searched_by_words(client: Any) -> None:
    await upload(client, "mine", PASSAGES, Lengths())
    [found] = await QdrantRetriever(client, "mine", "hybrid", Lengths()).search("鲁迅", 3)
    assert (found.id, set(found.scores)) == ("zh", {"bm25"})
    with pytest.raises(CapabilityError):
        await QdrantRetriever(client, "mine", "dense", Lengths()).search("鲁迅", 3)
    assert await QdrantRetriever(client, "mine", "hybrid", Lengths()).search("?!", 3) == []


async def test_a_query_is_embedded_as_queries_are(client: Any) -> None:
    class Asking(Lengths):
        asked: list[str] = []  # noqa: RUF012

        def embed_queries(self, texts: Any) -> NDArray[np.float32]:
            self.asked.extend(texts)
            return self.embed(texts)

    embedder = Asking()
    await upload(client, "mine", PASSAGES, embedder)
    assert embedder.asked == []
    await QdrantRetriever(client, "mine", "dense", embedder).search("cats", 3)
    assert embedder.asked == ["cats"]


async def test_vectors_of_another_embedder_are_not_compared(client: Any) -> None:
    await upload(client, "mine", PASSAGES, None)
    found = await QdrantRetriever(client, "mine", "hybrid", Lengths()).search("cats", 3)
    assert set(found[0].scores) == {"bm25"}
    with pytest.raises(CapabilityError):
        await QdrantRetriever(client, "mine", "dense", Lengths()).search("cats", 3)


async def test_collections_that_cannot_be_used(client: Any) -> None:
    with pytest.raises(NotFoundError, match="no collection 'mine'"):
        await QdrantRetriever(client, "mine", "bm25", None).search("cats", 3)
    await client.create_collection("mine", vectors_config={})
    with pytest.raises(InvalidInputError, match="not made for this search"):
        await QdrantRetriever(client, "mine", "bm25", None).search("cats", 3)
    with pytest.raises(InvalidInputError, match="already"):
        await upload(client, "mine", PASSAGES, None)
    with pytest.raises(InvalidInputError, match="word"):
        await upload(
            client, "new", [PASSAGES[0].model_copy(update={"title": "", "text": "?"})], None
        )


async def test_passages_that_another_program_altered(client: Any) -> None:
    await upload(client, "mine", PASSAGES, None)
    points, _ = await client.scroll("mine")
    await client.overwrite_payload("mine", {"text": 3}, points=[point.id for point in points])
    with pytest.raises(InvalidInputError, match="not made for this search"):
        await QdrantRetriever(client, "mine", "bm25", None).search("cats", 3)


async def test_a_server_that_sends_next_to_nothing_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(qdrant, "_LONGEST", 0.2)
    with serve(Refusing, path="") as wire:
        wire.answers(drips(b" ", "application/json"))
        client = open_client(wire.url)
        with pytest.raises(UnreachableError):
            await QdrantRetriever(client, "mine", "bm25", None).search("cats", 3)
        await client.close()


class Refusing(Handler):
    """Asked by GET too."""

    def do_GET(self) -> None:  # noqa: N802
        self.answer(Seen(self.path, dict(self.headers), {}))


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationError), (403, AuthenticationError), (500, RefusedRequestError)],
)
async def test_refusals_of_a_server(status: int, error: type[Exception]) -> None:
    with serve(Refusing, path="") as wire:
        wire.answers(says({"status": {"error": "no"}}, status=status))
        client = open_client(wire.url)
        with pytest.raises(error):
            await upload(client, "mine", PASSAGES, None)
        await client.close()


async def test_a_server_that_is_not_there() -> None:
    client = open_client("http://127.0.0.1:1")
    with pytest.raises(UnreachableError):
        await QdrantRetriever(client, "mine", "bm25", None).search("cats", 3)
    await client.close()


def test_passages_of_a_file() -> None:
    lines = ['{"text": "One.", "title": "A", "url": null}', "", '{"id": "b", "text": "Two."}']
    first, second = read_passages(lines)
    assert (first.id, first.title, first.text, first.source, first.url) == (
        "1",
        "A",
        "One.",
        "1",
        None,
    )
    assert (second.id, second.title, second.source) == ("b", "", "b")
    for line in ("[1]", "{}", "no", '{"text": 3}'):
        with pytest.raises(InvalidInputError, match="Line 2"):
            list(read_passages(["", line]))


async def test_a_run_searches_the_server_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    opened: list[tuple[str, str | None]] = []

    def open_it(url: str, key: str | None) -> Any:
        opened.append((url, key))
        return client

    monkeypatch.setattr("pipelines.engine.library.open_client", open_it)
    monkeypatch.setenv("VERISCOPE_QDRANT_URL", "http://here:6333/")
    monkeypatch.setenv("VERISCOPE_QDRANT_KEY", "k" * 20)
    monkeypatch.setenv("VERISCOPE_QDRANT_COLLECTION", "mine")
    server = configured()
    assert server is not None
    await upload(client, server.collection, PASSAGES, None)
    libraries = Libraries(tmp_path, find_embedder=lambda: None)
    spec = EvidenceSpec(source="qdrant", library="mine", base_url=server.url)
    found = await libraries.search_in(spec).search("cats", 1)
    assert found[0].id == "cats"
    # The key of the environment goes to the server of the environment alone.
    libraries.search_in(spec.model_copy(update={"base_url": "http://there:6333"}))
    assert opened == [("http://here:6333", "k" * 20), ("http://there:6333", None)]
    assert (spec.name, spec.on_the_web) == ("mine", False)


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(qdrant.importlib, "import_module", missing)
    with pytest.raises(InvalidInputError, match="qdrant-client") as raised:
        open_client("http://here:6333")
    assert "requirements-qdrant.txt" in (raised.value.remedy or "")
