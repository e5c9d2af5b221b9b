"""Models and a retriever that answer only from a recorded run; a missing call is an error."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from pipelines.errors import MissingReplyError
from pipelines.models.base import (
    Capabilities,
    ChoiceRequest,
    Delta,
    GenerationRequest,
    Model,
    ModelRequest,
    ScoreRequest,
    Watcher,
)
from pipelines.retrieval.base import Retriever
from pipelines.run.cache import request_key
from pipelines.run.events import ModelCalled, Retrieved, SpanStarted
from pipelines.run.pool import Slot
from pipelines.run.trace import Trace
from pipelines.types import Choice, Generation, Passage

__all__ = ["ReplayModel", "ReplayRetriever", "replay_retriever", "replay_slots"]

_REMEDY = "Replay with the settings of the recorded run, or run the question anew."


class ReplayModel(Model):
    """Gives back the recorded replies of one role, by request; repeated requests in order."""

    def __init__(self, name: str, capabilities: Capabilities, calls: list[ModelCalled]) -> None:
        self.name = name
        self._capabilities = capabilities
        self._replies: dict[str, deque[Any]] = defaultdict(deque)
        for call in calls:
            if call.error is None and not call.cached:
                reply = call.choice if call.choice is not None else call.generations
                self._replies[request_key(call.request)].append(reply)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        generations: tuple[Generation, ...] = self._reply(request)
        if watch:
            watch(Delta(text=generations[0].text, tokens=generations[0].tokens or ()))
        return generations

    async def choose(self, request: ChoiceRequest) -> Choice:
        return self._reply(request)

    async def score(self, request: ScoreRequest) -> Generation:
        return self._reply(request)[0]

    def _reply(self, request: ModelRequest) -> Any:
        replies = self._replies.get(request_key(request))
        if not replies:
            raise MissingReplyError(
                f"The recorded run holds no reply of {self.name} to this call.",
                remedy=_REMEDY,
                provider=self.name,
            )
        # The last one stays: what was asked once may be asked again.
        return replies.popleft() if len(replies) > 1 else replies[0]


class ReplayRetriever(Retriever):
    """Gives back the recorded searches."""

    def __init__(self, searches: list[Retrieved]) -> None:
        self.name = searches[0].retriever if searches else "replay"
        self._found = {
            (search.query, search.k): list(search.passages)
            for search in searches
            if search.error is None
        }

    async def search(self, query: str, k: int) -> list[Passage]:
        if (query, k) not in self._found:
            raise MissingReplyError("The recorded run holds no such search.", remedy=_REMEDY)
        return self._found[query, k]


def replay_slots(trace: Trace) -> dict[str, Slot]:
    """A replaying model for every role of the recorded run."""
    calls: dict[str, list[ModelCalled]] = defaultdict(list)
    capabilities: dict[str, Capabilities] = {}
    for event in trace.events:
        if isinstance(event, ModelCalled):
            calls[event.role].append(event)
        elif isinstance(event, SpanStarted) and event.step == "method":
            for role, value in event.detail.get("models", {}).items():
                capabilities[role] = Capabilities.model_validate(value)
    return {
        role: Slot(ReplayModel(spec.name, capabilities.get(role, Capabilities()), calls[role]))
        for role, spec in trace.header.spec.models.items()
    }


def replay_retriever(trace: Trace) -> Retriever:
    """The recorded searches as a retriever."""
    return ReplayRetriever([event for event in trace.events if isinstance(event, Retrieved)])
