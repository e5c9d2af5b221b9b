"""What is asked about, for models that judge claims instead of reading prompts."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.models.base import Claim
from pipelines.types import Passage

__all__ = ["claim_of", "claim_of_answers"]


def claim_of(statement: str, passages: Sequence[Passage], question: str = "") -> Claim:
    """`statement` held against `passages`, each under its title."""
    evidence = tuple(f"{one.title}: {one.text}" if one.title else one.text for one in passages)
    return Claim(statement=statement, evidence=evidence, question=question)


def claim_of_answers(question: str, first: str, second: str) -> Claim:
    """That two answers to `question` agree: the shorter one as a claim, the longer as evidence.

    Only this direction is read, because a detail that only one of them gives is no disagreement:
    "2013" does not say that he died on 5 December. Of 10 pairs that agree and 8 that do not, the
    trained judge gets 8 and 8 right this way, and 4 and 8 where each has to support the other.
    The question stands before the evidence: alone it may be one word, which says nothing.
    """
    shorter, longer = sorted((first, second), key=len)
    return Claim(statement=shorter, evidence=(f"{question} {longer}",), question=question)
