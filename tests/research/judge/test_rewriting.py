"""Rewrites, word exchanges and questions as statements, by example."""

from __future__ import annotations

import re
from random import Random

import pytest

from research.judge import rewriting
from research.judge.rewriting import (
    as_question,
    as_statement,
    claims_in,
    is_person,
    named,
    replaced,
    rewritten,
    with_subject,
)


def forms(rewrite, sentence: str) -> set[str | None]:
    return {rewrite(sentence, Random(seed)) for seed in range(20)}


@pytest.mark.parametrize(
    ("sentence", "title", "whole"),
    [
        ("She was born in London.", "Ada Lovelace", "Ada Lovelace was born in London."),
        ("Her mother taught her.", "Ada Lovelace", "Ada Lovelace's mother taught her."),
        ("It is the longest river.", "Nile", "Nile is the longest river."),
        # "He" is no thing, and "it" in a life is not the person.
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
    assert forms(rewriting._without_aside, "He (the king) died.") == {"He died."}
    assert forms(rewriting._without_aside, "He died.") == {None}


def test_what_leads_is_moved_or_left_out():
    assert forms(rewriting._leading_moved, "In 1843, she wrote notes.") == {
        "She wrote notes.",
        "She wrote notes in 1843.",
    }


def test_what_trails_is_left_out():
    sentence = "The tower is made of wrought iron, which was cheap at that time."
    assert forms(rewriting._trailing_left_out, sentence) == {"The tower is made of wrought iron."}


def test_the_active_voice():
    sentence = "The company was founded by Ann Lee in 1901."
    assert forms(rewriting._active, sentence) == {"Ann Lee founded the company in 1901."}


def test_numbers_as_words_and_digits():
    assert "It has 2 towers." in forms(rewriting._numbers, "It has two towers.")
    assert "It has two towers." in forms(rewriting._numbers, "It has 2 towers.")
    # 2.5 is no two.
    assert "It is two.5 high." not in forms(rewriting._numbers, "It is 2.5 high.")
    assert "It has 1200 seats, nearly." in forms(rewriting._numbers, "It has 1,200 seats, nearly.")


def test_days_of_a_month_stay_digits():
    assert forms(rewriting._numbers, "She came on 9 December.") == {None}


def test_a_sentence_about_one_is_told_of_another():
    said = with_subject("Ann Marie Lee sang, and Lee won.", "Ann Lee", "Bo Ray")
    assert said == "Bo Ray sang, and Ray won."
    assert with_subject("She sang.", "Ann Lee", "Bo Ray") == "Bo Ray sang."
    assert with_subject("It rained.", "Ann Lee", "Bo Ray") is None


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
    assert as_question(statement) == question


def test_rewrites_that_do_not_apply_leave_the_sentence():
    assert rewritten("Nothing.", Random(1), 3) == "Nothing."


def drawn(table: str, sentence: str) -> set[str | None]:
    return {replaced(sentence, Random(seed), table) for seed in range(80)}


def test_a_word_becomes_another_of_its_group_and_the_article_follows():
    found = drawn("exchangeable", "He was a lawyer.")
    assert {"He was a biologist.", "He was a composer."} < found
    assert any(text and re.fullmatch(r"He was an [aei]\w+\.", text) for text in found)
    assert not any(text and re.search(r" a [aeio]| an [^aeio]", text) for text in found)
    assert "He was a lawyer." not in found


def test_a_word_becomes_its_opposite():
    assert drawn("opposites", "It opened before noon.") == {
        "It closed before noon.",
        "It opened after noon.",
    }


def test_the_longest_expression_is_taken():
    # "more than" and not "more".
    assert drawn("opposites", "There are more than ten.") == {"There are less than ten."}


def test_other_words_for_the_same():
    assert drawn("same", "Nearly all came.") == {"Almost all came."}


@pytest.mark.parametrize("table", ["exchangeable", "opposites", "same"])
def test_a_sentence_without_such_words_stays(table: str):
    assert replaced("Nothing here.", Random(0), table) is None


def test_parts_of_words_are_left_alone():
    # "art" of "party", "win" of "window".
    assert replaced("The windows of the overall.", Random(0), "opposites") is None


def test_base_forms_are_those_of_past_forms():
    forms = rewriting._PAST
    assert (forms["wrote"], forms["died"]) == ("write", "die")
    assert not [past for past, base in forms.items() if past == base]


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("Who wrote the play?", "Ann Lee", "Ann Lee wrote the play."),
        ("What is the capital of Norway?", "Oslo", "The capital of Norway is Oslo."),
        ("Who was killed in the battle?", "the king", "The king was killed in the battle."),
        ("What city is the capital of Norway?", "Oslo", "Oslo is the capital of Norway."),
        ("Which proclamation ended the war?", "the edict", "The edict ended the war."),
        ("How many towns lie here?", "Nine", None),
        ("How many nations control this region?", "Nine", "Nine nations control this region."),
        ("When was the bridge built?", "1901", "The bridge was built in 1901."),
        ("When was she born?", "May 3, 1901", "She was born on May 3, 1901."),
        ("When was she born?", "in May", "She was born in May."),
        ("Where was Ann Lee born in 1900?", "Oslo", "Ann Lee was born in 1900 in Oslo."),
        ("In what year was it founded?", "1901.", "It was founded in 1901."),
        # No rule puts these right.
        ("When did she sing?", "1901", None),
        ("What did she sing about?", "love", None),
        ("What is it famous for?", "fish", None),
        ("Why was she tired?", "work", None),
        ("In Norway, who sings?", "Ann", None),
        ("", "Ann", None),
        ("Who sings?", " ", None),
    ],
)
def test_an_answer_becomes_a_statement(question: str, answer: str, statement: str | None):
    assert as_statement(question, answer) == statement
