"""The engine on its own thread, as front ends use it."""

import asyncio
from pathlib import Path

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Engine, Service
from pipelines.run.events import MethodSpec, RunCancelled, RunSpec
from pipelines.run.view import RunView, fold
from tests.scripted.fakes import FakeModel

SPEC = RunSpec(question="Who?", methods=(MethodSpec(name="direct"),))


def start_engine(folder: Path) -> Engine:
    return Engine(
        folder,
        pool=ModelPool(lambda spec, key, progress: FakeModel("one two three")),
        libraries=Libraries(folder / "index", find_embedder=lambda: None),
    )


def test_a_front_end_starts_a_run_and_polls_it_to_its_end(tmp_path):
    engine = start_engine(tmp_path)
    try:
        run_id = engine.call(engine.service.start(SPEC, owner="ann"))
        reader = engine.call(engine.service.watch(run_id, owner="ann"))
        view = RunView()
        while not view.over:
            view = fold(reader.drain(), view)
        assert view.methods["direct"].answer is not None
        assert view.methods["direct"].answer.text == "one two three"
    finally:
        engine.close()


def test_what_a_crash_left_unfinished_is_ended_at_the_next_start(tmp_path):
    engine = start_engine(tmp_path)
    run_id = engine.call(engine.service.start(SPEC, owner="ann"))
    reader = engine.call(engine.service.watch(run_id, owner="ann"))
    while not fold(reader.drain()).over:
        pass
    trace = engine.call(engine.service.load(run_id, owner="ann"))
    engine.close()

    # A store that was closed before the run's last event stands for the crash.
    async def crash() -> str:
        service = Service(tmp_path)
        started = trace.header.model_copy(update={"run": "f" * 32})
        service.store.create(started.run, "ann", started)
        await service.aclose()
        return started.run

    again = start_engine(tmp_path)
    crashed = again.call(crash())
    again.close()
    last = start_engine(tmp_path)
    try:
        ended = last.call(last.service.load(crashed, owner="ann")).terminal
        assert isinstance(ended, RunCancelled)
        assert ended.reason == "interrupted"
    finally:
        last.close()


def test_what_was_begun_does_not_outlive_the_engine(tmp_path):
    engine = start_engine(tmp_path)
    ended: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    engine.submit(endless())
    engine.submit(engine.service.warm_up())
    engine.close()
    assert ended == ["ended"]
