"""Prompts of judges: the shipped one, and what a file of one's own must hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.judging.prompts import checked_prompts, read_source, shipped_source
from pipelines.methods.replies.verdicts import GRADES
from pipelines.models.base import parse_choice

OWN = """
[en]
judge = '''Q: $question A: $answer R: $references W: $wrong_answers
Correct, Partly, Wrong or Abstained?'''
reminder = "Correct, Partly, Wrong or Abstained?"
"""


def test_the_shipped_prompts_are_in_both_languages():
    prompts = checked_prompts(shipped_source())
    assert prompts.languages == {"en", "zh"}
    values = {"question": "Who?", "references": "- Ann", "answer": "Bob"}
    for language in ("en", "zh"):
        text = prompts.fill(language, "judge", **values)
        assert all(value in text for value in values.values())


def test_a_file_of_ones_own_is_read(tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text(OWN, encoding="utf-8")
    assert checked_prompts(read_source(file)).languages == {"en"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[en]", "[en", "is no TOML file"),
        ("[en]", "[fr]", "needs the tables"),
        ("reminder", "remark", "has no prompt 'reminder'"),
        ("$answer", "the answer", r"lacks \$answer"),
        ("$wrong_answers", "$name", r"has \$name, which nothing fills"),
        ("$wrong_answers", "5$ each", "single \\$"),
        (", Partly", "", "does not name all grades"),
    ],
)
def test_a_file_that_cannot_work_is_refused(tmp_path: Path, old: str, new: str, said: str):
    file = tmp_path / "mine.toml"
    file.write_text(OWN.replace(old, new), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=said) as raised:
        read_source(file)
    assert "answer_judge.toml" in raised.value.remedy


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_source(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("language", "said", "grade"),
    [
        ("en", "Correct", "correct"),
        ("en", "**Partly correct.**", "partly"),
        ("en", "Incorrect", "wrong"),
        ("en", "The answer is wrong.", "wrong"),
        ("en", "No answer", "abstained"),
        # A verdict that is taken back, or that only stands in a sentence, is none.
        ("en", "Correct, but the year is wrong.", None),
        ("en", "It would be correct if the year were 1990", None),
        ("en", "Correct or wrong", None),
        ("zh", "正确", "correct"),
        ("zh", "部分正确", "partly"),
        ("zh", "不正确", "wrong"),
        ("zh", "未作答。", "abstained"),
        ("zh", "很难说", None),
    ],
)
def test_a_grade_is_read_only_where_one_stands(language: str, said: str, grade: str | None):
    assert parse_choice(said, GRADES["zh" if language == "zh" else "en"]) == grade
