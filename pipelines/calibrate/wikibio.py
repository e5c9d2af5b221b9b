"""RHD on the WikiBio sentences of GPT-3 that SelfCheckGPT's authors annotated, read by a proxy.

The paper read GPT-3's own probabilities. They are not to be had any more, so the embedded model
is teacher-forced on the same text: what it measures is how surprising a sentence is to another,
much smaller model. Nothing is fitted; only odd-numbered records (1, 3, 5, ...) are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from pipelines.calibrate.answers import Progress
from pipelines.calibrate.curves import average_precision
from pipelines.calibrate.records import read_records
from pipelines.errors import InvalidInputError
from pipelines.methods.base import Question
from pipelines.methods.drad import rhd
from pipelines.methods.drad.rhd import EntityReading
from pipelines.models.base import Model, ScoreRequest
from pipelines.text import EntityRecognizer, Span, tokens_covering
from pipelines.types import Frozen, Message, Token

__all__ = [
    "PAPER",
    "PROMPT",
    "Biography",
    "ScoredSentence",
    "load_biographies",
    "measure",
    "measured",
    "score_sentences",
]

PROMPT = "Write an encyclopedia article about {concept}."
"""What the proxy is told to have been asked."""

PAPER: dict[str, Any] = {
    "source": "DRAD paper (arXiv:2407.09417), measured with its own model and records;"
    " not comparable with a proxy",
    "rhd_probability_mean": 0.8931,
    "rhd_entropy_max": 0.88,
    "token_probability_mean": 0.8321,
    "token_probability_min": 0.8751,
    "base_rate": 0.73,
}
"""Area under precision-recall for non-factual sentences, as the paper reports it."""

_MEASURES = (
    "rhd_probability_mean",
    "rhd_entropy_max",
    "token_probability_mean",
    "token_probability_min",
)


class Biography(Frozen):
    """A text by GPT-3 with its sentences, annotated one by one."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    concept: str
    gpt3_text: str
    gpt3_sentences: tuple[str, ...]
    annotation: tuple[str, ...]

    def sentences(self) -> list[Span]:
        """Where each sentence stands in the text; raises InvalidInputError when one does not."""
        spans, position = [], 0
        for sentence in self.gpt3_sentences:
            start = self.gpt3_text.find(sentence, position)
            if start < 0:
                raise _unusable(f"the text about {self.concept!r} lacks one of its sentences")
            position = start + len(sentence)
            spans.append(Span.of(self.gpt3_text, start, position))
        return spans


class ScoredSentence(Frozen):
    """How doubtful a sentence is by each measure, the higher the more; -inf where unscored."""

    false: bool
    has_entity: bool
    rhd_probability_mean: float = -inf
    rhd_entropy_max: float = -inf
    token_probability_mean: float = -inf
    token_probability_min: float = -inf


def load_biographies(path: Path) -> list[Biography]:
    """The odd-numbered records of a JSONL file, counted from 0.

    Raises InvalidInputError for a file that cannot be read or holds something else.
    """
    records = read_records(path, Biography, _unusable)
    if any(len(record.annotation) != len(record.gpt3_sentences) for record in records):
        raise _unusable("a record has not one annotation a sentence")
    return records[1::2]


async def measure(
    proxy: Model,
    biographies: Sequence[Biography],
    *,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Read every text with `proxy`, which must be able to score, and measure RHD on them."""
    recognizer = EntityRecognizer()
    sentences: list[ScoredSentence] = []
    for done, biography in enumerate(biographies):
        progress(done, len(biographies))
        asked = PROMPT.format(concept=biography.concept.title())
        request = ScoreRequest(
            messages=(Message(role="user", content=asked),),
            text=biography.gpt3_text,
            reproducible=True,
        )
        tokens = (await proxy.score(request)).tokens or ()
        question = Question(text=asked, language="en")
        readings = rhd.read_entities(biography.gpt3_text, tokens, question, recognizer)
        sentences += score_sentences(biography, tokens, readings)
    progress(len(biographies), len(biographies))
    return {"records": len(biographies), **measured(sentences)}


def score_sentences(
    biography: Biography, tokens: Sequence[Token], readings: Sequence[EntityReading]
) -> list[ScoredSentence]:
    """Every sentence with its scores: of its least confident entity, and of its tokens.

    The mean over a sentence's tokens is that of log-probabilities, as in SelfCheckGPT's baseline.
    """
    spans = [(token.start, token.end) for token in tokens]
    scored = []
    for span, annotation in zip(biography.sentences(), biography.annotation, strict=True):
        inside = [r for r in readings if span.start <= r.start < span.end]
        covered = (tokens[index] for index in tokens_covering(spans, span.start, span.end))
        logprobs = [token.logprob for token in covered if token.logprob is not None]
        probabilities = [rhd.pool_probabilities(r.probabilities, "mean") for r in inside]
        entropies = [rhd.pool_entropies(r.entropies, "max") for r in inside]
        scored.append(
            ScoredSentence(
                false=annotation != "accurate",
                has_entity=bool(inside),
                rhd_probability_mean=max(
                    (-p for p in probabilities if p is not None), default=-inf
                ),
                rhd_entropy_max=max((h for h in entropies if h is not None), default=-inf),
                token_probability_mean=-sum(logprobs) / len(logprobs) if logprobs else -inf,
                token_probability_min=-min(logprobs) if logprobs else -inf,
            )
        )
    return scored


def measured(sentences: Sequence[ScoredSentence]) -> dict[str, Any]:
    """Average precision for non-factual sentences, over all and over those with an entity.

    Among all, RHD ranks sentences without entities last. Raises InvalidInputError when the
    sentences of either kind are all factual or all not.
    """
    with_entity = [sentence for sentence in sentences if sentence.has_entity]
    return {
        "all_sentences": _average_precisions(sentences),
        "sentences_with_entities": _average_precisions(with_entity),
    }


def _average_precisions(sentences: Sequence[ScoredSentence]) -> dict[str, Any]:
    false = [sentence.false for sentence in sentences]
    if len(set(false)) < 2:
        raise _unusable("its odd-numbered records need factual and non-factual sentences")
    return {
        "sentences": len(false),
        "base_rate": round(sum(false) / len(false), 4),
        **{
            name: round(average_precision([getattr(s, name) for s in sentences], false), 4)
            for name in _MEASURES
        },
    }


def _unusable(reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"The WikiBio file cannot be used: {reason}.",
        remedy="Give JSON lines with concept, gpt3_text, gpt3_sentences and annotation.",
    )
