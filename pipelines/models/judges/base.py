"""What all judges share: they read a claim instead of a prompt, and say how sure they are."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from math import exp, isfinite, sqrt
from typing import ClassVar, NamedTuple

from pipelines.aio import Merger
from pipelines.base import Choice, Generation, Language, UnsupportedSpan, calibration
from pipelines.error_words import Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import (
    JUDGE,
    Capabilities,
    ChoiceRequest,
    Claim,
    GenerationRequest,
    Model,
    Watcher,
    unread,
)
from pipelines.retrieval.base import Embedder
from pipelines.text import split_sentences

_AT_ONCE = 16

TYPICAL = (
    Claim(
        statement="The bridge was opened in 1932.", evidence=("It was opened on 19 March 1932.",)
    ),
    Claim(
        statement="In the village",
        question="Where was she born?",
        evidence=("She was born in the city, and moved to the village at the age of six.",),
    ),
    Claim(
        statement="The river is 6,300 km long and flows into the East China Sea.",
        evidence=(
            "The longest river of Asia rises on a plateau and passes Shanghai.",
            "It floods.",
        ),
    ),
    Claim(statement="He never won a prize.", evidence=("In 1962 he was given the Nobel Prize.",)),
)
"""Claims on which a judge is compared with itself in other numbers."""


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
    at_once: int | None = _AT_ONCE
    multilingual: bool = False
    """Whether it was made for other languages than English and Chinese too."""

    @property
    def capabilities(self) -> Capabilities:
        """It gives probabilities; it does not write."""
        return JUDGE.overridden(languages=self.languages)

    @abstractmethod
    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; blocks. Safe to call from several threads."""

    def read_words(self, claims: Sequence[Claim]) -> list[JudgedClaim]:
        """Read as `read` does, with what is unsupported if single words are judged; blocks."""
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
        return Merger(self.judged, most=self.at_once or _AT_ONCE)

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return the probabilities of the options, by their labels.

        Raises CapabilityError where nothing but a prompt is given, or options are unknown, and
        ServerFailedError where what it computes is no number.
        """
        claim = request.claim
        if claim is None:
            raise self._unable(phrase("unable.no_claim"))
        if not self.multilingual and (none := unread(request, "judge")) is not None:
            return none
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


# Judges of one number each: how near a statement is to the evidence, in meaning or in words.
#
# Neither can tell a contradiction from a gap: what is far from the evidence is "not enough".

SIMILARITY_NAME = "Similarity (all-MiniLM-L6-v2)"
OVERLAP_NAME = "Word overlap"

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_HAN = re.compile(r"[\u4e00-\u9fff]+")
_SMALL_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "did", "do", "does"),
        *("for", "from", "had", "has", "have", "he", "her", "him", "his", "i", "in", "is", "it"),
        *("its", "not", "of", "on", "or", "she", "so", "than", "that", "the", "their", "them"),
        *("then", "there", "they", "this", "to", "was", "were", "what", "when", "where", "which"),
        *("who", "whom", "whose", "why", "will", "with", "would", "you"),
    )
)


class _CurveJudge(JudgeModel):
    """P(supported) is a logistic curve over one number, fitted on public data.

    `curve` is the name under which the curve is kept, whatever the judge is called.
    """

    curve: ClassVar[str]

    def __init__(self, name: str) -> None:
        self.name = name
        fitted = calibration("judges").get("curves", {}).get(self.curve, {})
        self.use_curve(float(fitted.get("offset", -4.0)), float(fitted.get("slope", 8.0)))

    def use_curve(self, offset: float, slope: float) -> None:
        """Set the curve: from now on P(supported) is 1 / (1 + exp(-(offset + slope * number)))."""
        self._offset = offset
        self._slope = slope

    @abstractmethod
    def numbers(self, claims: Sequence[Claim]) -> list[float]:
        """Return what the verdicts rest on, in [-1, 1] or [0, 1]."""

    def read(self, claims: Sequence[Claim]) -> list[ClaimVerdict]:
        """Return a verdict for every claim; without evidence nothing is decided."""
        verdicts: list[ClaimVerdict] = []
        for claim, number in zip(claims, self.numbers(claims), strict=True):
            supported = 1 / (1 + exp(-(self._offset + self._slope * number)))
            if not any(map(str.strip, claim.evidence)):
                supported = 0.0
            verdicts.append(ClaimVerdict(supported, 0.0, 1 - supported))
        return verdicts


class SimilarityJudge(_CurveJudge):
    """The cosine of the statement and the evidence sentence nearest to it."""

    curve = SIMILARITY_NAME

    def __init__(self, embedder: Embedder, name: str = SIMILARITY_NAME) -> None:
        super().__init__(name)
        self.languages = embedder.languages
        self._embedder = embedder

    def numbers(self, claims: Sequence[Claim]) -> list[float]:
        """Return the largest cosines, in [-1, 1]; question and statement are one text."""
        asked = [f"{claim.question} {claim.statement}".strip() for claim in claims]
        sentences = [
            [span.text for text in claim.evidence for span in split_sentences(text)]
            for claim in claims
        ]
        # Sentences stand in the evidence of many claims.
        texts = list(dict.fromkeys(chain(asked, *sentences)))
        vectors = dict(zip(texts, self._embedder.embed(texts), strict=True))
        return [
            max((float(vectors[sentence] @ vectors[own]) for sentence in near), default=-1.0)
            for own, near in zip(asked, sentences, strict=True)
        ]


class OverlapJudge(_CurveJudge):
    """The share of the statement's words that the evidence has too; Chinese by characters."""

    curve = OVERLAP_NAME
    languages = frozenset({"en", "zh"})

    def __init__(self, name: str = OVERLAP_NAME) -> None:
        super().__init__(name)

    def numbers(self, claims: Sequence[Claim]) -> list[float]:
        """Return the shares, in [0, 1]; small words do not count."""
        texts = [(_words(claim.statement), _words(" ".join(claim.evidence))) for claim in claims]
        return [len(said & there) / len(said) if said else 0.0 for said, there in texts]


def _words(text: str) -> set[str]:
    words = set(_WORD.findall(_HAN.sub(" ", text.casefold()))) - _SMALL_WORDS
    pairs = (run[at : at + 2] for run in _HAN.findall(text) for at in range(max(1, len(run) - 1)))
    return words.union(pairs)
