"""Traditional Chinese equals simplified: in comparisons, search, entities, at the same offsets."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.metrics.answers import bleu, contains_match, exact_match, f1, rouge_l
from pipelines.evaluation.metrics.reference import Reference, is_right, says
from pipelines.evaluation.plan import Item
from pipelines.models.base import Option, parse_choice
from pipelines.retrieval.documents import best_sentence
from pipelines.retrieval.indexes import BM25Index, LexicalEmbedder, content_terms, terms, word_spans
from pipelines.text import EntityRecognizer, repeats_question, text_key
from pipelines.text.bilingual_names import names_in_both
from pipelines.text.chinese import word_boundaries
from pipelines.text.languages import simplified

PAIRS = [
    ("魯迅於1881年出生於浙江紹興。", "鲁迅于1881年出生于浙江绍兴。"),
    ("比爾·克林頓是美國第42任總統。", "比尔·克林顿是美国第42任总统。"),
    ("二十世紀的臺灣與香港", "二十世纪的台湾与香港"),
    ("《紅樓夢》的作者是曹雪芹。", "《红楼梦》的作者是曹雪芹。"),
    ("後來的皇后頭髮很長,準備乾隆年間的麵條", "后来的皇后头发很长,准备乾隆年间的面条"),
]


@pytest.mark.parametrize(("traditional", "plain"), PAIRS)
def test_both_are_the_same_at_the_same_offsets(traditional: str, plain: str):
    assert simplified(traditional) == plain
    assert simplified(plain) == plain
    assert text_key(traditional) == text_key(plain)
    assert terms(traditional) == terms(plain)
    assert word_spans(traditional) == word_spans(plain)
    assert word_boundaries(traditional) == word_boundaries(plain)
    found, known = (
        EntityRecognizer(trained=False).recognize(text) for text in (traditional, plain)
    )
    assert known
    assert [(one.start, one.end, one.label) for one in found] == [
        (one.start, one.end, one.label) for one in known
    ]
    # What is shown is what stands in the text.
    assert all(traditional[one.start : one.end] == one.text for one in found)


@pytest.mark.parametrize("text", ["", "No Chinese.", "𠮷野家 and 鬱", "\ud800 魯迅", "ǅ發﨑"])
def test_a_text_keeps_its_length(text: str):
    assert len(simplified(text)) == len(text)


def test_metrics():
    accepted = Item(id="1", question="誰寫了《紅樓夢》？", answers=("曹雪芹寫的",), language="zh")
    for metric in (exact_match, f1, contains_match, bleu, rouge_l):
        assert metric("曹雪芹写的", accepted) == pytest.approx(1.0)
    assert is_right("他出生於紹興。", Reference(question="?", answer="绍兴"))
    assert says("沒有。", "他去過北京嗎？") == "no"
    assert says("對。", "他去过北京吗？") == "yes"
    options = (
        Option(label="true", spellings=("正确",)),
        Option(label="false", spellings=("错误",)),
    )
    assert parse_choice("錯誤。", options) == "false"


def test_search():
    passages = ["鲁迅出生于浙江绍兴。", "茅盾出生于浙江桐乡。"]
    assert BM25Index.build(passages).scores("紹興的魯迅").argmax() == 0
    assert content_terms("魯迅的紹興") == content_terms("鲁迅的绍兴")
    one, other = LexicalEmbedder().embed(["魯迅出生於紹興", "鲁迅出生于绍兴"])
    assert np.array_equal(one, other)
    found = best_sentence("茅盾出生於桐鄉。魯迅出生於紹興。", "鲁迅出生在哪里")
    assert found is not None
    assert (found.text, found.start) == ("魯迅出生於紹興。", 8)


def test_names():
    assert repeats_question("克林頓", "比尔·克林顿出生在哪里？")
    assert repeats_question("克林顿", "比爾·克林頓出生在哪裡？")
    (name,) = [one for one in names_in_both("他出生於紹興。", "zh") if one.proper]
    assert (name.start, name.end, name.other) == (4, 6, "Shaoxing")
