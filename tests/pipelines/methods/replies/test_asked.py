"""What kind of answer a question asks for, and which sentences hold one."""

from __future__ import annotations

import pytest

from pipelines.methods.base import Question
from pipelines.methods.replies.parsing import Kind, asked_kind, holds_kind, is_named
from pipelines.text import detect_language
from pipelines.text.entities import EntityRecognizer


def question(text: str) -> Question:
    return Question(text=text, language=detect_language(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("When was the wall built?", "date"),
        ("Since when has it been open?", "date"),
        ("In which year was the wall built?", "date"),
        ("How long is the wall?", "number"),
        ("About how many people came?", "number"),
        ("What is the boiling point of water?", "number"),
        ("At what temperature does water boil?", "number"),
        ("Who built the wall?", "person"),
        ("Who was the first person in space?", "person"),
        ("By whom was it built?", "person"),
        ("Where did she die?", "place"),
        ("In which city did she die?", "place"),
        # Whom they name is asked about, not for.
        ("Who was Leonardo da Vinci?", None),
        ("Who was Joan of Arc?", None),
        ("When does water freeze?", None),
        ("Who was Ada Brandt?", None),
        ("Who is the Pope?", None),
        ("What did they do when he came?", None),
        ("Why was the wall built?", None),
        ("Was the wall built in 1961?", None),
        ("长城是哪一年建成的？", "date"),
        ("他什么时候出生？", "date"),
        ("长城有多长？", "number"),
        ("故宫有多少个房间？", "number"),
        ("谁发现了青蒿素？", None),
        ("他为什么出名？", None),
        ("几内亚的首都叫什么？", None),
        ("多伦多大学有名吗？", None),
        ("In which language was it written?", "language"),
        ("What script is it written in?", "language"),
        ("Which language family is Finnish of?", None),
        ("What programming language is it written in?", None),
        ("What colour is the bridge?", "colour"),
        ("这本书是用什么文字印刷的？", "language"),
        ("他们说哪种语言？", "language"),
        ("桥是什么颜色的？", "colour"),
    ],
)
def test_what_is_asked_for(text: str, kind: Kind | None):
    assert asked_kind(question(text)) == kind


@pytest.mark.parametrize(
    ("asked", "sentence", "holds"),
    [
        ("When was it built?", "It was closed on 13 August 1961.", True),
        ("When was it built?", "It divided the city for 28 years.", False),
        ("When was it built?", "It was built in the nineteenth century.", True),
        ("When was it built?", "It was built in the year 930.", True),
        ("When did they marry?", "They may have married in May.", True),
        ("When did they marry?", "They may have married.", False),
        # The year is the question's own.
        ("When in 1961 was it built?", "It was built in 1961.", False),
        ("How long is it?", "It was 155 kilometres long.", True),
        ("How many came?", "Two and a half million came.", True),
        ("How many came?", "They came in August 1961.", False),
        ("How long is it?", "It is very long.", False),
        # Not every number of four digits is a year, and 19 is no part of 1961.
        ("How deep is the lake?", "It is 1637 metres deep.", True),
        ("How many died in 1961?", "19 people died.", True),
        ("How often was it written?", "It was written ten times.", True),
        ("On what day of the week was it?", "It was on Saturday.", True),
        ("In which century was it built?", "It was built in the first century.", True),
        ("他活了多少年？", "他活了80年。", True),
        ("长城建于哪个世纪？", "长城建于十五世纪。", True),
        ("他哪一年出生？", "他生于1881年。", True),
        ("他哪一年出生？", "他生于浙江绍兴。", False),
        ("长城有多长？", "全长21196千米。", True),
        ("长城有多长？", "长城很长。", False),
        ("In which language was it printed?", "It was a Latin Bible.", True),
        ("In which language was it printed?", "It was printed with movable type.", False),
        ("Into which language was the Latin book put?", "The Latin book was sold.", False),
        ("What colour is the bridge?", "It was painted orange.", True),
        ("What colour is the bridge?", "It was painted in 1937.", False),
        ("它是用什么文字印刷的？", "它印的是拉丁文。", True),
        ("它是用什么文字印刷的？", "它是用金属活字印刷的，并不出自论文。", False),
        ("桥是什么颜色的？", "桥身是橙色的。", True),
        ("桥是什么颜色的？", "桥建在黄河上。", False),
    ],
)
def test_dates_and_numbers(asked: str, sentence: str, holds: bool):
    about = question(asked)
    kind = asked_kind(about)
    assert kind is not None
    assert not is_named(kind)
    assert holds_kind(kind, about, sentence) == holds


@pytest.mark.parametrize(
    ("asked", "sentence", "title", "holds"),
    [
        ("Who wrote it?", "It was written by Jane Austen.", "Emma", True),
        ("Who wrote Emma?", "Emma was written in a hurry.", "Emma", False),
        # "She" is whom the title names.
        ("Who wrote Emma?", "She wrote it in a hurry.", "Jane Austen", True),
        ("Who taught Jane Austen?", "She was taught at home.", "Jane Austen", False),
        ("Where did she die?", "She died in Winchester.", "Jane Austen", True),
        ("Where did she die?", "She died after a long illness.", "Jane Austen", False),
    ],
)
def test_names(asked: str, sentence: str, title: str, holds: bool):
    about = question(asked)
    kind = asked_kind(about)
    assert kind is not None
    assert is_named(kind)
    names = EntityRecognizer(trained=False).recognize(sentence, "en")
    assert holds_kind(kind, about, sentence, names, title) == holds
