"""Chain of verification (CoVe): the model checks its draft by questions that it answers apart.

Source: Dhuliawala et al., Findings of ACL 2024. The model writes a draft, plans verification
questions, answers each of them without seeing the draft ("factored"), and writes the final answer
from the draft and these answers. Under "factor_revise" it first says of each answer whether the
draft agrees with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, FilledText, Generation
from pipelines.errors import VeriscopeError
from pipelines.methods.base import AnswerTokens, Method, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    Rewriting,
    p_yes,
    planned_questions,
    same_words,
    takes_rewriting,
    written_anew,
)
from pipelines.methods.direct import direct_draft
from pipelines.methods.replies.parsing import declines
from pipelines.methods.writing import ask
from pipelines.prompts import load_prompts
from pipelines.run.events import Score
from pipelines.run.findings import QuestionAnswered
from pipelines.run.scope import Scope
from pipelines.text import changes_to_chinese, text_key

PROMPTS = load_prompts("cove")

# Enough for five questions, and for one sentence (ours).
_PLAN_TOKENS, _ANSWER_TOKENS = 256, 64


class CoveSettings(Settings):
    """Settings of the chain of verification."""

    variant: Literal["factored", "factor_revise"] = Field(
        "factored",
        description="Whether the model also says of each answer if the draft agrees with it, before"
        " it writes the final answer (paper: both forms; ours: factored).",
    )
    questions: int = Field(
        5, ge=1, le=10, description="Maximum verification questions (the paper sets none; ours: 5)."
    )
    max_tokens: AnswerTokens = 128
    rewriting: Rewriting = "auto"


@dataclass(frozen=True)
class _VerificationQuestion:
    """A verification question, its answer, and P(yes) that the draft agrees; None: not asked."""

    question: str
    answer: str
    agrees: float | None = None

    @property
    def disagrees(self) -> bool:
        return self.agrees is not None and self.agrees < _HALF


_HALF = 0.5
"""Below this P(yes) the draft disagrees: the more probable of two words (ours)."""


class Cove(Method[CoveSettings]):
    """Draft, verification questions, answers apart, final answer."""

    name = "cove"
    page = "baselines"
    judges = False
    baseline = True
    effort = 8
    starts_from = "direct"
    checks = "answer"
    settings_type = CoveSettings
    flow = (
        Stage("draft"),
        Stage("plan"),
        Stage("answer", optional=True, repeats=True),
        Stage("judge", optional=True, repeats=True),
        Stage("correct", optional=True),
    )
    prompts = (PROMPTS, load_prompts("direct"))

    async def run(self, question: Question, scope: Scope, settings: CoveSettings) -> Answer:
        draft = await direct_draft(scope, question, settings.max_tokens)
        planned = await _planned(scope, question, draft, settings.questions)
        if not planned:
            return _answer(draft.text, draft.text, "no_questions")
        found = await together(
            *(_answered(scope, question, n, one) for n, one in enumerate(planned))
        )
        checks = [one for one in found if one is not None]
        if not checks:
            return _answer(draft.text, draft.text, "not_checked")
        checks = await _compared(scope, question, draft, checks, settings)
        unread = settings.variant == "factor_revise" and any(one.agrees is None for one in checks)
        flags = ["checks_incomplete"] if len(checks) < len(planned) or unread else []
        async with scope.span("correct", draft=0) as step:
            final = await _final(step, question, draft, checks, settings)
            if final is None:
                flags.append("revision_unusable")
            elif not takes_rewriting(scope, settings.rewriting):
                flags.append("revision_not_taken")
            elif not same_words(final.text, draft.text):
                step.revised(final, draft=1, before=draft.text, reason="corrected")
                return _answer(final.text, draft.text, *flags)
        return _answer(draft.text, draft.text, *flags)


def _answer(text: str, original: str, *flags: str) -> Answer:
    return Answer(text=text, original=original, abstained=declines(text), flags=flags)


async def _planned(scope: Scope, question: Question, draft: Generation, limit: int) -> list[str]:
    """Return questions that check the draft, none twice, and not the visitor's own
    question again.
    """
    asked = PROMPTS.turns(
        question.language, "plan", question=question.text, answer=draft.text, count=str(limit)
    )
    planned = await planned_questions(scope, question, asked, draft.text, max_tokens=_PLAN_TOKENS)
    own = text_key(question.text)
    return [one for one in planned if text_key(one) != own][:limit]


async def _answered(
    scope: Scope, question: Question, number: int, asked: str
) -> _VerificationQuestion | None:
    """Return the answer to a verification question; None where the model gives none."""
    async with scope.span("answer", index=number) as step:
        messages = PROMPTS.turns(question.language, "answer", "answer_question", question=asked)
        try:
            reply = await ask(step, messages, max_tokens=_ANSWER_TOKENS, complete=True)
        except VeriscopeError:
            return None
        text = " ".join(reply.split())
        if not text or declines(text) or changes_to_chinese(text, question.text, asked):
            return None
    return _VerificationQuestion(asked, text)


async def _compared(
    scope: Scope,
    question: Question,
    draft: Generation,
    checks: Sequence[_VerificationQuestion],
    settings: CoveSettings,
) -> list[_VerificationQuestion]:
    """Return the checks, recorded, each with whether the draft agrees where that is asked."""

    async def compare(number: int, check: _VerificationQuestion) -> _VerificationQuestion:
        async with scope.span("judge", index=number) as step:
            if settings.variant == "factor_revise":
                asked = PROMPTS.turns(
                    question.language,
                    "consistent",
                    draft=draft.text,
                    question=check.question,
                    answer=check.answer,
                )
                check = replace(check, agrees=await p_yes(step, asked, question, PROMPTS))
            _record(step, check)
        return check

    return await together(*(compare(number, one) for number, one in enumerate(checks)))


def _record(step: Scope, check: _VerificationQuestion) -> None:
    value = check.agrees
    said = "contradicted" if check.disagrees else "supported"
    score = Score(name="agreement", value=value, threshold=_HALF, flagged=check.disagrees)
    step.judged(
        "question",
        check.question,
        verdict="unchecked" if value is None else said,
        scores=() if value is None else (score,),
        detail=QuestionAnswered(answer=check.answer),
    )


async def _final(
    step: Scope,
    question: Question,
    draft: Generation,
    checks: Sequence[_VerificationQuestion],
    settings: CoveSettings,
) -> Generation | None:
    language = question.language
    lines = [
        FilledText.joined(
            " ",
            (
                PROMPTS.fill(language, "check", question=one.question, answer=one.answer),
                *((PROMPTS.fill(language, "disagrees"),) if one.disagrees else ()),
            ),
        )
        for one in checks
    ]
    asked = PROMPTS.turns(
        language,
        "final",
        "final_question",
        question=question.text,
        draft=draft.text,
        checks=FilledText.joined("\n", lines),
    )
    known = (draft.text, *(one.answer for one in checks))
    return await written_anew(step, asked, question, *known, max_tokens=settings.max_tokens)
