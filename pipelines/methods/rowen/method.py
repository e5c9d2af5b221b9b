"""Rowen: retrieve only when needed.

The question is put in other words; the model answers each version in two languages and a second
model answers it too. Where the answers do not agree, evidence is retrieved and the first answer
repaired from it. `check.py` makes the comparisons, `decision.py` decides from them,
`repair.py` searches and repairs.
"""

from __future__ import annotations

from pipelines.methods.base import Method, Need, Question
from pipelines.methods.checkers import checker
from pipelines.methods.drafts import record_original
from pipelines.methods.replies.parsing import visible
from pipelines.methods.rowen.asking import (
    PROMPTS,
    SHORT_TOKENS,
    reason_messages,
    short_messages,
)
from pipelines.methods.rowen.check import RowenCheck, together
from pipelines.methods.rowen.decision import RowenDecision, conclude, with_answer
from pipelines.methods.rowen.path import decide_again
from pipelines.methods.rowen.reading import cleaned
from pipelines.methods.rowen.repair import repair, retrieve
from pipelines.methods.rowen.settings import RowenPlan, RowenSettings, VerifierKind
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.run.trace import Trace
from pipelines.types import Answer, Generation, Language

__all__ = ["Rowen", "RowenSettings"]


class Rowen(Method[RowenSettings]):
    """Adaptive retrieval by consistency across languages and models."""

    name = "rowen"
    roles = ("verifier", *JUDGES)
    settings_type = RowenSettings
    prompts = (PROMPTS,)

    def needs(self, settings: RowenSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model"), Need(reason="evidence")]
        # Which language the question is in is not known yet; between these two it needs both.
        if settings.variant in ("hybrid", "cl") and settings.target in ("auto", "en", "zh"):
            both: frozenset[Language] = frozenset({"en", "zh"})
            needs.append(Need(reason="languages", role="main", languages=both))
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: RowenSettings) -> Answer:
        can = scope.model().capabilities
        if question.language not in can.languages:
            _, original = await _first_answer(question, scope, settings)
            return await _unchecked(scope, original)
        plan = RowenPlan.of(
            settings,
            question.language,
            can.languages,
            _verifier(scope, question),
            weak=not can.judges,
        )
        role = checker(scope, plan.languages, settings.checked_by)
        if role != "main":
            plan = plan.compared_by(role, scope.model(role).name)
        check = RowenCheck(question, scope, settings, plan)
        (reasoning, original), _ = await together(
            _first_answer(question, scope, settings), check.run()
        )
        decision = conclude(settings, plan, check.pairs, len(check.paraphrases))
        await _record(scope, decision, original)
        repaired, outcomes = None, []
        if decision.retrieve:
            passages, outcomes = await retrieve(scope, question, settings, check.paraphrases)
            if passages:
                repaired = await repair(scope, question, reasoning, original, passages)
        decided = with_answer(decision, plan, settings, original.text, repaired, outcomes)
        assert decided.answer is not None
        return decided.answer

    def decide(self, trace: Trace, settings: RowenSettings) -> RowenDecision:
        """Decide again with other thresholds, weights or variants; see `RowenDecision`."""
        values = {spec.name: spec.settings for spec in trace.header.spec.methods}
        return decide_again(trace, self.name, self.settings(values.get(self.name)), settings)


async def _first_answer(
    question: Question, scope: Scope, settings: RowenSettings
) -> tuple[str, Generation]:
    """The reasoning t0, and the short answer r0 as draft 0."""
    messages = reason_messages(question.text, question.language)
    async with scope.span("reason") as step:
        written = await step.write(step.request(messages, max_tokens=settings.max_tokens))
        reasoning = visible(written.text)
    async with scope.span("draft") as step:
        request = step.request(
            short_messages(messages, reasoning, question.language),
            max_tokens=SHORT_TOKENS,
            logprobs=step.model().capabilities.logprobs,
        )
        original = cleaned(await step.write(request))
        record_original(step, original)
    return reasoning, original


async def _unchecked(scope: Scope, original: Generation) -> Answer:
    """What a model writes in a language it does not speak is noise: nothing is compared."""
    await _record(scope, RowenDecision(flagged=False), original)
    return Answer(text=original.text, original=original.text, short=original.text)


async def _record(scope: Scope, decision: RowenDecision, original: Generation) -> None:
    async with scope.span("decide") as step:
        step.judged(
            what="answer",
            text=original.text,
            start=0,
            end=len(original.text),
            verdict=decision.verdict,
            scores=decision.scores,
            detail={"variant": decision.variant, "retrieve": decision.retrieve},
        )


def _verifier(scope: Scope, question: Question) -> VerifierKind:
    if not scope.has_model("verifier"):
        return "stand_in"
    if scope.same_model("verifier"):
        return "same_model"
    speaks = question.language in scope.model("verifier").capabilities.languages
    return "model" if speaks else "language"
