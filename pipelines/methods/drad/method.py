"""DRAD: detect an improbable entity, retrieve, revise from there.

RHD (`rhd.py`) finds the first hallucinated entity of the draft; SEK (`sek.py`) searches with what
stands around it, keeps the text before it untouched and lets the model go on from there with the
passages in view. What it then writes is checked in turn; each sentence is revised at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.base import Answer, Generation, Message, Passage, Token
from pipelines.methods import nearest
from pipelines.methods.base import Method, Need, Question, Stage
from pipelines.methods.direct import direct_messages
from pipelines.methods.drad import detection, sek
from pipelines.methods.drad.detection import (
    PROMPTS,
    Detection,
    Draft,
    EntityReading,
    goes_on,
    joined,
)
from pipelines.methods.drad.settings import DradSettings
from pipelines.methods.replies.lists import asks_yes_or_no
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.writing import (
    Continuation,
    grounded_messages,
    not_empty,
    part_of,
    units_of,
    write,
)
from pipelines.models.base import Delta, ScoreRequest
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Judged, Score
from pipelines.run.findings import DraftMeasured
from pipelines.run.scope import Scope
from pipelines.text import has_han, split_sentences

# Ends DRAD's writing as soon as its first doubtful entity is complete.


class EarlyStop:
    """A watcher that ends a text as soon as `to_go` says so, between two words.

    `to_go` is given the reply so far, `first` tokens long at least, and says how many more tokens
    it needs; 0 ends the text.
    Where the text ends depends on its tokens alone, not on the pieces in which they arrive or on
    whether the backend stops at once: so it ends there again when the run is replayed.
    """

    def __init__(self, to_go: Callable[[Generation], int], first: int) -> None:
        self._to_go = to_go
        self._first = first
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._seen: list[Token] = []
        self._look_at = self._first
        self._end: int | None = None

    def __call__(self, delta: Delta) -> bool:
        """Take in what was written; return whether the text may end."""
        if delta.restart:
            self._begin()
        self._text += delta.text
        for token in delta.tokens:
            self._follow(token)
        return self._end is not None

    def cut(self, reply: Generation) -> Generation:
        """Return `reply` as far as it was to be written."""
        self._text = reply.text
        for token in (reply.tokens or ())[len(self._seen) :]:
            self._follow(token)
        if self._end is None:
            return reply
        kept = part_of(reply, 0, self._end)
        return kept.model_copy(update={"finish_reason": "watcher"})

    def _follow(self, token: Token) -> None:
        if self._end is not None:
            return
        if len(self._seen) >= self._look_at and self._begins_a_word(token):
            so_far = Generation(text=self._text[: token.start], tokens=tuple(self._seen))
            wait = self._to_go(so_far)
            if wait == 0:
                self._end = token.start
                return
            self._look_at = len(self._seen) + wait
        self._seen.append(token)

    def _begins_a_word(self, token: Token) -> bool:
        if token.start < self._seen[-1].end:
            # Both hold bytes of one character.
            return False
        around = self._text[token.start - 1 : token.start] + token.text[:1]
        return any(char.isspace() or has_han(char) for char in around)


# DRAD for a text that is there already: its doubtful sentences are corrected in place (ours).
#
# The writer of the text is not here: the main model goes on from the doubtful entity to the end of
# its sentence, and what the text says after that is read anew.


class GivenTextDetection(Detection):
    """One run over the given text."""

    async def answer(self, text: str) -> Answer:
        """Return `text` with its doubtful sentences corrected; the rest stays."""
        messages = direct_messages(self.question)
        async with self.scope.span("draft", detail=DraftMeasured(confidence=self.source)) as step:
            generation = await self._read(step, messages, text)
            step.revised(generation)
            draft = Draft(0, generation, messages, "", ((0, step.id),))
        read = {"proxy": "tokens_proxy", "samples": "confidence_samples"}
        self.flags = [read.get(self.source, "tokens_read")]
        verdicts = await self._detect(draft)
        while (target := detection.first_doubtful(verdicts, after=self.handled)) is not None:
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
        """Return `text` with the probabilities that its reader gives its tokens; none beside
        samples.
        """
        if self.source == "samples":
            return Generation(text=text)
        role = "proxy" if self.source == "proxy" else "main"
        request = ScoreRequest(messages=messages, text=text, reproducible=step.reproducible)
        return Generation(text=text, tokens=(await step.model(role).score(request)).tokens)

    async def _corrected_sentence(self, draft: Draft, target: EntityReading) -> Draft | None:
        """Return the given text with another sentence in place of the one of `target`; None
        without.
        """
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
        return Draft(number, generation, draft.messages, "", ((0, step.id),))

    async def _quoted(
        self, step: Scope, draft: Draft, target: EntityReading, passages: Sequence[Passage]
    ) -> str | None:
        """Return the text up to the end of the sentence of `target`, which the evidence takes the
        place of where the judge does not find it supported.
        """
        before, start = draft.generation.text, target.sentence_start
        said = next(one for one in split_sentences(before) if one.end > target.start)
        states = Question(text=said.text, language=self.question.language)
        found = await nearest.correct(step, states, passages, said.text, states=True)
        self.flags.append(found.flag)
        return before[:start] + found.text if found.changes else None

    async def _rewritten(
        self, step: Scope, draft: Draft, target: EntityReading, passages: Sequence[Passage]
    ) -> str | None:
        """Return the text before `target`, and what the main model makes of the rest of its
        sentence.
        """
        units = units_of(draft.generation)
        end = sek.prefix_end(units, sek.kept_prefix(units, target.first), target.start)
        head = draft.generation.text[:end]
        messages = grounded_messages(PROMPTS, self.question, passages)
        asked = Continuation.of(step, self.question, messages, head, PROMPTS)
        reply = await write(step, asked.messages, self.settings.max_tokens)
        whole = joined(Generation(text=head), asked.added(reply))
        if not goes_on(whole, len(head), self.question):
            self.flags.append("continuation_unusable")
            return None
        begun = len(head.rstrip())
        return whole.text[: next(s.end for s in split_sentences(whole.text) if s.end > begun)]


RANKED_SCORES = {
    "probability": ("entity_probability",),
    "entropy": ("entity_entropy",),
    "either": ("entity_probability", "entity_entropy"),
}
"""What ranks an entity, by the setting `ranked_by`."""


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

    def ranking(self, event: Judged, settings: Mapping[str, Any]) -> tuple[Score, ...] | None:
        reading = event.detail
        if not isinstance(reading, EntityReading):
            return None
        if settings.get("skip_repeats") and reading.repeats:
            return ()
        names = RANKED_SCORES[settings.get("ranked_by", "probability")]
        found = {score.name: score for score in event.scores}
        return tuple(found.get(name, Score(name=name, value=None)) for name in names)

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
        self.source = self.later_source = (
            detection.choose_stand_in(self.scope) if alone else "samples"
        )
        if self.source == "proxy":
            self.measured_by = self.scope.model("proxy").name
        self.flags.append(f"confidence_{self.source}")

    async def answer(self) -> Answer:
        """Return the model's own draft, checked and revised as it is written."""
        draft = await self._first_draft()
        original = draft.generation.text
        verdicts = await self._detect(draft)
        if remark := no_answer(original, self.question):
            # Whatever can be doubted in it, it is no answer.
            self.flags.append(remark)
            draft, verdicts = await self._answered(draft) or draft, []
        while True:
            target = detection.first_doubtful(verdicts, after=self.handled)
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
        target = detection.first_doubtful(
            [detection.judge(reading, thresholds, self.settings) for reading in complete],
            after=self.handled,
        )
        if target is not None:
            return max(0, target.reading.first + m + 1 - written)
        # The next one to be doubtful begins here at the earliest.
        first = readings[-1].first if len(complete) < len(readings) else written
        return max(1, first + m + 1 - written)
