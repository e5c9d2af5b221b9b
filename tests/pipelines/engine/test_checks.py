"""Checks of models that could not be carried out are made again by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipelines.engine.checks import MOST_TRIES
from pipelines.engine.libraries import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import BusyError
from pipelines.models.base import ChoiceRequest, GenerationRequest, Watcher
from pipelines.models.probe import ProbeReport, probe
from pipelines.models.providers import ModelSpec, Price, known_capabilities
from pipelines.models.scripted import ScriptedModel
from pipelines.remote.retry import RetryPolicy
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.types import Choice, Generation
from tests.pipelines.models.test_probe import ABLE

ANN = "ann"
SPEC = ModelSpec(kind="openai", name="Served", model="m", base_url="http://127.0.0.1:9/v1")


class Busy(ScriptedModel):
    """Answers as its script says, but nothing that holds `busy`."""

    busy = ""
    calls = 0

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        self._asked(request)
        return await super().generate(request, watch)

    async def choose(self, request: ChoiceRequest) -> Choice:
        self._asked(request)
        return await super().choose(request)

    def _asked(self, request: GenerationRequest | ChoiceRequest) -> None:
        type(self).calls += 1
        if self.busy and any(self.busy in message.content for message in request.messages):
            raise BusyError("Later.", remedy="Wait.")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    Busy.busy, Busy.calls = "Claim:", 0
    made = Service(
        tmp_path,
        pool=ModelPool(lambda spec, key, progress: Busy.from_replies(ABLE)),
        libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
        retry=RetryPolicy(attempts=2, pause=0.0),
    )
    yield made
    await made.aclose()


async def use(service: Service, spec: ModelSpec) -> None:
    """A run with the model, to its end and that of the checks beside it."""
    question = "What is the capital of France? Answer in one short sentence."
    run = RunSpec(question=question, methods=(MethodSpec(name="direct"),), models={"main": spec})
    async for _ in service.stream(run, owner=ANN):
        pass
    await service.unknown.settled()


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
