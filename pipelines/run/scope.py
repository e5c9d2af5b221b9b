"""What a method is handed: models, retriever and a place in the tree of spans to report to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pipelines.errors import CapabilityError, VeriscopeError
from pipelines.models.base import (
    Delta,
    GenerationRequest,
    Model,
    ModelRequest,
    SimilarityRequest,
    Watcher,
)
from pipelines.retrieval.similarity import Matrix
from pipelines.run.events import (
    EventBase,
    Judged,
    ModelCalled,
    Retrieved,
    Revised,
    SpanEnded,
    SpanStarted,
    TokenWritten,
)
from pipelines.run.materials import Materials
from pipelines.run.recorder import Recorder
from pipelines.run.wrappers import CANCELLED, Cached, Recorded, Retried, RetryPolicy, Streamed
from pipelines.types import Answer, Generation, Language, Message, Passage

__all__ = ["Scope"]


class Scope:
    """One span of a run. Everything done through it is recorded under that span."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        method: str,
        language: Language,
        materials: Materials,
        span: str,
        parent: str | None,
        seed: int = 0,
        reproducible: bool = False,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.method = method
        self.language: Language = language
        self.seed = seed
        self.reproducible = reproducible
        self._recorder = recorder
        self._materials = materials
        self._span = span
        self._parent = parent
        self._retry = retry or RetryPolicy()
        self._ended = False

    @property
    def id(self) -> str:
        """The span, as a score names what is behind it."""
        return self._span

    def has_model(self, role: str) -> bool:
        """Whether a model was chosen for `role`."""
        return role in self._materials.slots

    def same_model(self, role: str, other: str = "main") -> bool:
        """Whether two roles were given to one and the same loaded model."""
        slots = self._materials.slots
        return role in slots and other in slots and slots[role] is slots[other]

    def model(self, role: str = "main") -> Model:
        """The model of `role`: recorded, retried, cached, and shown while it writes."""
        if role not in self._materials.slots:
            raise CapabilityError(
                f"No model was chosen as {role}.", remedy="Choose one under Models and run again."
            )
        slot = self._materials.slots[role]
        recorded = Recorded(slot.model, slot.gate, role, self._emit, self._recorder.now)

        def on_hit(request: ModelRequest, **reply: Any) -> None:
            self._emit(
                ModelCalled,
                role=role,
                model=slot.model.name,
                request=request,
                attempt=1,
                cached=True,
                started=self._recorder.now(),
                **reply,
            )

        calls: Model = Retried(recorded, self._retry)
        if slot.cache is not None:
            calls = Cached(calls, slot.cache, on_hit)
        return Streamed(calls, self._show_written)

    def request(self, messages: Sequence[Message], **options: Any) -> GenerationRequest:
        """A generation request with the run's seed and reproducibility."""
        options.setdefault("seed", self.seed)
        return GenerationRequest(
            messages=tuple(messages), reproducible=self.reproducible, **options
        )

    async def write(
        self, request: GenerationRequest, *, role: str = "main", watch: Watcher | None = None
    ) -> Generation:
        """One text, shown token by token while it is written; `watch` may end it early."""
        generations = await self.model(role).generate(request, watch or (lambda _: None))
        return generations[0]

    async def search(self, query: str, k: int, *, by_meaning: bool = False) -> list[Passage]:
        """Search the chosen evidence; failures are recorded, then raised.

        `by_meaning` asks for the passages whose vectors are nearest; where there are none in the
        question's language, the chosen search stands in.
        """
        retriever = self._materials.retriever
        if by_meaning:
            retriever = self._materials.by_meaning or retriever
        if retriever is None:
            raise CapabilityError(
                "No evidence was chosen.", remedy="Choose a library under Evidence and run again."
            )
        started = self._recorder.now()
        passages: list[Passage] = []
        error: VeriscopeError | None = None
        try:
            passages = await retriever.search(query, k)
        except VeriscopeError as raised:
            error = raised
        self._emit(
            Retrieved,
            retriever=retriever.name,
            query=query,
            k=k,
            by_meaning=by_meaning,
            started=started,
            passages=tuple(passages),
            error=error.info() if error else None,
        )
        if error:
            raise error
        return passages

    @property
    def embedder(self) -> str | None:
        """Whose cosines `similarities` gives; None where nothing can compare texts."""
        similarity = self._materials.similarity
        return None if similarity is None else similarity.name

    async def similarities(self, left: Sequence[str], right: Sequence[str]) -> Matrix:
        """The cosine of every text of `left` with every text of `right`, in [-1, 1]."""
        similarity = self._materials.similarity
        if similarity is None:
            raise CapabilityError(
                "Nothing here can compare texts in this language.",
                remedy="Install an embedding model that reads it, or choose another method.",
            )
        request = SimilarityRequest(left=tuple(left), right=tuple(right))
        started = self._recorder.now()
        outcome: dict[str, Any] = {}
        try:
            outcome["similarities"] = await similarity.compare(request.left, request.right)
        except VeriscopeError as error:
            outcome["error"] = error.info()
            raise
        except asyncio.CancelledError:
            outcome["error"] = CANCELLED
            raise
        finally:
            self._emit(
                ModelCalled,
                role="embedder",
                model=similarity.name,
                request=request,
                attempt=1,
                started=started,
                **outcome,
            )
        return outcome["similarities"]

    def judged(self, **fields: Any) -> Judged:
        """Record a verdict."""
        return self._emit(Judged, **fields)

    def revised(self, **fields: Any) -> Revised:
        """Record a new draft; draft 0 is the original."""
        return self._emit(Revised, **fields)

    @asynccontextmanager
    async def span(self, step: str, **detail: Any) -> AsyncIterator[Scope]:
        """A step within this span; its end is recorded whatever happens inside."""
        child = Scope(
            self._recorder,
            method=self.method,
            language=self.language,
            materials=self._materials,
            span=self._recorder.new_span(),
            parent=self._span,
            seed=self.seed,
            reproducible=self.reproducible,
            retry=self._retry,
        )
        child._emit(SpanStarted, method=self.method, step=step, detail=detail)
        try:
            yield child
        except VeriscopeError as error:
            child.end(error=error)
            raise
        except asyncio.CancelledError:
            child._emit(SpanEnded, outcome="cancelled", error=CANCELLED)
            raise
        except BaseException:
            child.end(error=unexpected())
            raise
        child.end()

    def end(self, *, answer: Answer | None = None, error: VeriscopeError | None = None) -> None:
        """Record the end of this span, once; a method's span is ended with its answer."""
        if not self._ended:
            self._ended = True
            self._emit(
                SpanEnded,
                outcome="failed" if error else "ok",
                error=error.info() if error else None,
                answer=answer,
            )

    def _show_written(self, delta: Delta) -> None:
        self._emit(TokenWritten, text=delta.text, tokens=delta.tokens, restart=delta.restart)

    def _emit(self, event_type: type[Any], **fields: Any) -> Any:
        event: EventBase = self._recorder.emit(
            event_type, span=self._span, parent=self._parent, **fields
        )
        return event


def unexpected() -> VeriscopeError:
    """What a programming error looks like to a visitor: honest, without internals."""
    return VeriscopeError(
        "Something unexpected went wrong in this step.",
        remedy="Run it again; if it happens again, report it with the exported run.",
    )
