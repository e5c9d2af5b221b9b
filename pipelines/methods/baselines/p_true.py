"""P(True): how probable the model finds it that its own answer is true.

Source: Kadavath et al. 2022, "Language Models (Mostly) Know What They Know", section 4. The model
is shown the question and the proposed answer and is asked whether it is true. Judged beside further
answers of its own, drawn at random, it does better: it then sees what else might be said. The paper
of the SLM check shows it the retrieved passages instead.

    P(True) = p("True") / (p("True") + p("False"))
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.base import Answer, FilledText, Message, Passage
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    CheckedAnswer,
    Temperature,
    judge_answer,
    sampled_answers,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.replies.verdicts import TRUE_FALSE, decide_between, truth
from pipelines.methods.writing import found_for
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope

PROMPTS = load_prompts("baselines")
READING = load_prompts("p_true")


class PTrueSettings(Settings):
    """Settings of P(True)."""

    REPLAYABLE = ("threshold",)

    ideas: int = Field(
        5,
        ge=0,
        le=20,
        description="Further answers shown beside the proposed one (paper: some, drawn at random;"
        " ours: 5). 0 shows none.",
    )
    context: Literal["none", "retrieved"] = Field(
        "none",
        description="What is shown beside the answer: nothing else but the further answers (paper),"
        " or the passages retrieved for the question in their place (paper of the SLM check).",
    )
    passages: int = Field(
        3, ge=1, le=20, description="Passages, where they are shown (ours, as RAG: 3)."
    )
    temperature: Temperature = 1.0
    threshold: float = Field(
        0.5, ge=0, le=1, description="Doubtful below this probability (ours: 0.5)."
    )
    max_tokens: AnswerTokens = 128


class PTrue(Method[PTrueSettings]):
    """Self-evaluation of the answer as true or false (P(True))."""

    name = "p_true"
    page = "baselines"
    rewrites = False
    baseline = True
    effort = 7
    starts_from = "direct"
    checks = "answer"
    settings_type = PTrueSettings
    flow = (
        Stage("draft"),
        Stage("sample", optional=True, repeats=True),
        Stage("retrieve", optional=True),
        Stage("ask_model"),
    )
    prompts = (PROMPTS, READING, load_prompts("direct"))

    def needs(self, settings: PTrueSettings) -> tuple[Need, ...]:
        needs = (Need(reason="model"),)
        return needs if settings.context == "none" else (*needs, Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: PTrueSettings) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        ideas: list[str] = []
        flags: list[str] = []
        passages: list[Passage] = []
        if settings.context == "retrieved":
            async with scope.span("retrieve") as step:
                found = await found_for(step, question.query, settings.passages)
            passages = found or []
            if not passages:
                flags.append("judges_search_failed" if found is None else "judges_no_evidence")
        elif settings.ideas:
            drawn = await sampled_answers(
                scope, subject.messages, settings.ideas, settings.max_tokens, settings.temperature
            )
            flags = list(drawn.flags)
            ideas = [" ".join(text.split()) for text in drawn.texts]
        async with scope.span("ask_model") as step:
            choice = await decide_between(
                step,
                _messages(question, subject, ideas, passages),
                TRUE_FALSE[question.language],
                reminder=PROMPTS.fill(question.language, "true_reminder"),
            )
            if choice.source == "text" and choice.best is not None:
                flags.append("judge_by_text")
            if not step.model().capabilities.judges:
                flags.append("weak_judge")
            shares = [choice.probabilities.get(label, 0.0) for label in ("true", "false")]
            score = scored(
                "p_true",
                truth(choice),
                bad="below",
                threshold=settings.threshold,
                formula="p_true",
                inputs=shares if any(shares) else (),
                behind=[step.id],
            )
        return judge_answer(scope, subject, [score], flags)


def _messages(
    question: Question, subject: CheckedAnswer, ideas: list[str], passages: list[Passage]
) -> tuple[Message, ...]:
    """Return messages that ask about the answer, beside the `passages` or `ideas` where there
    are some.
    """
    language = question.language
    if passages:
        return READING.turns(
            language,
            "passages",
            passages=READING.listed(language, passages),
            question=question.text,
            answer=subject.text,
        )
    if not ideas:
        return PROMPTS.turns(language, "p_true", question=question.text, answer=subject.text)
    listed = FilledText.joined("\n", (PROMPTS.fill(language, "idea", text=text) for text in ideas))
    return PROMPTS.turns(
        language, "p_true_ideas", question=question.text, answer=subject.text, ideas=listed
    )
