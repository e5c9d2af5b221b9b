"""What all judges share: they read a claim instead of a prompt, and say how sure they are."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import isfinite, sqrt
from typing import NamedTuple

from pipelines.error_words import Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.merging import Merger
from pipelines.models.base import (
    JUDGE,
    Capabilities,
    ChoiceRequest,
    Claim,
    GenerationRequest,
    Model,
    Watcher,
)
from pipelines.types import Choice, Generation, Language, UnsupportedSpan

_AT_ONCE = 16


class ClaimVerdict(NamedTuple):
    """Probabilities that sum to 1: the evidence supports or contradicts it, or says too little."""

    supported: float
    contradicted: float
    not_enough: float


class JudgedClaim(NamedTuple):
    """A verdict on a claim, and the pieces of its statement that the evidence does not support.

    `unsupported` is None where the judge does not look at single words.
    """

    verdict: ClaimVerdict
    unsupported: tuple[UnsupportedSpan, ...] | None = None


def either_way(one: ClaimVerdict, other: ClaimVerdict) -> ClaimVerdict:
    """Return whether two answers say the same, of what each says about the other.

    The log-odds of P(supported) are their mean, so that an answer that says more than the other one
    is not another answer: the direction in which it is not supported cannot decide alone. 1 and 0
    make 0.5. The rest is shared between contradiction and silence as in both together.
    """
    same = sqrt(abs(one.supported * other.supported))
    different = sqrt(abs((1 - one.supported) * (1 - other.supported)))
    supported = same / (same + different) if same + different else 0.5
    against, silent = (a + b for a, b in zip(one[1:], other[1:], strict=True))
    contradicted = (1 - supported) * (against / (against + silent) if against + silent else 0.0)
    return ClaimVerdict(supported, contradicted, 1 - supported - contradicted)


def swapped(claim: Claim) -> Claim:
    """Return the claim with its two answers in each other's place."""
    other = " ".join(claim.evidence)
    return claim.model_copy(update={"statement": other, "evidence": (claim.statement,)})


class JudgeModel(Model):
    """A model that answers closed questions about claims, and nothing else.

    Questions that are asked at the same time are read in one batch.
    """

    languages: frozenset[Language] = frozenset({"en"})

    @property
    def capabilities(self) -> Capabilities:
        """It gives probabilities; it does not write."""
        return JUDGE.overridden(languages=self.languages)

    @abstractmethod
    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; blocks. Safe to call from several threads."""

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Read as `read` does, with what is unsupported where the judge looks at single
        words; blocks.
        """
        return [JudgedClaim(verdict) for verdict in self.read(claims)]

    def verdicts(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return the verdicts of `judged` alone."""
        return [found.verdict for found in self.judged(claims)]

    def judged(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Judge as `read_words` does; two answers to a question are compared in both directions.

        Both directions count alike (`either_way`), and what is not in the other answer is no error.
        """
        others = [swapped(claim) for claim in claims if claim.relation == "same"]
        read = self.read_words([*claims, *others])
        back = iter(read[len(claims) :])
        return [
            JudgedClaim(either_way(found.verdict, next(back).verdict))
            if claim.relation == "same"
            else found
            for claim, found in zip(claims, read, strict=False)
        ]

    @cached_property
    def _merged(self) -> Merger[Claim, JudgedClaim]:
        return Merger(self.judged, most=_AT_ONCE)

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return the probabilities of the options, by their labels.

        Raises CapabilityError where nothing but a prompt is given, or options are unknown, and
        ServerFailedError where what it computes is no number.
        """
        claim = request.claim
        if claim is None:
            raise self._unable(phrase("unable.no_claim"))
        labels = {option.label for option in request.options}
        ((verdict, unsupported),) = await asyncio.wrap_future(self._merged.submit([claim]))
        if not all(map(isfinite, verdict)):
            # Of damaged weights: no comparison with a threshold would call them doubtful.
            said = phrase("detail.no_numbers")
            raise failure("computing.failed", self.name, name=self.name, said=said)
        supported, contradicted, not_enough = verdict
        known = (
            {"true": supported, "false": contradicted, "nei": not_enough},
            {"yes": supported, "no": contradicted + not_enough},
            {"true": supported, "false": contradicted + not_enough},
        )
        shares = next((named for named in known if set(named) == labels), None)
        if shares is None:
            raise self._unable(phrase("unable.no_verdicts", known=sorted(labels)))
        return Choice(probabilities=shares, other_mass=0.0, source="judge", unsupported=unsupported)

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Raise CapabilityError: a judge writes nothing."""
        raise self._unable(phrase("unable.no_writing"))

    def _unable(self, what: Phrase) -> VeriscopeError:
        return failure("judges.unable", self.name, name=self.name, problem=what)
