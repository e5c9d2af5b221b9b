"""Cutting documents at sentence boundaries."""

from __future__ import annotations

import pytest

from pipelines.retrieval.passages import PASSAGE_WORDS, cut_document, indexed_text
from pipelines.retrieval.tokens import word_spans
from pipelines.text.sentences import split_sentences
from tests.pipelines.retrieval.examples import document


def sentence(words: int, mark: str) -> str:
    """A sentence of that many words, recognisable by the first."""
    return f"{mark} {'word ' * (words - 2)}end."


def cut(*lengths: int) -> list[list[int]]:
    """The sentences, by number, in each passage of a text of sentences that long."""
    marks = [f"S{number}" for number in range(len(lengths))]
    text = " ".join(map(sentence, lengths, marks))
    passages = cut_document(document("d", text))
    assert all(text[passage.start : passage.end] == passage.text for passage in passages)
    return [
        [number for number, mark in enumerate(marks) if f"{mark} " in passage.text]
        for passage in passages
    ]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((10,), [[0]]),
        ((50, 50), [[0, 1]]),
        ((40, 40, 40, 40), [[0, 1], [1, 2], [2, 3]]),
        ((30, 30, 30, 30, 30), [[0, 1, 2], [2, 3, 4]]),
        # A long last sentence is not repeated; one of exactly half a passage is.
        ((60, 60, 60), [[0], [1], [2]]),
        ((60, 50, 50), [[0], [1, 2]]),
        ((50, 50, 50), [[0, 1], [1, 2]]),
        # What is repeated never stands alone, even before a full passage.
        ((40, 100, 20), [[0], [0, 1], [2]]),
    ],
)
def test_sentences_of_each_passage(lengths: tuple[int, ...], expected: list[list[int]]):
    assert cut(*lengths) == expected


def test_an_overlong_sentence_is_cut_between_words():
    text = f"{'word ' * 229}end."
    passages = cut_document(document("d", text))
    assert [len(word_spans(passage.text)) for passage in passages] == [100, 100, 30]
    assert " ".join(passage.text for passage in passages) == text


def test_passages_carry_their_document():
    paper = document("en/x", f"{sentence(90, 'A')} {sentence(90, 'B')}", "A title")
    first, second = cut_document(paper.model_copy(update={"url": "https://example.org"}))
    assert (first.id, second.id) == ("en/x#0", "en/x#1")
    assert (first.title, first.source, first.url) == ("A title", "en/x.md", "https://example.org")
    assert indexed_text(first) == f"A title\n{first.text}"


def test_chinese_is_measured_in_words():
    line = "大熊猫生活在中国四川的竹林里，主要吃竹子。"
    per_line = len(word_spans(line))
    text = line * 30
    passages = cut_document(document("d", text, language="zh"))
    assert all(text[passage.start : passage.end] == passage.text for passage in passages)
    whole = PASSAGE_WORDS // per_line
    assert passages[0].text == line * whole
    assert passages[1].start == passages[0].end - len(line)
    assert passages[-1].end == len(text)


def test_paragraphs_headings_and_lists_lose_no_sentence():
    text = "Heading\n\nOne. Two!\n\n- First item\n- Second item\n\n第三段。最后一句？"
    passages = cut_document(document("d", text))
    for found in split_sentences(text):
        assert any(p.start <= found.start and found.end <= p.end for p in passages)


def test_a_document_without_words_is_one_passage():
    assert [passage.text for passage in cut_document(document("d", "?! ?!"))] == ["?! ?!"]
