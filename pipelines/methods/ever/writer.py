"""EVER for long answers and reasoning chains: a sentence is settled before the next is written."""

from __future__ import annotations

import asyncio

from pipelines.methods.drad.sek import units_of
from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.check import Target, check
from pipelines.methods.ever.record import Check, SentenceRecord, Stopped
from pipelines.methods.ever.rectify import rectify, rectify_reason
from pipelines.methods.ever.state import EverState, may_go_on
from pipelines.methods.ever.text import (
    Piece,
    appended,
    cut,
    first_piece,
    next_piece,
    replaced,
    until,
)
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Message

__all__ = ["write_sentences"]

_Ahead = asyncio.Task[Piece | None]


async def write_sentences(state: EverState) -> Answer:
    """Write, check and settle one sentence after the other; what is settled never changes."""
    return await _Writer(state, await state.opening()).write()


class _Writer:
    """The settled text, and the next sentence where it was written ahead."""

    def __init__(self, state: EverState, messages: tuple[Message, ...]) -> None:
        self.state = state
        self.settings = state.settings
        self.messages = messages
        self.settled = Generation(text="")
        self.records: list[SentenceRecord] = []

    async def write(self) -> Answer:
        state = self.state
        piece = first_piece(await self._original())
        while piece is not None:
            if piece.truncated:
                state.flag("truncated")
            index = len(self.records)
            ahead = await self._settle(index, piece)
            if len(units_of(self.settled)) >= self.settings.max_tokens:
                state.flag("truncated")
                break
            if self.records[-1].last:
                break
            piece = ahead or await self._next(index + 1)
        async with state.scope.span("conclude") as step:
            if state.current.text != self.settled.text:
                # The original went on where the settled text came to its end.
                state.revise(step, self.settled, len(self.settled.text), "ended")
            short = await self._short(step) if self.settings.task == "chain" else None
            return state.conclude(step, self.records, short=short)

    async def _original(self) -> Generation:
        limit = self.settings.max_sentences
        return await self.state.write_original(self.messages, until(limit), sentences=limit)

    async def _next(self, index: int) -> Piece | None:
        async with self.state.scope.span("next_sentence", sentence=index) as step:
            piece = await self._continued(step, self.settled)
            if piece is not None:
                self._take(step, index, piece)
        return piece

    async def _continued(self, step: Scope, base: Generation) -> Piece | None:
        if len(units_of(base)) >= self.settings.max_tokens:
            return None
        return await next_piece(
            step, self.state.question, self.messages, base, max_tokens=self.settings.max_tokens
        )

    def _take(self, step: Scope, index: int, piece: Piece) -> None:
        after = appended(self.settled, piece.generation)
        self.state.revise(step, after, len(self.settled.text), "written", sentence=index)

    async def _settle(self, index: int, piece: Piece) -> Piece | None:
        """Check and rectify the sentence until it is settled; the next one where it is known."""
        async with self.state.scope.span("sentence", sentence=index) as step:
            last = piece.last or index + 1 >= self.settings.max_sentences
            base = appended(self.settled, piece.generation)
            ahead = self._ahead(step, index + 1, base) if not last else None
            try:
                target, checks, stopped = await self._rectified(step, index, piece)
                end = target.start + len(target.text)
                self.settled = cut(self.state.current, end)
                kept = ahead is not None and self.settled.text == base.text
                following = await ahead if ahead is not None and kept else None
            finally:
                if ahead is not None:
                    await _thrown_away(ahead)
            speculation = "" if ahead is None else "kept" if kept else "thrown"
            # Written ahead and kept, an end of the text is as good as one found afterwards.
            last = last or (kept and following is None)
            self.records.append(
                self.state.settle(
                    step,
                    target,
                    checks,
                    stopped=stopped,
                    last=last,
                    speculation=speculation,
                )
            )
            if following is not None:
                self._take(step, index + 1, following)
        return following

    async def _rectified(
        self, step: Scope, index: int, piece: Piece
    ) -> tuple[Target, list[Check], Stopped]:
        state = self.state
        checks: list[Check] = []
        while True:
            target = Target(
                sentence=index,
                round=len(checks),
                draft=state.draft,
                start=len(self.settled.text) + piece.start,
                text=piece.sentence,
                context=self.settled.text,
                attempt="rectified" if checks else "draft",
            )
            checked = await check(step, state.question, self.settings, target, state.known)
            checks.append(checked.check)
            rounds = len(checks) - 1
            if not may_go_on(checked.check, rounds, self.settings.max_rounds):
                limited = bool(checked.check.of("contradicted"))
                return target, checks, "limit" if limited else "settled"
            written = await rectify(step, state.question, target, checked)
            if not written:
                return target, checks, "unusable"
            if written == piece.sentence:
                # The same words would be judged the same.
                return target, checks, "same"
            piece = replaced(piece, written)
            state.revise(
                step,
                appended(self.settled, piece.generation),
                target.start,
                rectify_reason(checked.check.doubtful),
                sentence=index,
                round=rounds + 1,
            )

    def _ahead(self, step: Scope, index: int, base: Generation) -> _Ahead | None:
        if not self.settings.speculative:
            return None

        async def write() -> Piece | None:
            async with step.span("speculate", sentence=index) as own:
                return await self._continued(own, base)

        return asyncio.create_task(write())

    async def _short(self, step: Scope) -> str:
        """The bare answer that follows from the settled chain."""
        if not split_sentences(self.settled.text):
            return ""
        language = self.state.question.language
        content = PROMPTS.fill(
            language,
            "conclude",
            question=self.state.question.text,
            chain=self.settled.text,
        )
        return await ask_line(step, (Message(role="user", content=content),), max_tokens=48)


async def _thrown_away(ahead: _Ahead) -> None:
    ahead.cancel()
    # Gathered, so that being stopped oneself is not taken for the end of what was thrown away.
    await asyncio.gather(ahead, return_exceptions=True)
