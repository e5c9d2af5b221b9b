"""The text that a run of DRAD works on, and RHD over all of it, every entity recorded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, fsum, log, prod
from operator import itemgetter
from statistics import fmean
from typing import Literal

from pipelines.base import Frozen, Generation, Language, Message, Passage, Token
from pipelines.errors import failure
from pipelines.methods.base import Question
from pipelines.methods.drad import sek
from pipelines.methods.drad.settings import (
    DradSettings,
    EntityPooling,
    EntropyPooling,
    calibrated_theta_2,
    calibrated_with_these_prompts,
)
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.subjects import said_beyond
from pipelines.methods.writing import (
    Continuation,
    appended,
    found_for,
    independent,
    part_of,
    units_of,
)
from pipelines.prompts import load_prompts
from pipelines.run.events import Score
from pipelines.run.findings import ConfidenceSource, DetectorThresholds, EntityReading
from pipelines.run.scope import Scope
from pipelines.text import Entity, by_characters, repeats_question, split_sentences, tokens_covering

# RHD, DRAD's detector: is an entity of a text improbable to the model that wrote it?
#
# Source: the DRAD paper's section on real-time hallucination detection. An entity E covers tokens
# t_1..t_n with probabilities p_i and predictive entropies H_i (nats); with pooling functions f and
# g it is taken for hallucinated when P(E) = f(p_1..p_n) < theta_1 or H(E) = g(H_1..H_n) > theta_2.
#
# RHD needs token probabilities. For models without them there are two stand-ins, always labelled as
# such (ours; the paper has neither): how many independent samples contain the entity, and the
# probabilities that a proxy model gives to the same text.


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


PROMPTS = load_prompts("drad")


@dataclass(frozen=True)
class Draft:
    """A state of the text: what its newest part was asked by, and the span that wrote each part.

    `messages` and `prefix` are those of the newest part; `parts` are offsets with spans, ascending.
    It is not `measured` where its newest part comes from the evidence instead of the model.
    """

    number: int
    generation: Generation
    messages: tuple[Message, ...]
    prefix: str
    parts: tuple[tuple[int, str], ...]

    measured: bool = True

    @property
    def unfinished(self) -> bool:
        """Whether the writing was ended early."""
        return self.generation.finish_reason == "watcher"


class Detection:
    """The state of one run: what confidence is read from, and which sentences need no more
    attention."""

    def __init__(self, question: Question, scope: Scope, settings: DradSettings) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        self.source: ConfidenceSource = choose_source(scope, settings.confidence)
        # A stand-in that took over during the run.
        self.later_source: ConfidenceSource | None = None
        self.measured_by = scope.model("proxy" if self.source == "proxy" else "main").name
        # Offset of the last sentence that was revised or could not be.
        self.handled = -1
        self.revised: set[int] = set()
        self.flags: list[str] = []
        if self.source != "logprobs":
            self.flags.append(f"confidence_{self.source}")

    async def _detect(self, draft: Draft) -> list[EntityVerdict]:
        """Run RHD over the whole draft, every entity recorded; the original gets a verdict of
        its own.

        Where the writing was ended early, an entity at the very end may be part of a longer one and
        is left out.
        """
        generation = draft.generation
        if self.source == "logprobs" and generation.text and generation.tokens is None:
            # No stand-in was wanted.
            raise failure("asking.no_logprobs", name=self.measured_by)
        thresholds = self._thresholds(generation)
        async with self.scope.span("detect", detail=thresholds, draft=draft.number) as step:
            readings = self._readings(generation, await step.entities(generation.text))
            if draft.unfinished:
                readings = [r for r in readings if r.stop < len(units_of(generation))]
            if self.source == "samples" and readings:
                readings = await self._sampled(step, draft, readings)
            verdicts = [judge(reading, thresholds, self.settings) for reading in readings]
            self._record(step, draft, verdicts)
        return verdicts

    def _record(self, step: Scope, draft: Draft, verdicts: Sequence[EntityVerdict]) -> None:
        def behind(verdict: EntityVerdict) -> tuple[str, str]:
            wrote = [span for start, span in draft.parts if start <= verdict.reading.start][-1]
            return wrote, step.id

        for verdict in verdicts:
            reading = verdict.reading
            said = "doubtful" if verdict.doubtful else "confident"
            step.judged(
                "entity",
                reading.text,
                verdict=said if verdict.measured else "unchecked",
                start=reading.start,
                end=reading.end,
                draft=draft.number,
                label=reading.label,
                sentence=reading.sentence,
                scores=verdict.scores(behind(verdict)),
                detail=reading,
            )
        if draft.number:
            return
        text, decisive = draft.generation.text, headline(verdicts)
        if decisive is None or no_answer(text, self.question):
            step.judged("answer", text, verdict="unchecked")
            return
        step.judged(
            "answer",
            text,
            verdict="doubtful" if decisive.doubtful else "confident",
            # The number that decided comes first.
            scores=sorted(decisive.scores(behind(decisive)), key=lambda score: not score.flagged),
        )

    async def _sampled(
        self, step: Scope, draft: Draft, readings: Sequence[EntityReading]
    ) -> list[EntityReading]:
        """Return the readings with P(E) = share of the samples that contain the entity.

        The samples (temperature 1) continue the same beginning for the same prompt as the text that
        is being checked. Entropies stay unknown.
        """
        asked = Continuation.of(step, self.question, draft.messages, draft.prefix, PROMPTS)
        request = step.request(
            asked.messages,
            max_tokens=self.settings.max_tokens,
            n=self.settings.samples,
            temperature=1.0,
            sample=0,
        )
        replies = await step.model().generate(request)
        drawn = independent(replies)
        if len(drawn) < len(replies):
            self.flags.append("samples_repeated")
        if not drawn:
            return list(readings)
        texts = [draft.prefix + asked.added(reply).text for reply in drawn]
        return [
            reading.model_copy(update={"probabilities": (agreement(reading.text, texts),)})
            for reading in readings
        ]

    async def _found(self, step: Scope, query: str) -> list[Passage]:
        """Return what a search finds; that nothing is found, or the search fails, is flagged."""
        passages = await found_for(step, query, self.settings.passages)
        if not passages:
            self.flags.append("search_failed" if passages is None else "no_evidence")
        return passages or []

    async def _sought(self, step: Scope, draft: Draft, target: EntityReading) -> list[Passage]:
        """Return what SEK finds with the text around `target`."""
        text, units = draft.generation.text, units_of(draft.generation)
        query = sek.formulate_query(text, units, target.first, target.stop, self.settings.m)
        # A text that is the entity alone leaves no query: the question is searched for.
        return await self._found(step, query or self.question.query)

    def _thresholds(self, generation: Generation) -> DetectorThresholds:
        found = thresholds_for(
            self.settings, self.measured_by, generation.tokens, self.question.language
        )
        return found.model_copy(update={"confidence": self.later_source})

    def _readings(self, generation: Generation, entities: Sequence[Entity]) -> list[EntityReading]:
        text = generation.text
        if self.settings.answer_part:
            entities = with_answer_part(text, self.question, entities)
        return read_entities(text, units_of(generation), self.question, entities)


def goes_on(whole: Generation, start: int, question: Question) -> bool:
    """Return whether what the model added from offset `start` on is a text that goes on.

    It is none where the reply is empty or declines, where the service filtered it, where it is
    Chinese although neither the question nor the beginning is, and where the token limit cut it
    within the sentence that was begun.
    """
    added = whole.text[start:].strip()
    if not added or declines(added) or whole.finish_reason in ("filter", "broken"):
        return False
    if start and question.is_foreign(added, whole.text[:start]):
        return False
    return not whole.is_cut or any(span.end > start for span in split_sentences(whole.text)[:-1])


def joined(head: Generation, added: Generation) -> Generation:
    """Return both parts as one text, without white space at its end."""
    whole = appended(head, added)
    if head.tokens is None or added.tokens is None:
        # A text is measured by the tokens of all of it, or by none.
        whole = whole.model_copy(update={"tokens": None})
    return part_of(whole, 0, len(whole.text.rstrip()))
