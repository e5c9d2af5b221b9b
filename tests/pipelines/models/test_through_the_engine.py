"""Whole runs on real backends: shared batches, stand-ins, and servers that misbehave."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.service import Service
from pipelines.models.probe import probe
from pipelines.remote import RetryPolicy
from pipelines.run.events import (
    EvidenceSpec,
    Judged,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    RunFailed,
    RunFinished,
    RunSpec,
    TokenWritten,
)
from tests.pipelines.models.conftest import TransformersServer
from tests.pipelines.models.transformers import tiny
from tests.scripted.wire import Wire, refusal, says, streams

OWNER = "ann"
QUESTION = "Where was Bill Clinton born?"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service with the sample library, searched by words only."""
    libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
    made = Service(tmp_path / "data", libraries=libraries, retry=RetryPolicy(pause=0.0))
    yield made
    await made.aclose()


async def run(service: Service, model: ModelSpec, *methods: MethodSpec, **fields: Any) -> list[Any]:
    spec = RunSpec(
        question=fields.pop("question", QUESTION),
        methods=methods or (MethodSpec(name="direct"),),
        models={"main": model},
        evidence=EvidenceSpec(mode="bm25"),
        **fields,
    )
    return [event async for event in service.stream(spec, owner=OWNER)]


async def test_two_runs_at_once_overlap_their_calls_and_share_batches(
    service: Service, tmp_path: Path
):
    folder = tiny.save_random_model(tmp_path / "tiny", tiny.byte_level_tokenizer())
    model = ModelSpec(kind="local", name="tiny", model=str(folder))
    direct = MethodSpec(name="direct", settings={"max_tokens": 64})
    both = await asyncio.gather(
        *(run(service, model, direct, question=f"{QUESTION} {n}") for n in range(2))
    )
    spans = []
    for events in both:
        (call,) = [event for event in events if isinstance(event, ModelCalled)]
        created = events[0].created
        spans.append((created + call.started, created + call.time))
        assert call.generations[0].batch_size == 2
    assert max(start for start, _ in spans) < min(end for _, end in spans)


async def test_a_reproducible_run_gives_the_same_events_twice(service: Service, tmp_path: Path):
    folder = tiny.save_random_model(tmp_path / "tiny", tiny.byte_level_tokenizer())
    answers = []
    for name in ("one", "two"):  # two configurations, so that nothing comes from the cache
        model = ModelSpec(kind="local", name=name, model=str(folder))
        others = ModelSpec(kind="local", name=name, model=str(folder))
        noise = asyncio.create_task(run(service, others, question="Something else?"))
        events = await run(service, model, reproducible=True)
        await noise
        (call,) = [event for event in events if isinstance(event, ModelCalled)]
        assert call.generations[0].batch_size == 1
        answers.append(call.generations[0])
    assert answers[0] == answers[1]


async def test_drad_compares_samples_where_a_server_gives_no_probabilities(
    service: Service, transformers_server: TransformersServer
):
    plain = ModelSpec(
        kind="openai", name="Served", model=transformers_server.model,
        base_url=transformers_server.url,
    )  # fmt: skip
    report = await probe(await service.model(plain))
    model = plain.with_capabilities(report.capabilities)
    assert model.top_logprobs == 0
    drad = MethodSpec(name="drad", settings={"samples": 2, "max_tokens": 12})
    events = await run(service, model, drad)
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert "confidence_samples" in last.answers["drad"].flags
    judged = [event for event in events if isinstance(event, Judged)]
    assert judged
    for event in judged:
        probability, entropy = event.scores
        assert probability.value in (0.0, 0.5, 1.0)
        assert entropy.value is None
    draws = [e for e in events if isinstance(e, ModelCalled) and getattr(e.request, "n", 1) == 2]
    assert all(len(call.generations) == 2 for call in draws)


async def test_asking_such_a_server_for_probabilities_is_refused_with_a_way_out(
    service: Service, transformers_server: TransformersServer
):
    model = ModelSpec(
        kind="openai", name="Served", model=transformers_server.model,
        base_url=transformers_server.url, top_logprobs=0,
    )  # fmt: skip
    drad = MethodSpec(name="drad", settings={"confidence": "logprobs"})
    last = (await run(service, model, drad))[-1]
    assert isinstance(last, RunFailed)
    assert last.error.code == "capability"
    assert "stand-in" in last.error.remedy


@pytest.mark.parametrize(
    ("status", "code", "attempts"),
    [
        (401, "missing_key", 1),
        (404, "unknown_model", 1),
        (429, "rate_limit", 4),
        (500, "server_failed", 4),
    ],
)
async def test_a_server_that_refuses_ends_the_run_with_its_name_and_a_remedy(
    service: Service, wire: Wire, status: int, code: str, attempts: int
):
    wire.answers(says(refusal("No.", code="model_not_found"), status, retry_after="0"))
    model = ModelSpec(kind="openai", name="Wired", model="m", base_url=wire.url)
    events = await run(service, model)
    last = events[-1]
    assert isinstance(last, RunFailed)
    assert last.error.code == code
    assert last.error.provider
    assert last.error.remedy
    assert [e.attempt for e in events if isinstance(e, ModelCalled)] == list(range(1, attempts + 1))


async def test_an_unreachable_server_ends_the_run_clearly(service: Service):
    model = ModelSpec(kind="openai", name="Nowhere", model="m", base_url="http://127.0.0.1:9/v1")
    last = (await run(service, model))[-1]
    assert isinstance(last, RunFailed)
    assert last.error.code == "unreachable"


@pytest.mark.parametrize("answer", ["not json", "{}"])
async def test_an_unreadable_reply_is_tried_again_then_told(
    service: Service, wire: Wire, answer: str
):
    wire.answers(says(answer))
    model = ModelSpec(kind="openai", name="Wired", model="m", base_url=wire.url)
    last = (await run(service, model))[-1]
    assert isinstance(last, RunFailed)
    assert last.error.code == "invalid_reply"


async def test_a_cut_stream_starts_over_and_what_was_shown_is_taken_back(
    service: Service, wire: Wire
):
    def piece(text: str) -> dict[str, Any]:
        delta = {"index": 0, "delta": {"content": text}}
        return {"id": "1", "object": "chat.completion.chunk", "choices": [delta]}

    end = {
        "id": "1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    wire.answers(streams(piece("Half"), done=False), streams(piece("Whole."), end))
    model = ModelSpec(kind="openai", name="Wired", model="m", base_url=wire.url, top_logprobs=0)
    events = await run(service, model)
    assert isinstance(events[-1], RunFinished)
    assert events[-1].answers["direct"].text == "Whole."
    failed, answered = [event for event in events if isinstance(event, ModelCalled)]
    assert failed.error is not None
    assert failed.error.code == "invalid_reply"
    assert answered.attempt == 2
    assert any(isinstance(event, TokenWritten) and event.restart for event in events)
