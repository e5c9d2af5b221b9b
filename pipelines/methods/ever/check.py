"""EVER's look at one sentence: its concepts, a question for each, and what the evidence answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.methods.base import Question
from pipelines.methods.ever.calls import (
    PROMPTS,
    ask_line,
    ask_list,
    distinct,
    together,
    turns,
)
from pipelines.methods.ever.concepts import Concepts, asks_about, concepts_in, read_concepts
from pipelines.methods.ever.record import Attempt, Check, ConceptCheck, Listed
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.ever.support import Known, supported
from pipelines.run.events import Score
from pipelines.run.scope import Scope
from pipelines.text import Span
from pipelines.types import Message, Passage

__all__ = ["Checked", "Target", "check"]


@dataclass(frozen=True)
class Target:
    """What is to be checked: `text`, standing at `start` of draft `draft` after `context`.

    `concept` is given for a short answer, whose only concept is the answer itself; `shown` is then
    what stands in the draft, where `text` is the statement that question and answer make together.
    """

    sentence: int
    round: int
    draft: int
    start: int
    text: str
    context: str = ""
    attempt: Attempt = "draft"
    concept: Span | None = None
    shown: str = ""


@dataclass(frozen=True)
class Checked:
    """A check, and for each of its concepts the evidence that its verdict rests on."""

    check: Check
    evidence: tuple[tuple[Passage, ...], ...]

    def doubts(self) -> tuple[tuple[ConceptCheck, ...], tuple[Passage, ...]]:
        """The concepts to rectify and their evidence: by place, then rank, each passage once."""
        pairs = zip(self.check.concepts, self.evidence, strict=True)
        doubtful = [(concept, found) for concept, found in pairs if concept in self.check.doubtful]
        passages = distinct(passage for _, found in doubtful for passage in found)
        return tuple(concept for concept, _ in doubtful), passages


async def check(
    scope: Scope, question: Question, settings: EverSettings, target: Target, known: Known
) -> Checked:
    """Check every concept of `target`, all at once; each verdict is recorded when it is there.

    What is `known` is not asked again.
    """
    async with scope.span(
        "verify", sentence=target.sentence, round=target.round, draft=target.draft
    ) as step:
        listed, concepts = await _concepts(step, question, settings, target)
        look = Check(
            round=target.round,
            draft=target.draft,
            start=target.start,
            text=target.text,
            attempt=target.attempt,
            listed=listed,
            places=tuple((span.start, span.end) for span in concepts.spans),
            left_out=concepts.left_out,
            span=step.id,
        )
        shown = target.shown or target.text
        step.judged(
            what="concepts",
            text=shown,
            start=target.start,
            end=target.start + len(shown),
            draft=target.draft,
            sentence=target.sentence,
            verdict="unchecked",
            detail=look.model_dump(
                mode="json", include={"round", "text", "attempt", "listed", "places", "left_out"}
            ),
        )
        found = await together(
            _concept(step, question, settings, target, span, known) for span in concepts.spans
        )
    return Checked(
        check=look.model_copy(update={"concepts": tuple(concept for concept, _ in found)}),
        evidence=tuple(passages for _, passages in found),
    )


async def _concepts(
    step: Scope, question: Question, settings: EverSettings, target: Target
) -> tuple[Listed, Concepts]:
    if target.concept is not None:
        return "read", Concepts(spans=(target.concept,))
    messages = turns(
        question.language,
        "extract",
        "extract_sentence",
        question=question.text,
        sentence=target.text,
    )
    async with step.span("extract", sentence=target.sentence, round=target.round) as own:
        for asked in (messages, _once_more(messages, question)):
            listed = read_concepts(await ask_list(own, asked, "concepts"))
            if listed == []:
                return "none", Concepts(spans=())
            concepts = concepts_in(target.text, listed or (), settings.max_concepts)
            if concepts.spans:
                return "read", concepts
    # A list of nothing that the sentence contains says as little as one that cannot be read.
    return "unreadable", Concepts(spans=())


def _once_more(messages: Sequence[Message], question: Question) -> tuple[Message, ...]:
    again = PROMPTS.fill(question.language, "extract_again")
    *before, last = messages
    return (*before, Message(role="user", content=f"{last.content}\n\n{again}"))


async def _concept(
    step: Scope,
    question: Question,
    settings: EverSettings,
    target: Target,
    span: Span,
    known: Known,
) -> tuple[ConceptCheck, tuple[Passage, ...]]:
    async with step.span(
        "concept",
        sentence=target.sentence,
        round=target.round,
        concept=span.text,
        start=span.start,
        end=span.end,
    ) as own:
        asked, fallback = await _validation(own, question, target, span)
        found = ConceptCheck(
            text=span.text,
            start=span.start,
            end=span.end,
            verdict="unchecked",
            question=asked,
            fallback=fallback,
            span=own.id,
        )
        support = await supported(own, question, settings, found, known, target.text)
        _record(own, target, support.concept, support.scores)
    return support.concept, support.evidence


async def _validation(
    own: Scope, question: Question, target: Target, span: Span
) -> tuple[str, bool]:
    """The yes/no question for a concept, and whether it had to be made from the sentence."""
    language = question.language
    written = await ask_line(
        own,
        (
            Message(
                role="user",
                content=PROMPTS.fill(
                    language,
                    "validate",
                    question=question.text,
                    context=target.context or PROMPTS.fill(language, "none_before"),
                    sentence=target.text,
                    concept=span.text,
                ),
            ),
        ),
    )
    if asks_about(written, span.text):
        return written, False
    return PROMPTS.fill(
        language, "fallback", question=question.text, sentence=target.text, concept=span.text
    ), True


def _record(own: Scope, target: Target, found: ConceptCheck, scores: tuple[Score, ...]) -> None:
    within = target.concept is None
    start = target.start + (found.start if within else 0)
    own.judged(
        what="concept",
        text=found.text,
        start=start,
        end=start + len(found.text),
        draft=target.draft,
        sentence=target.sentence,
        verdict=found.verdict,
        scores=scores,
        detail={
            "round": target.round,
            "at": [found.start, found.end],
            "question": found.question,
            "fallback": found.fallback,
            "reason": found.reason,
            "reasoning": found.reasoning,
            "evidence": list(found.evidence),
            "reused": found.reused,
            "by": found.by,
        },
    )
