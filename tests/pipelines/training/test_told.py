"""Questions with answers as statements."""

from __future__ import annotations

import pytest

from pipelines.training.examples import Example
from pipelines.training.told import told, told_pairs


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
    assert told(question, answer) == statement


def pair(answer: str, question: str = "Who wrote the play?", **more) -> Example:
    return Example(
        evidence="Ann Lee wrote it.",
        statement=answer,
        label="contradicted",
        make="qa-span",
        group="g",
        question=question,
        **more,
    )


def test_only_the_answer_is_wrong():
    (found,) = told_pairs([pair("Bob").wholly_wrong])
    assert (found.statement, found.question) == ("Bob wrote the play.", "")
    assert (found.label, found.make, found.group) == ("contradicted", "told", "g")
    assert found.wrong == ((0, 3),)


def test_where_the_wrong_words_are_unknown_they_stay_so():
    (unknown,), (right,) = told_pairs([pair("Bob")]), told_pairs([pair("Bob").wholly_right])
    assert (unknown.wrong, right.wrong) == (None, ())


def test_long_answers_and_odd_questions_are_left_out():
    long = "He who was called the first of all the poets of the town"
    assert not list(told_pairs([pair(long), pair("Bob", "Why?"), pair("Bob", "")]))
