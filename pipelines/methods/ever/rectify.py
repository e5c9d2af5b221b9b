"""EVER's rectification: one call that mends a sentence, whatever was found wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.base import Question
from pipelines.methods.ever.calls import PROMPTS, ask_line, numbered, turns
from pipelines.methods.ever.check import Checked, Target
from pipelines.methods.ever.record import ConceptCheck
from pipelines.run.scope import Scope
from pipelines.types import Language, Passage

__all__ = ["evidence_listed", "rectify", "rectify_reason"]


def rectify_reason(doubtful: Sequence[ConceptCheck]) -> str:
    """What is to be done: "revise" contradicted details, "rewrite" unsettled ones, or both."""
    verdicts = {concept.verdict for concept in doubtful}
    if verdicts == {"contradicted"}:
        return "revise"
    return "rewrite" if verdicts == {"not_enough"} else "revise_and_rewrite"


async def rectify(scope: Scope, question: Question, target: Target, checked: Checked) -> str:
    """What the model makes of the sentence; empty when it declines.

    The prompt holds every doubtful concept with its reasoning, contradicted or not settled, and
    the evidence of all of them.
    """
    doubtful, passages = checked.doubts()
    language = question.language
    short = target.concept is not None
    async with scope.span(
        "rectify", sentence=target.sentence, round=target.round + 1, draft=target.draft
    ) as step:
        return await ask_line(
            step,
            turns(
                language,
                "revise_answer" if short else rectify_reason(doubtful),
                "rectify_sentence",
                question=question.text,
                context=target.context or PROMPTS.fill(language, "none_before"),
                sentence=target.text,
                feedback=_feedback(language, doubtful),
                evidence=evidence_listed(language, passages),
            ),
            max_tokens=160,
        )


def evidence_listed(language: Language, passages: Sequence[Passage]) -> str:
    """Passages as prompts show them, or a word for their absence."""
    return numbered(language, passages) or PROMPTS.fill(language, "none_found")


def _feedback(language: Language, doubtful: Sequence[ConceptCheck]) -> str:
    return "\n".join(
        PROMPTS.fill(
            language,
            f"feedback_{concept.verdict}",
            concept=concept.text,
            reasoning=" ".join(concept.reasoning.split()),
        ).rstrip()
        for concept in doubtful
    )
