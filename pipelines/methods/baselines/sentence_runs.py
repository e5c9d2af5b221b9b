"""Runs that read a text sentence by sentence by token probabilities, and correct it on the way.

FLARE and Detect-and-Mitigate keep the text up to a doubtful sentence, put another sentence in its
place, and let the model go on from there. A sentence is read by the tokens at its own offsets, so
that a sentence which stands twice is read twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pipelines.errors import failure
from pipelines.methods import nearest
from pipelines.methods.base import Question
from pipelines.methods.baselines.runs import BaselineRun
from pipelines.methods.direct import direct_messages
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.questions import asks_yes_or_no
from pipelines.methods.writing import (
    Continuation,
    appended,
    cut,
    first_draft,
    found_for,
    units_of,
    write,
)
from pipelines.models.base import ScoreRequest
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.text import (
    by_characters,
    changes_to_chinese,
    split_sentences,
    tokens_covering,
)
from pipelines.types import Generation, Passage, Token

# What DRAD asks for is asked for here in the same words: passages in view, and the rest of a text.
PROMPTS = load_prompts("drad")


@dataclass(frozen=True)
class SentenceReading:
    """A sentence of a draft, at [start, end), with its tokens and their probabilities.

    `before` is the offset at which the sentence before it ends, 0 for the first.
    """

    number: int
    text: str
    start: int
    end: int
    before: int
    last: bool
    tokens: tuple[Token, ...]

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Those of the tokens that have one, each in [0, 1]."""
        return tuple(t.probability for t in self.tokens if t.probability is not None)


R = TypeVar("R", bound=SentenceReading)


def read_sentences(generation: Generation, kind: type[R]) -> list[R]:
    """Return the sentences of a text as `kind`, each with the tokens that contribute
    characters to it.
    """
    spans = split_sentences(generation.text)
    tokens = generation.tokens or ()
    places = [(token.start, token.end) for token in tokens]
    readings: list[R] = []
    for number, span in enumerate(spans):
        covered = tokens_covering(places, span.start, span.end) if places else range(0)
        readings.append(
            kind(
                number=number,
                text=span.text,
                start=span.start,
                end=span.end,
                before=spans[number - 1].end if number else 0,
                last=number == len(spans) - 1,
                tokens=tuple(by_characters([tokens[index] for index in covered])),
            )
        )
    return readings


class SentenceSettings(Protocol):
    """The settings that such a run reads."""

    @property
    def max_tokens(self) -> int: ...

    @property
    def passages(self) -> int: ...


T = TypeVar("T", bound=SentenceSettings)


class SentenceRun(BaselineRun[T]):
    """One run: `messages` are what the first draft, and what follows a correction, answers."""

    def __init__(self, question: Question, scope: Scope, settings: T) -> None:
        super().__init__(question, scope, settings)
        self.messages = direct_messages(question)

    async def measured_draft(self) -> Generation:
        """Return the first draft with its token probabilities; a given answer is read for them.

        Raises CapabilityError where the model gives none.
        """
        async with self.scope.span("draft") as step:
            draft = await first_draft(step, self.messages, self.settings.max_tokens)
            if step.given is not None:
                draft = await self._scored(step, draft)
            step.revised(draft)
            if step.given is None and draft.tokens is None:
                # The draft is the answer then, unchecked.
                raise failure("asking.no_logprobs", name=step.model().name)
        return draft

    async def _scored(self, step: Scope, given: Generation) -> Generation:
        """Return a given answer with the probabilities that a model gives it, where one can."""
        proxy = step.has_model("proxy") and step.model("proxy").capabilities.scores
        role = "proxy" if proxy else "main"
        if not step.model(role).capabilities.scores:
            self.flag("not_checked")
            return given
        self.flag("tokens_proxy" if proxy else "tokens_read")
        request = ScoreRequest(
            messages=self.messages, text=given.text, reproducible=step.reproducible
        )
        scored = await step.model(role).score(request)
        return given.model_copy(update={"tokens": scored.tokens})

    async def found(self, step: Scope, query: str) -> list[Passage]:
        """Return what a search finds; nothing, with a remark, where it finds nothing or fails."""
        passages = await found_for(step, query, self.settings.passages)
        if not passages:
            self.flag("search_failed" if passages is None else "no_evidence")
        return passages or []

    async def go_on(self, step: Scope, kept: Generation) -> Generation:
        """Return what the model writes after the kept sentence, without the passages."""
        left = self.settings.max_tokens - len(units_of(kept))
        if left < 1:
            self.flag("truncated")
            return kept
        asked = Continuation.of(step, self.question, self.messages, kept.text, PROMPTS)
        added = asked.added(await write(step, asked.messages, left))
        text = added.text.strip()
        if not text:
            # Handed its own text, a model ends it by writing nothing.
            self.flag("continuation_unusable", when=not asked.prefilled)
            return kept
        if (
            declines(text)
            or added.finish_reason == "filter"
            or changes_to_chinese(text, kept.text)
            or _repeats(text, kept.text)
        ):
            self.flag("continuation_unusable")
            return kept
        whole = appended(kept, added)
        return cut(whole, len(whole.text.rstrip()))

    async def with_sentence(
        self,
        step: Scope,
        generation: Generation,
        target: SentenceReading,
        passages: Sequence[Passage],
    ) -> tuple[Generation | None, int]:
        """Return what the evidence's nearest sentence makes of the doubtful one; the text ends
        with it.
        """
        before = generation.text
        correction = await nearest.correct(
            step, self.question, passages, target.text, says_yes_no=not target.number
        )
        self.flag(correction.flag)
        if not correction.changes:
            # The nearest sentence to the same question would be the same again.
            return None, len(before)
        start = 0 if asks_yes_or_no(self.question) else target.start
        quoted = Generation(text=before[:start] + correction.text)
        number = len(self.scope.drafts)
        step.revised(quoted, draft=number, before=before, start=start, reason="quoted")
        return quoted, len(quoted.text)


def _repeats(text: str, kept: str) -> bool:
    """Return whether a continuation begins with a sentence that is there already."""
    had = {span.text for span in split_sentences(kept)}
    first = split_sentences(text)
    return bool(first) and first[0].text in had
