"""The form that paraphrases of a weak model are bound to."""

from __future__ import annotations

import csv
import re

import pytest

from pipelines.base import SAMPLE_DATA
from pipelines.methods.rowen.reading import question_pattern


@pytest.mark.parametrize(
    ("question", "paraphrase"),
    [
        ("In which year was Newton's Principia published?", "When did Newton publish Principia?"),
        ("In which year did Ada Brandt die?", "What was the year of Ada Brandt's death?"),
        ("Where did Ada Brandt die?", "In which city did Ada Brandt die?"),
        ("In which city was Ada Brandt born?", "Where was Ada Brandt born?"),
        ("Under whom did Ada Brandt work?", "Who was it that Ada Brandt worked under?"),
        (
            "Which novels by Ada Brandt were printed?",
            "What novels by Ada Brandt are there?",
        ),
        ("Which journal published the Brandt papers?", "What is the journal of the Brandt papers?"),
        ("On what material is the Arlen map drawn?", "Which material is the Arlen map drawn on?"),
        ("From which Latin word does the word map come?", "What is the Latin word for a map?"),
        ("Which East Arlen journal published its maps?", "What East Arlen journal had its maps?"),
        ("What is the capital of Arlen?", "Which city of Arlen is its capital?"),
        ("How many moons does Arlen have?", "What is the number of moons of Arlen?"),
        ("Was Ada Brandt born in 1931?", "Is 1931 the year of Ada Brandt's birth?"),
        ("Can goldfish see ultraviolet light?", "Is ultraviolet light seen by goldfish?"),
    ],
)
def test_what_asks_the_same_has_the_form(question: str, paraphrase: str):
    assert re.fullmatch(question_pattern(question), paraphrase)


@pytest.mark.parametrize(
    ("question", "other"),
    [
        # Another kind of question, no name, a name or a number that was made up, two sentences.
        ("Where did Ada Brandt die?", "Who was Ada Brandt?"),
        ("Where did Ada Brandt die?", "Where did she die?"),
        ("Where did Ada Brandt die?", "Where did Ada Brandt die in Vienna?"),
        ("Where did Ada Brandt die?", "Where did Ada Brandt die in 1931?"),
        ("Where did Ada Brandt die?", "Where did Ada Brandt die"),
        ("Where did Ada Brandt die?", "Where was Ada Brandt? Where did Ada Brandt die?"),
        ("Can goldfish see ultraviolet light?", "Which light is ultraviolet?"),
    ],
)
def test_what_asks_something_else_has_not(question: str, other: str):
    assert not re.fullmatch(question_pattern(question), other)


def test_a_name_may_have_any_letters():
    pattern = question_pattern("Who drew the maps of St. John's (Arlen) in 1931?")
    assert re.fullmatch(pattern, "By whom were the maps of St. John's in Arlen drawn in 1931?")


def test_questions_have_their_own_form():
    with (SAMPLE_DATA / "questions.csv").open(encoding="utf-8", newline="") as file:
        asked = [row["question"] for row in csv.DictReader(file) if row["id"].startswith("en-")]
    fit = [question for question in asked if re.fullmatch(question_pattern(question), question)]
    # Quotation marks and brackets are left out.
    assert len(fit) > 0.9 * len(asked)


@pytest.mark.parametrize(
    "question",
    ["What is Paris known for?", "What did Edison invent in 1879?", "What does DNA stand for?"],
)
def test_what_is_asked_about_stays_a_name(question: str):
    assert re.fullmatch(question_pattern(question), question)
