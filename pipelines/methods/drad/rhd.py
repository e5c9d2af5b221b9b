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
from collections.abc import Callable, Iterable, Sequence
from math import exp, fsum, log, prod
from operator import itemgetter
from statistics import fmean
from typing import Literal

from pipelines.methods.base import Question
from pipelines.methods.drad.settings import (
    DradSettings,
    EntityPooling,
    EntropyPooling,
    calibrated_theta_2,
    calibrated_with_these_prompts,
)
from pipelines.methods.subjects import said_beyond
from pipelines.run.events import Score
from pipelines.run.findings import ConfidenceSource, DetectorThresholds, EntityReading
from pipelines.run.scope import Scope
from pipelines.text import Entity, by_characters, repeats_question, split_sentences, tokens_covering
from pipelines.types import Frozen, Language, Token


class EntityVerdict(Frozen):
    """P(E) (in [0, 1], a sum may be larger) and H(E) in nats, None where nothing was measured.

    Strict comparisons, so a value on its threshold is no hallucination.
    """

    reading: EntityReading
    thresholds: DetectorThresholds
    settings: DradSettings
    probability: float | None
    entropy: float | None

    @property
    def improbable(self) -> bool:
        """Whether P(E) makes the entity doubtful."""
        return self.probability is not None and self.probability < self.thresholds.theta_1

    @property
    def uncertain(self) -> bool:
        """Whether H(E) makes the entity doubtful."""
        theta_2 = self.thresholds.theta_2
        return self.entropy is not None and theta_2 is not None and self.entropy > theta_2

    @property
    def doubtful(self) -> bool:
        """RHD's verdict: improbable by probability, or uncertain by entropy."""
        return self.improbable or self.uncertain

    @property
    def measured(self) -> bool:
        """Whether there is anything to compare with a threshold."""
        return self.probability is not None or self.entropy is not None

    @property
    def counts(self) -> bool:
        """Whether the entity decides anything: those that repeat the question may be left alone."""
        return not (self.settings.skip_repeats and self.reading.repeats)

    def scores(self, behind: tuple[str, ...] = ()) -> tuple[Score, Score]:
        """Return both numbers with their thresholds, formulas, inputs and the spans
        `behind` them.
        """
        pooling, reading = self.settings.pooling, self.reading
        return (
            Score(
                name="entity_probability",
                value=self.probability,
                threshold=self.thresholds.theta_1,
                bad="below",
                flagged=self.improbable,
                high=None if pooling == "sum" else 1.0,
                formula=f"drad.probability.{pooling}",
                inputs=reading.probabilities,
                behind=behind,
            ),
            Score(
                name="entity_entropy",
                value=self.entropy,
                threshold=self.thresholds.theta_2,
                bad="above",
                flagged=self.uncertain,
                high=None,
                formula=f"drad.entropy.{self.settings.entropy_pooling}",
                inputs=reading.entropies,
                behind=behind,
            ),
        )


def entropies_over(counts: Iterable[int | None]) -> str:
    """Return what entropies are computed over, from the `top_k` of their tokens.

    "full" for the whole vocabulary, else the smallest k as a decimal number; "" without a token. A
    token of a given text that is none of the k most probable ones is counted beside them: its k is
    one more, and its entropy is comparable all the same.
    """
    found = set(counts)
    known = [count for count in found if count is not None]
    return "" if not found else str(min(known)) if len(known) == len(found) else "full"


def thresholds_for(
    settings: DradSettings, model: str, tokens: Sequence[Token] | None, language: Language
) -> DetectorThresholds:
    """Return the thresholds for entropies of `model` in a language, computed as those of
    `tokens` were.
    """
    entropies = entropies_over(token.top_k for token in tokens or () if token.entropy is not None)
    calibrated = calibrated_theta_2(model, entropies, language)
    if not settings.use_entropy:
        theta_2, source = None, "off"
    elif settings.theta_2 is not None:
        theta_2, source = settings.theta_2, "set"
    else:
        theta_2, source = calibrated, "missing" if calibrated is None else "calibrated"
        if calibrated is not None and not calibrated_with_these_prompts(model, entropies, language):
            source = "reworded"
    return DetectorThresholds(
        theta_1=settings.theta_1,
        theta_2=theta_2,
        theta_2_source=source,
        model=model,
        entropies=entropies,
    )


_POOLINGS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "geometric": lambda values: exp(fmean(map(log, values))) if min(values) else 0.0,
    "min": min,
    "max": max,
    "first": itemgetter(0),
    "product": prod,
    "sum": fsum,
}


def pool(values: Sequence[float], how: EntityPooling | EntropyPooling) -> float | None:
    """Return P(E) = f(p_1..p_n) or H(E) = g(H_1..H_n), in nats; None for no values.

    The paper's best f is the mean, its best g the maximum. A sum grows with the number of tokens.
    """
    return _POOLINGS[how](values) if values else None


def judge(
    reading: EntityReading, thresholds: DetectorThresholds, settings: DradSettings
) -> EntityVerdict:
    """Run RHD for one entity, with the poolings of the settings."""
    return EntityVerdict(
        reading=reading,
        thresholds=thresholds,
        settings=settings,
        probability=pool(reading.probabilities, settings.pooling),
        entropy=pool(reading.entropies, settings.entropy_pooling),
    )


def first_doubtful(verdicts: Sequence[EntityVerdict], *, after: int) -> EntityVerdict | None:
    """Return the first doubtful entity that counts in a sentence that starts behind offset
    `after`.
    """
    later = (v for v in verdicts if v.counts and v.reading.sentence_start > after)
    return next((v for v in later if v.doubtful), None)


def read_entities(
    text: str, tokens: Sequence[Token], question: Question, entities: Sequence[Entity]
) -> list[EntityReading]:
    """Return the entities of `text` with the probabilities and entropies of the tokens
    they cover.
    """
    sentences = split_sentences(text)
    spans = [(token.start, token.end) for token in tokens]
    readings = []
    for entity in entities:
        covered = tokens_covering(spans, entity.start, entity.end)
        inside = by_characters([tokens[index] for index in covered])
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


def with_answer_part(text: str, question: Question, entities: Sequence[Entity]) -> list[Entity]:
    """Return the entities, with what `text` says beyond the question where they only repeat it.

    "He had a heart disease." names nothing, and is the answer all the same: without its last words
    RHD would have nothing to doubt (ours). The first sentence that says more counts.
    """
    asked = "" if question.about else question.text
    if not asked or not all(repeats_question(entity.text, asked) for entity in entities):
        return list(entities)
    for sentence in split_sentences(text):
        said = said_beyond(sentence.text, asked)
        if said:
            start = sentence.start + sentence.text.index(said)
            part = Entity(text=said, start=start, end=start + len(said), label="ANSWER")
            apart = [one for one in entities if one.end <= part.start or one.start >= part.end]
            return sorted([*apart, part], key=lambda one: one.start)
    return list(entities)


def headline(verdicts: Sequence[EntityVerdict]) -> EntityVerdict | None:
    """Return the entity that decides a text: the first doubtful one, else the least
    probable one.
    """
    measured = [v for v in verdicts if v.counts and v.probability is not None]
    lowest = min(measured, key=lambda v: v.probability or 0.0, default=None)
    return first_doubtful(verdicts, after=-1) or lowest


# --- Stand-ins for the model's own probabilities --------------------------------------------------


def choose_source(
    scope: Scope, wanted: Literal["auto", "logprobs", "samples", "proxy"]
) -> ConfidenceSource:
    """Return what the confidence is computed from; "auto" takes the best that the models can do.

    A given text has the probabilities of the model that reads it: the proxy if there is one, else
    the main model. Samples stand in where neither can, and where its question is known.
    """
    if wanted != "auto":
        return wanted
    if scope.given is not None:
        stand_in = choose_stand_in(scope)
        reads = stand_in == "samples" and scope.model().capabilities.scores
        return "logprobs" if reads else stand_in
    return "logprobs" if scope.model().capabilities.logprobs else choose_stand_in(scope)


def choose_stand_in(scope: Scope) -> ConfidenceSource:
    """Return what stands in for the main model's own probabilities."""
    has_proxy = scope.has_model("proxy") and scope.model("proxy").capabilities.scores
    return "proxy" if has_proxy else "samples"


def agreement(entity: str, texts: Sequence[str]) -> float:
    """Return the share of `texts` that contain `entity` as whole words (Chinese: as characters)."""
    wanted = _folded(entity)
    pattern = re.compile(rf"(?<![a-z0-9]){re.escape(wanted)}(?![a-z0-9])")
    return sum(bool(pattern.search(_folded(text))) for text in texts) / len(texts)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
