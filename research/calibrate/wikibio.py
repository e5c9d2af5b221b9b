"""RHD on the WikiBio sentences of GPT-3 that SelfCheckGPT's authors annotated, read by a proxy.

The paper used GPT-3's own probabilities, which are no longer available. The embedded model is
teacher-forced on the same text instead: this measures how surprising a sentence is to another,
much smaller model. Nothing is fitted; only odd-numbered records (1, 3, 5, ...) are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from tqdm import tqdm

from pipelines.base import Frozen, Message, Token
from pipelines.errors import failure
from pipelines.evaluation.datasets.published import Biography
from pipelines.evaluation.metrics.detection import average_precision
from pipelines.methods.base import Question
from pipelines.methods.drad import detection
from pipelines.methods.drad.detection import EntityReading
from pipelines.models.base import Model, ScoreRequest
from pipelines.text import EntityRecognizer, tokens_covering

PROMPT = "Write an encyclopedia article about {concept}."
"""The question that the proxy sees before the text."""

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


class ScoredSentence(Frozen):
    """How doubtful a sentence is by each of the paper's measures.

    Higher `scores` are more doubtful, -inf is unscored.
    """

    false: bool
    has_entity: bool
    scores: dict[str, float]


async def measure(proxy: Model, biographies: Sequence[Biography]) -> dict[str, Any]:
    """Read every text with `proxy`, which must be able to score, and measure RHD on them."""
    recognizer = EntityRecognizer()
    sentences: list[ScoredSentence] = []
    for biography in tqdm(biographies, desc="biographies"):
        asked = PROMPT.format(concept=biography.concept.title())
        request = ScoreRequest(
            messages=(Message(role="user", content=asked),),
            text=biography.gpt3_text,
            reproducible=True,
        )
        tokens = (await proxy.score(request)).tokens or ()
        question = Question(text=asked, language="en")
        readings = detection.read_entities(
            biography.gpt3_text,
            tokens,
            question,
            recognizer.recognize(biography.gpt3_text, question.language),
        )
        sentences += score_sentences(biography, tokens, readings)
    return {"records": len(biographies), **measured(sentences)}


def score_sentences(
    biography: Biography, tokens: Sequence[Token], readings: Sequence[EntityReading]
) -> list[ScoredSentence]:
    """Return every sentence with its scores: of its least confident entity, and of its tokens.

    The mean over a sentence's tokens is that of log-probabilities, as in SelfCheckGPT's baseline.
    """
    spans = [(token.start, token.end) for token in tokens]
    scored = []
    for span, annotation in zip(biography.sentences(), biography.annotation, strict=True):
        inside = [r for r in readings if span.start <= r.start < span.end]
        covered = (tokens[index] for index in tokens_covering(spans, span.start, span.end))
        logprobs = [token.logprob for token in covered if token.logprob is not None]
        probabilities = [detection.pool(r.probabilities, "mean") for r in inside]
        entropies = [detection.pool(r.entropies, "max") for r in inside]
        scores = {
            "rhd_probability_mean": max((-p for p in probabilities if p is not None), default=-inf),
            "rhd_entropy_max": max((h for h in entropies if h is not None), default=-inf),
            "token_probability_mean": -sum(logprobs) / len(logprobs) if logprobs else -inf,
            "token_probability_min": -min(logprobs) if logprobs else -inf,
        }
        false, has_entity = annotation != "accurate", bool(inside)
        scored.append(ScoredSentence(false=false, has_entity=has_entity, scores=scores))
    return scored


def measured(sentences: Sequence[ScoredSentence]) -> dict[str, Any]:
    """Return the average precision for non-factual sentences, over all and over those with an
    entity.

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
        raise failure("research.one_sided_sentences")
    scores = {name: [one.scores[name] for one in sentences] for name in sentences[0].scores}
    return {
        "sentences": len(false),
        "base_rate": round(sum(false) / len(false), 4),
        **{name: round(average_precision(values, false), 4) for name, values in scores.items()},
    }
