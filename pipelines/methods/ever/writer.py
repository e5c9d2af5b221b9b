"""EVER for long answers and reasoning chains: a sentence is verified before the next is written."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pipelines.concurrency import ended
from pipelines.methods.base import Question
from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.check import Look, Target
from pipelines.methods.ever.rectify import may_go_on, rectify, rectify_reason
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.ever.state import EverRun
from pipelines.methods.ever.text import Piece, cut, first_piece, next_piece, until
from pipelines.methods.replies.parsing import declines
from pipelines.methods.writing import appended, part_of, units_of
from pipelines.run.findings import Stopped
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Message

__all__ = ["SentenceWriter"]


class SentenceWriter(EverRun):
    """One sentence is written and verified after the other; what is verified never changes."""

    def __init__(self, question: Question, scope: Scope, settings: EverSettings) -> None:
        super().__init__(question, scope, settings)
        self.messages: tuple[Message, ...] = ()
        self.verified = Generation(text="")

    async def answer(self) -> Answer:
        limit = self.settings.max_sentences
        self.messages = await self.opening()
        original = await self.write_original(self.messages, until(limit), sentences=limit)
        if declines(original.text):
            async with self.scope.span("conclude") as step:
                return self.abstain(step)
        piece = first_piece(original)
        while piece is not None:
            if piece.truncated:
                self.flag("truncated")
            index = len(self.sentences)
            following = await self._verify(index, piece)
            if len(units_of(self.verified)) >= self.settings.max_tokens:
                self.flag("truncated")
                break
            if self.sentences[-1].last:
                break
            piece = following or await self._continue(self.scope, index + 1, self.verified)
        async with self.scope.span("conclude") as step:
            short = await self._short(step) if self.settings.task == "chain" else None
            if short == "" and self.verified.text:
                # The question asks for the answer at the end of the chain, and there is none.
                return self.abstain(step)
            if self.current.text != self.verified.text:
                # The original went on where the verified text came to its end.
                self.revise(step, self.verified, len(self.verified.text), "ended")
            return self.conclude(step, short=short)

    async def _continue(
        self, scope: Scope, index: int, base: Generation, *, ahead: bool = False
    ) -> Piece | None:
        """The sentence after `base`; written `ahead`, it is not taken yet."""
        name = "speculate" if ahead else "next_sentence"
        async with scope.span(name, sentence=index) as step:
            piece = await next_piece(
                step, self.question, self.messages, base, max_tokens=self.settings.max_tokens
            )
            if piece is not None and not ahead:
                self._take(step, index, piece)
        return piece

    def _take(self, step: Scope, index: int, piece: Piece) -> None:
        after = appended(self.verified, piece.generation)
        self.revise(step, after, len(self.verified.text), "written", sentence=index)

    async def _verify(self, index: int, piece: Piece) -> Piece | None:
        """Check and rectify the sentence until that ends; the next one where it is known."""
        async with self.scope.span("sentence", sentence=index) as step:
            last = piece.last or index + 1 >= self.settings.max_sentences
            base = appended(self.verified, piece.generation)
            ahead = None
            if self.settings.speculative and not last:
                ahead = asyncio.ensure_future(self._continue(step, index + 1, base, ahead=True))
            try:
                looks, stopped = await self._rectified(step, index, piece)
                target = looks[-1].target
                self.verified = cut(self.current, target.start + len(target.text))
                kept = ahead is not None and self.verified.text == base.text
                following = await ahead if ahead is not None and kept else None
            finally:
                if ahead is not None:
                    await ended(ahead)
            self.record(
                step,
                looks,
                stopped,
                # Written ahead and kept, an end of the text is as good as one found afterwards.
                last=last or (kept and following is None),
                speculation="" if ahead is None else "kept" if kept else "discarded",
            )
            if following is not None:
                self._take(step, index + 1, following)
        return following

    async def _rectified(self, step: Scope, index: int, piece: Piece) -> tuple[list[Look], Stopped]:
        looks: list[Look] = []
        while True:
            target = Target(
                sentence=index,
                round=len(looks),
                draft=self.draft,
                start=len(self.verified.text) + piece.start,
                text=piece.sentence,
                context=self.verified.text,
                attempt="rectified" if looks else "draft",
            )
            look = await self.checker.check(step, target)
            looks.append(look)
            if not may_go_on(look, target.round, self.settings.max_rounds):
                return looks, "limit" if look.of("contradicted") else "finished"
            written = await rectify(step, self.question, look)
            if not written:
                return looks, "unusable"
            if written == piece.sentence:
                # The same words would be judged the same.
                return looks, "same"
            rewritten = Generation(text=piece.generation.text[: piece.start] + written)
            # What is rewritten has no tokens; the text around it keeps its own.
            none = part_of(piece.generation, 0, 0)
            piece = replace(piece, generation=appended(none, rewritten))
            self.revise(
                step,
                appended(self.verified, piece.generation),
                target.start,
                rectify_reason(look),
                sentence=index,
                round=len(looks),
            )

    async def _short(self, step: Scope) -> str:
        """The bare answer that follows from the verified chain; "" where none does."""
        if not split_sentences(self.verified.text):
            return ""
        question = self.question
        asked = PROMPTS.turns(
            question.language, "conclude", question=question.text, chain=self.verified.text
        )
        return await ask_line(step, asked, max_tokens=48)
