"""BM25 against numbers worked out by hand."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest

from pipelines.retrieval.bm25 import BM25Index, BM25Retriever, best_positions
from pipelines.retrieval.passages import cut_document
from pipelines.retrieval.store import PassageStore
from tests.pipelines.retrieval.examples import animals

TEXTS = ["cat cat dog", "cat bird", "fish"]
# Lengths 3, 2 and 1, mean 2; k1 = 1.2, b = 0.75; "cat" is in 2 of 3 texts, the others in 1.
CAT = log(1 + 1.5 / 2.5)
RARE = log(1 + 2.5 / 1.5)
IN_THREE, IN_TWO, IN_ONE = 1.2 * (0.25 + 0.75 * 1.5), 1.2, 1.2 * (0.25 + 0.75 * 0.5)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cat", [CAT * 2 / (2 + IN_THREE), CAT / (1 + IN_TWO), 0]),
        ("Cats?", [CAT * 2 / (2 + IN_THREE), CAT / (1 + IN_TWO), 0]),
        ("the bird cat", [CAT * 2 / (2 + IN_THREE), (CAT + RARE) / (1 + IN_TWO), 0]),
        ("fish fish", [0, 0, 2 * RARE / (1 + IN_ONE)]),
        ("elephant", [0, 0, 0]),
        ("", [0, 0, 0]),
    ],
)
def test_scores_by_hand(query: str, expected: list[float]):
    assert BM25Index.build(TEXTS).scores(query) == pytest.approx(expected, rel=1e-6)


def test_scores_survive_the_disk(tmp_path: Path):
    built = BM25Index.build(TEXTS)
    built.write(tmp_path / "bm25")
    opened = BM25Index.open(tmp_path / "bm25")
    for query in ("cat", "bird fish", "elephant", "?"):
        assert opened.scores(query).tolist() == built.scores(query).tolist()


def test_postings_are_memory_mapped(tmp_path: Path):
    BM25Index.build(TEXTS).write(tmp_path)
    index = BM25Index.open(tmp_path)
    postings = np.load(tmp_path / "data.csc.index.npy", mmap_mode="r+")
    postings[:] = 7
    postings.flush()
    assert index.scores("cat").tolist() == [7, 7, 0]


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (0, []),
        (-1, []),
        (1, [3]),
        (2, [3, 1]),
        (3, [3, 1, 4]),
        (4, [3, 1, 4, 0]),
        (9, [3, 1, 4, 0]),
    ],
)
def test_best_positions_break_ties_by_position(k: int, expected: list[int]):
    scores = np.array([0.5, 2.0, 0.0, 3.0, 2.0], dtype=np.float32)
    assert best_positions(scores, k) == expected


@pytest.fixture
def retriever(tmp_path: Path) -> BM25Retriever:
    passages = [passage for animal in animals() for passage in cut_document(animal)]
    PassageStore.write(tmp_path, passages)
    index = BM25Index.build([passage.text for passage in passages])
    return BM25Retriever(PassageStore.open(tmp_path), index)


async def test_passages_come_ranked_with_their_scores(retriever: BM25Retriever):
    first, second = await retriever.search("Which mammals live in the sea and sleep?", 5)
    assert (first.id, first.rank, second.id, second.rank) == ("whale#0", 1, "cat#0", 2)
    assert first.score > second.score > 0
    assert first.scores == {"bm25": first.score}


@pytest.mark.parametrize("query", ["", "   ", "?!", "。。。", "elephant"])
async def test_nothing_found(retriever: BM25Retriever, query: str):
    assert await retriever.search(query, 3) == []


async def test_k_limits(retriever: BM25Retriever):
    assert await retriever.search("cats", 0) == []
    assert len(await retriever.search("cats whales 竹子", 2)) == 2


async def test_chinese_words_are_found_inside_a_sentence(retriever: BM25Retriever):
    [found] = await retriever.search("熊猫吃什么？", 3)
    assert found.id == "xiongmao#0"
