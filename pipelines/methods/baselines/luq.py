"""LUQ: do other answers of the model support each sentence of a long answer?

Source: LUQ (Zhang et al., EMNLP 2024, "LUQ: Long-text Uncertainty Quantification for LLMs"). Among
the answers R = {r_a, r_1..r_n}, r_a the one that is checked, a sentence s of one is compared with
each other one r', where neutral does not count:

    P(s, r') = p(entail) / (p(entail) + p(contradict))
    S(r, r') = mean over the sentences s of r of P(s, r')
    C(r)     = mean over the other answers r' of S(r, r')
    U        = mean over the answers r of 1 - C(r), in [0, 1]

A sentence of r_a scores 1 minus the mean of its P over the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer
from pipelines.methods.base import AnswerTokens, Method, Question, Settings, Stage
from pipelines.methods.baselines.meanings import PROMPTS, EntailmentReader
from pipelines.methods.baselines.shared import (
    Samples,
    Temperature,
    judge_answer,
    judge_sentences,
    mean,
    sampled_answers,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.replies.verdicts import CheckedBy
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope
from pipelines.text import split_sentences

_Row = list[float | None]
"""What each of the other answers says of one sentence: 1 - P(s, r'), None where unread."""


class LuqSettings(Settings):
    """Settings of LUQ."""

    REPLAYABLE = ("threshold",)

    samples: Samples = 5
    temperature: Temperature = 1.0
    compared: Literal["all", "answer"] = Field(
        "all",
        description="Whose sentences are compared with the other answers: those of every answer"
        " (paper), or only those of the one that is checked (ours: fewer calls).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who reads entailment (paper: a model trained on NLI; ours: a judge where the"
        " main model is known to judge no better than chance).",
    )
    threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Doubtful above this uncertainty (ours: 0.5; the paper only ranks).",
    )
    max_tokens: AnswerTokens = 128


class Luq(Method[LuqSettings]):
    """Uncertainty of long answers by sentence-level entailment (LUQ)."""

    name = "luq"
    page = "baselines"
    rewrites = False
    baseline = True
    roles = JUDGES
    effort = 40
    starts_from = "direct"
    checks = "answer"
    settings_type = LuqSettings
    flow = (
        Stage("draft"),
        Stage("sample", repeats=True),
        Stage("compare_samples", ("judge",)),
    )
    prompts = (PROMPTS, load_prompts("direct"))

    async def run(self, question: Question, scope: Scope, settings: LuqSettings) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        drawn = await sampled_answers(
            scope, subject.messages, settings.samples, settings.max_tokens, settings.temperature
        )
        answers = [subject.text, *drawn.texts]
        async with scope.span("compare_samples") as step:
            reader = EntailmentReader.of(step, question, settings.checked_by)
            counted = len(answers) if settings.compared == "all" else 1
            compared = await together(
                *(_rows(step, reader, answers, number) for number in range(counted))
            )
            sentences = compared[0]
            own = [[_of_sentence(row, settings)] for row in sentences]
            counts = judge_sentences(step, subject, own)
            uncertainties = [mean(mean(row) for row in rows) for rows in compared]
            overall = scored(
                "luq",
                mean(uncertainties) if settings.compared == "all" else uncertainties[0],
                bad="above",
                threshold=settings.threshold,
                formula=f"luq.{settings.compared}",
                inputs=[value for value in uncertainties if value is not None],
                behind=[step.id],
            )
            scores = [overall]
            if settings.compared == "all":
                scores.append(
                    scored(
                        "luq_answer",
                        uncertainties[0],
                        bad="above",
                        formula="luq.answer",
                        inputs=[value for value in map(mean, sentences) if value is not None],
                        behind=[step.id],
                    )
                )
        return judge_answer(scope, subject, scores, [*drawn.flags, *reader.flags], counts)


async def _rows(
    scope: Scope, reader: EntailmentReader, answers: Sequence[str], number: int
) -> list[_Row]:
    """Return the sentences of one answer, each compared with every other answer."""
    others = [text for at, text in enumerate(answers) if at != number]

    async def row(sentence: str) -> _Row:
        relations = await together(*(reader.read(step, other, sentence) for other in others))
        return [None if one is None else one.contradiction for one in relations]

    async with scope.span("judge", index=number) as step:
        spans = split_sentences(answers[number])
        return await together(*(row(span.text) for span in spans))


def _of_sentence(row: _Row, settings: LuqSettings) -> Score:
    return scored(
        "luq_sentence",
        mean(row),
        bad="above",
        threshold=settings.threshold,
        formula="luq.sentence",
        inputs=[value for value in row if value is not None],
    )
