"""Runs through the service: side by side, stopped, unwatched, failing, replayed, kept apart."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.reevaluate import recorded_plan
from pipelines.engine.service import Service
from pipelines.errors import (
    InvalidInputError,
    NotFoundError,
    ServerFailedError,
    StorageFullError,
)
from pipelines.models.base import Model
from pipelines.remote import RetryPolicy
from pipelines.run.events import (
    EvidenceSpec,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunSpec,
    SpanEnded,
    SpanStarted,
    TokenWritten,
    Trace,
)
from pipelines.run.live import Limits
from pipelines.run.view import RunView, fold
from tests.scripted.fakes import FakeModel

ANN, BEN = "ann", "ben"
TERMINAL = (RunFinished, RunFailed, RunCancelled)


def spec(question: str = "Who wrote Hamlet?", *methods: str, **fields: Any) -> RunSpec:
    chosen = tuple(MethodSpec(name=name) for name in methods or ("direct",))
    return RunSpec(question=question, methods=chosen, **fields)


class Bench:
    """A service over one model that the test controls."""

    def __init__(self, folder: Path, model: Model, **options: Any) -> None:
        self.seen_keys: list[str | None] = []
        self.folder = folder

        def build(model_spec: ModelSpec, key: str | None, progress: Any) -> Model:
            self.seen_keys.append(key)
            return model

        libraries = Libraries(folder / "index", find_embedder=lambda: None)
        self.service = Service(
            folder,
            pool=ModelPool(build),
            libraries=libraries,
            retry=RetryPolicy(pause=0.0),
            **options,
        )

    async def events(self, run: RunSpec, owner: str = ANN) -> list[Any]:
        return [event async for event in self.service.stream(run, owner=owner)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Any]:
    benches: list[Bench] = []

    def make(model: Model, **options: Any) -> Bench:
        benches.append(Bench(tmp_path / f"data{len(benches)}", model, **options))
        return benches[-1]

    yield make
    for each in benches:
        await each.service.aclose()


async def test_a_run_is_answered_told_live_and_kept(bench):
    it = bench(FakeModel("William Shakespeare wrote Hamlet."))
    events = await it.events(spec())
    assert [type(event) for event in events if isinstance(event, TERMINAL)] == [RunFinished]
    assert events[-1].answers["direct"].text == "William Shakespeare wrote Hamlet."
    written = "".join(event.text for event in events if isinstance(event, TokenWritten))
    assert written == "William Shakespeare wrote Hamlet."

    stored = await it.service.load(events[0].run, owner=ANN)
    assert list(stored.events) == [e for e in events if not isinstance(e, TokenWritten)]
    assert fold(stored.events).status == "finished"


async def test_a_key_goes_to_no_other_service_with_a_model_of_that_name(bench):
    it = bench(FakeModel("never asked"))
    here, there = (
        ModelSpec(kind="openai", name="m", model="m", base_url=url)
        for url in (None, "http://localhost:1/v1")
    )
    run = spec("Who wrote Hamlet?", "rowen", models={"main": here, "verifier": there})
    with pytest.raises(InvalidInputError, match="Two services have a model that is called 'm'"):
        await it.service.start(run, owner=ANN, keys={"m": "for-openai"})
    assert it.seen_keys == []
    # The key of another model is no matter.
    await it.service.start(run, owner=ANN, keys={"n": "for-another"})


async def test_methods_run_side_by_side_and_share_one_draft(bench):
    model = FakeModel("no names here")
    events = await bench(model).events(spec("Who wrote Hamlet?", "direct", "drad"))
    assert set(events[-1].answers) == {"direct", "drad"}
    calls = [event for event in events if isinstance(event, ModelCalled)]
    assert sorted(call.cached for call in calls) == [False, True]
    assert len(model.asked) == 1


async def test_known_replies_are_given_to_the_same_owner_only(bench):
    model = FakeModel("one two three")
    it = bench(model)

    async def known(owner: str) -> list[bool]:
        events = await it.events(spec(), owner)
        return [event.cached for event in events if isinstance(event, ModelCalled)]

    assert await known(ANN) == [False]
    assert await known(BEN) == [False]
    assert await known(ANN) == [True]
    assert len(model.asked) == 2


async def test_owners_who_ask_the_same_at_the_same_time_do_not_share_a_call(bench):
    model = FakeModel("one two three", gated=True)
    it = bench(model)
    runs = [asyncio.create_task(it.events(spec(), owner)) for owner in (ANN, BEN)]
    await model.until_asked(2)
    model.gate.set()
    for events in await asyncio.gather(*runs):
        (call,) = [event for event in events if isinstance(event, ModelCalled)]
        assert not call.cached


async def test_two_runs_at_the_same_time_overlap_their_calls(bench):
    model = FakeModel("one two three", gated=True)
    it = bench(model)
    runs = [asyncio.create_task(it.events(spec(f"Question {n}?"))) for n in range(2)]
    await model.until_asked(2)
    model.gate.set()
    calls = []
    for events in await asyncio.gather(*runs):
        created = events[0].created
        (call,) = [event for event in events if isinstance(event, ModelCalled)]
        calls.append((created + call.started, created + call.time, call.in_flight))
    (start_1, end_1, _), (start_2, end_2, _) = calls
    assert max(start_1, start_2) < min(end_1, end_2)
    assert sorted(call[2] for call in calls) == [1, 2]


async def test_stop_ends_the_call_and_keeps_what_there_was(bench):
    model = FakeModel("one", gated=True)
    it = bench(model)
    run_id = await it.service.start(spec(), owner=ANN)
    await model.until_asked()
    assert not await it.service.stop(run_id, owner=BEN)
    assert await it.service.stop(run_id, owner=ANN)
    assert model.cancelled == 1
    trace = await it.service.load(run_id, owner=ANN)
    assert isinstance(trace.terminal, RunCancelled)
    assert trace.terminal.reason == "stopped"
    assert [e.error.code for e in trace.events if isinstance(e, ModelCalled) and e.error] == [
        "cancelled"
    ]
    assert not await it.service.stop(run_id, owner=ANN)


class SlowToLeave(FakeModel):
    """One whose calls take more and more turns of the loop to end when they are cancelled."""

    leaving = 0

    async def generate(self, request, watch=None):
        try:
            return await super().generate(request, watch)
        finally:
            self.leaving += 20
            for _ in range(self.leaving):
                await asyncio.sleep(0)


async def test_a_stopped_run_is_kept_with_what_every_method_still_recorded(bench):
    model = SlowToLeave("one", gated=True)
    it = bench(model)
    run_id = await it.service.start(spec("Who?", "direct", "rowen", "ever"), owner=ANN)
    await model.until_asked(2)
    assert await it.service.stop(run_id, owner=ANN)
    await it.service.aclose()
    trace = await asyncio.to_thread(it.service.store.load, run_id, ANN)
    assert isinstance(trace.events[-1], RunCancelled)
    ended = [event for event in trace.events if isinstance(event, SpanEnded)]
    begun = [event for event in trace.events if isinstance(event, SpanStarted)]
    assert {event.span for event in ended} == {event.span for event in begun}


async def test_stopping_a_run_that_is_ending_waits_for_its_end(bench):
    model = SlowToLeave("one", gated=True)
    it = bench(model)
    run_id = await it.service.start(spec(), owner=ANN)
    await model.until_asked()
    first = asyncio.create_task(it.service.stop(run_id, owner=ANN))
    await asyncio.sleep(0)
    await it.service.stop(run_id, owner=ANN, reason="unwatched")
    assert await first
    trace = await it.service.load(run_id, owner=ANN)
    assert isinstance(trace.terminal, RunCancelled)
    assert trace.terminal.reason == "stopped"
    assert any(isinstance(event, ModelCalled) and event.error for event in trace.events)


async def test_a_run_that_took_all_it_may_take_is_ended(bench):
    model = FakeModel("one", gated=True)
    it = bench(model, limits=Limits(seconds=0.05), look_every=0.01)
    events = await it.events(spec())
    assert isinstance(events[-1], RunCancelled)
    assert events[-1].reason == "time_limit"
    assert (model.busy, model.cancelled) == (0, 1)


async def test_a_server_that_does_not_answer_keeps_no_limit_from_being_checked(bench, monkeypatch):
    model = FakeModel("one", gated=True)
    it = bench(model, limits=Limits(seconds=0.05), look_every=0.01)
    asked, answered, calls = threading.Event(), threading.Event(), count()

    def renew() -> None:
        next(calls)
        asked.set()
        answered.wait(60)

    # Beginning a run asks too, before it is begun; it is the service that is looked at here.
    monkeypatch.setattr(it.service._renewal._store, "renew_presence", renew)
    first, second = [await it.service.start(spec(), owner=one) for one in (ANN, BEN)]
    assert await asyncio.to_thread(asked.wait, 60)
    for run_id, owner in ((first, ANN), (second, BEN)):
        events = [event async for event in it.service.follow(run_id, owner=owner)]
        assert events[-1].reason == "time_limit"
    # One renewal for all runs.
    assert next(calls) == 1
    answered.set()


async def test_a_run_is_shared_once_it_is_over(bench):
    model = FakeModel("William Shakespeare", gated=True)
    it = bench(model)
    run_id = await it.service.start(spec(), owner=ANN)
    await model.until_asked()
    with pytest.raises(InvalidInputError, match="still going on"):
        await it.service.share(run_id, owner=ANN)
    with pytest.raises(NotFoundError):
        await it.service.share(run_id, owner=BEN)
    model.gate.set()
    async for _ in (await it.service.watch(run_id, owner=ANN)).events():
        pass
    copy = await it.service.share(run_id, owner=ANN)
    trace = await it.service.load(copy, owner=BEN)
    assert answers(trace) == answers(await it.service.load(run_id, owner=ANN))
    with pytest.raises(NotFoundError):
        await it.service.share(run_id, owner=BEN)


def answers(trace: Trace) -> object:
    assert isinstance(trace.terminal, RunFinished)
    return trace.terminal.answers


async def test_a_run_nobody_watches_ends_by_itself(bench):
    model = FakeModel("one", gated=True)
    it = bench(model, unwatched_after=0.05, look_every=0.01)
    run_id = await it.service.start(spec(), owner=ANN)
    while run_id in it.service._live:  # noqa: ASYNC110 - looking on must not count as watching
        await asyncio.sleep(0.005)
    trace = await it.service.load(run_id, owner=ANN)
    assert isinstance(trace.terminal, RunCancelled)
    assert trace.terminal.reason == "unwatched"
    assert model.busy == 0


async def test_readers_may_look_again_after_the_whole_process_stood_still(bench):
    model = FakeModel("one", gated=True)
    it = bench(model, unwatched_after=0.5, look_every=0.2)
    run_id = await it.service.start(spec(), owner=ANN)
    reader = await it.service.watch(run_id, owner=ANN)
    reader.drain()
    time.sleep(1.0)  # noqa: ASYNC251 - stands for code that lets nothing else run
    for _ in range(50):
        await asyncio.sleep(0.01)
        reader.drain()
    model.gate.set()
    trace = await it.service.load(run_id, owner=ANN)
    while trace.terminal is None:
        await asyncio.sleep(0.01)
        reader.drain()
        trace = await it.service.load(run_id, owner=ANN)
    assert isinstance(trace.terminal, RunFinished)


@pytest.mark.parametrize("failures", [1, 9])
async def test_a_run_that_cannot_be_stored_ends_with_that_error(bench, monkeypatch, failures: int):
    it = bench(FakeModel("one two", gated=True))
    append, left = it.service.store.append, iter(range(failures))

    def full(run_id: str, events: list[Any], *, again: bool = False) -> None:
        if next(left, None) is not None:
            raise StorageFullError("The disk is full.", remedy="Make room on it.")
        append(run_id, events, again=again)

    monkeypatch.setattr(it.service.store, "append", full)
    events = await it.events(spec())
    assert isinstance(events[-1], RunFailed)
    assert events[-1].error.message == "The disk is full."
    run_id = events[0].run
    # It can still be read: from the store where the second try was in time, else from memory.
    assert (await it.service.load(run_id, owner=ANN)).terminal == events[-1]
    await it.service.delete(run_id, owner=ANN)
    assert not it.service._live


async def test_a_reader_that_leaves_the_stream_ends_the_run(bench):
    model = FakeModel("one two three four")
    it = bench(model)
    stream = it.service.stream(spec(), owner=ANN)
    first = await anext(stream)
    await stream.aclose()
    trace = await it.service.load(first.run, owner=ANN)
    assert trace.terminal is not None


async def test_a_second_reader_sees_the_same_run(bench):
    model = FakeModel("one two", gated=True)
    it = bench(model)
    run_id = await it.service.start(spec(), owner=ANN)
    await model.until_asked()
    late = await it.service.watch(run_id, owner=ANN)
    model.gate.set()
    events = [event async for event in late.events()]
    assert fold(events).methods["direct"].answer is not None
    again = await it.service.watch(run_id, owner=ANN)
    assert [e async for e in again.events()] == [
        e for e in events if not isinstance(e, TokenWritten)
    ]


async def test_runs_and_keys_belong_to_their_owner(bench):
    it = bench(FakeModel("one"))
    model = ModelSpec(kind="openai", name="mine", model="x", base_url="http://127.0.0.1:9/v1")
    run_id = await it.service.start(
        spec(models={"main": model}), owner=ANN, keys={"mine": "sk-very-secret"}
    )
    events = [event async for event in it.service.follow(run_id, owner=ANN)]
    assert it.seen_keys == ["sk-very-secret"]
    assert not any("sk-very-secret" in event.model_dump_json() for event in events)
    for path in it.folder.rglob("*"):
        if path.is_file():
            assert b"sk-very-secret" not in path.read_bytes()
    for attempt in (it.service.load, it.service.watch, it.service.replay):
        with pytest.raises(NotFoundError):
            await attempt(run_id, owner=BEN)


async def test_two_keys_never_share_a_model(bench):
    it = bench(FakeModel("one"))
    model = ModelSpec(kind="openai", name="mine", model="x")
    for owner, key in ((ANN, "key-a"), (BEN, "key-b"), (ANN, "key-a")):
        run_id = await it.service.start(
            spec(models={"main": model}), owner=owner, keys={"mine": key}
        )
        async for _ in it.service.follow(run_id, owner=owner):
            pass
    assert it.seen_keys == ["key-a", "key-b"]


async def test_one_failing_method_does_not_touch_the_others(bench):
    it = bench(FakeModel("fine"))
    methods = (
        MethodSpec(name="direct"),
        MethodSpec(name="drad", settings={"confidence": "proxy"}),
    )
    events = await it.events(RunSpec(question="Who?", methods=methods))
    assert set(events[-1].answers) == {"direct"}
    failed = [e for e in events if isinstance(e, SpanEnded) and e.outcome == "failed"]
    assert [event.error and event.error.code for event in failed] == ["capability"]


async def test_a_run_fails_when_no_method_answered_and_names_provider_and_remedy(bench):
    broken = ServerFailedError("It broke.", remedy="Wait a little.", provider="fake")
    it = bench(FakeModel(broken))
    events = await it.events(spec())
    last = events[-1]
    assert isinstance(last, RunFailed)
    assert (last.error.provider, last.error.remedy) == ("fake", "Wait a little.")
    attempts = [e.attempt for e in events if isinstance(e, ModelCalled)]
    assert attempts == [1, 2, 3, 4]


async def test_an_unexpected_error_is_told_without_internals(bench, caplog):
    it = bench(FakeModel(ValueError("secret detail")))
    events = await it.events(spec())
    assert isinstance(events[-1], RunFailed)
    assert "secret detail" not in events[-1].model_dump_json()
    assert "secret detail" in caplog.text


async def test_a_long_run_is_replayed_without_folding_all_of_it(bench, monkeypatch):
    it = bench(FakeModel("William Shakespeare"))
    events = await it.events(spec("Who wrote Hamlet?", "direct", "rag"))
    folded: list[Any] = []

    def seen(events: Any) -> RunView:
        folded.extend(events)
        return fold(folded)

    monkeypatch.setattr("pipelines.engine.reevaluate.fold", seen)
    plan = recorded_plan(await it.service.load(events[0].run, owner=ANN))
    assert [method.name for method, _ in plan.methods] == ["direct", "rag"]
    # The header, and the beginning of each method with its settings.
    assert len(folded) == 3


async def test_a_replay_makes_no_call_and_gives_the_same_answer(bench):
    model = FakeModel("William Shakespeare wrote it.")
    it = bench(model)
    events = await it.events(spec())
    run_id = await it.service.replay(events[0].run, owner=ANN)
    replayed = [event async for event in it.service.follow(run_id, owner=ANN)]
    assert run_id != events[0].run
    assert replayed[-1].answers == events[-1].answers
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (spec("   \n "), "empty"),
        (spec("x" * 20_000), "20,000 characters"),
        (RunSpec(question="Who?", methods=()), "No method"),
        (spec("Who?", "direct", "direct"), "twice"),
        (spec("Who?", "unheard-of"), "unheard-of"),
        (spec("Who?", models={}), "No main model"),
        (
            RunSpec(
                question="Who?",
                methods=(MethodSpec(name="drad", settings={"theta_1": 3}),),
            ),
            "theta_1",
        ),
        (
            RunSpec(question="Who?", methods=(MethodSpec(name="direct", settings={"nope": 1}),)),
            "nope",
        ),
    ],
)
async def test_what_cannot_run_is_refused_with_what_to_do(bench, run, said):
    it = bench(FakeModel("x"))
    with pytest.raises(InvalidInputError, match=said) as caught:
        await it.service.start(run, owner=ANN)
    assert caught.value.remedy


async def test_an_unknown_library_fails_the_run_clearly(bench):
    it = bench(FakeModel("x"))
    events = await it.events(spec("Who?", "rag", evidence=EvidenceSpec(library="nowhere")))
    assert isinstance(events[-1], RunFailed)
    assert "nowhere" in events[-1].error.message


async def test_closing_the_service_ends_its_runs(tmp_path):
    model = FakeModel("x", gated=True)
    it = Bench(tmp_path, model)
    run_id = await it.service.start(spec(), owner=ANN)
    await model.until_asked()
    await it.service.aclose()
    again = Service(tmp_path)
    trace = await again.load(run_id, owner=ANN)
    assert isinstance(trace.terminal, RunCancelled)
    assert trace.terminal.reason == "shutdown"
    await again.aclose()
