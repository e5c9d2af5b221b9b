"""What becomes of an original answer: which answers say the same, and what is said of it."""

from __future__ import annotations

import pytest

from components.outcome import outcome_of
from components.run.ask import MethodRow
from pipelines.base import Language

ASKED = "Where was Bill Clinton born?"
WRONG = "Bill Clinton was born in New York City."


def ended(method: str, answer: str | None, **fields: object) -> MethodRow:
    return MethodRow(method=method, status="done", retrievals=1, answer=answer, **fields)  # type: ignore[arg-type]


DIRECT = MethodRow(method="direct", status="done", answer=WRONG, judges=False)


def test_what_most_say_in_the_fewest_words_stands_for_all_who_say_it():
    rows = [
        DIRECT,
        ended("rag", "“Clinton was born as William Blythe in Hope, Arkansas.” (Bill Clinton)"),
        ended("ever", "Bill Clinton was born in Hope, Arkansas."),
        ended("drad", "Bill Clinton was born in Little Rock."),
    ]
    found = outcome_of(rows, WRONG, ASKED, "en")
    assert (found.kind, found.phrase) == ("corrected", "Hope, Arkansas")
    assert found.answer == "Bill Clinton was born in Hope, Arkansas."
    assert found.methods == ("rag", "ever")
    assert found.asked == 3


def test_what_says_something_else_besides_does_not_stand_for_the_others():
    rows = [
        ended("drad", "Leonardo da Vinci painted The Last Supper."),
        ended("ever", "The Mona Lisa was painted by Leonardo da Vinci."),
    ]
    found = outcome_of(rows, "Raphael painted it.", "Who painted the Mona Lisa?", "en")
    assert (found.phrase, found.methods) == ("Leonardo da Vinci", ("drad", "ever"))


@pytest.mark.parametrize(
    ("language", "question", "original", "answers", "kind", "phrase"),
    [
        ("en", ASKED, "He was born in Hope, Arkansas.", ["Hope, Arkansas"], "confirmed", ""),
        ("en", ASKED, WRONG, [None], "unanswered", ""),
        ("en", "Did he win?", "Yes, he won.", ["No. “He lost it.” (He)"], "corrected", ""),
        ("en", "Did he win?", "Yes, he won.", ["Yes."], "confirmed", ""),
        # The original lists one more.
        (
            "en",
            "Who first climbed it?",
            "Edmund Hillary, George Mallory and Tenzing Norgay climbed it.",
            ["Edmund Hillary; Tenzing Norgay"],
            "corrected",
            "Edmund Hillary; Tenzing Norgay",
        ),
        (
            "zh",
            "首先登上它的是哪几个人？",
            "1960年，登山队的王富洲、屈银华、刘连满和贡布首先登上。",
            ["王富洲 屈银华 贡布"],
            "corrected",
            "王富洲 屈银华 贡布",
        ),
        (
            "en",
            "Who first climbed it?",
            "Edmund Hillary, an explorer, and Tenzing Norgay climbed it.",
            ["Edmund Hillary; Tenzing Norgay"],
            "confirmed",
            "",
        ),
        ("zh", "谁设计了灯塔？", "灯塔是卡尔设计的。", ["灯塔是安娜设计的。"], "corrected", "安娜"),
    ],
)
def test_what_is_said_of_the_original(
    language: Language,
    question: str,
    original: str,
    answers: list[str | None],
    kind: str,
    phrase: str,
):
    rows = [ended("rag", one, abstained=one is None) for one in answers]
    found = outcome_of([DIRECT, *rows], original, question, language)
    assert found.kind == kind
    assert kind != "corrected" or found.phrase == phrase


def test_nothing_is_said_before_a_method_has_ended():
    waiting = MethodRow(method="ever", status="running")
    assert outcome_of([DIRECT, waiting], WRONG, ASKED, "en").kind == "open"


def test_detectors_alone_give_no_answer():
    checked = MethodRow(method="slm", status="done", rewrites=False, answer=WRONG)
    assert outcome_of([DIRECT, checked], WRONG, ASKED, "en").kind == "none"


def test_an_answer_that_is_left_because_no_passage_answers_is_none():
    left = {"verdict": "doubtful", "flags": ("correction_none",)}
    rows = [ended("drad", WRONG, **left), ended("ever", WRONG, **left)]
    assert outcome_of(rows, WRONG, ASKED, "en").kind == "unanswered"
    # What is not doubted is an answer all the same.
    kept = ended("rowen", WRONG, verdict="confident", flags=("correction_none",))
    assert outcome_of([*rows, kept], WRONG, ASKED, "en").methods == ("rowen",)
