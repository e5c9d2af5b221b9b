"""What components are given of a run, as far as it has come."""

from __future__ import annotations

import pytest

from components.run.ask import (
    clock,
    language_unsupported,
    method_rows,
    nearest_in_words,
    original_of,
    passages_of,
    run_status,
    totals,
)
from pipelines.run.view import RunView
from tests.scripted.runs import (
    CORRECTED,
    DRAFT,
    QUESTION,
    baseline_view,
    drad_outcome,
    speaking,
    until,
    view_of,
)


async def test_a_corrected_run_in_a_row():
    (row,) = method_rows(view_of((await drad_outcome()).trace))
    assert (row.method, row.status, row.language) == ("drad", "done", "en")
    assert (row.original, row.answer) == (DRAFT, CORRECTED)
    assert row.verdict == "doubtful"
    assert row.score is not None
    assert row.score.value is not None
    assert round(row.score.value, 6) == 0.3
    assert row.score.threshold == 0.60
    assert (row.calls, row.retrievals) == (2, 1)


async def test_nothing_doubtful_is_confident():
    (row,) = method_rows(view_of((await drad_outcome(theta_1=0.2)).trace))
    assert row.verdict == "confident"
    assert row.answer == row.original == DRAFT
    assert row.score is not None
    assert not row.score.flagged


async def test_a_baseline_judges_nothing_and_compares_with_nothing():
    (row,) = method_rows(await baseline_view("direct"))
    assert (row.verdict, row.score, row.original, row.answer) == (None, None, "", DRAFT)


async def test_a_row_before_while_and_after():
    trace = (await drad_outcome()).trace
    (waiting,) = method_rows(until(trace, "run_started"))
    assert (waiting.status, waiting.answer) == ("waiting", None)
    (writing,) = method_rows(until(trace, "span_started", 1), now=5.0)
    assert (writing.status, writing.step, writing.answer) == ("running", "draft", None)
    (detecting,) = method_rows(until(trace, "revised"))
    assert (detecting.original, detecting.answer, detecting.verdict) == (DRAFT, None, None)
    (corrected,) = method_rows(until(trace, "revised", 1))
    assert (corrected.status, corrected.answer) == ("running", CORRECTED)
    assert corrected.verdict == "doubtful"


async def test_seconds_go_on_until_the_method_ends():
    trace = (await drad_outcome()).trace
    running = until(trace, "revised")
    assert running.header is not None
    now = running.header.created + 100.0
    assert clock(running, now) == pytest.approx(100.0)
    assert 99.0 < method_rows(running, now=now)[0].seconds <= 100.001
    over = view_of(trace)
    assert clock(over, now) == over.time
    assert method_rows(over, now=now)[0].seconds < 99.0


async def test_the_original_grows_and_then_carries_its_entities():
    trace = (await drad_outcome()).trace
    assert original_of(until(trace, "run_started")) is None
    original = original_of(view_of(trace))
    assert original is not None
    assert (original.method, original.text, original.writing) == ("drad", DRAFT, False)
    assert [
        (DRAFT[mark.start : mark.end], mark.verdict, mark.repeats) for mark in original.entities
    ] == [("Clinton", "confident", True), ("York", "doubtful", False), ("1993", "confident", False)]


async def test_totals_and_status():
    trace = (await drad_outcome()).trace
    view = view_of(trace)
    assert (totals(view).calls, totals(view).retrievals) == (2, 1)
    assert run_status(view) == "done"
    assert run_status(until(trace, "revised")) == "running"
    assert run_status(RunView()) == "waiting"


async def test_a_language_the_model_does_not_speak_is_neither_judged_nor_scored():
    view = view_of((await drad_outcome()).trace)
    assert not language_unsupported(view)
    foreign = speaking(view, "zh")
    assert language_unsupported(foreign)
    (row,) = method_rows(foreign)
    assert (row.verdict, row.score) == (None, None)


async def test_every_passage_is_listed_once_with_its_query():
    method = view_of((await drad_outcome()).trace).methods["drad"]
    assert [(passage.id, query) for passage, query in passages_of(method)] == [
        ("1", "Clinton was born in He won in 1993."),
        ("2", "Clinton was born in He won in 1993."),
    ]


def test_the_supporting_sentence_is_the_nearest_in_words():
    passage = "He grew up far away. He was born in Hope."
    ((start, end),) = nearest_in_words(passage, "born in Hope")
    assert passage[start:end].strip() == "He was born in Hope."
    assert nearest_in_words(passage, "quantum chromodynamics") == ()
    assert nearest_in_words(passage, "") == ()


def test_nothing_is_known_before_the_header():
    assert method_rows(RunView()) == []
    assert original_of(RunView()) is None
    assert not language_unsupported(RunView())
    assert QUESTION
