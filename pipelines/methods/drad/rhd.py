"""RHD, DRAD's detector: is an entity of a text improbable to the model that wrote it?

Source: the DRAD paper's section on real-time hallucination detection. An entity E covers tokens
t_1..t_n with probabilities p_i and predictive entropies H_i (nats); with pooling functions f and g
it is taken for hallucinated when P(E) = f(p_1..p_n) < theta_1 or H(E) = g(H_1..H_n) > theta_2.

RHD needs token probabilities. For models without them there are two stand-ins, always labelled as
such (ours; the paper has neither): how many independent samples contain the entity, and the
probabilities that a proxy model gives to the same text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from math import exp, fsum, log, prod
from typing import Literal

from pipelines.errors import CapabilityError
from pipelines.methods.base import Question
from pipelines.methods.drad.settings import (
    DradSettings,
    EntityPooling,
    EntropyPooling,
    calibrated_theta_2,
)
from pipelines.run.events import Score
from pipelines.run.findings import ConfidenceSource, DetectorThresholds, EntityReading
from pipelines.run.scope import Scope
from pipelines.text import Entity, repeats_question, split_sentences, tokens_covering
from pipelines.types import Frozen, Token

__all__ = [
    "EntityReading",
    "EntityVerdict",
    "Thresholds",
    "agreement",
    "choose_source",
    "entropies_over",
    "first_doubtful",
    "headline",
    "judge",
    "pool_entropies",
    "pool_probabilities",
    "read_entities",
    "scores_of",
    "thresholds_for",
]


class Thresholds(Frozen):
    """RHD's settings: both thresholds (theta_2 in nats, None to leave it out) and poolings."""

    theta_1: float
    theta_2: float | None
    pooling: EntityPooling = "mean"
    entropy_pooling: EntropyPooling = "max"


class EntityVerdict(Frozen):
    """P(E) (in [0, 1], a sum may be larger) and H(E) in nats, None where nothing was measured.

    `improbable` and `uncertain` say which threshold makes the entity doubtful.
    """

    probability: float | None
    entropy: float | None
    improbable: bool
    uncertain: bool

    @property
    def doubtful(self) -> bool:
        """RHD's verdict: improbable by probability, or uncertain by entropy."""
        return self.improbable or self.uncertain


def entropies_over(counts: Iterable[int | None]) -> str:
    """What entropies are computed over, from the `top_k` of their tokens.

    "full" for the whole vocabulary, else the largest k as a decimal number; "" without a token.
    """
    found = set(counts)
    known = [count for count in found if count is not None]
    return "" if not found else str(max(known)) if len(known) == len(found) else "full"


def thresholds_for(
    settings: DradSettings, model: str, tokens: Sequence[Token] | None
) -> DetectorThresholds:
    """The thresholds for entropies of `model`, computed as those of `tokens` were."""
    entropies = entropies_over(token.top_k for token in tokens or () if token.entropy is not None)
    calibrated = calibrated_theta_2(model, entropies)
    if not settings.use_entropy:
        theta_2, source = None, "off"
    elif settings.theta_2 is not None:
        theta_2, source = settings.theta_2, "set"
    else:
        theta_2, source = calibrated, "missing" if calibrated is None else "calibrated"
    return DetectorThresholds(
        theta_1=settings.theta_1,
        theta_2=theta_2,
        theta_2_source=source,
        model=model,
        entropies=entropies,
    )


def pool_probabilities(values: Sequence[float], how: EntityPooling) -> float | None:
    """P(E) = f(p_1..p_n), None for no values; the paper's best f is the mean.

    In [0, 1], except for the sum, which grows with the number of tokens.
    """
    if not values:
        return None
    match how:
        case "mean":
            return fsum(values) / len(values)
        case "geometric":
            return 0.0 if min(values) == 0 else exp(fsum(map(log, values)) / len(values))
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "first":
            return values[0]
        case "product":
            return prod(values)
        case "sum":
            return fsum(values)


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
    text: str, tokens: Sequence[Token], question: Question, entities: Sequence[Entity]
) -> list[EntityReading]:
    """The entities of `text` with the probabilities and entropies of the tokens they cover."""
    sentences = split_sentences(text)
    spans = [(token.start, token.end) for token in tokens]
    readings = []
    for entity in entities:
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
    reading: EntityReading,
    verdict: EntityVerdict,
    thresholds: Thresholds,
    behind: tuple[str, ...] = (),
) -> tuple[Score, Score]:
    """Both numbers of an entity with their thresholds, formulas, inputs and the spans `behind`."""
    return (
        Score(
            name="entity_probability",
            value=verdict.probability,
            threshold=thresholds.theta_1,
            bad="below",
            flagged=verdict.improbable,
            high=None if thresholds.pooling == "sum" else 1.0,
            formula=f"drad.probability.{thresholds.pooling}",
            inputs=reading.probabilities,
            behind=behind,
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
            behind=behind,
        ),
    )


def headline(
    readings: Sequence[EntityReading], verdicts: Sequence[EntityVerdict], *, skip_repeats: bool
) -> int | None:
    """The entity that decides a text: the first doubtful one, else the least probable one."""
    target = first_doubtful(readings, verdicts, after=-1, skip_repeats=skip_repeats)
    if target is not None:
        return readings.index(target)
    measured = {
        place: verdict.probability
        for place, (reading, verdict) in enumerate(zip(readings, verdicts, strict=True))
        if verdict.probability is not None and not (skip_repeats and reading.repeats)
    }
    return min(measured, key=measured.__getitem__, default=None)


# --- Stand-ins for the model's own probabilities --------------------------------------------------


def choose_source(
    scope: Scope, wanted: Literal["auto", "logprobs", "samples", "proxy"]
) -> ConfidenceSource:
    """What the confidence is computed from, for what was asked and what the models can do.

    Raises CapabilityError when the wanted source is not available.
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


def agreement(entity: str, texts: Sequence[str]) -> float:
    """The share of `texts` that contain `entity` as whole words (Chinese: as characters)."""
    wanted = _folded(entity)
    pattern = re.compile(rf"(?<![a-z0-9]){re.escape(wanted)}(?![a-z0-9])")
    return sum(bool(pattern.search(_folded(text))) for text in texts) / len(texts)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
