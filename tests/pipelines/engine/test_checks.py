"""Checks of models that could not be carried out are made again by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.base import Choice, Generation
from pipelines.engine import pool
from pipelines.engine.library import Libraries
from pipelines.engine.pool import MOST_TRIES, ModelPool
from pipelines.engine.service import Service
from pipelines.errors import BusyError
from pipelines.models.base import ChoiceRequest, GenerationRequest, Watcher
from pipelines.models.probe import ProbeReport, probe
from pipelines.models.providers import ModelSpec, Price, known_capabilities
from pipelines.models.scripted import ScriptedModel
from pipelines.remote import RetryPolicy
from pipelines.run.events import MethodSpec, RunSpec
from tests.pipelines.models.test_probe import ABLE

ANN = "ann"
SPEC = ModelSpec(kind="openai", name="Served", model="m", base_url="http://127.0.0.1:9/v1")


class Busy(ScriptedModel):
    """Answers as its script says, but nothing that holds `busy`, and never what holds `silent`."""

    busy = silent = ""
    calls = 0

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        await self._asked(request)
        return await super().generate(request, watch)

    async def choose(self, request: ChoiceRequest) -> Choice:
        await self._asked(request)
        return await super().choose(request)

    async def _asked(self, request: GenerationRequest | ChoiceRequest) -> None:
        type(self).calls += 1
        text = " ".join(message.content for message in request.messages)
        if self.busy and self.busy in text:
            raise BusyError("Later.", remedy="Wait.")
        if self.silent and self.silent in text:
            await asyncio.Event().wait()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    Busy.busy, Busy.silent, Busy.calls = "Claim:", "", 0
    made = Service(
        tmp_path,
        pool=ModelPool(lambda spec, key, progress: Busy.from_replies(ABLE)),
        libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
        retry=RetryPolicy(attempts=2, pause=0.0),
    )
    yield made
    await made.aclose()


async def use(service: Service, spec: ModelSpec, **fields: Any) -> None:
    """A run with the model, to its end and that of the checks beside it."""
    question = "What is the capital of France? Answer in one short sentence."
    direct = (MethodSpec(name="direct"),)
    run = RunSpec(question=question, methods=direct, models={"main": spec}, **fields)
    async for _ in service.stream(run, owner=ANN):
        pass
    await asyncio.gather(*service.unknown._tasks.values())


async def checked(service: Service) -> tuple[ModelSpec, ProbeReport]:
    report = await probe(await service.model(SPEC))
    spec = SPEC.with_capabilities(report.capabilities, report.unknown)
    spec = spec.model_copy(update={"price": Price(read=1, written=2)})
    service.store.models.save(ANN, spec)
    return spec, report


async def test_what_is_not_known_is_asked_again_at_the_next_use(service: Service):
    spec, report = await checked(service)
    assert report.unknown == spec.unknown == ("judging",)
    assert spec.judges is True
    Busy.busy = ""
    before = Busy.calls
    await use(service, spec)
    (saved,) = service.store.models.list(ANN)
    assert saved == spec.model_copy(update={"unknown": ()})
    # The answer, and eight claims by their first tokens: nothing else was checked.
    assert Busy.calls - before == 9
    await use(service, saved)
    assert Busy.calls - before == 10


async def test_what_is_found_then_is_marked_in_runs(service: Service):
    spec, _ = await checked(service)
    Busy.busy = ""
    wrong = [{"contains": "Claim:", "text": "YES"}, *ABLE]
    service.pool._build = lambda spec, key, progress: Busy.from_replies(wrong)
    service.pool._slots.clear()
    await use(service, spec)
    (saved,) = service.store.models.list(ANN)
    assert saved.judges is False
    known = known_capabilities(saved)
    assert known is not None
    assert not known.judges


async def test_a_check_of_a_saved_model_is_kept_with_it(service: Service):
    spec, _ = await checked(service)
    wrong = [{"contains": "Claim:", "text": "YES"}, *ABLE]
    Busy.busy = ""
    service.pool._build = lambda spec, key, progress: Busy.from_replies(wrong)
    service.pool._slots.clear()
    report = await probe(await service.model(SPEC))
    await service.unknown.keep(spec, report, owner=ANN)
    (saved,) = service.store.models.list(ANN)
    assert (saved.judges, saved.unknown, saved.price) == (False, (), spec.price)


async def test_what_a_later_check_cannot_find_out_stays_as_it_was_found(service: Service):
    spec, report = await checked(service)
    spec = spec.model_copy(update={"unknown": (), "judges": False})
    service.store.models.save(ANN, spec)
    await service.unknown.keep(spec, report, owner=ANN)
    (saved,) = service.store.models.list(ANN)
    assert report.unknown == ("judging",)
    assert (saved.judges, saved.unknown) == (False, ())


async def test_a_check_of_a_model_that_was_changed_or_deleted_meanwhile_is_not_kept(
    service: Service,
):
    spec, report = await checked(service)
    changed = spec.model_copy(update={"top_logprobs": 3})
    service.store.models.save(ANN, changed)
    await service.unknown.keep(spec, report, owner=ANN)
    assert service.store.models.list(ANN) == [changed]
    service.store.models.delete(ANN, spec.name)
    await service.unknown.keep(spec, report, owner=ANN)
    assert service.store.models.list(ANN) == []


async def test_whether_a_model_can_judge_that_was_never_checked_is_asked_at_its_first_use(
    service: Service,
):
    spec = SPEC.to_be_checked()
    assert spec.unknown == ("judging",)
    assert spec.to_be_checked() == spec
    service.store.models.save(ANN, spec)
    Busy.busy = ""
    await use(service, spec)
    (saved,) = service.store.models.list(ANN)
    assert (saved.judges, saved.unknown) == (True, ())
    assert saved.to_be_checked() == saved
    judge = ModelSpec(kind="judge", name="A judge", model="trained")
    assert judge.to_be_checked() == judge


async def test_it_is_not_asked_again_for_ever(service: Service):
    spec, _ = await checked(service)
    for _ in range(MOST_TRIES + 2):
        await use(service, spec)
    assert service.store.models.list(ANN) == [spec]
    calls = Busy.calls
    await use(service, spec)
    # The run itself.
    assert Busy.calls == calls + 1


async def test_a_model_that_was_changed_meanwhile_stays_as_it_is(service: Service):
    spec, _ = await checked(service)
    changed = spec.model_copy(update={"top_logprobs": 3})
    service.store.models.save(ANN, changed)
    Busy.busy = ""
    await use(service, spec)
    assert service.store.models.list(ANN) == [changed]


async def test_what_was_found_before_the_service_fell_silent_is_kept(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pool, "CHECK_SECONDS", 1.0)
    spec, _ = await checked(service)
    spec = spec.model_copy(update={"unknown": ("chinese", "prefill", "judging"), "prefill": None})
    service.store.models.save(ANN, spec)
    Busy.busy, Busy.silent = "", "Claim:"
    await use(service, spec)
    (saved,) = service.store.models.list(ANN)
    assert saved.unknown == ("judging",)
    assert saved.prefill is True


async def test_nothing_is_asked_of_a_model_that_is_not_saved(service: Service):
    spec, _ = await checked(service)
    service.store.models.delete(ANN, spec.name)
    Busy.busy = ""
    before = Busy.calls
    await use(service, spec)
    assert Busy.calls == before + 1


async def test_a_reproducible_run_has_the_model_to_itself(service: Service):
    spec, _ = await checked(service)
    Busy.busy = ""
    before = Busy.calls
    await use(service, spec, reproducible=True)
    assert Busy.calls == before + 1
    assert service.store.models.list(ANN) == [spec]
    # It was no attempt.
    await use(service, spec)
    (saved,) = service.store.models.list(ANN)
    assert saved.unknown == ()


async def test_checks_end_when_a_reproducible_run_begins(service: Service):
    spec, _ = await checked(service)
    spec = spec.model_copy(update={"unknown": ("chinese", "prefill")})
    service.store.models.save(ANN, spec)
    said = iter([False, True])
    service.unknown._is_reproduced = lambda spec, owner: next(said)
    await use(service, spec)
    (saved,) = service.store.models.list(ANN)
    assert saved.unknown == ("prefill",)


async def test_checks_end_with_the_service(service: Service):
    spec, _ = await checked(service)
    started, never = asyncio.Event(), asyncio.Event()

    async def model(spec: ModelSpec, key: str | None) -> ScriptedModel:
        started.set()
        await never.wait()
        raise AssertionError

    service.unknown._model = model
    service.unknown.ask_soon(spec, None, owner=ANN)
    await started.wait()
    await service.unknown.aclose()
    assert not service.unknown._tasks
