"""Rowen's check: paraphrase, answer in two languages and by two models, compare each pair.

Nothing waits for what it does not need: every paraphrase goes its own way, its answers are written
at the same time, and a pair is compared as soon as both of its answers exist.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.replies.claims import claim_of_answers
from pipelines.methods.replies.parsing import visible
from pipelines.methods.replies.verdicts import TRUE_FALSE, decide_between, truth
from pipelines.methods.rowen import asking as asking
from pipelines.methods.rowen import reading as reading
from pipelines.methods.rowen.decision import RowenPair, is_settled
from pipelines.methods.rowen.settings import RowenPlan, RowenSettings, Side, TargetLanguage
from pipelines.run.events import Score
from pipelines.run.scope import Scope
from pipelines.types import Message

__all__ = ["RowenCheck", "together"]

_STAND_IN_TEMPERATURE = 1.0
"""A stand-in is the main model once more: only a draw at random can disagree with it."""


@dataclass(frozen=True)
class _Given:
    """An answer, and the spans its calls were made in. `lost` says why there can be none."""

    text: str
    spans: tuple[str, ...]
    lost: str = ""


class RowenCheck:
    """One run of the check; `pairs` grow while it goes on."""

    def __init__(self, question: Question, scope: Scope, settings: RowenSettings, plan: RowenPlan):
        self.question = question
        self.scope = scope
        self.settings = settings
        self.plan = plan
        self.paraphrases: list[str] = []
        self.pairs: list[RowenPair] = []
        self._settled = asyncio.Event()
        self._yes_no = reading.asks_yes_or_no(question)

    async def run(self) -> None:
        """Make every comparison of the plan, or as many as it takes to be certain."""
        async with self.scope.span("check", **self.plan.model_dump(mode="json")) as step:
            self.paraphrases = await self._paraphrase(step)
            tasks = [
                asyncio.ensure_future(self._pair(step, *each))
                for each in enumerate(self.paraphrases)
            ]
            pairs = asyncio.ensure_future(together(*tasks))
            settled = asyncio.ensure_future(self._settled.wait())
            try:
                await asyncio.wait({pairs, settled}, return_when=asyncio.FIRST_COMPLETED)
                # What has been compared already only has its spans to close.
                await asyncio.gather(*(tasks[index] for index in self._complete()))
                if pairs.done():
                    pairs.result()
            finally:
                await _dropped(pairs, settled)

    def _complete(self) -> list[int]:
        """The paraphrases whose every comparison has been made."""
        counts = Counter(pair.index for pair in self.pairs)
        return [index for index, count in counts.items() if count == len(self.plan.sides)]

    async def _paraphrase(self, scope: Scope) -> list[str]:
        """At most k paraphrases; asked for once more where there are fewer."""
        settings = self.settings
        found: list[str] = []
        async with scope.span("paraphrase", k=settings.k) as step:
            for attempt in range(2):
                missing = settings.k - len(found)
                if not missing:
                    break
                # Of 48 paraphrases asked of the embedded model (4 sample questions, 2 draws of 6)
                # 12 were questions with a schema and 1 without.
                structured = step.model().capabilities.structured_output
                reply = await self._say(
                    step,
                    asking.paraphrase_messages(self.question, missing, found),
                    max_tokens=asking.SHORT_TOKENS * (missing + 1),
                    temperature=settings.temperature,
                    sample=attempt,
                    json_schema=asking.paraphrase_schema(missing) if structured else None,
                )
                found = reading.paraphrases_in(reply, self.question.text, found, settings.k)
        return found

    async def _pair(self, scope: Scope, index: int, text: str) -> None:
        async with scope.span("pair", index=index, text=text) as step:
            source = asyncio.ensure_future(
                self._answer(step, index, "source", text, self.plan.source)
            )
            try:
                sides = self.plan.sides
                await together(*(self._side(step, index, text, side, source) for side in sides))
            finally:
                await _dropped(source)

    async def _side(
        self, scope: Scope, index: int, text: str, side: Side, source: asyncio.Future[_Given]
    ) -> None:
        other = self._translated if side == "cl" else self._verified
        # Shielded: one side that is given up must not take the other side's answer with it.
        given = await asyncio.gather(
            asyncio.shield(source), other(scope, index, text), return_exceptions=True
        )
        async with scope.span("judge", index=index, side=side) as step:
            failed = [one for one in given if isinstance(one, BaseException)]
            for one in failed:
                if not isinstance(one, VeriscopeError):
                    raise one
            answers = [one for one in given if isinstance(one, _Given)]
            if failed:
                self._record(step, index, side, answers, "failed")
                return
            await self._compare(step, index, side, text, answers)

    async def _compare(
        self, step: Scope, index: int, side: Side, text: str, answers: Sequence[_Given]
    ) -> None:
        """The equivalence operator C on two answers."""
        lost = next((one.lost for one in answers if one.lost), "")
        first, second = (one.text for one in answers)
        if lost or not first or not second:
            self._record(step, index, side, answers, lost or "empty")
            return
        if reading.declines(first) or reading.declines(second):
            self._record(step, index, side, answers, "refusal", hard=0.0)
            return
        if self._yes_no:
            said = reading.says_yes(first), reading.says_yes(second)
            if None not in said:
                self._record(step, index, side, answers, "yes_no", hard=float(said[0] == said[1]))
                return
        language = self.plan.source
        try:
            choice = await decide_between(
                step,
                asking.same_messages(side, language, text, first, second),
                TRUE_FALSE[language],
                reminder=asking.PROMPTS.fill(language, "reminder"),
                role=self.plan.by,
                claim=claim_of_answers(text, first, second),
            )
        except VeriscopeError:
            self._record(step, index, side, answers, "failed")
            return
        soft = truth(choice)
        hard = None if choice.best is None else float(choice.best == "true")
        masses = tuple(choice.probabilities.get(label, 0.0) for label in ("true", "false"))
        source = "judge" if self.plan.judge else "model"
        self._record(step, index, side, answers, source, hard=hard, soft=soft, masses=masses)

    def _record(
        self,
        step: Scope,
        index: int,
        side: Side,
        answers: Sequence[_Given],
        source: str,
        *,
        hard: float | None = None,
        soft: float | None = None,
        masses: tuple[float, ...] = (),
    ) -> None:
        text = " | ".join(one.text for one in answers)
        behind = (step.id, *dict.fromkeys(span for one in answers for span in one.spans))
        score = Score(
            name="rowen_same",
            value=hard if soft is None else soft,
            formula="rowen.same" if soft is not None else "",
            inputs=masses,
            behind=behind,
        )
        step.judged(
            what="pair",
            text=text,
            start=0,
            end=len(text),
            label=side,
            verdict="unchecked" if hard is None else "supported" if hard else "contradicted",
            scores=(score,),
            detail={"side": side, "index": index, "hard": hard, "soft": soft, "source": source},
        )
        self.pairs.append(
            RowenPair(side=side, index=index, hard=hard, soft=soft, source=source, span=step.id)
        )
        if self.settings.early_stop and is_settled(
            self.settings, self.plan, self.pairs, len(self.paraphrases)
        ):
            self._settled.set()

    async def _translated(self, scope: Scope, index: int, text: str) -> _Given:
        """What the model answers in the target language."""
        target = self.plan.target
        async with scope.span("translate", index=index, language=target) as step:
            translation = await self._say(
                step,
                asking.translate_messages(text, self.plan.source, target),
                max_tokens=asking.SHORT_TOKENS * 2,
            )
        if not reading.is_translation(translation, text, target):
            return _Given("", (step.id,), "untranslated")
        given = await self._answer(scope, index, "target", translation, target)
        return _Given(given.text, (step.id, *given.spans))

    async def _verified(self, scope: Scope, index: int, text: str) -> _Given:
        return await self._answer(scope, index, "verifier", text, self.plan.source)

    async def _answer(
        self, scope: Scope, index: int, side: str, text: str, code: TargetLanguage
    ) -> _Given:
        options: dict[str, Any] = {}
        if side == "verifier":
            own = self.plan.verifier == "model"
            options = (
                {"role": "verifier"}
                if own
                else {"temperature": _STAND_IN_TEMPERATURE, "sample": index}
            )
        async with scope.span("answer", index=index, side=side) as step:
            answer = await asking.answer_question(
                step,
                text,
                code,
                reasoned=self.settings.answers == "reasoned",
                max_tokens=self.settings.max_tokens,
                **options,
            )
        return _Given(answer, (step.id,))

    async def _say(self, step: Scope, messages: Sequence[Message], **options: Any) -> str:
        (written,) = await step.model().generate(step.request(messages, **options))
        return visible(written.text)


async def together(*work: Awaitable[Any]) -> list[Any]:
    """All at once; the first to fail ends the others, and its error is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _dropped(*tasks)


async def _dropped(*tasks: asyncio.Future[Any]) -> None:
    """Give up what is still under way, and wait until it has ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
