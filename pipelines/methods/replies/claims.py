"""What is asked about, for models that judge claims instead of reading prompts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.models.base import Claim
from pipelines.types import Passage

__all__ = ["claim_of", "claim_of_answers", "claim_of_question"]

_YES_OR_NO = re.compile(
    r"(is|are|was|were|has|have|had|do|does|did|can|could|will|would|may|might|must)\b.+\?$",
    re.IGNORECASE | re.DOTALL,
)
"""A question to be answered yes or no; in Chinese 吗 ends it."""


def claim_of(statement: str, passages: Sequence[Passage], question: str = "") -> Claim:
    """`statement` held against `passages`, each under its title."""
    evidence = tuple(f"{one.title}: {one.text}" if one.title else one.text for one in passages)
    return Claim(statement=statement, evidence=evidence, question=question)


def claim_of_question(asked: str, sentence: str, passages: Sequence[Passage]) -> Claim:
    """What "yes" to `asked`, a validation question about `sentence`, would claim.

    A question that cannot be answered yes or no claims nothing: then `sentence` does. It stands for
    itself, as such a question may ask for anything.
    """
    asked = asked.strip()
    if _YES_OR_NO.match(asked) or asked.endswith(("吗？", "吗?")):
        return claim_of(asked, passages)
    return claim_of(sentence, passages)


def claim_of_answers(question: str, first: str, second: str) -> Claim:
    """That two answers to `question` say the same."""
    return Claim(statement=first, evidence=(second,), question=question, relation="same")
