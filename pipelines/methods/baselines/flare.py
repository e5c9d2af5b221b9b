"""FLARE, also called TPR: search when a token of the sentence is improbable.

Source: Jiang et al., EMNLP 2023 ("Active retrieval augmented generation", FLARE direct). A sentence
whose tokens are all probable stays. Else it is searched for, without its most doubtful tokens, and
written again with the passages in view; that one sentence is kept, the model goes on without the
passages, and what it then writes is checked in turn. A sentence is read by the tokens at its own
offsets, so that a sentence which stands twice is judged twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pipelines.base import Answer, Generation, Message, Passage
from pipelines.methods import nearest
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage, Wording
from pipelines.methods.baselines.shared import (
    DRAD_PROMPTS,
    SentenceReading,
    SentenceRun,
    query_of,
    read_sentences,
)
from pipelines.methods.ever import calls as ever_calls
from pipelines.methods.ever.writer import WrittenSentence, next_piece
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.writing import (
    appended,
    cut,
    grounded_messages,
)
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese
from pipelines.text.languages import HAN

Rule = Literal["minimum", "mean"]

# Words of letters with spaces around them; each Chinese character is one by itself.
_WORD = re.compile(rf"(?:(?![{HAN}])[^\W_])+")


class FlareSettings(Settings):
    """Settings of FLARE: when to search, what for, and how to go on."""

    REPLAYABLE = ("theta", "beta", "rule")

    theta: float = Field(
        0.8,
        ge=0,
        le=1,
        description="A sentence is searched for below this probability (paper's code: 0.8 on"
        " 2WikiMultihopQA). For the mean, published comparisons take 0.90 to 0.94 for Llama-2 and"
        " down to 0.60 for Vicuna.",
    )
    beta: float = Field(
        0.4,
        ge=0,
        le=1,
        description="Tokens below this probability are left out of the query (paper's code: 0.4 on"
        " 2WikiMultihopQA).",
    )
    rule: Rule = Field(
        "minimum",
        description="What is compared with theta: the sentence's least probable token (paper), or"
        " the mean of its tokens (published comparisons).",
    )
    first_search: bool = Field(
        False,
        description="Search with the question before anything is written (paper's code: on;"
        " published comparisons and ours: off).",
    )
    passages: int = Field(
        3, ge=1, le=20, description="Passages per search (published comparisons: 3; paper: 2)."
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"


class FlareReading(SentenceReading):
    """A sentence as FLARE reads it: whether it is searched for, and what for."""

    def value(self, rule: Rule) -> float | None:
        """Return the number that is compared with theta; None where nothing was measured."""
        found = self.probabilities
        if not found:
            return None
        return min(found) if rule == "minimum" else sum(found) / len(found)

    def doubtful(self, settings: FlareSettings) -> bool:
        """Return whether the sentence is searched for; on its threshold it is not."""
        value = self.value(settings.rule)
        return value is not None and value < settings.theta

    def masked(self, beta: float) -> str:
        """Return the sentence without its tokens below `beta`, each with the rest of its
        word (ours).

        What is left of "Sagan" without its first token would be searched for as a word.
        """
        doubtful = [
            (token.start - self.start, token.end - self.start)
            for token in self.tokens
            if token.probability is not None and token.probability < beta
        ]
        words = [match.span() for match in _WORD.finditer(self.text)]
        cut = doubtful + [
            word for word in words if any(one[0] < word[1] and word[0] < one[1] for one in doubtful)
        ]
        kept = (
            # A space keeps the words around it apart.
            " " if any(start <= at < end for start, end in cut) else character
            for at, character in enumerate(self.text)
        )
        return " ".join("".join(kept).split())

    def score(self, settings: FlareSettings) -> Score:
        """Return the number that decides about the sentence."""
        return Score(
            name=f"sentence_{settings.rule}_probability",
            value=self.value(settings.rule),
            threshold=settings.theta,
            bad="below",
            flagged=self.doubtful(settings),
            formula=f"flare.{settings.rule}",
            inputs=self.probabilities,
        )


class Flare(Method[FlareSettings]):
    """Retrieval where the model's own next sentence is improbable to it."""

    name = "flare"
    page = "baselines"
    baseline = True
    effort = 3
    starts_from = "direct"
    roles = ("proxy", *JUDGES)
    settings_type = FlareSettings
    flow = (
        Stage("retrieve", optional=True),
        Stage("draft"),
        Stage("detect", repeats=True),
        Stage("correct", ("nearest",), optional=True, repeats=True),
    )
    prompts = (
        DRAD_PROMPTS,
        load_prompts("direct"),
        ever_calls.PROMPTS,
        nearest.PROMPTS,
    )

    def needs(self, settings: FlareSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"), Need(reason="logprobs"))

    async def run(self, question: Question, scope: Scope, settings: FlareSettings) -> Answer:
        return await _FlareRun(question, scope, settings).answer()


class _FlareRun(SentenceRun[FlareSettings]):
    """One run: the drafts, and from which offset on they are still to be checked."""

    async def answer(self) -> Answer:
        generation = await self._first_draft()
        original = generation.text
        at = 0
        readings = await self._check(generation, at)
        while True:
            target = next(
                (r for r in readings if r.start >= at and r.doubtful(self.settings)), None
            )
            if target is None:
                break
            revised, at = await self._correct(generation, target)
            if revised is None:
                continue
            generation = revised
            if at >= len(generation.text):
                break
            readings = await self._check(generation, at)
        return Answer(text=generation.text, original=original, flags=tuple(self.flags))

    async def _first_draft(self) -> Generation:
        if self.settings.first_search and self.scope.given is None:
            async with self.scope.span("retrieve") as step:
                passages = await self.found(step, self.question.text)
            if passages:
                self.messages = grounded_messages(DRAD_PROMPTS, self.question, passages)
        return await self.measured_draft()

    async def _check(self, generation: Generation, at: int) -> list[FlareReading]:
        """Return the sentences of a draft; those from offset `at` on are recorded with their
        verdicts.
        """
        readings, settings = read_sentences(generation, FlareReading), self.settings
        number = len(self.scope.drafts) - 1
        async with self.scope.span("detect", draft=number) as step:
            for reading in readings:
                if reading.start < at:
                    continue
                score = reading.score(settings)
                said = "doubtful" if score.flagged else "confident"
                step.judged(
                    "sentence",
                    reading.text,
                    verdict="unchecked" if score.value is None else said,
                    start=reading.start,
                    end=reading.end,
                    draft=number,
                    sentence=reading.number,
                    scores=(score,),
                )
            if number == 0:
                self._judge_answer(step, generation.text, readings)
        return readings

    def _judge_answer(self, step: Scope, text: str, readings: Sequence[FlareReading]) -> None:
        """Record the verdict on the original: that of its least probable sentence."""
        scores = [reading.score(self.settings) for reading in readings]
        measured = [score for score in scores if score.value is not None]
        remark = no_answer(text, self.question)
        if not measured or remark:
            self.flag(remark, when=bool(remark))
            step.judged("answer", text, verdict="unchecked")
            return
        lowest = min(measured, key=lambda score: score.value or 0.0)
        verdict = "doubtful" if lowest.flagged else "confident"
        step.judged("answer", text, verdict=verdict, scores=(lowest,))

    async def _correct(
        self, generation: Generation, target: FlareReading
    ) -> tuple[Generation | None, int]:
        """Return the text with another sentence in the place of `target`, and what follows it.

        None where nothing could take its place. With it the offset from which checking goes on.
        """
        number = len(self.scope.drafts) - 1
        async with self.scope.span(
            "correct", draft=number, sentence=target.number, start=target.start, end=target.end
        ) as step:
            query = query_of(target.masked(self.settings.beta), self.question)
            passages = await self.found(step, query)
            if not passages:
                return None, target.end
            if nearest.takes_sentence(step, self.settings.wording):
                return await self.with_sentence(step, generation, target, passages)
            piece = await self._rewritten(step, generation, target, passages)
            if piece is None:
                self.flag("continuation_unusable")
                return None, target.end
            kept = appended(cut(generation, target.before), piece.generation)
            whole = kept
            if not (piece.last or target.last):
                whole = await self.go_on(step, kept)
            step.revised(
                whole,
                draft=number + 1,
                before=generation.text,
                start=target.before,
                reason="corrected",
            )
            return whole, len(kept.text)

    async def _rewritten(
        self,
        step: Scope,
        generation: Generation,
        target: FlareReading,
        passages: Sequence[Passage],
    ) -> WrittenSentence | None:
        """Return the sentence that the model writes with the passages in view; None for
        none of use.
        """
        base = cut(generation, target.before)
        messages: tuple[Message, ...] = grounded_messages(DRAD_PROMPTS, self.question, passages)
        piece, _ = await next_piece(
            step, self.question, messages, base, max_tokens=self.settings.max_tokens
        )
        if piece is None or piece.truncated:
            return None
        known = (self.question.text, target.text, *(one.text for one in passages))
        return None if changes_to_chinese(piece.sentence, *known) else piece
