"""Rewrites that keep a sentence true, one by one."""

from __future__ import annotations

from random import Random

import pytest

from pipelines.training import rewrites
from pipelines.training.rewrites import (
    asked_about,
    claims_in,
    is_person,
    named,
    rewritten,
    told_of,
)


def forms(rewrite, sentence: str) -> set[str | None]:
    return {rewrite(sentence, Random(seed)) for seed in range(20)}


@pytest.mark.parametrize(
    ("sentence", "title", "whole"),
    [
        ("She was born in London.", "Ada Lovelace", "Ada Lovelace was born in London."),
        ("Her mother taught her.", "Ada Lovelace", "Ada Lovelace's mother taught her."),
        ("It is the longest river.", "Nile", "Nile is the longest river."),
        # Of a thing nobody says "he", and what "it" is in a life nobody knows.
        ("He was killed in 1915.", "Nile", "He was killed in 1915."),
        ("It appeared in 1843.", "Ada Lovelace", "It appeared in 1843."),
        ("It was in 1843 that she wrote.", "Nile", "It was in 1843 that she wrote."),
        ("She died.", "", "She died."),
        ("Sheffield is a city.", "Ada Lovelace", "Sheffield is a city."),
    ],
)
def test_the_subject_is_named(sentence: str, title: str, whole: str):
    assert named(sentence, title) == whole


def test_what_a_sentence_says_in_passing():
    sentence = "John Reynolds (1820 – 1896) was an English physician, known for his papers."
    assert claims_in(sentence, "John Reynolds") == [
        "John Reynolds was born in 1820.",
        "John Reynolds died in 1896.",
        "John Reynolds was an English physician.",
    ]
    assert claims_in("Ann Lee (born March 3, 1980) sings.", "") == ["Ann Lee was born in 1980."]
    assert claims_in("Ann Lee, a singer from Leeds, won.", "") == [
        "Ann Lee was a singer from Leeds."
    ]


def test_an_aside_is_left_out():
    assert forms(rewrites._without_aside, "He (the king) died.") == {"He died."}
    assert forms(rewrites._without_aside, "He died.") == {None}


def test_what_leads_is_moved_or_left_out():
    assert forms(rewrites._leading_moved, "In 1843, she wrote notes.") == {
        "She wrote notes.",
        "She wrote notes in 1843.",
    }


def test_what_trails_is_left_out():
    sentence = "The tower is made of wrought iron, which was cheap at that time."
    assert forms(rewrites._trailing_left_out, sentence) == {"The tower is made of wrought iron."}


def test_the_active_voice():
    sentence = "The company was founded by Ann Lee in 1901."
    assert forms(rewrites._active, sentence) == {"Ann Lee founded the company in 1901."}


def test_numbers_as_words_and_digits():
    assert "It has 2 towers." in forms(rewrites._numbers, "It has two towers.")
    assert "It has two towers." in forms(rewrites._numbers, "It has 2 towers.")
    # 2.5 is no two.
    assert "It is two.5 high." not in forms(rewrites._numbers, "It is 2.5 high.")
    assert "It has 1200 seats, nearly." in forms(rewrites._numbers, "It has 1,200 seats, nearly.")


def test_days_of_a_month_stay_digits():
    assert forms(rewrites._numbers, "She came on 9 December.") == {None}


def test_a_sentence_about_one_is_told_of_another():
    told = told_of("Ann Marie Lee sang, and Lee won.", "Ann Lee", "Bo Ray")
    assert told == "Bo Ray sang, and Ray won."
    assert told_of("She sang.", "Ann Lee", "Bo Ray") == "Bo Ray sang."
    assert told_of("It rained.", "Ann Lee", "Bo Ray") is None


@pytest.mark.parametrize(
    ("title", "person"), [("Ada Lovelace", True), ("Nile", False), ("J. R. R. Tolkien", True)]
)
def test_what_looks_like_a_persons_name(title: str, person: bool):
    assert is_person(title) == person


@pytest.mark.parametrize(
    ("statement", "question"),
    [
        ("Ann Lee was born in Leeds.", "Was Ann Lee born in Leeds?"),
        ("The river is long.", "Is the river long?"),
        ("Ann Lee sang.", "Did Ann Lee sing?"),
        ("Ann Lee died in 1901 in Leeds.", "Did Ann Lee die in 1901 in Leeds?"),
        ("The Bank of Leeds lost two ships.", "Did the Bank of Leeds lose two ships?"),
        ("He moved to Leeds, and he was poor.", "Did he move to Leeds, and he was poor?"),
        ("Ann Lee hummed.", None),
        ("Ann Lee sang and danced.", None),
        ("He said: it was cold.", None),
    ],
)
def test_a_statement_as_a_question(statement: str, question: str | None):
    assert asked_about(statement) == question


def test_rewrites_that_do_not_apply_leave_the_sentence():
    assert rewritten("Nothing.", Random(1), 3) == "Nothing."
