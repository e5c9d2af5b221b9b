"""Readers of a run: complete, in order, merged when slow, and never waited for."""

import asyncio
import threading
from typing import Any

import pytest

from pipelines.base import Generation, Message, Token, Usage
from pipelines.errors import ErrorInfo
from pipelines.models.base import GenerationRequest
from pipelines.run.events import ModelCalled, RunFailed, SpanStarted, TokenWritten
from pipelines.run.live import Limits, LiveRun, Subscription


def live_run() -> tuple[LiveRun, list[Any]]:
    stored: list[Any] = []
    return LiveRun("r", "owner", stored.append), stored


def write(live: LiveRun, text: str, span: str = "s", **fields: Any) -> None:
    live.recorder.emit(TokenWritten, span=span, parent=None, text=text, **fields)


def step(live: LiveRun, span: str) -> None:
    live.recorder.emit(SpanStarted, span=span, parent=None, method="m", name="draft")


def fail(live: LiveRun) -> None:
    error = ErrorInfo(code="x", message="x", remedy="x")
    live.recorder.emit(RunFailed, span="run", parent=None, error=error)


def test_pieces_of_one_text_are_merged_for_a_slow_reader_but_not_across_steps():
    live, stored = live_run()
    reader = live.subscribe()
    for text in ("a", "b"):
        write(live, text)
    write(live, "c", span="other")
    write(live, "d")
    write(live, "", restart=True)
    write(live, "e")
    events: list[Any] = list(reader.drain())
    assert [getattr(event, "text", None) for event in events] == ["ab", "c", "d", "e"]
    assert events[3].restart
    assert stored == []
    assert reader.drain() == []


def test_stored_events_are_numbered_without_gaps_and_token_events_are_not_stored():
    live, stored = live_run()
    step(live, "s")
    write(live, "a")
    step(live, "t")
    fail(live)
    assert [event.seq for event in stored] == [0, 1, 2]
    assert list(live.trace().events) == stored


def test_a_late_reader_gets_everything_and_what_is_being_written_now():
    live, _ = live_run()
    step(live, "s")
    write(live, "half a ")
    write(live, "sentence")
    events: list[Any] = list(live.subscribe().drain())
    assert [type(event).__name__ for event in events] == ["SpanStarted", "TokenWritten"]
    assert events[1].text == "half a sentence"


def test_a_closed_reader_gets_nothing_more():
    live, _ = live_run()
    reader = live.subscribe()
    reader.close()
    step(live, "s")
    assert reader.drain() == []


async def test_iteration_ends_with_the_terminal_event():
    live, _ = live_run()
    reader = live.subscribe()

    async def read() -> list[Any]:
        return [event async for event in reader.events()]

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    step(live, "s")
    await asyncio.sleep(0)
    fail(live)
    assert [type(event).__name__ for event in await task] == ["SpanStarted", "RunFailed"]


def test_readers_that_come_while_events_are_emitted_miss_none_and_see_none_twice():
    live, _ = live_run()
    total, readers = 500, list[Subscription]()
    going = threading.Event()

    def subscribe() -> None:
        going.wait()
        for _ in range(50):
            readers.append(live.subscribe())

    thread = threading.Thread(target=subscribe)
    thread.start()
    going.set()
    for number in range(total):
        step(live, str(number))
    thread.join()
    for reader in readers:
        assert [event.seq for event in reader.drain()] == list(range(total))


def test_looking_is_what_counts_as_watching():
    now = 0.0
    live = LiveRun("r", "owner", lambda _: None, clock=lambda: now)
    reader = live.subscribe()
    now = 20.0
    assert live.unwatched_for() == 20.0
    reader.drain()
    assert live.unwatched_for() == 0.0


async def test_a_reader_that_waits_for_the_next_event_is_watching():
    now = 0.0
    live = LiveRun("r", "owner", lambda _: None, clock=lambda: now)
    reader = live.subscribe()
    waiting = asyncio.ensure_future(anext(reader.events()))
    await asyncio.sleep(0)
    now = 99.0
    assert live.unwatched_for() == 0.0
    waiting.cancel()
    await asyncio.wait({waiting})
    assert live.unwatched_for() == 99.0


def call(live: LiveRun, tokens: int, *, cached: bool = False) -> None:
    written = Generation(text="…", tokens=None, usage=Usage(completion_tokens=tokens))
    live.recorder.emit(
        ModelCalled,
        span="s",
        parent=None,
        role="main",
        model="m",
        request=GenerationRequest(messages=(Message(role="user", content="?"),)),
        attempt=1,
        started=0.0,
        cached=cached,
        generations=(written,),
    )


def test_what_a_run_has_taken_counts_what_is_being_written():
    now = 0.0
    live = LiveRun("r", "owner", lambda _: None, clock=lambda: now)
    limits = Limits(seconds=10, tokens=6)
    call(live, 4)
    call(live, 100, cached=True)
    assert live.spent(limits) is None
    tokens = tuple(Token(text=one, start=n, end=n + 1) for n, one in enumerate("abc"))
    write(live, "abc", tokens=tokens)
    assert live.spent(limits) == "token_limit"
    now = 11.0
    assert live.spent(limits) == "time_limit"
    assert live.spent(Limits()) is None


@pytest.mark.parametrize(
    ("limits", "spent"),
    [
        (Limits(), None),
        (Limits(seconds=60), None),
        (Limits(seconds=59), "time_limit"),
        (Limits(tokens=500), None),
        (Limits(tokens=499), "token_limit"),
        (Limits(seconds=1, tokens=1), "time_limit"),
    ],
)
def test_a_limit_is_passed_when_more_was_taken(limits: Limits, spent: str | None):
    now = 0.0
    live = LiveRun("r", "owner", lambda _: None, clock=lambda: now)
    call(live, 500)
    now = 60.0
    assert live.spent(limits) == spent
