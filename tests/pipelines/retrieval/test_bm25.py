"""Search terms, BM25, and vectors of word counts."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest

from pipelines.retrieval.indexes import (
    BM25Index,
    LexicalEmbedder,
    best_positions,
    content_terms,
    query_terms,
    terms,
    word_spans,
)
from pipelines.retrieval.library import build_index
from pipelines.retrieval.retriever import LibraryRetriever
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
def retriever(tmp_path: Path) -> LibraryRetriever:
    return LibraryRetriever(build_index(animals(), tmp_path, None), "bm25")


async def test_passages_come_ranked_with_their_scores(retriever: LibraryRetriever):
    first, second = await retriever.search("Which mammals live in the sea and sleep?", 5)
    assert (first.id, first.rank, second.id, second.rank) == ("whale#0", 1, "cat#0", 2)
    assert first.score > second.score > 0
    assert first.scores == {"bm25": first.score}


@pytest.mark.parametrize("query", ["", "   ", "?!", "。。。", "elephant"])
async def test_nothing_found(retriever: LibraryRetriever, query: str):
    assert await retriever.search(query, 3) == []


async def test_k_limits(retriever: LibraryRetriever):
    assert await retriever.search("cats", 0) == []
    assert len(await retriever.search("cats whales 竹子", 2)) == 2


async def test_chinese_words_are_found_inside_a_sentence(retriever: LibraryRetriever):
    [found] = await retriever.search("熊猫吃什么？", 3)
    assert found.id == "xiongmao#0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat's whiskers", ["the", "cat", "whisker"]),
        ("Beyoncé met Antonín Dvořák", ["beyonce", "met", "antonin", "dvorak"]),
        ("cities, studies, ties", ["city", "study", "ty"]),
        ("houses churches shoes", ["house", "churche", "shoe"]),
        ("glass virus bus gas", ["glass", "virus", "bus", "gas"]),
        ("1,234,567 and 12,5", ["1234567", "and", "12", "5"]),
        ("state-of-the-art, e.g. 3.14", ["state", "of", "the", "art", "e", "g", "3", "14"]),
        ("ＮＡＳＡ ２０２４", ["nasa", "2024"]),
        ("snake_case", ["snake", "case"]),
    ],
)
def test_english_terms(text: str, expected: list[str]):
    assert terms(text) == expected


def test_chinese_terms_are_words_with_the_words_inside_them():
    assert terms("中华人民共和国成立") == [
        *("中华", "华人", "人民", "共和", "共和国", "中华人民共和国"),
        "成立",
    ]


def test_the_unit_of_a_date_stands_alone():
    assert terms("1946年8月19日出生") == ["1946", "年", "8", "月", "19", "日", "出生"]


def test_mixed_text():
    assert terms("月球11号由NASA发射。") == ["月球", "11", "号", "由", "nasa", "发射"]


@pytest.mark.parametrize("text", ["", " \n", "?!… —", "。，「」", "🙂"])
def test_no_terms(text: str):
    assert terms(text) == query_terms(text) == content_terms(text) == word_spans(text) == []


def test_a_query_loses_its_stop_words():
    assert query_terms("Who was the first man on the Moon?") == ["first", "man", "moon"]
    assert query_terms("竹子是什么时候开花的？") == ["竹子", "开花"]


def test_a_query_of_stop_words_keeps_them():
    assert query_terms("The Who") == ["the", "who"]
    assert content_terms("The Who") == []


@pytest.mark.parametrize("text", ["It's 1,000 m.", "1946年出生于London市。", "naïve 大熊猫 x"])
def test_word_spans_point_into_the_text(text: str):
    spans = word_spans(text)
    assert all(text[start:end].isalnum() for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    joined = "".join(text[start:end] for start, end in spans)
    assert joined == "".join(filter(str.isalnum, text))


def test_threads_may_share_the_dictionary():
    with ThreadPoolExecutor(4) as pool:
        assert len({tuple(cut) for cut in pool.map(terms, ["中国科学院研究所"] * 16)}) == 1


def cosine(one: str, two: str) -> float:
    first, second = LexicalEmbedder().embed([one, two])
    return float(first @ second)


def test_vectors_are_of_unit_length_and_single_precision():
    vectors = LexicalEmbedder().embed(["Paris is large.", "巴黎很大。"])
    assert (vectors.shape, vectors.dtype) == ((2, 4096), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])


def test_shared_words_make_the_cosine():
    # Two of three words each: 2 / (sqrt(3) * sqrt(3)).
    assert cosine("red green blue", "red green black") == pytest.approx(2 / 3)
    assert cosine("Red, GREEN!", "green red") == pytest.approx(1)
    assert cosine("red", "green") == pytest.approx(0)


def test_a_repeated_word_counts_by_its_square_root():
    # (sqrt(4), 1) . (1, 0) over the length sqrt(4 + 1).
    assert cosine("red red red red blue", "red") == pytest.approx(2 / 5**0.5)


def test_chinese_is_counted_by_characters_and_their_pairs():
    # 北 京 北京 against 北 平 北平: one of three features each.
    assert cosine("北京", "北平") == pytest.approx(1 / 3)
    # The same characters in another order share no pair: 北 and 京 of 北 京 北京 and 京 北 京北.
    assert cosine("北京", "京北") == pytest.approx(2 / 3)
    # A pair does not reach over punctuation: 北 京 against 北 京 北京.
    assert cosine("北，京", "北京") == pytest.approx(2 / (2 * 3) ** 0.5)


def test_mixed_text_has_the_features_of_both_scripts():
    # GPT 模 型 模型 against gpt: one of four.
    assert cosine("GPT模型", "gpt") == pytest.approx(0.5)


def test_it_sees_wording_not_meaning():
    assert cosine("The physician was born abroad", "A doctor's foreign birth") == pytest.approx(0)


def test_a_text_without_a_word_has_no_direction():
    assert not LexicalEmbedder().embed(["", "?! …"]).any()
    assert LexicalEmbedder().embed([]).shape == (0, 4096)


def test_the_vectors_are_the_same_in_every_process():
    text = "Paris 巴黎 1900"
    code = (
        "from pipelines.retrieval.indexes import LexicalEmbedder\n"
        f"print(LexicalEmbedder().embed([{text!r}])[0].nonzero()[0].tolist())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == str(LexicalEmbedder().embed([text])[0].nonzero()[0].tolist())


def test_it_reads_both_languages():
    assert LexicalEmbedder().languages == {"en", "zh"}
    assert LexicalEmbedder().name == "words"
