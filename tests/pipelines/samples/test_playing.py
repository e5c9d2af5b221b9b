"""A walkthrough played ahead: the same as played for real, at the times of its pauses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import Generation
from pipelines.engine.library import Libraries
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError
from pipelines.run.events import Event, TokenWritten
from pipelines.run.view import fold
from pipelines.samples import walkthroughs
from pipelines.samples.walkthroughs import Walkthrough, play, walkthrough
from tests.scripted.fakes import FakeModel

SAMPLE = "3-en-lightning"


def libraries(folder: Path) -> Libraries:
    return Libraries(folder, find_embedder=lambda: None)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@pytest.fixture(scope="module")
def sample() -> Walkthrough:
    return walkthrough(SAMPLE)


@pytest.fixture(scope="module")
def played(sample: Walkthrough, indexes: Path) -> tuple[Event, ...]:
    return play(sample, libraries(indexes))


def shape(event: Event) -> tuple[object, ...]:
    return (event.kind, event.span, event.seq, event.time)


def test_it_is_the_same_every_time_however_busy_the_machine_is(
    sample: Walkthrough, indexes: Path, played: tuple[Event, ...]
):
    again = play(sample, libraries(indexes))
    assert [shape(event) for event in again] == [shape(event) for event in played]


def test_its_times_are_those_of_the_pauses(sample: Walkthrough, played: tuple[Event, ...]):
    assert {event.run for event in played} == {sample.run_id}
    times = [event.time for event in played]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert played[-1].kind == "run_finished"
    # A text is written piece by piece, each a pause after the one before.
    spans = {event.span for event in played if isinstance(event, TokenWritten)}
    for span in spans:
        written = [event.time for event in played if event.span == span]
        assert len(set(written)) > 1
    assert times[-1] > 1.0


class Stuck(FakeModel):
    """Waits for what nobody gives it."""

    async def generate(self, request: Any, watch: Any = None) -> tuple[Generation, ...]:
        await asyncio.Event().wait()
        raise AssertionError


def test_a_run_that_does_not_go_on_is_given_up(
    sample: Walkthrough, indexes: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(walkthroughs, "_build", lambda *_: Stuck("never"))
    monkeypatch.setattr(walkthroughs, "_STUCK_SECONDS", 0.05)
    turns = count()
    monkeypatch.setattr(walkthroughs, "_settled", lambda: turn(turns))
    with pytest.raises(VeriscopeError, match="unexpected"):
        play(sample, libraries(indexes))
    # It looks from time to time, not all the time.
    assert next(turns) < 20


async def turn(turns: Iterator[int]) -> None:
    next(turns)
    for _ in range(20):
        await asyncio.sleep(0)


def test_playing_ends_early_when_it_is_closed(
    sample: Walkthrough, indexes: Path, played: tuple[Event, ...]
):
    closing = threading.Event()
    closing.set()
    assert len(play(sample, libraries(indexes), closing)) < len(played)


@pytest.mark.verify
async def test_it_comes_to_what_it_comes_to_when_it_is_played_for_real(
    sample: Walkthrough, indexes: Path, played: tuple[Event, ...], tmp_path: Path
):
    service = Service(tmp_path, libraries=libraries(indexes))
    try:
        trace = await service.record(sample.spec(), owner="me")
    finally:
        await service.aclose()
    real, ahead = fold(trace.events), fold(played)
    assert ahead.status == real.status == "finished"
    assert list(ahead.methods) == list(real.methods)
    for name, method in real.methods.items():
        assert ahead.methods[name].answer == method.answer
        assert len(ahead.methods[name].calls) == len(method.calls)
    # The machine adds to the pauses, and takes nothing from them.
    assert real.time >= ahead.time
