"""Further answers of the model, drawn at random: what sample-based methods compare an answer with.

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023, section 5) draws at temperature 1.0;
semantic entropy, LUQ and SAC3 sample in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pipelines.concurrency import together
from pipelines.errors import VeriscopeError
from pipelines.methods.writing import visible_generation
from pipelines.run.scope import Scope
from pipelines.types import Generation, Message

Samples = Annotated[
    int,
    Field(
        ge=1,
        le=20,
        description="Answers drawn to compare with (SelfCheckGPT: 20; ours: 5, a quarter of the"
        " calls).",
    ),
]
"""A number that several methods set."""

Temperature = Annotated[
    float,
    Field(ge=0, le=2, description="Temperature of the drawn answers (SelfCheckGPT: 1.0)."),
]
"""A temperature that several methods set."""


@dataclass(frozen=True)
class SampledAnswers:
    """Further answers, the span they were drawn in, and remarks on them."""

    generations: tuple[Generation, ...]
    span: str
    flags: tuple[str, ...]

    @property
    def texts(self) -> list[str]:
        """The answers as they were written."""
        return [one.text for one in self.generations]


async def sampled_answers(
    scope: Scope,
    messages: Sequence[Message],
    n: int,
    max_tokens: int,
    temperature: float = 1.0,
) -> SampledAnswers:
    """Return at most `n` further replies to `messages`, in a step "sample"; see `_sampled`.

    The remarks say that there are fewer than `n`, and that an answer which was given without
    samples is compared with those of the main model: it may be of another one.
    """
    async with scope.span("sample") as step:
        drawn = await _sampled(step, messages, n, max_tokens, temperature)
    given = step.given
    remarks = {
        "fewer_samples": len(drawn) < n,
        "samples_of_main": given is not None and not given.samples,
    }
    flags = tuple(flag for flag, holds in remarks.items() if holds)
    return SampledAnswers(tuple(drawn), step.id, flags)


async def _sampled(
    step: Scope,
    messages: Sequence[Message],
    n: int,
    max_tokens: int,
    temperature: float,
) -> list[Generation]:
    """Return at most `n` further replies to `messages`, with token probabilities where there
    are any.

    Where the run has an answer with samples, these are the first `n` of its samples, and nothing
    is drawn. Else each is a call of its own, numbered from 0 and recorded in a step "sample", so
    that methods which ask the same share them. A draw that fails, that is empty or that a content
    filter cut is left out; raises the first error where every draw fails.
    """
    if step.given is not None and step.given.samples:
        return [Generation(text=text) for text in step.given.samples if text.strip()][:n]
    drawn = await together(
        *(_draw(step, messages, number, max_tokens, temperature) for number in range(n))
    )
    errors = [one for one in drawn if isinstance(one, VeriscopeError)]
    if errors and len(errors) == n:
        raise errors[0]
    replies = [one for one in drawn if isinstance(one, Generation)]
    return [one for one in replies if one.text.strip() and one.finish_reason != "filter"]


async def _draw(
    scope: Scope, messages: Sequence[Message], number: int, max_tokens: int, temperature: float
) -> Generation | VeriscopeError:
    """Return one reply, or why there is none, which is recorded with its call."""
    try:
        async with scope.span("sample", index=number) as step:
            model = step.model()
            request = step.request(
                messages,
                max_tokens=max_tokens,
                temperature=temperature,
                sample=number,
                logprobs=model.capabilities.logprobs,
            )
            (reply,) = await model.generate(request)
    except VeriscopeError as error:
        return error
    return visible_generation(reply)
