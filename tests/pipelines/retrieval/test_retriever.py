"""Reciprocal rank fusion, and the two retrievers together."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.retrieval.base import reciprocal_rank_fusion
from pipelines.retrieval.library import build_index
from pipelines.retrieval.retriever import LibraryRetriever
from tests.pipelines.retrieval.examples import WordEmbedder, animals, document


def test_fusion_by_hand():
    assert reciprocal_rank_fusion([["a", "b", "c"], ["b", "d"]]) == [
        ("b", pytest.approx(1 / 62 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
        ("d", pytest.approx(1 / 62)),
        ("c", pytest.approx(1 / 63)),
    ]


def test_fusion_of_equals_keeps_their_order():
    assert [item for item, _ in reciprocal_rank_fusion([[1, 2], [2, 1]])] == [1, 2]


@pytest.mark.parametrize("rankings", [[], [[]], [[], []]])
def test_fusion_of_nothing(rankings: list[list[int]]):
    assert reciprocal_rank_fusion(rankings) == []


def hybrid(tmp_path: Path, embedder: WordEmbedder | None) -> LibraryRetriever:
    documents = [*animals(), document("bird", "Birds fly south in winter.", "Bird")]
    index = build_index(documents, tmp_path, embedder)
    return LibraryRetriever(index, "hybrid")


async def test_both_take_part_and_leave_their_scores(tmp_path: Path):
    retriever = hybrid(tmp_path, WordEmbedder())
    assert retriever.name == "BM25 + words"
    found = await retriever.search("Whales live in the sea", 2)
    assert found[0].id == "whale#0"
    assert found[0].score == pytest.approx(2 / 61)
    assert found[0].scores["bm25"] > 0
    assert found[0].scores["dense"] > found[1].scores["dense"]
    # Found by its vector alone, and said to share no word.
    assert found[1].scores["bm25"] == 0
    assert found[1].score == pytest.approx(1 / 62)


async def test_a_chinese_query_is_searched_by_words_alone(tmp_path: Path):
    embedder = WordEmbedder()
    retriever = hybrid(tmp_path, embedder)
    before = list(embedder.embedded)
    [found] = await retriever.search("大熊猫吃什么？", 3)
    assert found.id == "xiongmao#0"
    assert list(found.scores) == ["bm25"]
    assert found.score == pytest.approx(1 / 61)
    assert embedder.embedded == before


async def test_an_embedder_of_both_languages_reads_both(tmp_path: Path):
    retriever = hybrid(tmp_path, WordEmbedder(languages=("en", "zh")))
    found = await retriever.search("大熊猫吃竹子", 4)
    assert found[0].id == "xiongmao#0"
    assert len(found) == 4
    assert all(set(passage.scores) == {"bm25", "dense"} for passage in found)


async def test_a_passage_without_a_vector_has_no_cosine(tmp_path: Path):
    found = await hybrid(tmp_path, WordEmbedder()).search("Do whales and birds meet 大熊猫", 4)
    assert {passage.id: "dense" in passage.scores for passage in found} == {
        "whale#0": True,
        "bird#0": True,
        "cat#0": True,
        "xiongmao#0": False,
    }


async def test_without_vectors_it_is_bm25(tmp_path: Path):
    retriever = hybrid(tmp_path, None)
    assert retriever.name == "BM25"
    assert [passage.id for passage in await retriever.search("whales", 3)] == ["whale#0"]


@pytest.mark.parametrize("query", ["", "?!", "。"])
async def test_an_empty_query_finds_nothing(tmp_path: Path, query: str):
    embedder = WordEmbedder()
    retriever = hybrid(tmp_path, embedder)
    before = len(embedder.embedded)
    assert await retriever.search(query, 3) == []
    assert await retriever.search("whales", 0) == []
    assert len(embedder.embedded) == before
