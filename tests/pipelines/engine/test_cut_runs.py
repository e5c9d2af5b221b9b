"""A run whose process died is replayed as far as it was recorded, and never beyond.

Runs of every method, on models that fail now and then, are cut after every event and replayed:
what comes out is the whole run, or the remark that a reply is missing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pipelines.base import Generation, Language
from pipelines.engine.asking import RunPlan, make_plan
from pipelines.engine.executor import execute, start_event
from pipelines.engine.pool import ModelPool
from pipelines.engine.reevaluate import reevaluate
from pipelines.engine.service import Service
from pipelines.errors import AuthenticationError, ErrorInfo, RateLimitError, ServerFailedError
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities, GenerationRequest, Model, ScoreRequest, Watcher
from pipelines.remote import RetryPolicy
from pipelines.run.calls import Materials, Slot, request_key
from pipelines.run.events import (
    Event,
    MethodSpec,
    ModelSpec,
    RunFailed,
    RunFinished,
    RunSpec,
    SpanStarted,
    TokenWritten,
    Trace,
)
from pipelines.run.findings import MethodStarted
from pipelines.run.live import LiveRun
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines, load_recording, recordings
from tests.pipelines.methods.test_reevaluate import (
    NAMES,
    QUESTION,
    RandomModel,
    RandomSimilarity,
    drawn,
    read,
    searched,
)
from tests.scripted.bench import ClaimReader, FixedRecognizer, Shelf

OWNER = "me"
CAN = Capabilities(
    languages=frozenset({"en", "zh"}), logprobs=True, top_logprobs=5, prefill=True, scores=True
)


class UnreliableModel(RandomModel):
    """Fails at some requests: once or twice, for ever, or with an error that no attempt mends."""

    def __init__(self, name: str, language: Language, faults: float) -> None:
        super().__init__(name, language, CAN)
        self._faults = faults
        self._asked: dict[str, int] = {}

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        self._fail(request)
        return await super().generate(request, watch)

    async def score(self, request: ScoreRequest) -> Generation:
        self._fail(request)
        return await super().score(request)

    def _fail(self, request: GenerationRequest | ScoreRequest) -> None:
        key = request_key(request)
        before = self._asked[key] = self._asked.get(key, -1) + 1
        source = drawn("fault", self.name, key)
        if source.random() >= self._faults:
            return
        kind = source.choice(("once", "twice", "always", "refused"))
        if kind == "refused":
            raise AuthenticationError("The key is not accepted.", remedy="Check it.", provider="p")
        if kind == "always" or before < ("once", "twice").index(kind) + 1:
            fault = source.choice((RateLimitError, ServerFailedError))
            raise fault("It failed.", remedy="Wait.", provider="p")


async def recorded(
    methods: Sequence[str], seed: int = 0, faults: float = 0.0, **settings: Any
) -> Trace:
    """A run of `methods` in a random world, through the real engine."""
    language: Language = drawn("language", seed).choice(("en", "zh"))
    models: dict[str, Model] = {
        role: UnreliableModel(f"{role} {seed}", language, faults)
        for role in ("main", "verifier", "judge_1", "proxy")
    }
    models["judge_2"] = ClaimReader(read, ("en", "zh"))
    specs = {
        role: ModelSpec(kind="openai", name=one.name, model=role) for role, one in models.items()
    }
    spec = RunSpec(
        question=QUESTION[language],
        methods=tuple(MethodSpec(name=name, settings=settings.get(name, {})) for name in methods),
        models=specs,
    )
    plan: RunPlan = make_plan(spec)
    live = LiveRun("run", OWNER, lambda _: None)
    start_event(live, plan)

    async def gather() -> Materials:
        return Materials(
            {role: Slot(one) for role, one in models.items()},
            Shelf(searched),
            similarity=RandomSimilarity(),
            recognizer=FixedRecognizer(*NAMES),
        )

    await execute(live, plan, gather, RetryPolicy(pause=0.0))
    return live.trace()


def never(*_: Any) -> Model:
    raise AssertionError("A replay loads no model.")


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    it = Service(tmp_path, pool=ModelPool(never))
    yield it
    await it.aclose()


@dataclass
class Replayed:
    """How a replay ended."""

    events: list[Event]

    @property
    def error(self) -> ErrorInfo | None:
        end = self.events[-1]
        return end.error if isinstance(end, RunFailed) else None

    @property
    def missing(self) -> bool:
        return self.error is not None and self.error.code == "missing_reply"


async def replay_of(service: Service, events: Iterable[Event]) -> Replayed:
    """`events` imported, as far as they go, and replayed."""
    run = service.store.import_run(export_lines(Trace(events=tuple(events))), OWNER)
    again = await service.replay(run, owner=OWNER)
    followed = service.follow(again, owner=OWNER)
    return Replayed([event async for event in followed if not isinstance(event, TokenWritten)])


def told(events: Sequence[Event]) -> Any:
    """What a run came to: by method its answer and its error."""
    view = fold(events)
    return {name: (one.answer, one.error) for name, one in view.methods.items()}, view.error


async def check(service: Service, trace: Trace, stops: Iterable[int]) -> tuple[int, int]:
    """How many of the cut runs replay to their end, and how many miss a reply."""
    whole = missing = 0
    for stop in stops:
        replayed = await replay_of(service, trace.events[:stop])
        if replayed.missing:
            missing += 1
            assert stop < len(trace.events), "the whole run misses nothing"
            assert replayed.error is not None
            assert "recorded" in replayed.error.message
        else:
            whole += 1
            assert isinstance(replayed.events[-1], RunFinished | RunFailed)
            assert told(replayed.events) == told(trace.events), stop
    return whole, missing


ALL = tuple(METHODS)
WORLDS = 12


async def test_a_run_is_replayed_as_far_as_it_was_recorded(service: Service):
    for seed, name in enumerate(METHODS):
        trace = await recorded((name,), seed)
        count = len(trace.events)
        whole, missing = await check(service, trace, [1 + count // 2, count])
        assert (whole, missing) in {(1, 1), (2, 0)}
        if seed == 0:
            await check(service, trace, [1, 2, 3])


async def test_recorded_errors_and_attempts_are_replayed_as_they_ended(service: Service):
    trace = await recorded(("direct", "drad", "ever", "rowen"), seed=1, faults=0.25)
    count = len(trace.events)
    await check(service, trace, [count // 4, count // 2, count - 2, count])


async def test_a_replay_that_missed_a_reply_misses_it_when_it_is_replayed(service: Service):
    trace = await recorded(("direct", "drad"), seed=3)
    first = await replay_of(service, trace.events[: len(trace.events) // 2])
    assert first.missing
    again = await replay_of(service, first.events)
    assert again.missing


async def test_settings_and_language_are_those_of_the_recorded_run(service: Service):
    trace = await recorded(("drad",), seed=3)
    header = trace.header
    other = "zh" if header.language == "en" else "en"
    # As if the default had changed since, and the language were found differently now.
    started = trace.events[1]
    assert isinstance(started, SpanStarted)
    assert isinstance(started.detail, MethodStarted)
    detail = MethodStarted.model_validate(
        started.detail.model_dump() | {"settings": {"theta_1": 0.125}}
    )
    events = [
        header.model_copy(update={"language": other}),
        started.model_copy(update={"detail": detail}),
        *trace.events[2:],
    ]
    replayed = await replay_of(service, events)
    view = fold(replayed.events)
    assert view.methods["drad"].settings["theta_1"] == 0.125
    assert view.header is not None
    assert view.header.language == other


async def test_a_run_stopped_before_its_method_began_diverges_at_once():
    trace = await recorded(("drad",), seed=3)
    drad = METHODS["drad"]
    again = reevaluate(Trace(events=trace.events[:1]), drad, drad.settings({"theta_1": 0.2}))
    assert again.diverges_at == 0
    assert again.answer is None


@pytest.mark.verify
@pytest.mark.parametrize("faults", [0.0, 0.15, 0.4])
@pytest.mark.parametrize("seed", range(WORLDS))
async def test_every_method_is_cut_after_every_event(service: Service, seed: int, faults: float):
    name = ALL[seed % len(ALL)]
    trace = await recorded((name,), seed, faults)
    await check(service, trace, range(1, len(trace.events) + 1, 1 + len(trace.events) // 80))


@pytest.mark.verify
@pytest.mark.parametrize("run", [one.id for one in recordings()])
async def test_shipped_recordings_are_cut_after_every_event(service: Service, run: str):
    trace = load_recording(run)
    count = len(trace.events)
    await check(service, trace, [*range(1, count, max(1, count // 40)), count])
