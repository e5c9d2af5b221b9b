"""Where the confidence in an entity comes from when it is not the model's own probabilities.

RHD needs token probabilities. For models without them there are two stand-ins, always labelled as
such: how many independent samples contain the entity, and the probabilities a local proxy model
gives to the same text (ours; the paper has neither).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from pipelines.errors import CapabilityError
from pipelines.methods.base import Question
from pipelines.methods.drad.rhd import EntityReading
from pipelines.methods.writing import sample_continuations
from pipelines.models.base import ScoreRequest
from pipelines.prompts import Prompts
from pipelines.run.scope import Scope
from pipelines.types import Generation, Message

__all__ = ["Source", "agreement", "by_proxy", "by_samples", "choose_source"]

Source = Literal["logprobs", "samples", "proxy"]


def choose_source(scope: Scope, wanted: Literal["auto", "logprobs", "samples", "proxy"]) -> Source:
    """What the confidence is read from, for what was asked and what the models can do.

    Raises CapabilityError when the wanted source is not to be had.
    """
    can = scope.model().capabilities
    has_proxy = scope.has_model("proxy") and scope.model("proxy").capabilities.scores
    if wanted == "auto":
        return "logprobs" if can.logprobs else "proxy" if has_proxy else "samples"
    if wanted == "logprobs" and not can.logprobs:
        raise CapabilityError(
            f"{scope.model().name} gives no token probabilities.",
            remedy="Let DRAD compare samples or use a local proxy model instead.",
            provider=scope.model().name,
        )
    if wanted == "proxy" and not has_proxy:
        raise CapabilityError(
            "No proxy model that can score a text was chosen.",
            remedy="Choose a local model as proxy, or compare samples.",
        )
    return wanted


async def by_proxy(step: Scope, generation: Generation, messages: Sequence[Message]) -> Generation:
    """The same text with the tokens, probabilities and entropies of the proxy model."""
    if not generation.text:
        return generation
    request = ScoreRequest(
        messages=tuple(messages), text=generation.text, reproducible=step.reproducible
    )
    scored = await step.model("proxy").score(request)
    return generation.model_copy(update={"tokens": scored.tokens})


async def by_samples(
    step: Scope,
    question: Question,
    readings: Sequence[EntityReading],
    *,
    messages: Sequence[Message],
    prefix: str,
    count: int,
    max_tokens: int,
    prompts: Prompts,
) -> list[EntityReading]:
    """The readings with P(E) = share of `count` samples that contain the entity.

    The samples (temperature 1) continue the same beginning for the same prompt as the text that
    is being checked. Entropies stay unknown.
    """
    if not readings:
        return []
    samples = await sample_continuations(
        step,
        question,
        messages,
        prefix,
        prompts=prompts,
        max_tokens=max_tokens,
        count=count,
    )
    texts = [prefix + sample.text for sample in samples]
    return [
        reading.model_copy(update={"probabilities": (agreement(reading.text, texts),)})
        for reading in readings
    ]


def agreement(entity: str, texts: Sequence[str]) -> float:
    """The share of `texts` that contain `entity` as whole words (Chinese: as characters)."""
    wanted = _folded(entity)
    pattern = re.compile(rf"(?<![a-z0-9]){re.escape(wanted)}(?![a-z0-9])")
    return sum(bool(pattern.search(_folded(text))) for text in texts) / len(texts)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
