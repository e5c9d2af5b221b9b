"""Search by cosine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.errors import CapabilityError
from pipelines.retrieval.dense import DenseIndex, DenseRetriever
from pipelines.retrieval.store import PassageStore
from pipelines.types import Passage
from tests.pipelines.retrieval.examples import WordEmbedder

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
    assert index.dimension == 2
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
    path = tmp_path / "vectors.faiss"
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


@pytest.fixture
def retriever(tmp_path: Path) -> DenseRetriever:
    texts = ["cats sleep", "whales swim", "birds fly"]
    embedder = WordEmbedder()
    PassageStore.write(
        tmp_path, [Passage(id=text, title="", text=text, source="") for text in texts]
    )
    DenseIndex.write(tmp_path, embedder.embed(texts), np.arange(3))
    return DenseRetriever(PassageStore.open(tmp_path), DenseIndex.open(tmp_path), embedder)


async def test_passages_come_ranked_with_their_cosine(retriever: DenseRetriever):
    found = await retriever.search("whales swim", 2)
    assert [passage.rank for passage in found] == [1, 2]
    assert found[0].id == "whales swim"
    assert found[0].score == pytest.approx(1.0)
    assert found[0].scores == {"dense": found[0].score}
    assert retriever.name == "words"


@pytest.mark.parametrize("query", ["", "?!", " "])
async def test_an_empty_query_finds_nothing(retriever: DenseRetriever, query: str):
    assert await retriever.search(query, 3) == []


async def test_a_language_the_embedder_cannot_read(retriever: DenseRetriever):
    with pytest.raises(CapabilityError, match=r"words does not read .* \(zh\)"):
        await retriever.search("熊猫吃什么？", 3)
