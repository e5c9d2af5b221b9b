"""What a method made of a question."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.run.events import Trace, Verdict
from pipelines.samples.record import outcomes_of
from tests.scripted.recorded import Record

HOPE = {
    "question": "Where was Bill Clinton born?",
    "answer": "Hope, Arkansas",
    "aliases": "Hope in Arkansas",
    "kind": "fact",
}
RIGHT, WRONG = "He was born in Hope, Arkansas.", "He was born in Little Rock."


def made(method: str, original: str, verdict: Verdict, final: str, **answer: Any) -> Trace:
    """A run of one method."""
    record = Record(method)
    record.begin(method).draft(method, original)
    record.judge(method, verdict, original)
    record.end(method, final, original, **answer)
    record.finish()
    return Trace(events=tuple(record.events))


@pytest.mark.parametrize(
    ("original", "verdict", "final", "outcome"),
    [
        (WRONG, "doubtful", RIGHT, "corrects"),
        (WRONG, "contradicted", "In Hot Springs.", "stays_wrong"),
        (WRONG, "confident", WRONG, "misses"),
        (WRONG, "unchecked", WRONG, "unchecked"),
        (WRONG, "unchecked", RIGHT, "lucky"),
        (WRONG, "supported", RIGHT, "lucky"),
        (RIGHT, "not_enough", RIGHT, "doubts"),
        (RIGHT, "doubtful", WRONG, "spoils"),
        (RIGHT, "supported", WRONG, "spoils"),
        (RIGHT, "supported", RIGHT, "confirms"),
    ],
)
def test_what_a_method_makes_of_its_answer(
    original: str, verdict: Verdict, final: str, outcome: str
):
    assert outcomes_of(HOPE, made("drad", original, verdict, final)) == {"drad": outcome}


def test_a_row_in_chinese_is_scored_too():
    row = {
        "question": "长城能从月球上看到吗？",
        "answer": "否",
        "aliases": "",
        "kind": "misconception",
    }
    trace = made("drad", "能。", "doubtful", "答案是：不能。")
    assert outcomes_of(row, trace) == {"drad": "corrects"}


def test_an_answer_that_is_not_given_is_withheld_or_lost():
    for original, outcome in ((WRONG, "withholds"), (RIGHT, "spoils")):
        trace = made("haarag", original, "not_enough", original, abstained=True)
        assert outcomes_of(HOPE, trace) == {"haarag": outcome}


def test_a_method_that_only_judges_catches():
    expected: list[tuple[str, Verdict, str]] = [
        (WRONG, "doubtful", "catches"),
        (WRONG, "confident", "misses"),
        (RIGHT, "doubtful", "doubts"),
        (RIGHT, "confident", "confirms"),
    ]
    for original, verdict, outcome in expected:
        assert outcomes_of(HOPE, made("slm", original, verdict, original)) == {"slm": outcome}


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (WRONG, RIGHT, "mends"),
        (WRONG, WRONG, "stays_wrong"),
        (RIGHT, WRONG, "spoils"),
        (RIGHT, RIGHT, "confirms"),
    ],
)
def test_an_answer_with_passages_is_held_against_the_one_without(
    before: str, after: str, outcome: str
):
    record = Record("direct", "rag")
    for method, text in (("direct", before), ("rag", after)):
        record.begin(method).draft(method, text).end(method, text, text)
    record.finish()
    assert outcomes_of(HOPE, Trace(events=tuple(record.events))) == {"rag": outcome}


def test_what_failed_or_was_not_understood_tells_nothing():
    record = Record("rag", "drad")
    record.begin("rag").draft("rag", RIGHT).end("rag", RIGHT, RIGHT)
    record.begin("drad").end("drad")
    record.finish()
    assert outcomes_of(HOPE, Trace(events=tuple(record.events))) == {}
    unknown = made("drad", WRONG, "doubtful", RIGHT, flags=("language_unsupported",))
    assert outcomes_of(HOPE, unknown) == {}
