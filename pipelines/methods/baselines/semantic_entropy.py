"""Semantic entropy: over how many meanings do the answers of the model spread?

Source: Kuhn, Gal and Farquhar (ICLR 2023) and Farquhar et al. (Nature 2024). Answers are drawn and
sorted by meaning (`meanings.py`); the entropy over the classes is high where the model answers now
this, now that. It says how unsure the model is about the question, and nothing about one sentence.

    discrete:    p(c) = answers in class c / all answers
    likelihood:  p(c) ~ sum over the answers s of class c of exp(1/|s| sum_i log p(s_i))

The number of classes (NumSets) and the lexical similarity of the answers are reported beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Literal

from pydantic import Field

from pipelines.base import Answer, Generation
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.meanings import (
    PROMPTS,
    Clustering,
    EntailmentReader,
    discrete_entropy,
    lexical_similarity,
    likelihood_entropy,
    mean_logprob,
    meaning_classes,
    sizes,
)
from pipelines.methods.baselines.shared import (
    Samples,
    Temperature,
    judge_answer,
    sampled_answers,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.replies.verdicts import CheckedBy
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope


class SemanticEntropySettings(Settings):
    """Settings of semantic entropy."""

    REPLAYABLE = ("entropy", "threshold")

    samples: Samples = 5
    temperature: Temperature = 1.0
    clustering: Clustering = Field(
        "mutual_entailment",
        description="When two answers mean the same: each entails the other (paper), or neither"
        " contradicts the other (the authors' published code).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who reads entailment (papers: a model trained on NLI, or a large language"
        " model; ours: a judge where the main model is known to judge no better than chance).",
    )
    entropy: Literal["discrete", "likelihood"] = Field(
        "discrete",
        description="Whether answers are counted (Nature 2024: the discrete variant) or weighted by"
        " their length-normalised likelihood (paper), which needs log-probabilities.",
    )
    threshold: float = Field(
        0.7,
        ge=0,
        le=5,
        description="Doubtful above this entropy, in nats (ours: 0.7, just above that of two"
        " meanings equally likely; the papers only rank).",
    )
    max_tokens: AnswerTokens = 128


class SemanticEntropy(Method[SemanticEntropySettings]):
    """Uncertainty about the meaning of the answer (semantic entropy)."""

    name = "semantic_entropy"
    page = "baselines"
    rewrites = False
    baseline = True
    roles = JUDGES
    effort = 16
    starts_from = "direct"
    checks = "answer"
    settings_type = SemanticEntropySettings
    flow = (
        Stage("draft"),
        Stage("sample", repeats=True),
        Stage("cluster", ("judge",)),
    )
    prompts = (PROMPTS, load_prompts("direct"))

    def needs(self, settings: SemanticEntropySettings) -> tuple[Need, ...]:
        needs = [Need(reason="model")]
        if settings.entropy == "likelihood":
            needs.append(Need(reason="logprobs"))
        return tuple(needs)

    async def run(
        self, question: Question, scope: Scope, settings: SemanticEntropySettings
    ) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        drawn = await sampled_answers(
            scope, subject.messages, settings.samples, settings.max_tokens, settings.temperature
        )
        texts = drawn.texts
        async with scope.span("cluster") as step:
            reader = EntailmentReader.of(step, question, settings.checked_by)
            classes = await meaning_classes(step, reader, texts, settings.clustering)
            behind = [drawn.span, step.id]
            scores = _entropies(drawn.generations, classes, settings, behind)
            scores.append(_count(classes, behind))
            scores.append(
                scored(
                    "lexical_similarity",
                    lexical_similarity(texts),
                    bad="below",
                    formula="lexical_similarity",
                    behind=[drawn.span],
                )
            )
        return judge_answer(scope, subject, scores, [*drawn.flags, *reader.flags])


def _entropies(
    drawn: Sequence[Generation],
    classes: Sequence[int],
    settings: SemanticEntropySettings,
    behind: Sequence[str],
) -> list[Score]:
    """Return both entropies, the one that decides first; one answer alone shows no uncertainty."""
    logprobs = [mean_logprob(one) for one in drawn]
    known = [one for one in logprobs if one is not None]
    enough = len(drawn) > 1
    weighted = enough and len(known) == len(drawn)
    values = {
        "discrete": discrete_entropy(classes) if enough else None,
        "likelihood": likelihood_entropy(classes, known) if weighted else None,
    }
    inputs = {"discrete": list(map(float, sizes(classes).values())), "likelihood": known}
    return [
        scored(
            f"semantic_entropy_{kind}",
            value,
            bad="above",
            threshold=settings.threshold if kind == settings.entropy else None,
            high=log(max(2, len(drawn))),
            formula=f"semantic_entropy.{kind}",
            inputs=inputs[kind] if value is not None else (),
            behind=behind,
        )
        for kind, value in sorted(values.items(), key=lambda one: one[0] != settings.entropy)
    ]


def _count(classes: Sequence[int], behind: Sequence[str]) -> Score:
    """Return NumSets, the number of meanings, from 1 to the number of answers."""
    count = len(set(classes))
    return scored(
        "meanings",
        float(count) if count else None,
        bad="above",
        low=1.0,
        high=float(max(2, len(classes))),
        formula="meanings",
        inputs=map(float, classes),
        behind=behind,
    )
