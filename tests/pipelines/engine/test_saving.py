"""Runs whose storage fails while they go on: how they end, what is kept, and when it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import (
    InvalidInputError,
    StorageBusyError,
    StorageError,
    StorageFullError,
    StorageReadOnlyError,
    failure,
)
from pipelines.run.events import (
    MethodSpec,
    ModelCalled,
    RunFailed,
    RunFinished,
    RunSpec,
    TerminalEvent,
    TokenWritten,
)
from pipelines.store import RunStore, file_url
from tests.pipelines.store import examples
from tests.pipelines.store.read_only import read_only
from tests.scripted.fakes import FakeModel

ME = "me"
SPEC = RunSpec(question="Who wrote Hamlet?", methods=(MethodSpec(name="direct"),))
FOREVER = 2**30
"""Pages: more than any database has."""


class Disk:
    """The disk of a service's database, whose space the test decides about."""

    def __init__(self, service: Service) -> None:
        self.pages = FOREVER
        event.listen(service.store._database._engine, "begin", self._limit)

    def _limit(self, connection: Any) -> None:
        # Never below what is in use: SQLite then says that the disk is full.
        connection.exec_driver_sql(f"PRAGMA max_page_count = {self.pages}")


def open_service(folder: Path, model: FakeModel, **options: Any) -> Service:
    libraries = Libraries(folder / "index", find_embedder=lambda: None)
    pool = ModelPool(lambda *_: model)
    return Service(folder, pool=pool, libraries=libraries, **options)


@pytest.fixture
def model() -> FakeModel:
    # Longer than what is free on the last page.
    return FakeModel("word " * 2000, gated=True)


@pytest.fixture
async def service(tmp_path: Path, model: FakeModel) -> AsyncIterator[Service]:
    service = open_service(tmp_path, model)
    yield service
    await service.aclose()


async def until_stored(service: Service, run_id: str) -> None:
    async with asyncio.timeout(60):
        while run_id in service._live:  # noqa: ASYNC110 - no event tells what a thread has stored
            await asyncio.sleep(0.01)


async def fill_during_a_run(service: Service, disk: Disk, model: FakeModel) -> list[Any]:
    """The events of a run in whose middle the disk fills, as a reader sees them."""
    run_id = await service.start(SPEC, owner=ME)
    await model.until_asked()
    disk.pages = 1
    model.gate.set()
    return [event async for event in service.follow(run_id, owner=ME)]


async def test_a_full_disk_ends_the_run_with_that_error(service: Service, model: FakeModel):
    disk = Disk(service)
    events = await fill_during_a_run(service, disk, model)
    assert isinstance(events[-1], RunFailed)
    assert events[-1].error.code == "storage_full"
    run_id = events[0].run
    # It can be read, and cannot be shared.
    assert (await service.load(run_id, owner=ME)).terminal == events[-1]
    with pytest.raises(StorageFullError):
        await service.share(run_id, owner=ME)
    disk.pages = FOREVER
    await until_stored(service, run_id)
    stored = service.store.load(run_id, ME).events
    assert stored == tuple(event for event in events if not isinstance(event, TokenWritten))
    assert service.store.list(ME)[0].status == "failed"


async def test_a_run_that_was_not_stored_is_marked_at_the_next_start(
    tmp_path: Path, model: FakeModel
):
    service = open_service(tmp_path, model)
    disk = Disk(service)
    events = await fill_during_a_run(service, disk, model)
    await service.aclose()
    with closing(RunStore(file_url(tmp_path))) as store:
        store.recover()
        (run,) = store.list(ME)
        stored = store.load(run.id, ME).events
    # Its end fits where all of the run does not; else the next start ends it.
    assert (run.status, run.reason) in (("failed", None), ("cancelled", "interrupted"))
    assert list(stored[:-1]) == events[: len(stored) - 1]
    assert not any(isinstance(event, ModelCalled) for event in stored)


class SlowEnd:
    """Holds back the storing of the end of runs until it is released."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.release = asyncio.Event(), asyncio.Event()
        append, loop = service.store.append, asyncio.get_running_loop()

        def slow(run_id: str, events: list[Any], **options: Any) -> None:
            if isinstance(events[-1], RunFinished):
                loop.call_soon_threadsafe(self.reached.set)
                asyncio.run_coroutine_threadsafe(self.release.wait(), loop).result(60)
            append(run_id, events, **options)

        monkeypatch.setattr(service.store, "append", slow)


async def test_the_end_of_a_run_is_shown_once_it_is_stored(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    end = SlowEnd(service, monkeypatch)
    model.gate.set()
    run_id = await service.start(SPEC, owner=ME)
    reader = await service.watch(run_id, owner=ME)
    await end.reached.wait()
    assert not any(isinstance(event, RunFinished) for event in reader.drain())
    end.release.set()
    events = [event async for event in reader.events()]
    assert isinstance(events[-1], RunFinished)
    assert service.store.list(ME)[0].status == "finished"


async def test_to_stop_a_run_that_ended_by_itself_waits_until_that_is_stored(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    end = SlowEnd(service, monkeypatch)
    model.gate.set()
    run_id = await service.start(SPEC, owner=ME)
    await end.reached.wait()
    stopping = asyncio.create_task(service.stop(run_id, owner=ME))
    await asyncio.sleep(0)
    assert not stopping.done()
    end.release.set()
    assert not await stopping
    assert isinstance((await service.load(run_id, owner=ME)).terminal, RunFinished)


async def test_a_database_that_is_busy_for_a_while_is_waited_for(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    append, failures = service.store.append, iter(range(2))

    def busy(run_id: str, events: list[Any], **options: Any) -> None:
        if next(failures, None) is not None:
            raise StorageBusyError("Another process is writing.", remedy="Try again.")
        append(run_id, events, **options)

    monkeypatch.setattr(service.store, "append", busy)
    model.gate.set()
    events: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    assert isinstance(events[-1], RunFinished)


async def test_nobody_waits_for_ever_after_a_fault_of_ours(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(service.store, "append", broken)
    model.gate.set()
    events: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    assert events[-1].error.code == "unexpected"


async def test_a_run_that_had_ended_keeps_its_end_if_it_can_be_stored_after_all(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    append, failures = service.store.append, iter(range(1))

    def full(run_id: str, events: list[Any], **options: Any) -> None:
        if isinstance(events[-1], RunFinished) and next(failures, None) is not None:
            raise StorageFullError("The disk is full.", remedy="Make room on it.")
        append(run_id, events, **options)

    monkeypatch.setattr(service.store, "append", full)
    model.gate.set()
    events: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    assert isinstance(events[-1], RunFinished)
    await until_stored(service, events[0].run)
    assert service.store.load(events[0].run, ME).terminal == events[-1]
    # What nothing is wrong with can be shared.
    assert await service.share(events[0].run, owner=ME)


@pytest.mark.parametrize(
    "error", [ValueError("no"), failure("storage.damaged")], ids=["refused", "damaged"]
)
async def test_what_can_never_be_stored_is_not_tried_for_ever(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    tried = list[int]()

    def broken(run_id: str, events: list[Any], **_: Any) -> None:
        tried.append(len(events))
        raise error

    monkeypatch.setattr(service.store, "append", broken)
    model.gate.set()
    events: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    assert isinstance(events[-1], RunFailed)
    async with asyncio.timeout(60):
        await asyncio.gather(*service._background)
    # The last attempt was the end alone; all of it can still be read.
    assert tried[-1] == 1
    assert (await service.load(events[0].run, owner=ME)).terminal == events[-1]


async def test_the_end_is_stored_where_more_is_stored_than_was_told(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    append = service.store.append

    def untold(run_id: str, events: list[Any], **options: Any) -> None:
        if isinstance(events[-1], TerminalEvent) and len(events) > 1:
            raise ValueError("They cannot be stored.")
        append(run_id, events, **options)
        if not isinstance(events[-1], TerminalEvent):
            raise ValueError("The connection was lost before it could tell.")

    monkeypatch.setattr(service.store, "append", untold)
    run_id = await service.start(SPEC, owner=ME)
    await model.until_asked()
    events: list[Any] = [event async for event in service.follow(run_id, owner=ME)]
    assert isinstance(events[-1], RunFailed)
    await asyncio.gather(*service._background)
    stored = service.store.load(run_id, ME)
    assert isinstance(stored.terminal, RunFailed)
    assert [event.seq for event in stored.events] == list(range(len(stored.events)))
    assert len(stored.events) > 2


async def test_dead_runs_are_ended_by_every_start_and_living_ones_are_not(tmp_path: Path):
    dead, alive = RunStore(file_url(tmp_path)), RunStore(file_url(tmp_path))
    for name, store in (("dead", dead), ("alive", alive)):
        store.create(name, ME, examples.started(name))
    dead.close()
    service = open_service(tmp_path, FakeModel("word"))
    found = {run.id: (run.status, run.reason) for run in service.store.list(ME)}
    assert found == {"alive": ("running", None), "dead": ("cancelled", "interrupted")}
    await service.aclose()
    alive.append("alive", examples.complete("alive")[1:])
    alive.close()


async def test_a_recorded_run_is_replayed_where_nothing_can_be_written(open_folder: Path):
    service = open_service(open_folder, FakeModel("word"))
    first: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    await service.aclose()
    with read_only(open_folder):
        service = open_service(open_folder, FakeModel("word"))
        with pytest.raises(StorageReadOnlyError):
            await service.start(SPEC, owner=ME)
        run_id = await service.replay(first[0].run, owner=ME)
        replayed: list[Any] = [event async for event in service.follow(run_id, owner=ME)]
        assert replayed[-1].answers == first[-1].answers
        assert (await service.load(run_id, owner=ME)).terminal == replayed[-1]
        assert [run.id for run in service.store.list(ME)] == [first[0].run]
        assert isinstance(service.why_not_stored(run_id, owner=ME), StorageReadOnlyError)
        with pytest.raises(InvalidInputError, match=r"not stored.*Choose a folder"):
            await service.share(run_id, owner=ME)
        await service.delete(run_id, owner=ME)
        await service.aclose()


async def test_a_replay_on_a_disk_that_filled_meanwhile_is_not_stored(
    service: Service, model: FakeModel
):
    model.gate.set()
    first: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    assert service.store.refusal is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.store, "create", _full)
        run_id = await service.replay(first[0].run, owner=ME)
    replayed: list[Any] = [event async for event in service.follow(run_id, owner=ME)]
    assert replayed[-1].answers == first[-1].answers
    assert isinstance(service.why_not_stored(run_id, owner=ME), StorageFullError)
    assert service.why_not_stored(first[0].run, owner=ME) is None
    assert [run.id for run in service.store.list(ME)] == [first[0].run]


async def test_a_replay_on_a_busy_database_is_asked_for_again(
    service: Service, model: FakeModel, monkeypatch: pytest.MonkeyPatch
):
    model.gate.set()
    first: list[Any] = [event async for event in service.stream(SPEC, owner=ME)]
    monkeypatch.setattr(service.store, "create", _busy)
    with pytest.raises(StorageBusyError):
        await service.replay(first[0].run, owner=ME)


def _full(*_: Any) -> None:
    raise failure("storage.full")


def _busy(*_: Any) -> None:
    raise failure("storage.busy")


async def test_a_data_folder_that_is_none_says_so(tmp_path: Path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(Exception, match="cannot be used as the data folder") as refused:
            Service(path)
        assert str(tmp_path) not in str(refused.value)
        assert not isinstance(refused.value, StorageError)
