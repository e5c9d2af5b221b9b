"""Chinese questions become statements, and wrong ones hold another answer of the same kind."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from research.samples.chinese import (
    PassageQuestion,
    as_chinese_statement,
    chinese_pairs,
    chinese_questions,
    window_around,
)

CONTEXT = "老桥位于河边。老桥建于1432年，由工匠李平设计。桥长48米，宽6米。"


def asked(question: str, answer: str) -> PassageQuestion:
    return PassageQuestion(question, answer, CONTEXT, "老桥", "cmrc-老桥")


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("老桥是谁设计的？", "李平", "老桥是李平设计的。"),
        ("老桥建于哪一年？", "1432年", "老桥建于1432年。"),
        ("桥长多少米?", "48米", "桥长48米。"),
        ("老桥位于哪里？", "河边", "老桥位于河边。"),
        ("这座桥叫什么名字？", "老桥", "这座桥叫老桥。"),
        # No question word, two of them, or one that asks for more than a name.
        ("老桥很长吗？", "是", None),
        ("谁在哪里建了老桥？", "李平", None),
        ("为什么建了老桥？", "方便过河", None),
    ],
)
def test_the_answer_takes_the_place_of_the_question_word(
    question: str, answer: str, statement: str | None
) -> None:
    assert as_chinese_statement(question, answer) == statement


def test_questions_say_what_they_ask_for() -> None:
    kinds = [
        asked(question, "x").kind
        for question in ("谁设计的？", "哪一年建的？", "长多少米？", "在哪里？", "是什么？")
    ]
    assert kinds == ["person", "time", "number", "place", "thing"]


def test_pairs_have_right_and_wrong_statements_on_the_same_evidence() -> None:
    both = [asked("桥长多少米？", "48米"), asked("桥宽多少米？", "6米")]
    pairs = list(chinese_pairs(both, Random(1)))
    stated = [one for one in pairs if one.make == "zh-stated"]
    right = {one.statement for one in stated if one.label == "supported"}
    assert right == {"桥长48米。", "桥宽6米。"}
    wrong = [one for one in stated if one.label == "contradicted"]
    assert wrong
    assert all(one.statement not in right for one in wrong)
    assert all("桥长48米，宽6米" in one.evidence for one in stated)
    elsewhere = [one for one in pairs if one.make == "zh-elsewhere"]
    assert all("48" not in one.evidence for one in elsewhere)


def test_a_window_holds_the_answer_and_is_not_the_whole() -> None:
    found = window_around(CONTEXT * 8, "李平", Random(2))
    assert "李平" in found
    assert len(found) < len(CONTEXT) * 2


def test_halves_of_a_file_share_no_question(tmp_path: Path) -> None:
    lines = [
        {"title": "老桥", "context": CONTEXT, "question": q, "answers": [a]}
        for q, a in (("老桥是谁设计的？", "李平"), ("桥宽多少米？", "6米"), ("桥长？", "没有"))
    ]
    path = tmp_path / "cmrc.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    # The third one's answer does not stand in the passage.
    assert [one.answer for one in chinese_questions(path, None, 0)] == ["李平"]
    assert [one.answer for one in chinese_questions(path, None, 1)] == ["6米"]
