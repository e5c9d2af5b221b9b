"""What a method is given: models, retriever and a place in the tree of spans to report to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

from pipelines.base import Answer, Generation, Language, Message, Passage
from pipelines.error_words import phrase
from pipelines.errors import MethodEnded, VeriscopeError, failure
from pipelines.models.base import GenerationRequest, Model, SimilarityRequest, Watcher
from pipelines.remote import RetryPolicy
from pipelines.retrieval.base import Matrix
from pipelines.run.calls import CANCELLED, Materials, RunModel, recorded
from pipelines.run.events import (
    EntitiesFound,
    GivenAnswer,
    Judged,
    ModelCalled,
    Place,
    Retrieved,
    Revised,
    RevisionReason,
    Score,
    SpanEnded,
    SpanStarted,
    StepName,
    Verdict,
    What,
)
from pipelines.run.findings import Finding, StepDetail
from pipelines.run.live import Recorder
from pipelines.text import Entity


class At(TypedDict, total=False):
    """The fields of `Place`, as `Scope.span` takes them."""

    draft: int | None
    sentence: int | None
    index: int | None
    round: int | None
    side: Literal["source", "target", "verifier", "cl", "cm"]
    role: str | None
    language: str | None
    start: int | None
    end: int | None


@dataclass(eq=False)
class Scope:
    """One span of a run. Everything done through it is recorded under that span.

    `id` is the span, as a score names what is behind it. `web_evidence` says that passages come
    from a search of the web, which knows more than one question finds. `effort` is the number of
    calls the method is expected to need: where calls wait, those of short methods go first.
    `given` is the answer to be checked, where the model writes none.
    `drafts` are the drafts of the method so far, whole, which all its spans share. A method works
    through the functions, since what it took from `materials` by itself would not be recorded.
    """

    recorder: Recorder
    method: str
    language: Language
    materials: Materials
    id: str
    parent: str | None
    seed: int = 0
    reproducible: bool = False
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    web_evidence: bool = False
    effort: int = 1
    given: GivenAnswer | None = None
    drafts: list[Generation] = field(default_factory=list)
    _ended: bool = field(default=False, init=False)

    def has_model(self, role: str) -> bool:
        """Return whether a model was chosen for `role`."""
        return role in self.materials.slots

    def same_model(self, role: str, other: str = "main") -> bool:
        """Return whether two roles were given to one and the same loaded model."""
        slots = self.materials.slots
        return role in slots and other in slots and slots[role] is slots[other]

    def model(self, role: str = "main") -> Model:
        """Return the model of `role`: recorded, retried, cached, and shown while it writes."""
        if role not in self.materials.slots:
            raise failure("asking.no_model", role=phrase(f"role.{role}"))
        slot = self.materials.slots[role]
        return RunModel(
            role,
            slot,
            self.retry,
            self._emit,
            self.recorder.now,
            effort=self.effort,
            owner=self.materials.owner,
            ledger=self.materials.ledger,
        )

    def request(self, messages: Sequence[Message], **options: Any) -> GenerationRequest:
        """Return a generation request with the run's seed and reproducibility."""
        options.setdefault("seed", self.seed)
        return GenerationRequest(
            messages=tuple(messages), reproducible=self.reproducible, **options
        )

    async def write(
        self, request: GenerationRequest, *, watch: Watcher | None = None
    ) -> Generation:
        """Return a text of the main model, shown while it is written; `watch` may end it early."""
        generations = await self.model().generate(request, watch or (lambda _: None))
        return generations[0]

    async def search(self, query: str, k: int, *, dense: bool = False) -> list[Passage]:
        """Search the chosen evidence; failures are recorded, then raised.

        `dense` asks for the passages whose vectors are nearest; where there are none in the
        question's language, the chosen search is used.
        """
        retriever = self.materials.retriever
        if dense:
            retriever = self.materials.dense or retriever
        if retriever is None:
            raise failure("search.no_evidence")
        started = self.recorder.now()
        passages: list[Passage] = []
        error: VeriscopeError | MethodEnded | None = None
        try:
            passages = await retriever.search(query, k)
        except (VeriscopeError, MethodEnded) as raised:
            error = raised
        self._emit(
            Retrieved,
            retriever=retriever.name,
            query=query,
            k=k,
            dense=dense,
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
        similarity = self.materials.similarity
        return None if similarity is None else similarity.name

    @property
    def compared_languages(self) -> frozenset[Language]:
        """The languages in which, and between which, `similarities` compares meanings."""
        similarity = self.materials.similarity
        return frozenset() if similarity is None else similarity.languages

    async def similarities(
        self, left: Sequence[str], right: Sequence[str], *, asked: int = 0
    ) -> Matrix:
        """Return the cosine of every text of `left` with every text of `right`, in [-1, 1].

        The first `asked` texts of `left` are questions, which some embedders embed otherwise.
        """
        similarity = self.materials.similarity
        if similarity is None:
            raise failure("asking.no_similarity")
        request = SimilarityRequest(left=tuple(left), right=tuple(right), asked=asked)
        record = partial(
            self._emit,
            ModelCalled,
            role="embedder",
            model=similarity.name,
            request=request,
            attempt=1,
            started=self.recorder.now(),
        )
        with recorded(record) as outcome:
            outcome["similarities"] = await similarity.compare(
                request.left, request.right, asked=request.asked
            )
        return outcome["similarities"]

    async def entities(self, text: str) -> list[Entity]:
        """Return the named entities of `text`, in order and without overlaps; recorded."""
        # Finding names takes time, with the first text even seconds: other runs go on meanwhile.
        find = self.materials.recognizer.recognize
        return self._recognized(text, await asyncio.to_thread(find, text, self.language))

    def entities_now(self, text: str) -> list[Entity]:
        """Return `entities` at once, for a watcher that reads a text while it is written."""
        return self._recognized(text, self.materials.recognizer.recognize(text, self.language))

    def _recognized(self, text: str, found: list[Entity]) -> list[Entity]:
        recognizer = self.materials.recognizer.source_for(self.language)
        self._emit(EntitiesFound, recognizer=recognizer, text=text, entities=tuple(found))
        return found

    def judged(
        self,
        what: What,
        text: str,
        *,
        verdict: Verdict,
        start: int = 0,
        end: int | None = None,
        draft: int = 0,
        label: str = "",
        sentence: int | None = None,
        scores: Sequence[Score] = (),
        detail: Finding | None = None,
    ) -> Judged:
        """Record a verdict on `text`, which stands at [start, end) of draft `draft`.

        `end` follows from the length of `text` when it is not given.
        """
        return self._emit(
            Judged,
            what=what,
            text=text,
            start=start,
            end=start + len(text) if end is None else end,
            draft=draft,
            label=label,
            sentence=sentence,
            verdict=verdict,
            scores=tuple(scores),
            detail=detail,
        )

    def revised(
        self,
        generation: Generation,
        *,
        draft: int = 0,
        before: str = "",
        start: int = 0,
        reason: RevisionReason = "original",
        at: Place | None = None,
    ) -> Revised:
        """Record a new draft, whole; draft 0 is the original."""
        self.drafts.append(generation)
        return self._emit(
            Revised,
            draft=draft,
            before=before,
            after=generation.text,
            start=start,
            reason=reason,
            generation=generation,
            at=at or Place(),
        )

    @asynccontextmanager
    async def span(
        self, name: StepName, *, detail: StepDetail | None = None, **at: Unpack[At]
    ) -> AsyncIterator[Scope]:
        """Record a step within this span; its end is recorded whatever happens inside.

        `at` says which draft, sentence, paraphrase ... the step is about, as `Place` has it.
        """
        child = replace(self, id=self.recorder.new_span(), parent=self.id)
        child._emit(SpanStarted, method=self.method, name=name, at=Place(**at), detail=detail)
        try:
            yield child
        except (VeriscopeError, MethodEnded) as error:
            child.end(error=error)
            raise
        except asyncio.CancelledError:
            child._emit(SpanEnded, outcome="cancelled", error=CANCELLED)
            raise
        except BaseException:
            child.end(error=unexpected())
            raise
        child.end()

    def end(
        self, *, answer: Answer | None = None, error: VeriscopeError | MethodEnded | None = None
    ) -> None:
        """Record the end of this span, once; a method's span is ended with its answer."""
        if not self._ended:
            self._ended = True
            self._emit(
                SpanEnded,
                outcome="failed" if error else "ok",
                error=error.info() if error else None,
                answer=answer,
            )

    def _emit(self, event_type: type[Any], **fields: Any) -> Any:
        return self.recorder.emit(event_type, span=self.id, parent=self.parent, **fields)


def unexpected() -> VeriscopeError:
    """Return what a programming error looks like to a visitor: honest, without internals."""
    return failure("asking.unexpected")
