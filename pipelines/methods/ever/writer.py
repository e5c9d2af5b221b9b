"""EVER for long answers and reasoning chains: a sentence is verified before the next is written."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.check import Look, Target
from pipelines.methods.ever.rectify import may_go_on, rectify, rectify_reason
from pipelines.methods.ever.state import EverRun
from pipelines.methods.ever.text import Piece, cut, first_piece, next_piece, until
from pipelines.methods.replies.parsing import declines
from pipelines.methods.writing import appended, part_of, units_of
from pipelines.run.findings import Stopped
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Message

__all__ = ["write_sentences"]


async def write_sentences(run: EverRun) -> Answer:
    """Write and verify one sentence after the other; what is verified never changes."""
    return await _Writer(run, await run.opening()).write()


class _Writer:
    """The verified text, and the next sentence where it was written ahead."""

    def __init__(self, run: EverRun, messages: tuple[Message, ...]) -> None:
        self.run = run
        self.settings = run.settings
        self.messages = messages
        self.verified = Generation(text="")

    async def write(self) -> Answer:
        run, limit = self.run, self.settings.max_sentences
        original = await run.write_original(self.messages, until(limit), sentences=limit)
        if declines(original.text):
            async with run.scope.span("conclude") as step:
                return run.abstain(step)
        piece = first_piece(original)
        while piece is not None:
            if piece.truncated:
                run.flag("truncated")
            index = len(run.sentences)
            ahead = await self._verify(index, piece)
            if len(units_of(self.verified)) >= self.settings.max_tokens:
                run.flag("truncated")
                break
            if run.sentences[-1].last:
                break
            piece = ahead or await self._next(index + 1)
        async with run.scope.span("conclude") as step:
            short = await self._short(step) if self.settings.task == "chain" else None
            if short == "" and self.verified.text:
                # The question asks for the answer at the end of the chain, and there is none.
                return run.abstain(step)
            if run.current.text != self.verified.text:
                # The original went on where the verified text came to its end.
                run.revise(step, self.verified, len(self.verified.text), "ended")
            return run.conclude(step, short=short)

    async def _next(self, index: int) -> Piece | None:
        async with self.run.scope.span("next_sentence", sentence=index) as step:
            piece = await self._continued(step, self.verified)
            if piece is not None:
                self._take(step, index, piece)
        return piece

    async def _continued(self, step: Scope, base: Generation) -> Piece | None:
        return await next_piece(
            step, self.run.question, self.messages, base, max_tokens=self.settings.max_tokens
        )

    def _take(self, step: Scope, index: int, piece: Piece) -> None:
        after = appended(self.verified, piece.generation)
        self.run.revise(step, after, len(self.verified.text), "written", sentence=index)

    async def _verify(self, index: int, piece: Piece) -> Piece | None:
        """Check and rectify the sentence until that ends; the next one where it is known."""
        async with self.run.scope.span("sentence", sentence=index) as step:
            last = piece.last or index + 1 >= self.settings.max_sentences
            base = appended(self.verified, piece.generation)
            ahead = self._ahead(step, index + 1, base) if not last else None
            try:
                looks, stopped = await self._rectified(step, index, piece)
                target = looks[-1].target
                self.verified = cut(self.run.current, target.start + len(target.text))
                kept = ahead is not None and self.verified.text == base.text
                following = await ahead if ahead is not None and kept else None
            finally:
                if ahead is not None:
                    ahead.cancel()
                    # Gathered, so that being stopped oneself is not taken for the end of `ahead`.
                    await asyncio.gather(ahead, return_exceptions=True)
            self.run.verified(
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
        run = self.run
        looks: list[Look] = []
        while True:
            target = Target(
                sentence=index,
                round=len(looks),
                draft=run.draft,
                start=len(self.verified.text) + piece.start,
                text=piece.sentence,
                context=self.verified.text,
                attempt="rectified" if looks else "draft",
            )
            look = await run.checker.check(step, target)
            looks.append(look)
            if not may_go_on(look, target.round, self.settings.max_rounds):
                return looks, "limit" if look.of("contradicted") else "finished"
            written = await rectify(step, run.question, look)
            if not written:
                return looks, "unusable"
            if written == piece.sentence:
                # The same words would be judged the same.
                return looks, "same"
            rewritten = Generation(text=piece.generation.text[: piece.start] + written)
            # What is rewritten has no tokens; the text around it keeps its own.
            none = part_of(piece.generation, 0, 0)
            piece = replace(piece, generation=appended(none, rewritten))
            run.revise(
                step,
                appended(self.verified, piece.generation),
                target.start,
                rectify_reason(look),
                sentence=index,
                round=len(looks),
            )

    def _ahead(
        self, step: Scope, index: int, base: Generation
    ) -> asyncio.Task[Piece | None] | None:
        if not self.settings.speculative:
            return None

        async def write() -> Piece | None:
            async with step.span("speculate", sentence=index) as own:
                return await self._continued(own, base)

        return asyncio.create_task(write())

    async def _short(self, step: Scope) -> str:
        """The bare answer that follows from the verified chain; "" where none does."""
        if not split_sentences(self.verified.text):
            return ""
        question = self.run.question
        asked = PROMPTS.turns(
            question.language, "conclude", question=question.text, chain=self.verified.text
        )
        return await ask_line(step, asked, max_tokens=48)
