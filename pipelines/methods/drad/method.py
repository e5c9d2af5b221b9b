"""DRAD: detect an improbable entity, retrieve, revise from there.

RHD (`rhd.py`) finds the first hallucinated entity of the draft; SEK (`sek.py`) searches with what
stands around it, keeps the text before it untouched and lets the model go on from there with the
passages in view. What it then writes is checked in turn; each sentence is revised at most once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import failure
from pipelines.methods import nearest
from pipelines.methods.base import Method, Need, Question
from pipelines.methods.direct import direct_messages
from pipelines.methods.drad import rhd, sek
from pipelines.methods.drad.early import EarlyStop
from pipelines.methods.drad.rhd import EntityReading, EntityVerdict
from pipelines.methods.drad.settings import DradSettings
from pipelines.methods.flow import Stage
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.questions import asks_yes_or_no, echoes
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.writing import (
    Continuation,
    appended,
    found_for,
    grounded_messages,
    not_empty,
    part_of,
    units_of,
    write,
)
from pipelines.models.base import ScoreRequest
from pipelines.prompts import load_prompts
from pipelines.run.findings import ConfidenceSource, DetectorThresholds, DraftMeasured
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.text import Entity, split_sentences
from pipelines.types import Answer, Generation, Message, Passage

PROMPTS = load_prompts("drad")


class Drad(Method[DradSettings]):
    """Real-time hallucination detection and self-correction by external knowledge."""

    name = "drad"
    page = "drad"
    roles = ("proxy", *JUDGES)
    effort = 2
    starts_from = "direct"
    checks = "text"
    settings_type = DradSettings
    flow = (
        Stage("draft"),
        Stage("detect", repeats=True),
        Stage("correct", ("nearest",), optional=True, repeats=True),
        Stage("resume", optional=True, repeats=True),
    )
    prompts = (PROMPTS, load_prompts("direct"), nearest.PROMPTS)

    def needs(self, settings: DradSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model"), Need(reason="evidence")]
        if settings.confidence == "logprobs":
            needs.append(Need(reason="logprobs"))
        if settings.confidence == "proxy":
            needs.append(Need(reason="proxy", role="proxy"))
        return tuple(needs)

    def needs_for_text(self, settings: DradSettings, *, asked: bool) -> tuple[Need, ...]:
        # Where nothing can be searched for, the text is marked and not corrected.
        needs = [Need(reason="model")]
        match settings.confidence:
            case "samples":
                needs.append(Need(reason="question"))
            case "proxy":
                needs.append(Need(reason="scores", role="proxy"))
            case "logprobs":
                needs.append(Need(reason="scores"))
            case "auto" if not asked:
                # With its question, samples could stand in.
                needs.append(Need(reason="scores", others=("proxy",)))
            case "auto":
                pass
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: DradSettings) -> Answer:
        return await _Run(question, scope, settings).answer()


@dataclass(frozen=True)
class _Draft:
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


class _Run:
    """One run: the drafts, and which sentences need no more attention."""

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

    def _stand_in(self, *, alone: bool) -> None:
        """Measure by a stand-in from here on: a reply has come without log-probabilities.

        A proxy's numbers cannot stand in one text beside the model's own, so that it is used only
        where the reply is all the text there is (`alone`).
        """
        self.source = self.later_source = rhd.choose_stand_in(self.scope) if alone else "samples"
        if self.source == "proxy":
            self.measured_by = self.scope.model("proxy").name
        self.flags.append(f"confidence_{self.source}")

    async def answer(self) -> Answer:
        if self.scope.given is not None:
            return await self._given(self.scope.given.text)
        draft = await self._first_draft()
        original = draft.generation.text
        verdicts = await self._detect(draft)
        if echoes(original, self.question):
            # Nothing in it can be doubted, and it is no answer.
            self.flags.append("question_repeated")
            draft, verdicts = await self._answered(draft) or draft, []
        while True:
            target = rhd.first_doubtful(verdicts, after=self.handled)
            if target is not None:
                self.handled = target.reading.sentence_start
                following = await self._correct(draft, target.reading)
            elif draft.unfinished:
                # Nothing in it is left to correct: the rest is written.
                following = await self._resume(draft)
                if following is None:
                    break
            else:
                break
            if following is not None:
                draft = following
                if not draft.measured:
                    # Words of the evidence are no guess of the model.
                    verdicts = []
                    break
                verdicts = await self._detect(draft)
        left = (v for v in verdicts if v.doubtful and v.counts)
        if any(v.reading.sentence_start in self.revised for v in left):
            self.flags.append("still_doubtful")
        flags = tuple(dict.fromkeys(self.flags))
        return Answer(text=draft.generation.text, original=original, flags=flags)

    async def _given(self, text: str) -> Answer:
        """A given text with its doubtful sentences corrected in place; the rest stays (ours).

        The writer of the text is not here: the main model goes on from the doubtful entity to the
        end of its sentence, and what the text says after that is read anew.
        """
        messages = direct_messages(self.question)
        async with self.scope.span("draft", detail=DraftMeasured(confidence=self.source)) as step:
            generation = await self._read(step, messages, text)
            step.revised(generation)
            draft = _Draft(0, generation, messages, "", ((0, step.id),))
        read = {"proxy": "tokens_proxy", "samples": "confidence_samples"}
        self.flags = [read.get(self.source, "tokens_read")]
        verdicts = await self._detect(draft)
        while (target := rhd.first_doubtful(verdicts, after=self.handled)) is not None:
            self.handled = target.reading.sentence_start
            following = await self._corrected_sentence(draft, target.reading)
            if following is not None:
                draft = following
                verdicts = await self._detect(draft)
        if any(v.doubtful and v.reading.sentence_start in self.revised for v in verdicts):
            self.flags.append("still_doubtful")
        flags = tuple(dict.fromkeys(self.flags))
        return Answer(text=draft.generation.text, original=text, flags=flags)

    async def _read(self, step: Scope, messages: tuple[Message, ...], text: str) -> Generation:
        """`text` with the probabilities that its reader gives its tokens; none beside samples."""
        if self.source == "samples":
            return Generation(text=text)
        role = "proxy" if self.source == "proxy" else "main"
        request = ScoreRequest(messages=messages, text=text, reproducible=step.reproducible)
        return Generation(text=text, tokens=(await step.model(role).score(request)).tokens)

    async def _corrected_sentence(self, draft: _Draft, target: EntityReading) -> _Draft | None:
        """The given text with another sentence in place of the one of `target`; None without."""
        before = draft.generation.text
        start = target.sentence_start
        end = next(span.end for span in split_sentences(before) if span.end > target.start)
        async with self.scope.span(
            "correct", draft=draft.number, start=target.start, end=target.end
        ) as step:
            quotes = nearest.takes_sentence(step, self.settings.wording)
            if quotes and checker(step, {self.question.language}, "judge") == "main":
                # Nobody could tell whether the evidence supports what the weak model doubts.
                self.flags.append("text_marked_only")
                return None
            passages = await self._sought(step, draft, target)
            if not passages:
                return None
            write = self._quoted if quotes else self._rewritten
            found = await write(step, draft, target, passages)
            text = None if found is None else found + before[end:]
            if found is None or text is None or text == before:
                return None
            generation = await self._read(step, draft.messages, text)
            reason = "quoted" if quotes else "corrected"
            number = draft.number + 1
            step.revised(generation, draft=number, before=before, start=start, reason=reason)
        self.revised.add(start)
        # What stands there now is not corrected once more, however many sentences it has.
        self.handled = max(start, len(found) - 1)
        return _Draft(number, generation, draft.messages, "", ((0, step.id),))

    async def _quoted(
        self, step: Scope, draft: _Draft, target: EntityReading, passages: Sequence[Passage]
    ) -> str | None:
        """The text up to the end of the sentence of `target`, which the evidence takes the place
        of where the judge does not find it supported."""
        before, start = draft.generation.text, target.sentence_start
        said = next(one for one in split_sentences(before) if one.end > target.start)
        states = Question(text=said.text, language=self.question.language)
        found = await nearest.correct(step, states, passages, said.text, states=True)
        self.flags.append(found.flag)
        return before[:start] + found.text if found.changes else None

    async def _rewritten(
        self, step: Scope, draft: _Draft, target: EntityReading, passages: Sequence[Passage]
    ) -> str | None:
        """The text before `target`, and what the main model makes of the rest of its sentence."""
        units = units_of(draft.generation)
        end = sek.prefix_end(units, sek.kept_prefix(units, target.first), target.start)
        head = draft.generation.text[:end]
        messages = grounded_messages(PROMPTS, self.question, passages)
        asked = Continuation.of(step, self.question, messages, head, PROMPTS)
        reply = await write(step, asked.messages, self.settings.max_tokens)
        whole = _joined(Generation(text=head), asked.added(reply))
        if not _goes_on(whole, len(head), self.question):
            self.flags.append("continuation_unusable")
            return None
        begun = len(head.rstrip())
        return whole.text[: next(s.end for s in split_sentences(whole.text) if s.end > begun)]

    async def _first_draft(self) -> _Draft:
        messages = direct_messages(self.question)
        async with self.scope.span("draft", detail=DraftMeasured(confidence=self.source)) as step:
            asked = Continuation(messages, "", prefilled=False)
            nothing = Generation(text="", tokens=())
            generation = await not_empty(
                step, lambda sample: self._write(step, nothing, asked, sample, ends_early=True)
            )
            step.revised(generation)
        if generation.finish_reason == "watcher":
            self.flags.append("early_stop")
        return _Draft(0, generation, messages, "", ((0, step.id),))

    async def _detect(self, draft: _Draft) -> list[EntityVerdict]:
        """RHD over the whole draft, every entity recorded; the original gets a verdict of its own.

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

    def _record(self, step: Scope, draft: _Draft, verdicts: Sequence[EntityVerdict]) -> None:
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
        if decisive is None or echoes(text, self.question):
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
        self, step: Scope, draft: _Draft, readings: Sequence[EntityReading]
    ) -> list[EntityReading]:
        """The readings with P(E) = share of the samples that contain the entity.

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

    async def _answered(self, draft: _Draft) -> _Draft | None:
        """What the evidence answers, in place of a draft that is none; None without any."""
        if not nearest.takes_sentence(self.scope, self.settings.wording):
            return None
        end = len(draft.generation.text)
        async with self.scope.span("correct", draft=draft.number, start=0, end=end) as step:
            passages = await self._found(step, self.question.text)
            return await self._from_sentence(step, draft, 0, passages) if passages else None

    async def _found(self, step: Scope, query: str) -> list[Passage]:
        """What a search finds; that nothing is found, or the search fails, is flagged."""
        passages = await found_for(step, query, self.settings.passages)
        if not passages:
            self.flags.append("search_failed" if passages is None else "no_evidence")
        return passages or []

    async def _sought(self, step: Scope, draft: _Draft, target: EntityReading) -> list[Passage]:
        """What SEK finds with the text around `target`."""
        text, units = draft.generation.text, units_of(draft.generation)
        query = sek.formulate_query(text, units, target.first, target.stop, self.settings.m)
        # A text that is the entity alone leaves no query: the question is searched for.
        return await self._found(step, query or self.question.query)

    async def _correct(self, draft: _Draft, target: EntityReading) -> _Draft | None:
        """SEK at `target`; None when there was nothing to correct it with."""
        generation = draft.generation
        async with self.scope.span(
            "correct", draft=draft.number, start=target.start, end=target.end
        ) as step:
            units = units_of(generation)
            passages = await self._sought(step, draft, target)
            if not passages:
                return None
            if nearest.takes_sentence(step, self.settings.wording):
                return await self._from_sentence(step, draft, target.sentence_start, passages)
            kept = sek.kept_prefix(units, target.first)
            end = sek.prefix_end(units, kept, target.start)
            messages = grounded_messages(PROMPTS, self.question, passages)
            revised = await self._go_on(step, draft, messages, end, kept, corrects=True)
            if revised is not None:
                self.revised.add(target.sentence_start)
            return revised

    async def _from_sentence(
        self, step: Scope, draft: _Draft, sentence_start: int, passages: Sequence[Passage]
    ) -> _Draft | None:
        """The text before the doubtful sentence, and what the evidence makes of the rest.

        None where that changes nothing: then no other entity is searched for either, since the
        question and its nearest sentence would be the same.
        """
        before = draft.generation.text
        correction = await nearest.correct(step, self.question, passages, before)
        self.flags.append(correction.flag)
        if not correction.changes:
            self.handled = len(before)
            return None
        # After a wrong "No." the answer cannot continue with a right "Yes.".
        start = 0 if asks_yes_or_no(self.question) else sentence_start
        generation = Generation(text=before[:start] + correction.text)
        number = draft.number + 1
        step.revised(generation, draft=number, before=before, start=start, reason="quoted")
        return _Draft(number, generation, draft.messages, "", ((0, step.id),), measured=False)

    async def _resume(self, draft: _Draft) -> _Draft | None:
        """Go on where the writing was ended, with the prompt it was written for."""
        kept, end = len(units_of(draft.generation)), len(draft.generation.text)
        async with self.scope.span("resume", draft=draft.number) as step:
            return await self._go_on(step, draft, draft.messages, end, kept, corrects=False)

    async def _go_on(
        self,
        step: Scope,
        draft: _Draft,
        messages: tuple[Message, ...],
        end: int,
        kept: int,
        *,
        corrects: bool,
    ) -> _Draft | None:
        """The draft up to offset `end`, its first `kept` tokens, and what the model adds to it.

        None, with a flag, where that is nothing that could continue a text, and where the text is
        as long as it may be.
        """
        before = draft.generation
        if kept >= self.settings.max_tokens:
            # A service that writes more than it is asked for would be asked for ever.
            self.flags.append("truncated")
            return None
        head = before.model_copy(
            update={"text": before.text[:end], "tokens": before.tokens and before.tokens[:kept]}
        )
        asked = Continuation.of(step, self.question, messages, head.text, PROMPTS)
        generation = await self._write(step, head, asked, ends_early=corrects)
        if not _goes_on(generation, len(head.text), self.question):
            self.flags.append("continuation_unusable")
            return None
        step.revised(
            generation,
            draft=draft.number + 1,
            before=before.text,
            start=end,
            reason="corrected" if corrects else "resumed",
        )
        parts = tuple(part for part in draft.parts if part[0] < end)
        return _Draft(draft.number + 1, generation, messages, head.text, (*parts, (end, step.id)))

    async def _write(
        self,
        step: Scope,
        head: Generation,
        asked: Continuation,
        sample: int | None = None,
        *,
        ends_early: bool,
    ) -> Generation:
        """`head` and what the model adds to it, with the tokens that confidence is computed from.

        Every part keeps the values of the prompt it was written with.
        """
        stop = None
        if ends_early and self.settings.early_stop and self.source == "logprobs":
            stop = EarlyStop(
                lambda reply: self._tokens_to_go(step, _joined(head, asked.added(reply))),
                self.settings.m + 1,
            )
        left = max(1, self.settings.max_tokens - len(units_of(head)))
        reply = await write(step, asked.messages, left, stop, sample)
        added = asked.added(reply if stop is None else stop.cut(reply))
        missing = self.source == "logprobs" and added.text and added.tokens is None
        whole, start = _joined(head, added), len(head.text)
        used = not start or _goes_on(whole, start, self.question)
        if missing and used and self.settings.confidence == "auto":
            self._stand_in(alone=not head.text)
        if self.source == "samples":
            added = added.model_copy(update={"tokens": None})
        elif self.source == "proxy" and added.text:
            scored = await step.model("proxy").score(
                ScoreRequest(
                    messages=asked.messages, text=added.text, reproducible=step.reproducible
                )
            )
            added = added.model_copy(update={"tokens": scored.tokens})
        return _joined(head, added)

    def _tokens_to_go(self, step: Scope, generation: Generation) -> int:
        """How many more tokens have to be written before the text may end; 0: it may end here.

        It may end when its first doubtful entity and m tokens behind that entity's first are
        complete. An entity at the end of the text may still grow and is not judged.
        """
        m = self.settings.m
        if not generation.text.strip():
            return m + 1
        readings = self._readings(generation, step.entities_now(generation.text))
        written = len(units_of(generation))
        complete = [reading for reading in readings if reading.stop < written]
        thresholds = self._thresholds(generation)
        target = rhd.first_doubtful(
            [rhd.judge(reading, thresholds, self.settings) for reading in complete],
            after=self.handled,
        )
        if target is not None:
            return max(0, target.reading.first + m + 1 - written)
        # The next one to be doubtful begins here at the earliest.
        first = readings[-1].first if len(complete) < len(readings) else written
        return max(1, first + m + 1 - written)

    def _thresholds(self, generation: Generation) -> DetectorThresholds:
        found = rhd.thresholds_for(self.settings, self.measured_by, generation.tokens)
        return found.model_copy(update={"confidence": self.later_source})

    def _readings(self, generation: Generation, entities: Sequence[Entity]) -> list[EntityReading]:
        return rhd.read_entities(generation.text, units_of(generation), self.question, entities)


def _goes_on(whole: Generation, start: int, question: Question) -> bool:
    """Whether what the model added from offset `start` on is a text that goes on.

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


def _joined(head: Generation, added: Generation) -> Generation:
    """Both parts as one text, without white space at its end."""
    whole = appended(head, added)
    if head.tokens is None or added.tokens is None:
        # A text is measured by the tokens of all of it, or by none.
        whole = whole.model_copy(update={"tokens": None})
    return part_of(whole, 0, len(whole.text.rstrip()))
