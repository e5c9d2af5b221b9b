"""Rowen's check: paraphrase, answer in two languages and by two models, compare each pair.

Nothing waits for what it does not need: every paraphrase goes its own way, its answers are written
at the same time, and a pair is compared as soon as both of its answers exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.concurrency import ended, together
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.replies.questions import asks_yes_or_no
from pipelines.methods.replies.verdicts import truth
from pipelines.methods.rowen import asking
from pipelines.methods.rowen.comparing import compared
from pipelines.methods.rowen.decision import ComparedPair, is_certain
from pipelines.methods.rowen.paraphrasing import paraphrases_of
from pipelines.methods.rowen.settings import RowenSettings
from pipelines.methods.rowen.translating import translation_of
from pipelines.methods.writing import demonstrates, needs_help
from pipelines.run.events import Score
from pipelines.run.findings import (
    PairCompared,
    ParaphraseTaken,
    RowenPlan,
    Side,
)
from pipelines.run.scope import Scope
from pipelines.types import Choice

_AnswerSide = Literal["source", "target", "verifier"]

_STAND_IN_TEMPERATURE = 1.0
"""A stand-in is the main model once more: only a draw at random can disagree with it."""

_WEAK_STAND_IN_TEMPERATURE = 0.3
"""What a weak model draws at 1.0 is mostly noise, which agrees with nothing (ours)."""


@dataclass(frozen=True)
class _Given:
    """An answer, and the spans its calls were made in. `lost` says why there can be none."""

    text: str
    spans: tuple[str, ...] = ()
    lost: str = ""


class RowenCheck:
    """One run of the check; `paraphrases` and `pairs` grow while it goes on."""

    def __init__(self, question: Question, scope: Scope, settings: RowenSettings, plan: RowenPlan):
        self.question = question
        self.scope = scope
        self.settings = settings
        self.plan = plan
        self.paraphrases: list[str] = []
        self.pairs: list[ComparedPair] = []
        self._yes_no = asks_yes_or_no(question)
        self.weak = scope.model().capabilities.weak
        # Both comparisons need them: of the verifier, where it is its languages that are compared.
        self._shared_sides: tuple[_AnswerSide, ...] = ("source",)
        if plan.speaker == "verifier":
            self._shared_sides = ("source", "verifier")
        self._reasons = settings.reasons(weak=needs_help(scope, "reason"))

    async def run(self) -> None:
        """Make every comparison of the plan; with early stop, as many as the decision needs.

        With early stop the paraphrases count in their order, whichever is compared first. So the
        same pairs decide when the run is re-evaluated from its record.
        """
        async with self.scope.span("check", detail=self.plan) as step:
            taken = await paraphrases_of(
                step,
                self.question,
                self.settings.k,
                min_similarity=self.settings.min_similarity,
                temperature=self.settings.temperature,
                demonstrations=self.settings.demonstrations,
            )
            self.paraphrases = [paraphrase.text for paraphrase in taken]
            # Evidence is searched for with all of them, however few are compared.
            taken = taken[: self.settings.compared]
            if not self.settings.early_stop:
                await together(*(self._pair(step, n, one) for n, one in enumerate(taken)))
                return
            turns = [asyncio.Event() for _ in taken]
            tasks = [
                asyncio.ensure_future(self._pair(step, n, one, turns[n]))
                for n, one in enumerate(taken)
            ]
            try:
                for turn, task in zip(turns, tasks, strict=True):
                    turn.set()
                    await task
                    if self._is_certain(len(taken)):
                        break
            finally:
                await ended(*tasks)

    def _is_certain(self, planned: int) -> bool:
        return is_certain(self.settings, self.plan.variant, self.pairs, planned, weak=self.weak)

    async def _pair(
        self, scope: Scope, index: int, taken: ParaphraseTaken, turn: asyncio.Event | None = None
    ) -> None:
        async with scope.span("pair", index=index, detail=taken) as step:
            known: dict[_AnswerSide, asyncio.Future[_Given]] = {
                side: asyncio.ensure_future(
                    self._tried(self._answer(step, index, side, taken.text))
                )
                for side in self._shared_sides
            }
            try:
                await together(
                    *(self._side(step, index, taken.text, s, known, turn) for s in self.plan.sides)
                )
            finally:
                await ended(*known.values())

    async def _side(
        self,
        scope: Scope,
        index: int,
        text: str,
        side: Side,
        known: Mapping[_AnswerSide, asyncio.Future[_Given]],
        turn: asyncio.Event | None,
    ) -> None:
        # Both sides wait for the same answer; a side that is cancelled does not cancel it.
        speaks: _AnswerSide = "verifier" if self.plan.speaker == "verifier" else "source"
        first = asyncio.shield(known[speaks if side == "cl" else "source"])
        if side == "cl":
            answers = await together(first, self._tried(self._translated(scope, index, text)))
        elif "verifier" in known:
            answers = await together(first, asyncio.shield(known["verifier"]))
        else:
            other = self._answer(scope, index, "verifier", text)
            answers = await together(first, self._tried(other))
        async with scope.span("judge", index=index, side=side) as step:
            how, hard, choice = await self._compared(step, side, text, *answers)
            if turn is not None:
                await turn.wait()
            soft, inputs = None, ()
            if choice is not None:
                inputs = tuple(choice.probabilities.get(label, 0.0) for label in ("true", "false"))
                soft = truth(choice)
            compared = PairCompared(side=side, index=index, hard=hard, soft=soft, source=how)
            score = Score(
                name="rowen_same",
                value=hard if soft is None else soft,
                formula="" if soft is None else "rowen.same",
                inputs=inputs,
                behind=(step.id, *dict.fromkeys(span for one in answers for span in one.spans)),
            )
            step.judged(
                "pair",
                " | ".join(answer.text for answer in answers),
                label=side,
                verdict="unchecked" if hard is None else "supported" if hard else "contradicted",
                scores=(score,),
                detail=compared,
            )
            self.pairs.append(ComparedPair(compared, step.id))

    async def _compared(
        self, step: Scope, side: Side, text: str, *answers: _Given
    ) -> tuple[str, float | None, Choice | None]:
        """Return how two answers were compared, the equivalence operator C, and what a
        model chose.
        """
        first, second = (answer.text for answer in answers)
        if not first or not second:
            return next((answer.lost for answer in answers if answer.lost), "empty"), None, None
        return await compared(
            step,
            self.plan.source,
            f"same_{side}",
            text,
            first,
            second,
            yes_no=self._yes_no,
            role=(side == "cl" and self.plan.across) or self.plan.by,
        )

    async def _translated(self, scope: Scope, index: int, text: str) -> _Given:
        """Return what the model answers in the target language."""
        plan = self.plan
        async with scope.span("translate", index=index, language=plan.target) as step:
            translation = await translation_of(
                step,
                text,
                plan.source,
                plan.target,
                min_similarity=self.settings.min_translation,
                demonstrations=self.settings.demonstrations,
                role=plan.speaker,
            )
        if not translation:
            return _Given("", (step.id,), "untranslated")
        given = await self._answer(scope, index, "target", translation)
        return _Given(given.text, (step.id, *given.spans))

    async def _answer(self, scope: Scope, index: int, side: _AnswerSide, text: str) -> _Given:
        options: dict[str, Any] = {"role": self.plan.speaker} if side == "target" else {}
        if side == "verifier" and self.plan.verifier == "model":
            options = {"role": "verifier"}
        elif side == "verifier":
            warm = _WEAK_STAND_IN_TEMPERATURE if self.weak else _STAND_IN_TEMPERATURE
            options = {"temperature": warm, "sample": index}
        async with scope.span("answer", index=index, side=side) as step:
            answer = await asking.answer_question(
                step,
                text,
                self.plan.target if side == "target" else self.plan.source,
                reasoned=self._reasons,
                shown=demonstrates(
                    step, self.settings.demonstrations, "single", options.get("role", "main")
                ),
                max_tokens=self.settings.max_tokens,
                **options,
            )
        return _Given(answer, (step.id,))

    async def _tried(self, answer: Coroutine[Any, Any, _Given]) -> _Given:
        """Return the answer, or that the calls for it failed."""
        try:
            return await answer
        except VeriscopeError:
            return _Given("", lost="failed")
