"""What the judge is held against: a language model that is asked, without training, yes or no."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from pipelines.methods.slm.judging import judge_request, probability_of_yes
from pipelines.models.base import Claim, Model
from pipelines.training.report import Probabilities
from pipelines.types import Passage

__all__ = ["said_by"]

_AT_ONCE = 8


async def said_by(model: Model, claims: Sequence[Claim]) -> Probabilities:
    """P(yes), its complement, and 0, shape [claims, 3]; 0.5 where the model says neither.

    Asked as the SLM check asks. Whether what is not borne out is contradicted it is not asked.
    """
    places = asyncio.Semaphore(_AT_ONCE)

    async def ask(claim: Claim) -> float:
        passages = [
            Passage(id=f"given-{number}", title="", text=text, source="given", rank=number)
            for number, text in enumerate(claim.evidence, start=1)
        ]
        async with places:
            choice = await model.choose(
                judge_request(claim.question, passages, claim.statement, "en")
            )
        yes = probability_of_yes(choice)
        return 0.5 if yes is None else yes

    yes = np.asarray(await asyncio.gather(*map(ask, claims)), dtype=np.float64)
    return np.stack([yes, 1 - yes, np.zeros_like(yes)], axis=1)
