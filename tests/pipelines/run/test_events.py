"""Events as they are kept: everything comes back, and runs recorded earlier still load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, select, update

from pipelines.models.base import SimilarityRequest
from pipelines.run.events import (
    Event,
    Judged,
    ModelCalled,
    Retrieved,
    RunStarted,
    Score,
    event_adapter,
)
from pipelines.run.spec import EvidenceSpec
from pipelines.run.trace import Trace
from pipelines.store import RunStore
from pipelines.store.exchange import export_lines, parse_lines
from pipelines.store.tables import EventRow
from tests.pipelines.store import examples

EMBEDDED = SimilarityRequest(left=("Hope", "巴黎"), right=("Hope",))
SCORE = Score(name="agreement", value=0.5, behind=("s1", "s2"))


def events() -> list[Event]:
    """A whole run whose events use every field that came later."""
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


def before(event: dict[str, Any]) -> dict[str, Any]:
    """The JSON of `event` as the first version, which had none of these fields, wrote it."""
    old = json.loads(json.dumps(event))
    for name in ("dense", "similarities"):
        old.pop(name, None)
    for score in old.get("scores", ()):
        score.pop("behind")
    for name in ("source", "base_url"):
        old.get("spec", {"evidence": {}})["evidence"].pop(name, None)
    return old


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


@pytest.mark.parametrize("dense", [False, True])
def test_a_search_of_an_older_recording_is_read(dense: bool):
    (search,) = [event for event in events() if isinstance(event, Retrieved)]
    search = search.model_copy(update={"dense": dense})
    written = json.loads(search.model_dump_json())
    old = {("by_meaning" if name == "dense" else name): value for name, value in written.items()}
    assert (old["by_meaning"], "dense" in old) == (dense, False)
    assert event_adapter.validate_json(json.dumps(old)) == search
    assert event_adapter.validate_json(json.dumps(written)) == search


def test_what_an_embedder_was_asked_is_told_from_what_a_model_was_asked():
    (call,) = [e for e in events() if isinstance(e, ModelCalled) and e.role == "embedder"]
    read = event_adapter.validate_json(call.model_dump_json())
    assert isinstance(read, ModelCalled)
    assert isinstance(read.request, SimilarityRequest)
    assert read.similarities == ((1.0,), (-0.125,))


def test_lines_written_before_these_fields_existed_are_read():
    header, *lines = export_lines(Trace(events=tuple(examples.complete("r1"))))
    old = [json.dumps(before(json.loads(line))) for line in lines]
    # The header of the run, its three calls, its search and its verdict had less to say.
    assert sum(json.loads(a) != json.loads(b) for a, b in zip(lines, old, strict=True)) == 6
    assert parse_lines([header, *old]) == tuple(examples.complete("r1"))


def test_a_run_stored_before_these_fields_existed_is_loaded(store: RunStore, url: str):
    keep(store, examples.complete("r1"))
    engine = create_engine(url)
    with engine.begin() as connection:
        for seq, body in connection.execute(select(EventRow.seq, EventRow.body)).all():
            row = update(EventRow).where(EventRow.seq == seq)
            connection.execute(row.values(body=before(body)))
    engine.dispose()
    assert store.load("r1", "me").events == tuple(examples.complete("r1"))
