"""Entities that only repeat the question, and thinking blocks: whole, cut off, never opened."""

from __future__ import annotations

import pytest

from pipelines.text import is_thinking, repeats_question, text_key, without_thinking


@pytest.mark.parametrize(
    ("entity", "question"),
    [
        ("Clinton", "Where was Bill Clinton born?"),
        ("Bill Clinton", "where was bill clinton born"),
        ("BILL CLINTON", "Where was Bill Clinton born?"),
        ("Clinton's", "Where was Bill Clinton born?"),
        ("the Beatles", "Which of the Beatles was the oldest?"),
        ("The Beatles", "Who were Beatles fans?"),
        ("“War and Peace”", "Who wrote War and Peace?"),
        ("New York", "What is the largest park in New York City?"),
        ("U.S.", "Who leads the US?"),
        ("1,250", "Is it 1250 metres?"),
        ("3.14", "Is pi 3.14?"),
        ("O'Brien", "Who is O’Brien?"),
        ("Saint-Rémy", "What happened in Saint-Rémy-de-Provence?"),
        ("OpenAI", "OpenAI是什么公司？"),
        ("克林顿", "比尔·克林顿生于哪里？"),
        ("比尔·克林顿", "比尔·克林顿生于哪里？"),
        ("鲁迅", "鲁迅先生生于哪一年？"),
        ("《红楼梦》", "红楼梦的作者是谁？"),
        ("1946年", "1946年8月19日发生了什么？"),
        ("iPhone手机", "IPHONE手机是哪年发布的？"),
    ],
)
def test_repeats(entity: str, question: str) -> None:
    assert repeats_question(entity, question)


@pytest.mark.parametrize(
    ("entity", "question"),
    [
        # More than the question said.
        ("Bill Clinton", "Where was Clinton born?"),
        ("William Clinton", "Where was Bill Clinton born?"),
        ("August 19, 1946", "Was Clinton born in August?"),
        ("Hope", "Where was Bill Clinton born?"),
        # Its words stand in the question, but not together.
        ("John Adams", "Did John meet Samuel Adams?"),
        # Part of a word is no word.
        ("Rome", "What is a chrome?"),
        ("US", "Can you tell us more?"),
        ("1.5", "Is it 15?"),
        ("北京", "北京大学在哪里？"),
        ("毛泽东", "鲁迅生于哪一年？"),
        ("北京", "Where is Peking?"),
        ("Peking", "北京在哪里？"),
        # Nothing to compare.
        ("…", "What … is that?"),
        ("the", "Who is the king?"),
        ("", "Who?"),
        ("《》", "《》是什么？"),
        ("Paris", ""),
    ],
)
def test_does_not_repeat(entity: str, question: str) -> None:
    assert not repeats_question(entity, question)


@pytest.mark.parametrize(
    "question", ["WHO LEADS THE US?", "who leads the us?", "Who leads the US?"]
)
def test_acronym_by_case(question: str) -> None:
    assert repeats_question("US", question)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("In Ulm.", "In Ulm."),
        ("<think>Ulm?</think> In Ulm.", " In Ulm."),
        ("<THINKING>Ulm?\nYes.</THINKING>In Ulm.", "In Ulm."),
        ("<thought>a</thought>In <think>b</think>Ulm.", "In Ulm."),
        ("Was it Ulm? Yes.</think>In Ulm.", "In Ulm."),
        ("Was it Ulm?</thought>No.</thinking>In Ulm.", "In Ulm."),
        ("<think>Was it", ""),
        ("In Ulm. <think>Or was it", "In Ulm. "),
        # Some models close with another mark than they opened.
        ("<think>a</thought>b", "b"),
        ("I think it was in Ulm, <b>Germany</b>.", "I think it was in Ulm, <b>Germany</b>."),
        ("", ""),
    ],
)
def test_what_is_left_without_thinking(text: str, left: str):
    assert without_thinking(text) == left


@pytest.mark.parametrize(
    ("text", "thinking"),
    [("<think>Was", True), ("Well <Thought>", True), ("I think", False), ("</think>", False)],
)
def test_whether_it_thinks_aloud(text: str, thinking: bool):
    assert is_thinking(text) is thinking


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Born in  1852.", "born in 1852", True),
        ("“巴黎”。", "巴黎", True),
        ("Ａda", "Ada", True),
        ("U.S. _Army_", "us army", True),
        ("1,250", "1250", True),
        ("Born in 1852", "Born in 1853", False),
        ("3.14", "314", False),
        ("C++", "C", False),
        ("5 %", "5", False),
        ("", "…", True),
    ],
)
def test_texts_with_one_key_say_the_same_words(one: str, other: str, same: bool) -> None:
    assert (text_key(one) == text_key(other)) is same
