"""Runs a method on a model and a library that the test controls, through the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any

from pipelines.base import (
    Answer,
    FinishReason,
    Generation,
    Language,
    Passage,
    Token,
    UnsupportedSpan,
)
from pipelines.engine.asking import RunPlan
from pipelines.engine.executor import execute, start_event
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Method, Question
from pipelines.models.base import (
    Capabilities,
    Claim,
    Delta,
    GenerationRequest,
    Model,
    ScoreRequest,
    Watcher,
)
from pipelines.models.judges.base import ClaimVerdict, JudgedClaim, JudgeModel
from pipelines.remote import RetryPolicy
from pipelines.retrieval.base import Retriever, Similarity
from pipelines.run.calls import Materials, Slot
from pipelines.run.events import (
    Event,
    EvidenceSpec,
    GivenAnswer,
    Judged,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    Retrieved,
    Revised,
    RunSpec,
    SpanStarted,
    Trace,
)
from pipelines.run.live import LiveRun
from pipelines.text import Entity, EntityRecognizer, detect_language
from pipelines.text.entity_rules import Label

Piece = tuple[str, float] | tuple[str, float, float]
Reply = Sequence[Piece] | str | Generation
Answerer = Callable[[GenerationRequest], Reply]

FULL = Capabilities(
    languages=frozenset({"en", "zh"}), logprobs=True, top_logprobs=5, prefill=True, scores=True
)


def pieces(text: str, p: float = 0.9, **low: float) -> list[Piece]:
    """`text` cut before every space, each piece with probability `p` but those named in `low`."""
    words = text.split(" ")
    cut = [words[0], *(f" {word}" for word in words[1:])]
    return [(piece, low.get(piece.strip(" .,"), p)) for piece in cut if piece]


def tokens_of(reply: Sequence[Piece]) -> tuple[Token, ...]:
    tokens, at = [], 0
    for piece in reply:
        text, probability, *entropy = piece
        tokens.append(
            Token(
                text=text,
                start=at,
                end=at + len(text),
                logprob=log(probability),
                entropy=entropy[0] if entropy else 0.5,
                top_k=5,
            )
        )
        at += len(text)
    return tuple(tokens)


class PieceModel(Model):
    """Answers with what `answer` says for a request, piece by piece when watched.

    A `Generation` is answered as it is, and not shown while it is written.
    """

    def __init__(self, answer: Answerer, capabilities: Capabilities = FULL) -> None:
        self.name = "pieces"
        self._answer = answer
        self._capabilities = capabilities
        self.asked: list[GenerationRequest] = []
        self.scored: list[ScoreRequest] = []
        self.draws: list[str] = []

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        self.asked.append(request)
        if request.n > 1:
            return tuple(Generation(text=text) for text in self.draws)
        reply = self._answer(request)
        if isinstance(reply, Generation):
            return (reply,)
        tokens = tokens_of(pieces(reply) if isinstance(reply, str) else reply)
        written: list[Token] = []
        reason: FinishReason = "stop"
        for token in tokens:
            written.append(token)
            if watch and watch(Delta(text=token.text, tokens=(token,))):
                reason = "watcher"
                break
            await asyncio.sleep(0)
        return (
            Generation(
                text="".join(token.text for token in written),
                tokens=tuple(written) if self._capabilities.logprobs else None,
                finish_reason=reason,
            ),
        )

    async def score(self, request: ScoreRequest) -> Generation:
        self.scored.append(request)
        words = pieces(request.text, 0.8, Florida=0.1)
        return Generation(text=request.text, tokens=tokens_of(words))


class ClaimReader(JudgeModel):
    """A judge that reads of a claim what `says` makes of it, and keeps what it was asked."""

    name = "reader"

    def __init__(
        self, says: Callable[[Claim], ClaimVerdict], languages: Sequence[Language] = ("en",)
    ) -> None:
        self.languages = frozenset(languages)
        self.seen: list[Claim] = []
        self._says = says

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        self.seen += claims
        return [self._says(claim) for claim in claims]


class WordReader(ClaimReader):
    """As ClaimReader; of every statement it finds the words in `doubted` unsupported, by 0.9."""

    def __init__(self, says: Callable[[Claim], ClaimVerdict], *doubted: str) -> None:
        super().__init__(says)
        self._doubted = doubted

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        return [
            JudgedClaim(verdict, self._pieces(claim.statement))
            for claim, verdict in zip(claims, self.read(claims), strict=True)
        ]

    def _pieces(self, statement: str) -> tuple[UnsupportedSpan, ...]:
        return tuple(
            UnsupportedSpan(start=at, end=at + len(word), doubt=0.9)
            for word in self._doubted
            if (at := statement.find(word)) >= 0
        )


class Shelf(Retriever):
    """Finds what `found` says for a query."""

    name = "shelf"

    def __init__(self, found: Callable[[str], list[str]] | VeriscopeError) -> None:
        self._found = found

    async def search(self, query: str, k: int) -> list[Passage]:
        if isinstance(self._found, VeriscopeError):
            raise self._found
        return [
            Passage(id=str(rank), title="A title", text=text, source="shelf", rank=rank)
            for rank, text in enumerate(self._found(query)[:k], start=1)
        ]


class FixedRecognizer:
    """Finds exactly the names it was given, wherever they occur."""

    def __init__(self, *names: str, label: Label = "GPE") -> None:
        self._names = names
        self._label: Label = label

    def source_for(self, language: str) -> str:
        return "fixed"

    def recognize(self, text: str, language: str | None = None) -> list[Entity]:
        found = []
        for name in self._names:
            at = text.find(name)
            while at >= 0:
                found.append(Entity(text=name, start=at, end=at + len(name), label=self._label))
                at = text.find(name, at + 1)
        return sorted(found, key=lambda entity: entity.start)


class Outcome:
    """What came of a run, and what it did on the way."""

    def __init__(self, trace: Trace, method: Method[Any]) -> None:
        self.trace = trace
        self.method = method
        self.events: list[Event] = list(trace.of_method(method.name))

    @property
    def answer(self) -> Answer:
        answers = getattr(self.trace.terminal, "answers", {})
        return answers[self.method.name]

    @property
    def final(self) -> Answer | None:
        """The answer; None where the method failed without one."""
        return getattr(self.trace.terminal, "answers", {}).get(self.method.name)

    @property
    def queries(self) -> list[str]:
        return [event.query for event in self.events if isinstance(event, Retrieved)]

    @property
    def drafts(self) -> list[str]:
        return [event.after for event in self.events if isinstance(event, Revised)]

    @property
    def steps(self) -> list[str]:
        return [event.name for event in self.events if isinstance(event, SpanStarted)]

    @property
    def calls(self) -> list[ModelCalled]:
        return [event for event in self.events if isinstance(event, ModelCalled)]

    def judged(self, draft: int) -> list[tuple[str, str]]:
        return [
            (event.text, event.verdict)
            for event in self.events
            if isinstance(event, Judged) and event.draft == draft
        ]


async def run_method(
    method: Method[Any],
    question: str,
    model: Model,
    *,
    shelf: Retriever | None = None,
    proxy: Model | None = None,
    models: Mapping[str, Model] | None = None,
    dense: Retriever | None = None,
    similarity: Similarity | None = None,
    retry: RetryPolicy | None = None,
    recognizer: FixedRecognizer | None = None,
    evidence: EvidenceSpec | None = None,
    given: GivenAnswer | None = None,
    **settings: Any,
) -> Outcome:
    """Run `method` alone, to its end, on its own answer or the one that is `given`.

    `models` are those beside "main", by role.
    """
    chosen = MethodSpec(name=method.name, settings=settings)
    by_role = {"main": model, **(models or {})} | ({"proxy": proxy} if proxy else {})
    # Roles that one model was given have one spec, as in the pool.
    ids = {id(one): str(place) for place, one in enumerate(by_role.values())}
    specs = {
        role: ModelSpec(kind="openai", name=one.name, model=ids[id(one)])
        for role, one in by_role.items()
    }
    spec = RunSpec(
        question=question,
        methods=(chosen,),
        models=specs,
        evidence=evidence or EvidenceSpec(),
        answer=given,
    )
    about = given.text if given is not None and not given.asked else ""
    asked = Question(text=question, language=detect_language(about or question), about=about)
    plan = RunPlan(spec, asked, ((method, method.settings(settings)),))
    live = LiveRun("run", "owner", lambda _: None)
    start_event(live, plan)
    # As in the pool, one model has one slot whatever its roles.
    slots = {id(one): Slot(one) for one in by_role.values()}
    of_role = {role: slots[id(one)] for role, one in by_role.items()}

    async def materials() -> Materials:
        return Materials(of_role, shelf, dense, similarity, recognizer or EntityRecognizer())

    await execute(live, plan, materials, retry or RetryPolicy(pause=0.0))
    return Outcome(live.trace(), method)
