"""Events as they are kept: everything comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipelines.models.base import SimilarityRequest
from pipelines.run.events import (
    Event,
    EvidenceSpec,
    Judged,
    ModelCalled,
    Retrieved,
    RunStarted,
    Score,
    Trace,
    event_adapter,
)
from pipelines.store import RunStore
from pipelines.store.exchange import export_lines, parse_lines
from tests.pipelines.store import examples

EMBEDDED = SimilarityRequest(left=("Hope", "巴黎"), right=("Hope",))
SCORE = Score(name="agreement", value=0.5, behind=("s1", "s2"))


def events() -> list[Event]:
    """A whole run whose events use the fields that a plain one leaves empty."""
    first, span, *rest = examples.complete("r1")
    assert isinstance(first, RunStarted)
    evidence = EvidenceSpec(source="serper", base_url="http://127.0.0.1:9")
    started = first.model_copy(
        update={"spec": first.spec.model_copy(update={"evidence": evidence})}
    )
    return [started, span, *map(_extended, rest)]


def _extended(event: Event) -> Event:
    changes: dict[str, Any] = {}
    if isinstance(event, Retrieved):
        changes = {"dense": True}
    elif isinstance(event, Judged):
        changes = {"scores": (SCORE,)}
    elif isinstance(event, ModelCalled) and event.seq == 2:
        changes = {
            "role": "embedder",
            "request": EMBEDDED,
            "generations": (),
            "similarities": ((1.0,), (-0.125,)),
        }
    return event.model_copy(update=changes)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.fixture
def store(url: str) -> Iterator[RunStore]:
    with closing(RunStore(url)) as opened:
        yield opened


def keep(store: RunStore, kept: list[Event]) -> None:
    assert isinstance(kept[0], RunStarted)
    store.create("r1", "me", kept[0])
    store.append("r1", kept[1:])


def test_the_store_gives_back_what_it_was_given(store: RunStore):
    keep(store, events())
    assert store.load("r1", "me").events == tuple(events())


def test_a_run_that_was_carried_elsewhere_is_the_same_run():
    lines = list(export_lines(Trace(events=tuple(events()))))
    assert parse_lines(lines) == tuple(events())
    by_kind = {json.loads(line).get("kind"): line for line in lines}
    assert '"behind": ["s1", "s2"]' in by_kind["judged"]
    assert '"dense": true' in by_kind["retrieved"]


def test_what_an_embedder_was_asked_is_told_from_what_a_model_was_asked():
    (call,) = [e for e in events() if isinstance(e, ModelCalled) and e.role == "embedder"]
    read = event_adapter.validate_json(call.model_dump_json())
    assert isinstance(read, ModelCalled)
    assert isinstance(read.request, SimilarityRequest)
    assert read.similarities == ((1.0,), (-0.125,))
