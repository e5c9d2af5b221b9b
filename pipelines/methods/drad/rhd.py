"""RHD, DRAD's detector: is an entity of a text improbable to the model that wrote it?

Source: the DRAD paper's section on real-time hallucination detection. An entity E covers tokens
t_1..t_n with probabilities p_i and predictive entropies H_i (nats); with pooling functions f and g
it is taken for hallucinated when P(E) = f(p_1..p_n) < theta_1 or H(E) = g(H_1..H_n) > theta_2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, log, prod
from typing import Literal

from pipelines.methods.base import Question
from pipelines.run.events import Judged, Score
from pipelines.run.scope import Scope
from pipelines.text import EntityRecognizer, repeats_question, split_sentences, tokens_covering
from pipelines.types import Frozen, Token

__all__ = [
    "EntityPooling",
    "EntityReading",
    "EntityVerdict",
    "EntropyPooling",
    "Thresholds",
    "first_doubtful",
    "judge",
    "pool_entropies",
    "pool_probabilities",
    "read_entities",
    "read_judged",
    "record",
    "scores_of",
]

EntityPooling = Literal["mean", "geometric", "min", "first", "product"]
EntropyPooling = Literal["max", "mean", "first"]


class EntityReading(Frozen):
    """An entity and what the model thought while writing it; no threshold applied yet.

    `first` and `stop` delimit its tokens. `sentence_start` is the offset of its sentence, which
    stays the same when a later part of the text is rewritten. `repeats` marks an entity that only
    repeats the question.
    """

    text: str
    start: int
    end: int
    label: str
    first: int
    stop: int
    sentence: int
    sentence_start: int
    probabilities: tuple[float, ...]
    entropies: tuple[float, ...]
    repeats: bool = False


class Thresholds(Frozen):
    """RHD's settings: both thresholds (theta_2 in nats, None to leave it out) and poolings."""

    theta_1: float
    theta_2: float | None
    pooling: EntityPooling = "mean"
    entropy_pooling: EntropyPooling = "max"


class EntityVerdict(Frozen):
    """P(E) in [0, 1] and H(E) in nats, each None when nothing was measured, and what follows."""

    probability: float | None
    entropy: float | None
    improbable: bool
    uncertain: bool

    @property
    def doubtful(self) -> bool:
        """RHD's verdict: improbable by probability, or uncertain by entropy."""
        return self.improbable or self.uncertain


def pool_probabilities(values: Sequence[float], how: EntityPooling) -> float | None:
    """P(E) = f(p_1..p_n) in [0, 1], None for no values; the paper's best f is the mean."""
    if not values:
        return None
    match how:
        case "mean":
            return fsum(values) / len(values)
        case "geometric":
            return 0.0 if min(values) == 0 else exp(fsum(map(log, values)) / len(values))
        case "min":
            return min(values)
        case "first":
            return values[0]
        case "product":
            return prod(values)


def pool_entropies(values: Sequence[float], how: EntropyPooling) -> float | None:
    """H(E) = g(H_1..H_n) in nats, None for no values; the paper's best g is the maximum."""
    if not values:
        return None
    match how:
        case "max":
            return max(values)
        case "mean":
            return fsum(values) / len(values)
        case "first":
            return values[0]


def judge(reading: EntityReading, thresholds: Thresholds) -> EntityVerdict:
    """RHD for one entity; strict comparisons, so a value on its threshold is no hallucination."""
    probability = pool_probabilities(reading.probabilities, thresholds.pooling)
    entropy = pool_entropies(reading.entropies, thresholds.entropy_pooling)
    theta_2 = thresholds.theta_2
    return EntityVerdict(
        probability=probability,
        entropy=entropy,
        improbable=probability is not None and probability < thresholds.theta_1,
        uncertain=entropy is not None and theta_2 is not None and entropy > theta_2,
    )


def first_doubtful(
    readings: Sequence[EntityReading],
    verdicts: Sequence[EntityVerdict],
    *,
    after: int,
    skip_repeats: bool,
) -> EntityReading | None:
    """The first doubtful entity in a sentence that starts behind offset `after`."""
    for reading, verdict in zip(readings, verdicts, strict=True):
        if reading.sentence_start <= after or (skip_repeats and reading.repeats):
            continue
        if verdict.doubtful:
            return reading
    return None


def read_entities(
    text: str,
    tokens: Sequence[Token],
    question: Question,
    recognizer: EntityRecognizer,
) -> list[EntityReading]:
    """The entities of `text` with the probabilities and entropies of the tokens they cover."""
    sentences = split_sentences(text)
    spans = [(token.start, token.end) for token in tokens]
    readings = []
    for entity in recognizer.recognize(text, question.language):
        covered = tokens_covering(spans, entity.start, entity.end)
        inside = [tokens[index] for index in covered]
        sentence = max(
            (n for n, span in enumerate(sentences) if span.start <= entity.start), default=0
        )
        readings.append(
            EntityReading(
                text=entity.text,
                start=entity.start,
                end=entity.end,
                label=entity.label,
                first=covered.start,
                stop=covered.stop,
                sentence=sentence,
                sentence_start=sentences[sentence].start if sentences else 0,
                probabilities=tuple(t.probability for t in inside if t.probability is not None),
                entropies=tuple(t.entropy for t in inside if t.entropy is not None),
                repeats=repeats_question(entity.text, question.text),
            )
        )
    return readings


def scores_of(
    reading: EntityReading, verdict: EntityVerdict, thresholds: Thresholds
) -> tuple[Score, Score]:
    """Both numbers of an entity with their thresholds, formulas and inputs."""
    return (
        Score(
            name="entity_probability",
            value=verdict.probability,
            threshold=thresholds.theta_1,
            bad="below",
            flagged=verdict.improbable,
            formula=f"drad.probability.{thresholds.pooling}",
            inputs=reading.probabilities,
        ),
        Score(
            name="entity_entropy",
            value=verdict.entropy,
            threshold=thresholds.theta_2,
            bad="above",
            flagged=verdict.uncertain,
            high=None,
            formula=f"drad.entropy.{thresholds.entropy_pooling}",
            inputs=reading.entropies,
        ),
    )


def record(
    step: Scope,
    draft: int,
    reading: EntityReading,
    verdict: EntityVerdict,
    thresholds: Thresholds,
) -> None:
    """Write the verdict on one entity of a draft down, with what it rests on."""
    measured = verdict.probability is not None or verdict.entropy is not None
    step.judged(
        what="entity",
        text=reading.text,
        start=reading.start,
        end=reading.end,
        draft=draft,
        label=reading.label,
        sentence=reading.sentence,
        verdict=("doubtful" if verdict.doubtful else "confident") if measured else "unchecked",
        scores=scores_of(reading, verdict, thresholds),
        detail={"reading": reading.model_dump(mode="json")},
    )


def read_judged(event: Judged) -> EntityReading:
    """The reading that a recorded verdict rests on."""
    return EntityReading.model_validate(event.detail["reading"])
