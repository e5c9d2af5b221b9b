"""An evaluation that was killed, carried out once more from its beginning, undisturbed.

No model computes anything this time: each request gets the reply that was recorded, and one that
was not recorded is an error. So the same methods have to ask for exactly what the killed evaluation
asked for, and to come to the same results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.cli.shared import OWNER
from pipelines.base import Choice, Generation, Language
from pipelines.engine.asking import RunPlan
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import MissingReply
from pipelines.evaluation.beginning import answers_at_once, create_evaluation
from pipelines.evaluation.plan import EvaluationSpec, Item
from pipelines.evaluation.runner import KnownCalls, OwnService, Runner
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    GenerationRequest,
    Model,
    ModelRequest,
    ScoreRequest,
    Watcher,
)
from pipelines.retrieval.base import Similarity
from pipelines.run.calls import request_key
from pipelines.run.events import ModelCalled, RunCancelled, SpanStarted, Trace
from pipelines.run.findings import MethodStarted
from pipelines.run.replay import ReplayModel, ReplayRecord, ReplaySimilarity, attempts
from pipelines.store import RunStore
from tests.kills.unattended import Evaluation, recorded_runs

T = TypeVar("T")

_ASKING: ContextVar[tuple[str, str]] = ContextVar("asking")
"""The question and the method of the run that is being carried out."""


class StrictModel(Model):
    """Answers as a model was recorded to have answered, and refuses every other request.

    `known` are the keys of the requests that were recorded, `asked` those that were made; `missing`
    are those without a recorded reply.
    """

    def __init__(self, name: str, capabilities: Capabilities, calls: Iterable[ModelCalled]) -> None:
        self.name = name
        # What a method ended early is the answer to nobody else, where there is a whole reply.
        replies = {key: [min(tries, key=_worse)] for key, tries in attempts(calls).items()}
        self._recorded = ReplayModel(name, capabilities, replies, ReplayRecord())
        self.known = set(replies)
        self.asked: set[str] = set()
        self.missing: list[str] = []

    @property
    def capabilities(self) -> Capabilities:
        return self._recorded.capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await self._strict(request, self._recorded.generate(request, watch))

    async def choose(self, request: ChoiceRequest) -> Choice:
        return await self._strict(request, self._recorded.choose(request))

    async def score(self, request: ScoreRequest) -> Generation:
        return await self._strict(request, self._recorded.score(request))

    async def _strict(self, request: ModelRequest, reply: Awaitable[T]) -> T:
        key = request_key(request)
        self.asked.add(key)
        try:
            return await reply
        except MissingReply:
            self.missing.append(key)
            raise


def _worse(tries: list[ModelCalled]) -> tuple[bool, bool]:
    """Whether a request failed in the end, and whether its reply was ended early."""
    last = tries[-1]
    return last.error is not None, any(o.finish_reason == "watcher" for o in last.generations)


@dataclass
class Recording:
    """The models of an evaluation by the name that its specification gives them, and the cosines of
    each run by question and method."""

    models: dict[str, StrictModel]
    cosines: dict[tuple[str, str], Similarity]

    @classmethod
    def of(cls, store: RunStore, evaluation: str) -> Recording:
        """All that was recorded for `evaluation`, also by the attempts that were killed."""
        calls: dict[str, list[ModelCalled]] = {}
        capabilities: dict[str, Capabilities] = {}
        cosines: dict[tuple[str, str], Similarity] = {}
        for _, trace in recorded_runs(store, evaluation):
            names = {role: spec.name for role, spec in trace.header.spec.models.items()}
            begun = _begun(trace)
            if begun is None:
                continue
            capabilities |= {names[role]: can for role, can in begun.models.items()}
            own = [event for event in trace.events if isinstance(event, ModelCalled)]
            for call in own:
                if call.role != "embedder":
                    calls.setdefault(names[call.role], []).append(call)
            # Of several attempts one has come to its end.
            if isinstance(trace.terminal, RunCancelled):
                continue
            compared = [call for call in own if call.role == "embedder"]
            (method,) = trace.header.spec.methods
            cosines[trace.header.spec.question, method.name] = ReplaySimilarity(
                begun.embedder or "", compared, ReplayRecord()
            )
        models = {
            name: StrictModel(made[0].model, capabilities[name], made)
            for name, made in calls.items()
        }
        return cls(models, cosines)

    @property
    def missing(self) -> list[str]:
        """Requests that were made, and had not been recorded."""
        return [key for model in self.models.values() for key in model.missing]

    @property
    def unread(self) -> set[str]:
        """Requests that had been recorded, and were not made."""
        return {key for model in self.models.values() for key in model.known - model.asked}


def _begun(trace: Trace) -> MethodStarted | None:
    """What the method of a run began with; None where it was killed before."""
    for event in trace.events:
        if isinstance(event, SpanStarted) and isinstance(event.detail, MethodStarted):
            return event.detail
    return None


class _Libraries(Libraries):
    """The libraries of an evaluation, with recorded cosines."""

    def __init__(self, indexes: Path, recording: Recording) -> None:
        super().__init__(indexes)
        self._recording = recording

    def similarity(self, language: Language) -> Similarity:
        return self._recording.cosines[_ASKING.get()]


class _Named(OwnService):
    """Carries runs out in this process, and says which one is being begun."""

    async def answer(self, plan: RunPlan, run_id: str, cache: str, known: KnownCalls) -> Trace:
        ((method, _),) = plan.methods
        _ASKING.set((plan.spec.question, method.name))
        return await super().answer(plan, run_id, cache, known)


async def undisturbed(killed: Evaluation, data: Path) -> tuple[Evaluation, Recording]:
    """`killed` once more in the data folder `data`, from its beginning to its end."""
    service = Service(killed.data)
    async with aclosing(service):
        store = service.store.evaluations
        spec = EvaluationSpec.model_validate(store.get(killed.id, OWNER).spec)
        items = [Item.model_validate(body) for body in store.items(killed.id, OWNER)]
        recording = Recording.of(service.store, killed.id)
    service = Service(
        data,
        pool=ModelPool(lambda model, key, progress: recording.models[model.name]),
        libraries=_Libraries(killed.data / "index", recording),
    )
    async with aclosing(service):
        evaluation = create_evaluation(service.store.evaluations, OWNER, spec, items)
        runner = Runner(
            service,
            evaluation,
            owner=OWNER,
            at_once=answers_at_once(spec),
            answering=_Named(service, OWNER, {}),
        )
        async with aclosing(runner.run()) as steps:
            async for _ in steps:
                pass
    return Evaluation(data, killed.questions, evaluation), recording
