"""A recorded run as what a run works with: models, searches, cosines and entities, all recorded.

A reply that was not recorded is a `MissingReply`, never a live call. Recorded errors are raised
again as they were.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from pipelines.errors import MissingReply, revived
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
from pipelines.retrieval.base import Matrix, Retriever, Similarity
from pipelines.run.cache import request_key
from pipelines.run.events import (
    EntitiesFound,
    Event,
    Judged,
    ModelCalled,
    Retrieved,
    Revised,
    SpanStarted,
)
from pipelines.run.findings import EntityReading, MethodStarted
from pipelines.run.materials import Materials, Slot
from pipelines.run.trace import Trace
from pipelines.text import Entity
from pipelines.types import Choice, Generation, Language, Passage

_REMEDY = "Replay with the settings of the recorded run, or run the question again."
E = TypeVar("E", bound=Event)
C = TypeVar("C", ModelCalled, Retrieved)


def attempts(calls: Iterable[ModelCalled]) -> dict[str, list[list[ModelCalled]]]:
    """The calls by request, each with its attempts in order; those that were cancelled left out.

    What the cache answered comes last: it was asked in this run before, or in an earlier one.
    """
    found: dict[str, list[list[ModelCalled]]] = defaultdict(list)
    by_span: dict[tuple[str, str], list[ModelCalled]] = {}
    for call in sorted(calls, key=lambda call: call.cached):
        if call.error is not None and call.error.code == "cancelled":
            continue
        key = request_key(call.request)
        begun = by_span.get((call.span, key))
        if begun is None or call.attempt <= begun[-1].attempt:
            if call.cached and found[key]:
                continue
            begun = by_span[call.span, key] = []
            found[key].append(begun)
        begun.append(call)
    return found


def _succeeded(event: C) -> C:
    """The recorded call or search; raises the error that it ended with."""
    if event.error is not None:
        raise revived(event.error)
    return event


class ReplayModel(Model):
    """Gives back the recorded replies of one role, by request; repeated requests in order."""

    def __init__(self, name: str, capabilities: Capabilities, calls: Iterable[ModelCalled]) -> None:
        self.name = name
        self._capabilities = capabilities
        self._replies = {
            key: deque(group[-1] for group in groups) for key, groups in attempts(calls).items()
        }

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        generations = self._reply(request).generations
        if watch is None:
            return generations
        cut = _watched(generations[0], watch)
        if cut is None and generations[0].finish_reason == "watcher":
            # The recorded run stopped here; what the model would have written on is not known.
            raise self._missing()
        return generations if cut is None else (cut,)

    async def choose(self, request: ChoiceRequest) -> Choice:
        choice = self._reply(request).choice
        if choice is None:
            raise self._missing()
        return choice

    async def score(self, request: ScoreRequest) -> Generation:
        return self._reply(request).generations[0]

    def _reply(self, request: ModelRequest) -> ModelCalled:
        replies = self._replies.get(request_key(request))
        if not replies:
            raise self._missing()
        # The last one stays: what was asked once may be asked again.
        return _succeeded(replies.popleft() if len(replies) > 1 else replies[0])

    def _missing(self) -> MissingReply:
        return MissingReply(
            f"The recorded run holds no reply of {self.name} to this call.",
            remedy=_REMEDY,
            provider=self.name,
        )


def _watched(generation: Generation, watch: Watcher) -> Generation | None:
    """The generation up to where `watch` stops it; None where it does not stop it."""
    tokens = generation.tokens
    if not tokens:
        stopped = watch(Delta(text=generation.text))
        return generation if stopped and generation.finish_reason == "watcher" else None
    written = 0
    for number, token in enumerate(tokens, start=1):
        # Tokens that share a character overlap: each piece begins where the last one ended.
        piece = generation.text[written : token.end]
        written = max(written, token.end)
        if watch(Delta(text=piece, tokens=(token,))):
            return generation.model_copy(
                update={
                    "text": generation.text[:written],
                    "tokens": tokens[:number],
                    "finish_reason": "watcher",
                }
            )
    return None


class ReplayRetriever(Retriever):
    """Gives back the recorded searches."""

    def __init__(self, searches: Sequence[Retrieved]) -> None:
        self.name = searches[0].retriever if searches else "replay"
        self._found = {(search.query, search.k): search for search in searches}

    async def search(self, query: str, k: int) -> list[Passage]:
        found = self._found.get((query, k))
        if found is None:
            raise MissingReply("The recorded run holds no such search.", remedy=_REMEDY)
        return list(_succeeded(found).passages)


class ReplaySimilarity(Similarity):
    """Gives back the recorded cosines."""

    def __init__(self, name: str, calls: Iterable[ModelCalled]) -> None:
        self.name = name
        self.languages = frozenset({"en", "zh"})
        self._calls = {
            call.request: call
            for call in calls
            if call.error is None or call.error.code != "cancelled"
        }

    async def compare(self, left: Sequence[str], right: Sequence[str]) -> Matrix:
        call = self._calls.get(SimilarityRequest(left=tuple(left), right=tuple(right)))
        if call is None:
            raise MissingReply("The recorded run compared no such texts.", remedy=_REMEDY)
        return _succeeded(call).similarities or ()


class ReplayRecognizer:
    """Gives back the recorded entities."""

    def __init__(self, trace: Trace) -> None:
        found = list(_of(trace.events, EntitiesFound))
        self._name = found[0].recognizer if found else "rules"
        self._entities = _judged_entities(trace) | {
            event.text: list(event.entities) for event in found
        }

    def recognize(self, text: str, language: Language) -> list[Entity]:
        if not text.strip():
            return []
        if text not in self._entities:
            raise MissingReply("No entities of this text were recorded.", remedy=_REMEDY)
        return self._entities[text]

    def source_for(self, language: Language) -> str:
        return self._name


def _judged_entities(trace: Trace) -> dict[str, list[Entity]]:
    """The entities of DRAD's drafts, from its verdicts: version 0.1 recorded nothing else."""
    texts = {event.draft: event.after for event in _of(trace.of_method("drad"), Revised)}
    found: dict[str, list[Entity]] = {text: [] for text in texts.values()}
    for event in _of(trace.of_method("drad"), Judged):
        if isinstance(event.detail, EntityReading) and event.draft in texts:
            entity = event.detail.model_dump(include={"text", "start", "end", "label"})
            found[texts[event.draft]].append(Entity.model_validate(entity))
    return found


def replay_materials(trace: Trace, method: str | None = None) -> Materials:
    """The recorded run as what a run works with.

    Replies that `method` was given come before those of the run's other methods.
    """
    started = [e.detail for e in _of(trace.events, SpanStarted) if e.name == "method"]
    details = [detail for detail in started if isinstance(detail, MethodStarted)]
    embedder = next((detail.embedder for detail in details if detail.embedder), None)
    compared = [c for c in _of(trace.events, ModelCalled) if c.role == "embedder"]
    searches = list(_of(trace.events, Retrieved))
    return Materials(
        slots=_slots(trace, details, method),
        retriever=ReplayRetriever([search for search in searches if not search.dense]),
        dense=ReplayRetriever([search for search in searches if search.dense]),
        similarity=ReplaySimilarity(embedder, compared) if embedder else None,
        recognizer=ReplayRecognizer(trace),
    )


def _slots(trace: Trace, details: Iterable[MethodStarted], method: str | None) -> dict[str, Slot]:
    own = {event.seq for event in trace.of_method(method)} if method else set[int]()
    calls = sorted(_of(trace.events, ModelCalled), key=lambda call: call.seq not in own)
    capabilities = {role: can for detail in details for role, can in detail.models.items()}
    roles = trace.header.spec.models
    # Roles that one model had share its replies, as they shared its cache.
    shared: dict[str, Slot] = {}
    for role, spec in roles.items():
        identity = spec.model_dump_json()
        if identity not in shared:
            same = {r for r, s in roles.items() if s == spec}
            can = capabilities.get(role, Capabilities())
            model = ReplayModel(spec.name, can, [c for c in calls if c.role in same])
            # Asked the same twice, a script may have said something else the second time.
            shared[identity] = Slot(model, cache=None) if spec.kind == "scripted" else Slot(model)
    return {role: shared[spec.model_dump_json()] for role, spec in roles.items()}


def recorded_again(events: Sequence[Event], trace: Trace, method: str) -> list[Event]:
    """`events` of a replay of `method`, with calls and searches as they were recorded.

    Their times, attempts and cache hits are those of the recorded run; the spans are the replay's.
    """
    recorded = trace.of_method(method)
    calls = {key: deque(groups) for key, groups in attempts(_of(recorded, ModelCalled)).items()}
    searches = {(e.query, e.k, e.dense): e for e in _of(recorded, Retrieved)}
    result: list[Event] = []
    for event in events:
        match event:
            case ModelCalled() if groups := calls.get(request_key(event.request)):
                group = groups.popleft() if len(groups) > 1 else groups[0]
                result += [_within(event, call) for call in group]
            case Retrieved() if found := searches.get((event.query, event.k, event.dense)):
                result.append(_within(event, found))
            case _:
                result.append(event)
    return [event.model_copy(update={"seq": seq}) for seq, event in enumerate(result)]


def _within(replayed: Event, recorded: Event) -> Event:
    place = {"run": replayed.run, "span": replayed.span, "parent": replayed.parent}
    return recorded.model_copy(update=place)


def _of(events: Iterable[Event], kind: type[E]) -> Iterator[E]:
    return (event for event in events if isinstance(event, kind))
