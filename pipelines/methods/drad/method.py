"""DRAD: detect an improbable entity, retrieve, revise from there.

RHD (`rhd.py`) finds the first hallucinated entity of the draft; SEK (`sek.py`) searches with what
stands around it, keeps the text before it untouched and lets the model go on from there with the
passages in view. What it then writes is checked in turn; each sentence is revised at most once.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods import nearest
from pipelines.methods.base import Method, Need, Question
from pipelines.methods.direct import direct_messages
from pipelines.methods.drad import rhd, sek
from pipelines.methods.drad.detection import PROMPTS, Detection, Draft, goes_on, joined
from pipelines.methods.drad.early import EarlyStop
from pipelines.methods.drad.given import GivenTextDetection
from pipelines.methods.drad.rhd import EntityReading
from pipelines.methods.drad.settings import DradSettings
from pipelines.methods.flow import Stage
from pipelines.methods.replies.questions import asks_yes_or_no, echoes
from pipelines.methods.writing import Continuation, grounded_messages, not_empty, units_of, write
from pipelines.models.base import ScoreRequest
from pipelines.prompts import load_prompts
from pipelines.run.findings import DraftMeasured
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.types import Answer, Generation, Message, Passage


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
        needs = [Need(reason="model"), Need(reason="evidence", required=False)]
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
        if scope.given is not None:
            return await GivenTextDetection(question, scope, settings).answer(scope.given.text)
        return await _OwnDraft(question, scope, settings).answer()


class _OwnDraft(Detection):
    """One run over what the main model answers."""

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
        """Return the model's own draft, checked and revised as it is written."""
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

    async def _first_draft(self) -> Draft:
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
        return Draft(0, generation, messages, "", ((0, step.id),))

    async def _answered(self, draft: Draft) -> Draft | None:
        """Return what the evidence answers, in place of a draft that is none; None without any."""
        if not nearest.takes_sentence(self.scope, self.settings.wording):
            return None
        end = len(draft.generation.text)
        async with self.scope.span("correct", draft=draft.number, start=0, end=end) as step:
            passages = await self._found(step, self.question.text)
            return await self._from_sentence(step, draft, 0, passages) if passages else None

    async def _correct(self, draft: Draft, target: EntityReading) -> Draft | None:
        """Run SEK at `target`; None when there was nothing to correct it with."""
        generation = draft.generation
        async with self.scope.span(
            "correct", draft=draft.number, start=target.start, end=target.end
        ) as step:
            units = units_of(generation)
            kept = sek.kept_prefix(units, target.first)
            end = sek.prefix_end(units, kept, target.start)
            passages = await self._sought(step, draft, target)
            if not passages:
                return None
            if nearest.takes_sentence(step, self.settings.wording):
                return await self._from_sentence(step, draft, target.sentence_start, passages, end)
            messages = grounded_messages(PROMPTS, self.question, passages)
            revised = await self._go_on(step, draft, messages, end, kept, corrects=True)
            if revised is not None:
                self.revised.add(target.sentence_start)
            return revised

    async def _from_sentence(
        self,
        step: Scope,
        draft: Draft,
        sentence_start: int,
        passages: Sequence[Passage],
        kept: int = 0,
    ) -> Draft | None:
        """Return the text before the doubtful entity, and what the model makes of the rest with the
        nearest sentence in view; where that is no use, the sentence in place of the doubtful one.

        `kept` is the offset up to which the text stays in the first case. None where that changes
        nothing: then no other entity is searched for either, since the question and its nearest
        sentence would be the same.
        """
        before = draft.generation.text
        begun = before[sentence_start:kept].lstrip()
        correction = await nearest.correct(step, self.question, passages, before, begun=begun)
        if correction.form == "none":
            # What stands around an invented entity may lead to another matter (ours).
            known = {one.id for one in passages}
            others = [
                one for one in await self._found(step, self.question.text) if one.id not in known
            ]
            if others:
                correction = await nearest.correct(step, self.question, others, before, begun=begun)
        self.flags.append(correction.flag)
        if not correction.changes:
            self.handled = len(before)
            return None
        # After a wrong "No." the answer cannot continue with a right "Yes.".
        start = 0 if asks_yes_or_no(self.question) else sentence_start
        generation = Generation(text=before[:start] + correction.text)
        number = draft.number + 1
        went_on = correction.form == "shortened" and correction.text.startswith(begun)
        step.revised(
            generation,
            draft=number,
            before=before,
            start=kept if went_on and begun else start,
            reason="corrected" if went_on and begun else "quoted",
        )
        return Draft(number, generation, draft.messages, "", ((0, step.id),), measured=False)

    async def _resume(self, draft: Draft) -> Draft | None:
        """Go on where the writing was ended, with the prompt it was written for."""
        kept, end = len(units_of(draft.generation)), len(draft.generation.text)
        async with self.scope.span("resume", draft=draft.number) as step:
            return await self._go_on(step, draft, draft.messages, end, kept, corrects=False)

    async def _go_on(
        self,
        step: Scope,
        draft: Draft,
        messages: tuple[Message, ...],
        end: int,
        kept: int,
        *,
        corrects: bool,
    ) -> Draft | None:
        """Return the draft up to offset `end`, its first `kept` tokens, and what the model
        adds to it.

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
        if not goes_on(generation, len(head.text), self.question):
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
        return Draft(draft.number + 1, generation, messages, head.text, (*parts, (end, step.id)))

    async def _write(
        self,
        step: Scope,
        head: Generation,
        asked: Continuation,
        sample: int | None = None,
        *,
        ends_early: bool,
    ) -> Generation:
        """Return `head` and what the model adds to it, with the tokens that confidence is
        computed from.

        Every part keeps the values of the prompt it was written with.
        """
        stop = None
        if ends_early and self.settings.early_stop and self.source == "logprobs":
            stop = EarlyStop(
                lambda reply: self._tokens_to_go(step, joined(head, asked.added(reply))),
                self.settings.m + 1,
            )
        left = max(1, self.settings.max_tokens - len(units_of(head)))
        reply = await write(step, asked.messages, left, stop, sample)
        added = asked.added(reply if stop is None else stop.cut(reply))
        missing = self.source == "logprobs" and added.text and added.tokens is None
        whole, start = joined(head, added), len(head.text)
        used = not start or goes_on(whole, start, self.question)
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
        return joined(head, added)

    def _tokens_to_go(self, step: Scope, generation: Generation) -> int:
        """Return how many more tokens have to be written before the text may end; 0: it may
        end here.

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
