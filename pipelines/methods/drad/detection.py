"""The text that a run of DRAD works on, and RHD over all of it, every entity recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import failure
from pipelines.methods.base import Question
from pipelines.methods.drad import rhd, sek
from pipelines.methods.drad.rhd import EntityReading, EntityVerdict
from pipelines.methods.drad.settings import DradSettings
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.writing import Continuation, appended, found_for, part_of, units_of
from pipelines.prompts import load_prompts
from pipelines.run.findings import ConfidenceSource, DetectorThresholds
from pipelines.run.scope import Scope
from pipelines.text import Entity, split_sentences
from pipelines.types import Generation, Message, Passage

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
        self.source: ConfidenceSource = rhd.choose_source(scope, settings.confidence)
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
            verdicts = [rhd.judge(reading, thresholds, self.settings) for reading in readings]
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
        text, decisive = draft.generation.text, rhd.headline(verdicts)
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
        texts = [draft.prefix + asked.added(reply).text for reply in replies]
        return [
            reading.model_copy(update={"probabilities": (rhd.agreement(reading.text, texts),)})
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
        found = rhd.thresholds_for(
            self.settings, self.measured_by, generation.tokens, self.question.language
        )
        return found.model_copy(update={"confidence": self.later_source})

    def _readings(self, generation: Generation, entities: Sequence[Entity]) -> list[EntityReading]:
        text = generation.text
        if self.settings.answer_part:
            entities = rhd.with_answer_part(text, self.question, entities)
        return rhd.read_entities(text, units_of(generation), self.question, entities)


def goes_on(whole: Generation, start: int, question: Question) -> bool:
    """Return whether what the model added from offset `start` on is a text that goes on.

    It is none where the reply is empty or declines, where the service filtered it, where it is
    Chinese although neither the question nor the beginning is, and where the token limit cut it
    within the sentence that was begun.
    """
    added = whole.text[start:].strip()
    if not added or declines(added) or whole.finish_reason == "filter":
        return False
    if start and question.is_foreign(added, whole.text[:start]):
        return False
    return whole.finish_reason != "length" or any(
        span.end > start for span in split_sentences(whole.text)[:-1]
    )


def joined(head: Generation, added: Generation) -> Generation:
    """Return both parts as one text, without white space at its end."""
    whole = appended(head, added)
    if head.tokens is None or added.tokens is None:
        # A text is measured by the tokens of all of it, or by none.
        whole = whole.model_copy(update={"tokens": None})
    return part_of(whole, 0, len(whole.text.rstrip()))
