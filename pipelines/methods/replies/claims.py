"""What is asked about, for models that judge claims instead of reading prompts."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.models.base import Claim
from pipelines.types import Passage

__all__ = ["claim_of"]


def claim_of(statement: str, passages: Sequence[Passage], question: str = "") -> Claim:
    """`statement` held against `passages`, each under its title."""
    evidence = tuple(f"{one.title}: {one.text}" if one.title else one.text for one in passages)
    return Claim(statement=statement, evidence=evidence, question=question)
