"""Cutting documents into passages, a given text, and the best sentence of a passage."""

from __future__ import annotations

import pytest

from pipelines.base import Passage
from pipelines.errors import InvalidInputError
from pipelines.retrieval.documents import (
    PASSAGE_WORDS,
    TextRetriever,
    best_sentence,
    cut_document,
    indexed_text,
    passage_key,
)
from pipelines.retrieval.indexes import word_spans
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


FILLER = "Nothing of interest is said in this sentence about anything at all. " * 12
TEXT = f"{FILLER}\n\nBill Clinton was born in Hope, Arkansas.\n\n{FILLER}"


async def test_what_shares_most_with_the_query_comes_first():
    found = await TextRetriever(TEXT).search("Where was Clinton born?", 2)
    assert len(found) == 2
    assert "Hope, Arkansas" in found[0].text
    assert [one.rank for one in found] == [1, 2]
    assert found[0].scores == {"bm25": found[0].score}
    assert (found[0].score or 0) > (found[1].score or 0)


async def test_what_shares_nothing_with_the_query_is_evidence_all_the_same():
    found = await TextRetriever("It rains in Spain.").search("Who wrote Hamlet?", 3)
    assert [(one.text, one.score) for one in found] == [("It rains in Spain.", 0.0)]


async def test_chinese_texts_are_searched():
    found = await TextRetriever("北京是中国的首都。").search("中国的首都是哪里？", 1)
    assert found[0].text == "北京是中国的首都。"
    assert (found[0].score or 0) > 0


async def test_no_more_is_found_than_asked_for():
    assert await TextRetriever(TEXT).search("Clinton", 0) == []
    assert len(await TextRetriever(TEXT).search("Clinton", 1)) == 1


@pytest.mark.parametrize("text", ["", "  ", "?!"])
def test_a_text_without_a_word_is_no_evidence(text: str):
    with pytest.raises(InvalidInputError, match="no text to search in"):
        TextRetriever(text)


CLINTON = (
    "Bill Clinton is an American politician. Clinton was born in Hope, Arkansas, in 1946. "
    "Clinton served as governor of Arkansas. Clinton was president from 1993 to 2001."
)
PANDA = "大熊猫是中国特有的动物。大熊猫主要吃竹子。大熊猫的数量约为1864只。"


@pytest.mark.parametrize(
    ("target", "beginning"),
    [
        ("Bill Clinton was born in 1946.", "Clinton was born"),
        ("Clinton became president in 1993", "Clinton was president"),
        ("He was the governor.", "Clinton served"),
        # "Arkansas" is in two sentences, "Hope" in one: what is rarer decides.
        ("Arkansas? Hope!", "Clinton was born"),
        # Both hold it once; the shorter is the more to the point.
        ("Arkansas", "Clinton served"),
        # In every sentence: the shortest again.
        ("Clinton", "Bill Clinton is"),
    ],
)
def test_english(target: str, beginning: str):
    found = best_sentence(CLINTON, target)
    assert found is not None
    assert found.text.startswith(beginning)
    assert CLINTON[found.start : found.end] == found.text


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("大熊猫吃什么？主要是竹子。", "大熊猫主要吃竹子。"),
        ("大熊猫有1864只", "大熊猫的数量约为1864只。"),
        ("这种动物在中国", "大熊猫是中国特有的动物。"),
    ],
)
def test_chinese(target: str, expected: str):
    found = best_sentence(PANDA, target)
    assert found is not None
    assert found.text == expected == PANDA[found.start : found.end]


def test_one_rare_term_outweighs_a_common_one():
    # n = 3: "river" in 2 sentences weighs ln 2.5 = 0.92, "salmon" in 1 ln 4 = 1.39.
    passage = "The river is wide. The river is cold. Salmon spawn upstream."
    found = best_sentence(passage, "river salmon")
    assert found is not None
    assert found.text == "Salmon spawn upstream."


@pytest.mark.parametrize(
    ("passage", "target"),
    [
        (CLINTON, "Whales swim."),
        (CLINTON, "the of and"),
        (CLINTON, ""),
        ("", "Clinton"),
        ("?!", "?!"),
    ],
)
def test_nothing_in_common(passage: str, target: str):
    assert best_sentence(passage, target) is None


def test_passages_with_the_same_words_have_one_key_wherever_they_were_found():
    def key(id: str, text: str) -> str:
        return passage_key(Passage(id=id, title="", text=text, source="a test"))

    assert key("a", "It lies in Norway.") == key("b", "it lies  in Norway")
    assert key("a", "It lies in Norway.") != key("a", "It lies in Sweden.")
    # Without words nothing says that two are alike.
    assert key("a", "…") != key("b", "…")
