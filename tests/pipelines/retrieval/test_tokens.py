"""Words and terms of English, Chinese and mixed text."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from pipelines.retrieval.tokens import content_terms, query_terms, terms, word_spans


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
