"""Vectors, searches by them, embedding models, and similarities."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines import loading
from pipelines.errors import CapabilityError, UnknownModelError
from pipelines.retrieval import dense
from pipelines.retrieval.dense import (
    DenseIndex,
    EmbeddedEmbedder,
    EmbedderSimilarity,
    default_embedder,
)
from pipelines.retrieval.library import build_index
from pipelines.retrieval.retriever import LibraryRetriever
from pipelines.types import Language
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


def test_unit_vectors_near_for_near_meanings(embedder: EmbeddedEmbedder):
    vectors = embedder.embed(
        ["A cat is sleeping.", "A kitten takes a nap.", "Interest rates rose in March."]
    )
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > 0.4 > far
    assert embedder.languages == {"en"}


def test_no_texts(embedder: EmbeddedEmbedder):
    assert embedder.embed([]).shape == (0, 384)


def test_threads_share_the_model(embedder: EmbeddedEmbedder):
    texts = [f"Sentence number {number}." for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    for text, vector in zip(texts, together, strict=True):
        assert vector == pytest.approx(embedder.embed([text])[0], abs=1e-5)


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []

    def encoded(_: object, texts: list[str]) -> list[np.ndarray]:
        read.extend(texts)
        return [np.full(2, len(text), np.float32) for text in texts]

    monkeypatch.setattr(dense, "_REMEMBERED", 3)
    monkeypatch.setattr(EmbeddedEmbedder, "_load", lambda self: object())
    monkeypatch.setattr(EmbeddedEmbedder, "_encoded", staticmethod(encoded))
    embedder = EmbeddedEmbedder()
    assert embedder.embed(["a", "bb", "a"]).tolist() == [[1, 1], [2, 2], [1, 1]]
    assert embedder.embed(["bb", "ccc"]).tolist() == [[2, 2], [3, 3]]
    assert read == ["a", "bb", "ccc"]
    # The one that was asked for longest ago is forgotten.
    embedder.embed(["dddd"])
    assert embedder.embed(["bb", "a"]).tolist() == [[2, 2], [1, 1]]
    assert read == ["a", "bb", "ccc", "dddd", "a"]


def test_it_is_loaded_quietly_and_without_a_network(
    embedder: EmbeddedEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    again = EmbeddedEmbedder().embed(["A cat."])[0]
    assert again == pytest.approx(embedder.embed(["A cat."])[0], abs=1e-5)
    assert capfd.readouterr() == ("", "")


def test_a_package_that_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "model").mkdir()
    monkeypatch.setattr(loading, "package_folder", lambda name: tmp_path)
    with pytest.raises(UnknownModelError, match="could not be loaded") as caught:
        EmbeddedEmbedder().embed(["text"])
    assert str(tmp_path) not in str(caught.value)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loading, "package_folder", lambda name: None)
    with pytest.raises(CapabilityError, match="not installed"):
        EmbeddedEmbedder().embed(["text"])
    default_embedder.cache_clear()
    assert default_embedder() is None
    default_embedder.cache_clear()


def test_the_default_is_shared():
    first = default_embedder()
    assert first is not None
    assert first is default_embedder()
    assert first.name == "all-MiniLM-L6-v2"


DIRECTIONS = {"east": (1.0, 0.0), "north": (0.0, 1.0), "between": (0.6, 0.8), "west": (-1.0, 0.0)}


class Compass:
    """Unit vectors by name, or multiples of them; remembers what it was asked for."""

    name = "compass"
    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, length: float = 1.0) -> None:
        self.length = length
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return np.array([DIRECTIONS[text] for text in texts], np.float32) * np.float32(self.length)


async def test_a_row_for_each_text_on_the_left():
    matrix = await EmbedderSimilarity(Compass()).compare(["east", "west"], ["between", "north"])
    assert matrix == ((0.6, 0.0), (-0.6, 0.0))


async def test_every_text_is_embedded_once():
    compass = Compass()
    await EmbedderSimilarity(compass).compare(["east", "north", "east"], ["north", "east"])
    assert compass.asked == [["east", "north"]]


@pytest.mark.parametrize(("left", "right"), [([], ["east"]), (["east"], []), ([], [])])
async def test_nothing_to_compare_is_not_embedded(left: list[str], right: list[str]):
    compass = Compass()
    matrix = await EmbedderSimilarity(compass).compare(left, right)
    assert matrix == tuple(() for _ in left)
    assert compass.asked == []


async def test_cosines_stay_within_their_range_and_have_six_digits():
    # Rounding in single precision can make a vector longer than 1.
    matrix = await EmbedderSimilarity(Compass(1.0000003)).compare(["east"], ["east", "west"])
    assert matrix == ((1.0, -1.0),)
    third = await EmbedderSimilarity(Compass((1 / 3) ** 0.5)).compare(["east"], ["east"])
    assert third == ((0.333333,),)


async def test_embedding_leaves_the_loop_free():
    entered, left = threading.Event(), threading.Event()

    class Slow(Compass):
        def embed(self, texts: Sequence[str]) -> Any:
            entered.set()
            assert left.wait(60)
            return super().embed(texts)

    async def meanwhile() -> None:
        assert await asyncio.to_thread(entered.wait, 60)
        left.set()

    comparing = asyncio.create_task(EmbedderSimilarity(Slow()).compare(["east"], ["east"]))
    await meanwhile()
    assert await comparing == ((1.0,),)


def test_it_has_its_embedders_name_and_languages():
    similarity = EmbedderSimilarity(Compass())
    assert (similarity.name, similarity.languages) == ("compass", {"en"})
