"""A recorded run as what a run works with: models, searches, cosines and entities, all recorded.

A reply that was not recorded is a `MissingReply`, never a live call. Recorded errors are raised
again as they were. A run that ended early (it was stopped, or its process died) is replayed as far
as it was recorded.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pipelines.base import Choice, Generation, Language, Passage
from pipelines.error_words import Phrase, phrase
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
from pipelines.remote import RetryPolicy
from pipelines.retrieval.base import Matrix, Retriever, Similarity
from pipelines.run.calls import Materials, Slot, is_random, request_key
from pipelines.run.events import (
    EntitiesFound,
    Event,
    ModelCalled,
    Retrieved,
    RunFailed,
    RunFinished,
    SpanEnded,
    SpanStarted,
    TerminalEvent,
    Trace,
)
from pipelines.run.findings import MethodStarted
from pipelines.text import Entity

E = TypeVar("E", bound=Event)
C = TypeVar("C", ModelCalled, Retrieved)

_QUIET = 0.02
_TURNS = 4
"""Seconds without a reply, and how often in a row, after which nothing more happens in a replay."""


def attempts(
    calls: Iterable[ModelCalled], unfinished: Collection[str] = ()
) -> dict[str, list[list[ModelCalled]]]:
    """Return the calls by request, each with its attempts in order; those without an end left out.

    A call has no end where it was cancelled, or where it failed and, its span being among
    `unfinished`, may have been tried again. What the cache answered comes last: it was asked in
    this run before, or in an earlier one.
    """
    found: dict[str, list[list[ModelCalled]]] = defaultdict(list)
    by_span: dict[tuple[str, str], list[ModelCalled]] = {}
    for call in sorted(calls, key=lambda call: call.cached):
        if _cancelled(call):
            continue
        key = request_key(call.request)
        begun = by_span.get((call.span, key))
        if begun is None or call.attempt <= begun[-1].attempt:
            if call.cached and found[key]:
                continue
            begun = by_span[call.span, key] = []
            found[key].append(begun)
        begun.append(call)
    ended = {
        key: [group for group in groups if not _goes_on(group[-1], unfinished)]
        for key, groups in found.items()
    }
    return {key: groups for key, groups in ended.items() if groups}


def _goes_on(last: ModelCalled, unfinished: Collection[str]) -> bool:
    """Return whether another attempt may have followed that was not recorded."""
    failed = last.error is not None and last.error.retryable
    return failed and last.span in unfinished and last.attempt < RetryPolicy().attempts


def _cancelled(call: ModelCalled) -> bool:
    return call.error is not None and call.error.code == "cancelled"


def _succeeded(event: C) -> C:
    """Return the recorded call or search; raises the error that it ended with."""
    if event.error is not None:
        raise revived(event.error)
    return event


@dataclass
class ReplayRecord:
    """What every part of a replay knows of the recorded run, and how many replies it gave so far.

    `ended_early` says that the run was stopped or its process died. Where it is `repeated` with its
    own settings, what ended a call that was not recorded ends it again, before it is missed.
    """

    ended_early: bool = False
    repeated: bool = False
    given: int = field(default=0, compare=False)

    def missing(self, what: Phrase, provider: str | None = None) -> MissingReply:
        """Return the error for a call or search that was not recorded."""
        return MissingReply.of(
            "replay.missing",
            provider,
            what=what,
            ended=phrase("replay.ended") if self.ended_early else "",
            remedy=phrase("replay.run_again" if self.repeated else "replay.recorded_settings"),
        )

    async def quiet(self) -> None:
        """Wait until nothing else goes on in the replay."""
        still = 0
        while still < _TURNS:
            before = self.given
            await asyncio.sleep(_QUIET)
            still = still + 1 if self.given == before else 0


class ReplayModel(Model):
    """Gives back the recorded replies of one role, by request; repeated requests in order.

    With `once`, every recorded reply is given once; without, the last of those that must be alike
    may be asked for again. `cancelled` are the keys of requests that were begun and then ended by
    something else.
    """

    def __init__(
        self,
        name: str,
        capabilities: Capabilities,
        replies: dict[str, list[list[ModelCalled]]],
        record: ReplayRecord,
        *,
        cancelled: Collection[str] = (),
        once: bool = False,
    ) -> None:
        self.name = name
        self._capabilities = capabilities
        self._replies = {
            key: deque(group[-1] for group in groups) for key, groups in replies.items()
        }
        self._record = record
        self._cancelled = cancelled
        self._once = once

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        generations = (await self._reply(request)).generations
        if len(generations) < max(1, request.n):
            raise self._missing()
        if watch is None:
            return generations
        cut = _watched(generations[0], watch)
        if cut is None and generations[0].finish_reason == "watcher":
            # The recorded run stopped here; what the model would have written on is not known.
            raise self._missing()
        return generations if cut is None else (cut,)

    async def choose(self, request: ChoiceRequest) -> Choice:
        choice = (await self._reply(request)).choice
        if choice is None or not choice.probabilities.keys() >= {o.label for o in request.options}:
            raise self._missing()
        return choice

    async def score(self, request: ScoreRequest) -> Generation:
        generations = (await self._reply(request)).generations
        if not generations:
            raise self._missing()
        return generations[0]

    async def _reply(self, request: ModelRequest) -> ModelCalled:
        key = request_key(request)
        replies = self._replies.get(key)
        if not replies:
            if self._record.repeated or key in self._cancelled:
                await self._record.quiet()
            raise self._missing()
        self._record.given += 1
        alike = replies[0].error is None and not self._once and not is_random(request)
        return _succeeded(replies[0] if alike and len(replies) == 1 else replies.popleft())

    def _missing(self) -> MissingReply:
        return self._record.missing(phrase("recorded.reply", name=self.name), self.name)


def _watched(generation: Generation, watch: Watcher) -> Generation | None:
    """Return the generation up to where `watch` stops it; None where it does not stop it."""
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

    def __init__(self, searches: Sequence[Retrieved], record: ReplayRecord) -> None:
        self.name = searches[0].retriever if searches else "replay"
        self._found: dict[tuple[str, int], deque[Retrieved]] = defaultdict(deque)
        for search in searches:
            self._found[search.query, search.k].append(search)
        self._record = record

    async def search(self, query: str, k: int) -> list[Passage]:
        found = self._found.get((query, k))
        if not found:
            if self._record.repeated:
                await self._record.quiet()
            raise self._record.missing(phrase("recorded.search", query=query, k=k))
        self._record.given += 1
        # The last one that found something stays: what was searched once may be searched again.
        alike = len(found) == 1 and found[0].error is None
        return list(_succeeded(found[0] if alike else found.popleft()).passages)


class ReplaySimilarity(Similarity):
    """Gives back the recorded cosines."""

    def __init__(self, name: str, calls: Iterable[ModelCalled], record: ReplayRecord) -> None:
        self.name = name
        self.languages = frozenset({"en", "zh"})
        self._calls = {call.request: call for call in calls if not _cancelled(call)}
        self._record = record

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        call = self._calls.get(SimilarityRequest(left=tuple(left), right=tuple(right), asked=asked))
        if call is None:
            raise self._record.missing(phrase("recorded.comparison"))
        self._record.given += 1
        rows = _succeeded(call).similarities or ()
        if [len(row) for row in rows] != [len(right)] * len(left):
            raise self._record.missing(phrase("recorded.whole_comparison"))
        return rows


class ReplayRecognizer:
    """Gives back the recorded entities."""

    def __init__(self, trace: Trace, record: ReplayRecord) -> None:
        self._record = record
        found = list(_of(trace.events, EntitiesFound))
        self._name = found[0].recognizer if found else "rules"
        self._entities = {event.text: list(event.entities) for event in found}

    def recognize(self, text: str, language: Language) -> list[Entity]:
        if not text.strip():
            return []
        if text not in self._entities:
            raise self._record.missing(phrase("recorded.entities"))
        self._record.given += 1
        return self._entities[text]

    def source_for(self, language: Language) -> str:
        return self._name


def replay_materials(
    trace: Trace, method: str | None = None, *, repeated: bool = False
) -> Materials:
    """Return the recorded run as what a run works with.

    Replies that `method` was given come before those of the run's other methods. A run that is
    `repeated` with its own settings gets what a script answered no more often than it was.

    Raises the error with which the run failed before its methods began, or MissingReply if it
    ended before `method` (None: any method that was asked for) began.
    """
    started = {e.method: e.detail for e in _of(trace.events, SpanStarted) if e.name == "method"}
    details = [detail for detail in started.values() if isinstance(detail, MethodStarted)]
    record = ReplayRecord(
        ended_early=not isinstance(trace.terminal, RunFinished | RunFailed), repeated=repeated
    )
    asked = [method] if method else [one.name for one in trace.header.spec.methods]
    if not started.keys() >= set(asked):
        if isinstance(trace.terminal, RunFailed):
            raise revived(trace.terminal.error)
        raise record.missing(phrase("recorded.beginning"))
    embedder = next((detail.embedder for detail in details if detail.embedder), None)
    compared = [c for c in _of(trace.events, ModelCalled) if c.role == "embedder"]
    searches = list(_of(trace.events, Retrieved))
    return Materials(
        slots=_slots(trace, details, method, record),
        retriever=ReplayRetriever([search for search in searches if not search.dense], record),
        dense=ReplayRetriever([search for search in searches if search.dense], record),
        similarity=ReplaySimilarity(embedder, compared, record) if embedder else None,
        recognizer=ReplayRecognizer(trace, record),
    )


def _slots(
    trace: Trace, details: Iterable[MethodStarted], method: str | None, record: ReplayRecord
) -> dict[str, Slot]:
    own = {event.seq for event in trace.of_method(method)} if method else set[int]()
    calls = sorted(_of(trace.events, ModelCalled), key=lambda call: call.seq not in own)
    unfinished, last = _unfinished(trace)
    capabilities = {role: can for detail in details for role, can in detail.models.items()}
    roles = trace.header.spec.models
    # Roles that one model had share its replies, as they shared its cache.
    shared: dict[str, Slot] = {}
    for role, spec in roles.items():
        identity = spec.model_dump_json()
        if identity not in shared:
            same = {r for r, s in roles.items() if s == spec}
            can = capabilities.get(role, Capabilities())
            made = [call for call in calls if call.role in same]
            scripted = spec.kind == "scripted"
            model = ReplayModel(
                spec.name,
                can,
                attempts(made, unfinished),
                record,
                cancelled={request_key(c.request) for c in made if _cancelled(c) and c.seq < last},
                once=record.repeated and scripted,
            )
            # Asked the same twice, a script may have said something else the second time.
            shared[identity] = Slot(model, cache=None) if scripted else Slot(model)
    return {role: shared[spec.model_dump_json()] for role, spec in roles.items()}


def _unfinished(trace: Trace) -> tuple[set[str], int]:
    """Return the spans that did not come to their own end, and the number of the last event of the
    run that is not part of its being stopped.
    """
    spans, last = {e.span for e in _of(trace.events, SpanStarted)}, 0
    for event in trace.events:
        if isinstance(event, SpanEnded) and event.outcome != "cancelled":
            spans.discard(event.span)
        stopping = (
            event.outcome == "cancelled"
            if isinstance(event, SpanEnded)
            else isinstance(event, ModelCalled) and _cancelled(event)
        )
        if not stopping and not isinstance(event, TerminalEvent):
            last = event.seq
    if isinstance(trace.terminal, RunFinished):
        last = trace.terminal.seq
    return spans, last


def recorded_again(events: Sequence[Event], trace: Trace, method: str) -> list[Event]:
    """Return `events` of a replay of `method`, with calls and searches as they were recorded.

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
