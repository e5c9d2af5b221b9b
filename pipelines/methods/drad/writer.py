"""One run of DRAD: write a draft, find the first doubtful entity, correct from there, repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.direct import direct_messages
from pipelines.methods.drad import confidence, rhd, sek
from pipelines.methods.drad.rhd import EntityReading, EntityVerdict
from pipelines.methods.drad.settings import DradSettings
from pipelines.methods.drafts import grounded_messages
from pipelines.methods.writing import continue_text
from pipelines.models.base import Delta, Watcher
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.text import EntityRecognizer
from pipelines.types import Answer, Generation, Message, Passage, Token

__all__ = ["PROMPTS", "DradWriter"]

PROMPTS = load_prompts("drad")


@dataclass(frozen=True)
class _Draft:
    """A state of the text, and the prompt its newest part was written for."""

    number: int
    generation: Generation
    messages: tuple[Message, ...]
    prefix: str


class DradWriter:
    """One run of DRAD: the drafts, and how far they have been settled."""

    def __init__(
        self,
        question: Question,
        scope: Scope,
        settings: DradSettings,
        recognizer: EntityRecognizer,
    ) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        self.recognizer = recognizer
        self.source = confidence.choose_source(scope, settings.confidence)
        # Offset of the last sentence that was revised or found beyond revising.
        self.settled = -1
        self.flags: list[str] = []
        if self.source != "logprobs":
            self.flags.append(f"confidence_{self.source}")

    async def write(self) -> Answer:
        draft = await self._draft(direct_messages(self.question))
        original = draft.generation.text
        readings, verdicts = await self._detect(draft)
        while True:
            target = rhd.first_doubtful(
                readings, verdicts, after=self.settled, skip_repeats=self.settings.skip_repeats
            )
            if target is not None:
                self.settled = target.sentence_start
                following = await self._correct(draft, target)
            elif draft.generation.finish_reason == "watcher":
                # Stopped early, but nothing is left to correct: write the rest.
                following = await self._resume(draft)
            else:
                break
            if following is not None:
                draft = following
                readings, verdicts = await self._detect(draft)
        return Answer(text=draft.generation.text, original=original, flags=tuple(self.flags))

    async def _draft(self, messages: tuple[Message, ...]) -> _Draft:
        async with self.scope.span("draft", confidence=self.source) as step:
            generation = await step.write(
                step.request(
                    messages,
                    max_tokens=self.settings.max_tokens,
                    logprobs=step.model().capabilities.logprobs,
                ),
                watch=self._early_stop(Generation(text="")),
            )
            generation = await self._measured(step, generation, messages, "")
            step.revised(
                draft=0,
                before="",
                after=generation.text,
                start=0,
                reason="original",
                generation=generation,
            )
        return _Draft(0, generation, messages, "")

    async def _detect(self, draft: _Draft) -> tuple[list[EntityReading], list[EntityVerdict]]:
        """RHD over the whole draft, every entity recorded."""
        settings = self.settings
        async with self.scope.span("detect", draft=draft.number) as step:
            # Finding names takes its time, at the first draft even seconds: other runs go on.
            readings = await asyncio.to_thread(self._read, draft.generation)
            if self.source == "samples":
                readings = await confidence.by_samples(
                    step,
                    self.question,
                    readings,
                    messages=draft.messages,
                    prefix=draft.prefix,
                    count=settings.samples,
                    max_tokens=settings.max_tokens,
                    prompts=PROMPTS,
                )
            thresholds = settings.thresholds()
            verdicts = [rhd.judge(reading, thresholds) for reading in readings]
            for reading, verdict in zip(readings, verdicts, strict=True):
                rhd.record(step, draft.number, reading, verdict, thresholds)
        return readings, verdicts

    async def _correct(self, draft: _Draft, target: EntityReading) -> _Draft | None:
        """SEK at `target`; None when there was nothing to correct it with."""
        generation = draft.generation
        async with self.scope.span(
            "correct", draft=draft.number, start=target.start, end=target.end
        ) as step:
            passages = await self._retrieve(step, generation, target)
            if not passages:
                return None
            units = sek.units_of(generation)
            kept = sek.kept_prefix(units, target.first)
            end = sek.prefix_end(units, kept, target.start)
            messages = grounded_messages(PROMPTS, self.question, passages)
            return await self._go_on(step, draft, messages, end, kept, corrects=True)

    async def _resume(self, draft: _Draft) -> _Draft:
        """Go on where the writing had stopped, with the prompt it was written for."""
        units = sek.units_of(draft.generation)
        end = len(draft.generation.text)
        async with self.scope.span("resume", draft=draft.number) as step:
            return await self._go_on(step, draft, draft.messages, end, len(units), corrects=False)

    async def _go_on(
        self,
        step: Scope,
        draft: _Draft,
        messages: tuple[Message, ...],
        end: int,
        kept: int,
        *,
        corrects: bool,
    ) -> _Draft:
        before = draft.generation
        prefix = before.text[:end]
        head = before.model_copy(
            update={"text": prefix, "tokens": before.tokens and before.tokens[:kept]}
        )
        written = await continue_text(
            step,
            self.question,
            messages,
            prefix,
            prompts=PROMPTS,
            max_tokens=max(1, self.settings.max_tokens - kept),
            watch=self._early_stop(head) if corrects else None,
        )
        generation = sek.spliced(before, end, kept, written)
        generation = await self._measured(step, generation, messages, prefix)
        step.revised(
            draft=draft.number + 1,
            before=before.text,
            after=generation.text,
            start=end,
            reason="corrected" if corrects else "resumed",
            generation=generation,
        )
        return _Draft(draft.number + 1, generation, messages, prefix)

    async def _retrieve(
        self, step: Scope, generation: Generation, target: EntityReading
    ) -> Sequence[Passage]:
        query = sek.formulate_query(
            generation.text,
            sek.units_of(generation),
            target.first,
            target.stop,
            self.settings.m,
        )
        try:
            # A text that is the entity alone leaves no query: the question stands in.
            passages = await step.search(query or self.question.text, self.settings.passages)
        except VeriscopeError:
            self._flag("search_failed")
            return ()
        if not passages:
            self._flag("no_evidence")
        return passages

    def _read(self, generation: Generation) -> list[EntityReading]:
        return rhd.read_entities(
            generation.text, sek.units_of(generation), self.question, self.recognizer
        )

    async def _measured(
        self, step: Scope, generation: Generation, messages: tuple[Message, ...], prefix: str
    ) -> Generation:
        """The generation with the tokens that confidence is read from."""
        if self.source == "proxy":
            return await confidence.by_proxy(step, generation, direct_messages(self.question))
        if self.source == "samples":
            return generation.model_copy(update={"tokens": None})
        return generation

    def _early_stop(self, head: Generation) -> Watcher | None:
        """Ends the writing once a doubtful entity and its m tokens of lookahead are complete."""
        if not self.settings.early_stop or self.source != "logprobs":
            return None
        text = head.text
        tokens: list[Token] = list(head.tokens or ())

        def watch(delta: Delta) -> bool:
            nonlocal text, tokens
            if delta.restart:
                text, tokens = head.text, list(head.tokens or ())
                return False
            shift = len(head.text)
            text += delta.text
            tokens += [
                token.model_copy(update={"start": token.start + shift, "end": token.end + shift})
                for token in delta.tokens
            ]
            readings = self._read(Generation(text=text, tokens=tuple(tokens)))
            thresholds = self.settings.thresholds()
            target = rhd.first_doubtful(
                readings,
                [rhd.judge(reading, thresholds) for reading in readings],
                after=self.settled,
                skip_repeats=self.settings.skip_repeats,
            )
            return target is not None and len(tokens) > target.first + self.settings.m

        return watch

    def _flag(self, flag: str) -> None:
        if flag not in self.flags:
            self.flags.append(flag)
