"""Vectors, searches by them, embedding models, and similarities."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines import base
from pipelines.base import Language
from pipelines.errors import CapabilityError, UnknownModelError
from pipelines.retrieval import indexes
from pipelines.retrieval.indexes import (
    DenseIndex,
    EmbedderSimilarity,
    EnglishEmbedder,
    bundled_embedder,
    default_embedder,
    english_embedder,
)
from pipelines.retrieval.library import build_index
from pipelines.retrieval.retriever import LibraryRetriever
from tests.pipelines.retrieval.examples import WordEmbedder, document

# Unit vectors of the passages at 0, 2 and 5.
VECTORS = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
POSITIONS = np.array([0, 2, 5])


def vector(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


@pytest.fixture
def index(tmp_path: Path) -> DenseIndex:
    DenseIndex.write(tmp_path, VECTORS, POSITIONS)
    return DenseIndex.open(tmp_path)


def test_nearest_first(index: DenseIndex):
    hits = index.search(vector(0.8, 0.6), 5)
    assert [position for position, _ in hits] == [2, 0, 5]
    assert [cosine for _, cosine in hits] == pytest.approx([0.96, 0.8, 0.6])
    assert index.search(vector(1, 0), 1) == [(0, 1.0)]
    assert index.search(vector(1, 0), 0) == []


def test_equal_cosines_keep_the_order_of_the_passages(tmp_path: Path):
    DenseIndex.write(tmp_path, np.repeat(VECTORS[:1], 4, axis=0), np.arange(4))
    hits = DenseIndex.open(tmp_path).search(vector(1, 0), 4)
    assert [position for position, _ in hits] == [0, 1, 2, 3]


def test_cosines_of_given_passages(index: DenseIndex):
    cosines = index.cosines(vector(0, 1), [5, 1, 2, 9])
    assert cosines == pytest.approx({5: 1.0, 2: 0.8})


def test_vectors_of_a_range(index: DenseIndex):
    assert index.vectors(1, 6).tolist() == VECTORS[1:].tolist()
    assert index.vectors(3, 5).shape == (0, 2)


def test_vectors_are_memory_mapped(index: DenseIndex, tmp_path: Path):
    path = tmp_path / "vectors.npy"
    content = path.read_bytes()
    assert content.endswith(VECTORS.tobytes())
    with path.open("r+b") as file:
        file.seek(len(content) - VECTORS.nbytes)
        file.write((-VECTORS).tobytes())
    assert index.search(vector(-1, 0), 1) == [(0, 1.0)]


def test_files_that_do_not_belong_together(tmp_path: Path):
    DenseIndex.write(tmp_path, VECTORS, POSITIONS)
    np.save(tmp_path / "vectors.positions.npy", POSITIONS[:2])
    with pytest.raises(ValueError, match="do not belong together"):
        DenseIndex.open(tmp_path)


def test_vectors_that_come_in_parts(tmp_path: Path):
    DenseIndex.write(tmp_path, iter([VECTORS[:1], VECTORS[1:]]), POSITIONS)
    assert DenseIndex.open(tmp_path).vectors(0, 6).tolist() == VECTORS.tolist()


@pytest.mark.parametrize("count", [2, 4])
def test_parts_that_are_too_few_or_too_many(tmp_path: Path, count: int):
    parts = np.repeat(VECTORS[:1], count, axis=0)
    with pytest.raises(ValueError):  # noqa: PT011 - numpy words one of the two
        DenseIndex.write(tmp_path, iter([parts[:1], parts[1:]]), POSITIONS)


@pytest.fixture
def retriever(tmp_path: Path) -> LibraryRetriever:
    documents = [document(text, text) for text in ("cats sleep", "whales swim", "birds fly")]
    return LibraryRetriever(build_index(documents, tmp_path, WordEmbedder()), "dense")


async def test_passages_come_ranked_with_their_cosine(retriever: LibraryRetriever):
    found = await retriever.search("whales swim", 2)
    assert [passage.rank for passage in found] == [1, 2]
    assert found[0].id == "whales swim#0"
    assert found[0].score == pytest.approx(1.0)
    assert found[0].scores == {"dense": found[0].score}
    assert retriever.name == "words"


@pytest.mark.parametrize("query", ["", "?!", " "])
async def test_an_empty_query_finds_nothing(retriever: LibraryRetriever, query: str):
    assert await retriever.search(query, 3) == []


async def test_a_language_the_embedder_cannot_read(retriever: LibraryRetriever):
    with pytest.raises(CapabilityError, match=r"words does not read .* \(zh\)"):
        await retriever.search("熊猫吃什么？", 3)


def test_unit_vectors_near_for_near_meanings(embedder: EnglishEmbedder):
    vectors = embedder.embed(
        ["A cat is sleeping.", "A kitten takes a nap.", "Interest rates rose in March."]
    )
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > 0.4 > far
    assert embedder.languages == {"en"}


def test_no_texts(embedder: EnglishEmbedder):
    assert embedder.embed([]).shape == (0, 384)


def test_threads_share_the_model(embedder: EnglishEmbedder):
    texts = [f"Sentence number {number}." for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    for text, vector in zip(texts, together, strict=True):
        assert vector == pytest.approx(embedder.embed([text])[0], abs=1e-5)


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []

    class Lengths:
        width = 2

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            read.extend(texts)
            return np.array([[len(text)] * 2 for text in texts], np.float32)

    monkeypatch.setattr(indexes, "_REMEMBERED", 3)
    monkeypatch.setattr(EnglishEmbedder, "_load", lambda self: Lengths())
    embedder = EnglishEmbedder()
    assert embedder.embed(["a", "bb", "a"]).tolist() == [[1, 1], [2, 2], [1, 1]]
    assert embedder.embed(["bb", "ccc"]).tolist() == [[2, 2], [3, 3]]
    assert read == ["a", "bb", "ccc"]
    # The one that was asked for longest ago is forgotten.
    embedder.embed(["dddd"])
    assert embedder.embed(["bb", "a"]).tolist() == [[2, 2], [1, 1]]
    assert read == ["a", "bb", "ccc", "dddd", "a"]


def test_it_is_loaded_quietly_and_without_a_network(
    embedder: EnglishEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    again = EnglishEmbedder().embed(["A cat."])[0]
    assert again == pytest.approx(embedder.embed(["A cat."])[0], abs=1e-5)
    assert capfd.readouterr() == ("", "")


def test_a_package_that_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "model").mkdir()
    monkeypatch.setattr(base, "package_folder", lambda name: tmp_path)
    with pytest.raises(UnknownModelError, match="could not be loaded") as caught:
        EnglishEmbedder().embed(["text"])
    assert str(tmp_path) not in str(caught.value)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(base, "package_folder", lambda name: None)
    with pytest.raises(CapabilityError, match="not installed"):
        EnglishEmbedder().embed(["text"])
    monkeypatch.setattr(indexes, "english_embedder", lambda: None)
    monkeypatch.setattr(indexes, "_bilingual_embedder", lambda: None)
    assert default_embedder() is None


def test_the_default_is_shared():
    first = default_embedder()
    assert first is not None
    assert first is default_embedder()
    assert first.name == "multilingual-e5-small"
    assert bundled_embedder("multilingual-e5-small") is first
    assert bundled_embedder("all-MiniLM-L6-v2") is english_embedder()
    assert bundled_embedder("another") is None


def test_without_the_bilingual_file_the_english_one_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(indexes, "_bilingual_embedder", lambda: None)
    assert default_embedder() is english_embedder()


async def test_questions_are_embedded_otherwise_than_sentences():
    class Prefixed:
        name = "prefixed"
        languages = frozenset[Language]({"en"})

        def embed(self, texts: Sequence[str]) -> np.ndarray:
            return np.array([[1.0, 0.0] for _ in texts], np.float32)

        def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
            return np.array([[0.6, 0.8] for _ in texts], np.float32)

    similarity = EmbedderSimilarity(Prefixed())
    assert await similarity.compare(["q?", "s"], ["a", "b"], asked=1) == ((0.6, 0.6), (1.0, 1.0))
    assert await similarity.compare(["q?"], ["a"]) == ((1.0,),)
