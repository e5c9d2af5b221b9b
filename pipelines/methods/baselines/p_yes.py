"""P(yes): the probability that one small model says yes to the whole answer.

Source: the SLM paper's baseline of that name ("Hallucination Detection with Small Language Models",
arXiv 2506.22486): one model reads question, context and the response as a whole, and the
probability of yes as its first token is the score. The SLM check, which it is compared with, asks
several models about one sentence at a time. Where a text is checked, the one model is asked
about each sentence as well (ours), so that the user sees where the text is wrong.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Passage
from pipelines.errors import VeriscopeError
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    CheckedAnswer,
    judge_answer,
    judge_sentences,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.deciding import PartCounts
from pipelines.methods.replies.verdicts import CheckedBy, checker
from pipelines.methods.slm.method import (
    Context,
    found_by_sentences,
    judge_sentence,
    probability_of_yes,
)
from pipelines.methods.writing import found_for
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope


class PYesSettings(Settings):
    """Settings of P(yes)."""

    REPLAYABLE = ("threshold",)

    context: Literal["retrieved", "none"] = Field(
        "retrieved",
        description="What the model reads beside the question (paper: a context). Without any, only"
        " the main model is asked: a model made to judge decides by what it reads.",
    )
    passages: int = Field(3, ge=1, le=20, description="Passages searched for (ours: 3).")
    checked_by: CheckedBy = Field(
        "auto",
        description="Who is asked (paper: one small model; ours: the main model, or a judge where"
        " that model is known to judge no better than chance).",
    )
    sentences: bool = Field(
        False,
        description="Ask about each sentence as well, each with what is found for it (ours, for"
        " texts to be checked).",
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="Doubtful below this probability (ours: 0.5)."
    )
    max_tokens: AnswerTokens = 128


class PYes(Method[PYesSettings]):
    """Probability of yes for the whole answer, by one model (P(yes))."""

    name = "p_yes"
    page = "baselines"
    rewrites = False
    grounded = True
    baseline = True
    roles = JUDGES
    effort = 2
    starts_from = "direct"
    checks = "text"
    settings_type = PYesSettings
    flow = (
        Stage("draft"),
        Stage("retrieve", optional=True),
        Stage("ask_model"),
    )
    prompts = (load_prompts("slm"), load_prompts("direct"))

    def needs(self, settings: PYesSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model")]
        if settings.context == "retrieved":
            needs.append(Need(reason="evidence"))
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: PYesSettings) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        flags: list[str] = []
        passages: list[Passage] = []
        context: Context | None = None
        if settings.context == "retrieved" and settings.sentences:
            context = await found_by_sentences(question, scope, subject.text, settings.passages)
            passages = list(context.passages)
            flags += context.remarks
        elif settings.context == "retrieved":
            async with scope.span("retrieve") as step:
                found = await found_for(step, question.query, settings.passages)
            passages = found or []
            if not passages:
                flags.append("judges_search_failed" if found is None else "judges_no_evidence")
        wanted = settings.checked_by if passages else "main"
        role = checker(scope, {question.language}, wanted)
        async with scope.span("ask_model", role=role) as step:
            choice = await judge_sentence(
                step, role, question.text, passages, subject.text, question.language
            )
            p_yes = probability_of_yes(choice)
            if role == "main" and settings.checked_by == "judge":
                flags.append("no_judge")
            if role == "main" and not step.model().capabilities.judges:
                flags.append("weak_judge")
            by_text = choice.source == "text"
            if by_text and p_yes is not None:
                flags.append("judge_by_text")
            score = scored(
                "p_yes",
                p_yes,
                bad="below",
                threshold=settings.threshold,
                formula="slm.text" if by_text else "slm.p_yes",
                behind=[step.id],
            )
            counts = PartCounts()
            if settings.sentences:
                context = context or Context()
                counts = await _by_sentences(step, role, question, subject, context, settings)
        return judge_answer(scope, subject, [score], flags, counts)


async def _by_sentences(
    step: Scope,
    role: str,
    question: Question,
    subject: CheckedAnswer,
    context: Context,
    settings: PYesSettings,
) -> PartCounts:
    """Return the same judge on each sentence, with what was found for it (ours); their counts.

    Of a sentence that it cannot be asked about, nothing is known.
    """

    async def read(number: int, text: str) -> list[Score]:
        value, formula = None, "slm.p_yes"
        try:
            choice = await judge_sentence(
                step, role, question.text, context.of(number), text, question.language
            )
        except VeriscopeError:
            # Recorded with the call.
            pass
        else:
            value = probability_of_yes(choice)
            formula = "slm.text" if choice.source == "text" else formula
        return [
            scored(
                "p_yes_sentence",
                value,
                bad="below",
                threshold=settings.threshold,
                formula=formula,
                behind=[step.id],
            )
        ]

    texts = enumerate(sentence.text for sentence in subject.sentences)
    return judge_sentences(step, subject, await together(*(read(*one) for one in texts)))
