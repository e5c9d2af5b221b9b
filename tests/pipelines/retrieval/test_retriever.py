"""Reciprocal rank fusion, and the two retrievers together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.base import Language
from pipelines.retrieval.base import RetrievalMode, reciprocal_rank_fusion
from pipelines.retrieval.library import build_index
from pipelines.retrieval.retriever import LibraryRetriever
from pipelines.text.languages import detect_language
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


class TwoLanguages:
    """Vectors by subject: the river, or the cat; the same in both languages."""

    name = "two languages"
    languages = frozenset[Language]({"en", "zh"})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        river = ["river" in text or "河" in text for text in texts]
        return np.array([[1.0, 0.0] if one else [0.6, 0.8] for one in river], np.float32)


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
@pytest.mark.parametrize(
    ("own", "question", "found"),
    [
        # The library says it in the other language alone, in Chinese, in both.
        ("The cat sleeps.", "这条河有多长？", "The river is long."),
        ("猫在睡觉。", "How long is this river?", "这条河很长。"),
        ("这条河很长。", "这条河有多长？", "这条河很长。"),
        ("The river is long.", "How long is this river?", "The river is long."),
    ],
)
async def test_the_other_language_is_found_where_it_alone_says_it(
    tmp_path: Path, mode: RetrievalMode, own: str, question: str, found: str
):
    other = "这条河很长。" if "river" in question else "The river is long."
    documents = [document("own", own, "own"), document("other", other, "other")]
    documents = [
        one.model_copy(update={"language": detect_language(one.text)}) for one in documents
    ]
    index = build_index(documents, tmp_path, TwoLanguages())
    passages = await LibraryRetriever(index, mode).search(question, 2)
    assert passages[0].text == found
