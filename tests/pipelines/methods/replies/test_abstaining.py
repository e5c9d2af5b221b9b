"""Answers that give none, told by their form; and answers that only read like one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pipelines.base import ASSETS
from pipelines.methods.replies.abstaining import declines, gives_no_answer

FORMS = tomllib.loads(Path(__file__).with_name("abstentions.toml").read_text(encoding="utf-8"))
WORDING = (ASSETS / "wording" / "abstaining.toml").read_text(encoding="utf-8").casefold()


def test_there_are_enough_forms_and_none_is_in_the_code():
    assert [len(set(FORMS[kind])) for kind in ("en", "zh", "answers")] == [60, 60, 60]
    for text in (*FORMS["en"], *FORMS["zh"]):
        assert text.casefold().strip("。.*!") not in WORDING


@pytest.mark.parametrize("text", [*FORMS["en"], *FORMS["zh"]])
def test_an_answer_that_gives_none(text: str):
    assert gives_no_answer(text)
    # Courtesy before it and advice after it change nothing; an answer after it does.
    assert gives_no_answer(f"Thank you for asking. {text}")
    assert not gives_no_answer(f"{text.rstrip('.。')}. It was Napoleon in 1805.")


@pytest.mark.parametrize(
    "text",
    [
        *FORMS["more_en"],
        *FORMS["more_zh"],
        *FORMS["third_en"],
        *FORMS["third_zh"],
        *FORMS["fourth"],
    ],
)
def test_more_answers_that_give_none(text: str):
    assert gives_no_answer(text)
    assert gives_no_answer(f"I am sorry. {text}")


@pytest.mark.parametrize(
    "text",
    [*FORMS["answers"], *FORMS["more_answers"], *FORMS["third_answers"], *FORMS["fourth_answers"]],
)
def test_an_answer_that_reads_like_none(text: str):
    assert not gives_no_answer(text)
    assert not declines(text)


@pytest.mark.parametrize("text", FORMS["other_languages"])
def test_the_commonest_phrases_of_other_languages(text: str):
    assert gives_no_answer(text)
    assert not gives_no_answer(f"{text.rstrip('.。')}. Napoleon, 1805.")


@pytest.mark.parametrize(
    "text", ["Nobody knows.", "It is unknown.", "没有人知道。", "The date was never recorded."]
)
def test_that_nobody_knows_is_a_claim_of_the_speaker(text: str):
    assert not declines(text)


def test_words_of_the_question_are_no_answer():
    said = "Marie Curie and radium: I am not sure about that."
    assert gives_no_answer(said, "When did Marie Curie discover radium?")
    assert not gives_no_answer(said)


@pytest.mark.parametrize(
    ("text", "none"),
    [
        ("<think>I do not know this.</think>Lyon", False),
        ("<think>Lyon?</think>I do not know this.", True),
        ("I can't help with that request. Such weapons are dangerous.", True),
        ("我无法满足您的请求。武器很危险。", True),
        ("N/A", True),
        ("NOT_FOUND", True),
        ("[no answer]", True),
        ("{not found}", True),
        ("No, there is no mention of it in the Bible.", False),
        ("—", True),
        ("", False),
        ("   ", False),
    ],
)
def test_what_surrounds_an_answer(text: str, none: bool):
    assert gives_no_answer(text) is none


def test_a_long_text_is_read_in_linear_time():
    for piece in ("the context of the ", "I am not ", "我不", "no ", "it is not ", "在", "未"):
        gives_no_answer(piece * (3900 // len(piece)))
