"""Earlier runs as the basis of an estimate: which ones count, each read once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import TextToCheck
from pipelines.engine.estimate import LATEST, size_of
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import StorageBusyError
from pipelines.models.providers import Price
from pipelines.run.events import MethodSpec, ModelSpec, RunSpec
from tests.scripted.fakes import FakeModel

MAIN = ModelSpec()
OTHER = ModelSpec(kind="local", name="Other", model="other.gguf")


@pytest.fixture
async def service(tmp_path: Path):
    # Not a scripted model: what these say is not cached.
    pool = ModelPool(lambda spec, key, progress: FakeModel("In Hope."))
    libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
    opened = Service(tmp_path, pool=pool, libraries=libraries)
    yield opened
    await opened.aclose()


async def ask(service: Service, question: str, main: ModelSpec = MAIN, owner: str = "me") -> str:
    spec = RunSpec(question=question, methods=(MethodSpec(name="direct"),), models={"main": main})
    run_id = (await service.record(spec, owner=owner)).header.run
    async with asyncio.timeout(60):
        # The end is stored a moment after it is seen.
        while run_id not in [one.id for one in service.store.finished(owner)]:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return run_id


async def test_the_latest_runs_of_that_model_and_owner_count(service: Service):
    assert service.earlier.of("me", MAIN) == ()
    await ask(service, "Where?", OTHER)
    await ask(service, "Who?", owner="you")
    for at in range(LATEST + 1):
        await ask(service, f"Where is {at}?")
    found = service.earlier.of("me", MAIN)
    assert len(found) == LATEST
    assert all(one.methods["direct"]["main"].calls == 1 for one in found)
    (other,) = service.earlier.of("me", OTHER)
    assert other.main == OTHER


async def test_what_is_assumed_of_a_model_and_its_price_make_no_difference(service: Service):
    await ask(service, "Where?", OTHER)
    priced = OTHER.model_copy(update={"price": Price(read=1.0, written=1.0), "weak": True})
    assert len(service.earlier.of("me", priced)) == 1


async def test_a_run_is_read_once(service: Service, monkeypatch: pytest.MonkeyPatch):
    await ask(service, "Where?")
    first = service.earlier.of("me", MAIN)

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(service.store, "load", never)
    assert service.earlier.of("me", MAIN) == first


async def test_a_run_that_asked_nothing_does_not_count(service: Service):
    await ask(service, "Where?")
    await ask(service, "Where?")
    assert len(service.earlier.of("me", MAIN)) == 1


async def test_a_run_from_elsewhere_does_not_count(service: Service):
    run_id = await ask(service, "Where?")
    service.store.import_run(list(service.store.export(run_id, "me")), "me")
    assert len(service.store.finished("me")) == 2
    assert len(service.earlier.of("me", MAIN)) == 1


async def test_a_run_that_was_deleted_meanwhile_is_passed_over(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    await ask(service, "Where?")
    listed = service.store.finished("me")
    await service.delete(listed[0].id, owner="me")
    monkeypatch.setattr(service.store, "finished", lambda owner: listed)
    assert service.earlier.of("me", MAIN) == ()


async def test_a_store_that_is_busy_is_asked_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    await ask(service, "Where?")

    def busy(*_: object) -> None:
        raise StorageBusyError("Another process is writing.", remedy="Try again.")

    with monkeypatch.context() as patched:
        patched.setattr(service.store, "load", busy)
        assert service.earlier.of("me", MAIN) == ()
    assert len(service.earlier.of("me", MAIN)) == 1


async def test_checks_and_questions_are_told_apart(service: Service):
    await ask(service, "Where?")
    given = TextToCheck(text="Tea is hot. Ice is cold.", question="How is tea?")
    asked = RunRequest(text=given, methods=[MethodSpec(name="selfcheck")], models={"main": MAIN})
    run_id = (await service.record(plan_run(asked), owner="me")).header.run
    async with asyncio.timeout(60):
        while run_id not in [one.id for one in service.store.finished("me")]:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert [one.size for one in service.earlier.of("me", MAIN)] == [None]
    (check,) = service.earlier.of("me", MAIN, checks=True)
    assert check.size == size_of(given.text)
    assert size_of(given.text).sentences == 2
