"""Which sentences of the evidence are nearest to a text (ours).

A judge and a model of this size are right about one sentence more often than about several
passages. A sentence is near to a text by its meaning (the cosine of their embeddings, the sentence
embedded with the title of its passage) and by its words (how many of the text's content words stand
in the sentence or its title): the mean of both. On the even questions of XQuAD this finds the
sentence with the answer in 79 %, the cosine alone in 69 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.base import Language, Passage, calibrated
from pipelines.methods.replies.lists import words_shared
from pipelines.run.scope import Scope
from pipelines.text import Span, split_sentences


@dataclass(frozen=True)
class NearSentence:
    """A sentence of `passage`; how near it is by meaning, by words, each in [0, 1] or below."""

    passage: Passage
    span: Span
    cosine: float
    words: float

    @property
    def nearness(self) -> float:
        """The mean of both, rounded as it is recorded."""
        return nearness_of(self.cosine, self.words)

    @property
    def alone(self) -> Passage:
        """The passage with nothing but this sentence."""
        return self.passage.model_copy(update={"text": self.span.text})


def nearness_of(cosine: float, words: float) -> float:
    """Return the mean of both, in [0, 1] or below."""
    return round((cosine + words) / 2, 6)


def scaled(cosine: float, floor: float) -> float:
    """Return a cosine counted from `floor` on, which two texts have that have nothing in common."""
    return round((cosine - floor) / (1.0 - floor), 6) if floor else cosine


def least_nearness(embedder: str | None, language: Language) -> float:
    """Return the nearness from which on a sentence is near, for cosines of `embedder` (ours)."""
    near = calibrated("nearest", embedder or "", language, "near")
    return _NEAR if near is None else near


_NEAR = 0.55
"""The same for an embedder that was not measured: that of the English one."""


async def sentences_by_nearness(
    step: Scope, text: str, sentences: Sequence[tuple[Passage, Span]], *, asked: bool
) -> list[NearSentence]:
    """Return the sentences, nearest to `text` first; of equally near ones the first stays first.

    `asked` says that the text is a question.
    """
    if not sentences:
        return []
    titled = [f"{one.title}: {span.text}" if one.title else span.text for one, span in sentences]
    (cosines,) = await step.similarities([text], titled, asked=int(asked))
    floor = calibrated("nearest", step.embedder or "", step.language, "floor") or 0.0
    found = [
        NearSentence(passage, span, scaled(cosine, floor), words_shared(whole, text))
        for (passage, span), whole, cosine in zip(sentences, titled, cosines, strict=True)
    ]
    return sorted(found, key=lambda one: -one.nearness)


def sentences_of(passages: Sequence[Passage]) -> list[tuple[Passage, Span]]:
    """Return the sentences of all passages, each with its passage, in order."""
    return [(one, span) for one in passages for span in split_sentences(one.text)]
