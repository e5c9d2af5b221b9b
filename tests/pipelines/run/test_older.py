"""A run recorded by version 0.1, every method in it, is read as today's typed events."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from pipelines.run import findings, grounding
from pipelines.run.events import Judged, Retrieved, Revised, SpanStarted, event_adapter
from pipelines.run.older import renewed
from pipelines.run.trace import Trace
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines, parse_lines

OLD = Path(__file__).parents[2] / "data" / "runs" / "version-0.1.jsonl.gz"


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return gzip.decompress(OLD.read_bytes()).decode("utf-8").split("\n")


@pytest.fixture(scope="module")
def old(lines: list[str]) -> Trace:
    return Trace(events=parse_lines(lines))


def judged(old: Trace, method: str, what: str) -> list[Judged]:
    events = old.of_method(method)
    return [event for event in events if isinstance(event, Judged) and event.what == what]


def test_it_is_a_whole_run_of_every_method(old: Trace):
    view = fold(old.events)
    assert list(view.methods) == ["direct", "rag", "rowen", "drad", "ever", "haarag", "slm"]
    assert all(method.answer is not None for method in view.methods.values())
    assert all("main" in method.models for method in view.methods.values())


@pytest.mark.parametrize(
    ("method", "what", "kind"),
    [
        ("drad", "entity", findings.EntityReading),
        ("rowen", "pair", findings.PairCompared),
        ("rowen", "answer", findings.RowenVerdict),
        ("ever", "concepts", findings.ConceptsListed),
        ("ever", "concept", findings.ConceptVerified),
        ("ever", "sentence", findings.SentenceVerified),
        ("haarag", "retrieval", grounding.RetrievalRated),
        ("haarag", "alignment", grounding.AlignmentRated),
        ("haarag", "sentence", grounding.SentenceAligned),
        ("slm", "cell", grounding.CellJudged),
        ("slm", "answer", grounding.SlmVerdict),
    ],
)
def test_what_a_method_found_is_typed(old: Trace, method: str, what: str, kind: type):
    found = judged(old, method, what)
    assert found
    assert all(isinstance(event.detail, kind) for event in found)


def test_steps_say_what_they_are_about(old: Trace):
    started = [event for event in old.events if isinstance(event, SpanStarted)]
    names = Counter(event.name for event in started)
    assert names["method"] == 7
    assert all(isinstance(e.detail, findings.MethodStarted) for e in started if e.name == "method")
    plans = [e.detail for e in started if e.name == "check"]
    assert [type(plan) for plan in plans] == [findings.RowenPlan]
    answers = {(e.at.index, e.at.side) for e in started if e.name == "answer"}
    assert (0, "source") in answers
    sentences = {e.at.sentence for e in started if e.name == "verify"}
    assert 0 in sentences


def test_it_is_written_as_todays_runs_are(old: Trace):
    written = list(export_lines(old))
    assert '"step"' not in "".join(line[:200] for line in written)
    assert parse_lines(written) == old.events


def test_searches_for_vectors_are_still_told_from_others(old: Trace):
    searches = [event for event in old.events if isinstance(event, Retrieved)]
    assert any(search.dense for search in searches)
    assert any(not search.dense for search in searches)


def test_a_sentence_written_ahead_and_not_used_was_discarded():
    detail = {"stopped": "limit", "dropped": False, "last": False, "speculation": "thrown"}
    event = {"kind": "judged", "what": "sentence", "detail": detail}
    assert renewed(event)["detail"]["speculation"] == "discarded"


def test_a_revision_keeps_its_sentence():
    event = {"kind": "revised", "detail": {"sentence": 2, "round": 1, "words": 3}}
    assert renewed(event) == {"kind": "revised", "at": {"sentence": 2, "round": 1}}


def test_todays_events_stay_as_they_are(old: Trace):
    for event in old.events:
        if isinstance(event, SpanStarted | Judged | Revised):
            data = event.model_dump(mode="json")
            assert renewed(data) == data
            assert event_adapter.validate_python(data) == event
    assert renewed("no event") == "no event"
