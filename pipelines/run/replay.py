"""Models and a retriever that answer only from a recorded run; a missing call is an error."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
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
    SimilarityRequest,
    Watcher,
)
from pipelines.retrieval.base import Retriever
from pipelines.retrieval.similarity import Matrix, Similarity
from pipelines.run.cache import request_key
from pipelines.run.events import ModelCalled, Retrieved, SpanStarted
from pipelines.run.materials import Materials
from pipelines.run.pool import Slot
from pipelines.run.trace import Trace
from pipelines.types import Choice, Generation, Passage

__all__ = ["ReplayModel", "ReplayRetriever", "replay_materials"]

_REMEDY = "Replay with the settings of the recorded run, or run the question anew."


class ReplayModel(Model):
    """Gives back the recorded replies of one role, by request; repeated requests in order."""

    def __init__(self, name: str, capabilities: Capabilities, calls: list[ModelCalled]) -> None:
        self.name = name
        self._capabilities = capabilities
        self._replies: dict[str, deque[Any]] = defaultdict(deque)
        answered = [call for call in calls if call.error is None]
        # What the cache answered was made in this run too, or in one before it.
        for call in sorted(answered, key=lambda call: call.cached):
            replies = self._replies[request_key(call.request)]
            if not (call.cached and replies):
                replies.append(call.choice if call.choice is not None else call.generations)

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


class ReplaySimilarity(Similarity):
    """Gives back the recorded cosines."""

    def __init__(self, name: str, calls: Sequence[ModelCalled]) -> None:
        self.name = name
        self.languages = frozenset({"en", "zh"})
        self._matrices = {
            call.request: call.similarities for call in calls if call.similarities is not None
        }

    async def compare(self, left: Sequence[str], right: Sequence[str]) -> Matrix:
        found = self._matrices.get(SimilarityRequest(left=tuple(left), right=tuple(right)))
        if found is None:
            raise MissingReplyError("The recorded run compared no such texts.", remedy=_REMEDY)
        return found


def replay_materials(trace: Trace) -> Materials:
    """The recorded run as what a run works with: models, searches, comparisons."""
    embedder = next(
        (s.detail["embedder"] for s in _methods(trace) if s.detail.get("embedder")), None
    )
    compared = [call for call in _calls(trace) if call.role == "embedder"]
    searches = [event for event in trace.events if isinstance(event, Retrieved)]
    return Materials(
        slots=_slots(trace),
        retriever=ReplayRetriever([one for one in searches if not one.by_meaning]),
        by_meaning=ReplayRetriever([one for one in searches if one.by_meaning]),
        similarity=ReplaySimilarity(embedder, compared) if embedder else None,
    )


def _slots(trace: Trace) -> dict[str, Slot]:
    calls: dict[str, list[ModelCalled]] = defaultdict(list)
    capabilities: dict[str, Capabilities] = {}
    for call in _calls(trace):
        calls[call.role].append(call)
    for event in _methods(trace):
        for role, value in event.detail.get("models", {}).items():
            capabilities[role] = Capabilities.model_validate(value)
    # Roles that one model had share its replies, as they shared its cache.
    shared: dict[str, Slot] = {}
    slots = {}
    for role, spec in trace.header.spec.models.items():
        identity = spec.model_dump_json()
        if identity not in shared:
            same = [r for r, s in trace.header.spec.models.items() if s == spec]
            model = ReplayModel(
                spec.name,
                capabilities.get(role, Capabilities()),
                sorted((c for r in same for c in calls[r]), key=lambda call: call.seq),
            )
            # Asked the same twice, a script may have said something else the second time.
            uncached = spec.kind == "scripted"
            shared[identity] = Slot(model, cache=None) if uncached else Slot(model)
        slots[role] = shared[identity]
    return slots


def _methods(trace: Trace) -> Iterable[SpanStarted]:
    return (e for e in trace.events if isinstance(e, SpanStarted) and e.step == "method")


def _calls(trace: Trace) -> Iterable[ModelCalled]:
    return (event for event in trace.events if isinstance(event, ModelCalled))
