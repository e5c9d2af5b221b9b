"""Judges of one number each: how near a statement is to the evidence, in meaning or in words.

Neither can tell a contradiction from a gap: what is far from the evidence is "not enough".
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from itertools import chain
from math import exp
from typing import ClassVar

from pipelines.calibration import calibration
from pipelines.models.base import Claim
from pipelines.models.judges.base import ClaimVerdict, JudgeModel
from pipelines.retrieval.base import Embedder
from pipelines.text import split_sentences

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
