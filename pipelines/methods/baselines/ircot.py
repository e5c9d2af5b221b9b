"""IRCoT, also called FLR: one search for every sentence that the model writes.

Source: Trivedi et al., ACL 2023 ("Interleaving retrieval with chain-of-thought reasoning"). The
question is searched for; the model writes one sentence with the passages in view; this sentence is
the next query; and so on, until a sentence holds the answer. Comparisons by DRAD's authors call
the form that keeps only the newest passages fixed-sentence retrieval (FLR).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.base import Answer, Generation, Message, Passage
from pipelines.methods import nearest
from pipelines.methods.base import Demonstrations, Method, Need, Question, Settings, Stage, Wording
from pipelines.methods.baselines import shared
from pipelines.methods.baselines.chain_of_thought import reasoned_messages
from pipelines.methods.baselines.shared import BaselineRun, query_of
from pipelines.methods.ever import calls as ever_calls
from pipelines.methods.ever.writer import WrittenSentence, drafted_piece, next_piece, until
from pipelines.methods.replies.announced import read_answer
from pipelines.methods.replies.parsing import declines
from pipelines.methods.writing import (
    appended,
    demonstrates,
    distinct,
    first_draft,
    found_for,
    grounded_messages,
    units_of,
)
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES
from pipelines.run.scope import Scope

PROMPTS = load_prompts("ircot")
_RAG = load_prompts("rag")


class IrcotSettings(Settings):
    """Settings of retrieval for every sentence."""

    passages: int = Field(
        3, ge=1, le=20, description="Passages per search (published comparisons: 3)."
    )
    keep: Literal["all", "newest"] = Field(
        "all",
        description="Passages in view while a sentence is written: all found so far (IRCoT), or"
        " those of the newest search (fixed-sentence retrieval in published comparisons).",
    )
    max_passages: int = Field(
        15,
        ge=1,
        le=50,
        description="Maximum passages in view (IRCoT: 15); beyond them the oldest leave (ours;"
        " authors' code: no more are added).",
    )
    max_sentences: int = Field(8, ge=1, le=20, description="Maximum sentences (IRCoT: 8).")
    max_tokens: int = Field(
        256, ge=32, le=1024, description="Longest answer with its reasoning, in tokens (ours: 256)."
    )
    demonstrations: Demonstrations = "auto"
    wording: Wording = "auto"


class Ircot(Method[IrcotSettings]):
    """Retrieval for every sentence: the last sentence is the query for the next."""

    name = "ircot"
    page = "baselines"
    judges = False
    baseline = True
    effort = 5
    roles = JUDGES
    settings_type = IrcotSettings
    flow = (
        Stage("retrieve", repeats=True),
        Stage("draft", ("nearest",)),
        Stage("next_sentence", optional=True, repeats=True),
        Stage("conclude", optional=True),
    )
    prompts = (PROMPTS, _RAG, shared.COT_PROMPTS, ever_calls.PROMPTS, nearest.PROMPTS)

    def needs(self, settings: IrcotSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: IrcotSettings) -> Answer:
        return await IrcotRun(question, scope, settings).answer()


class IrcotRun(BaselineRun[IrcotSettings]):
    """One run: the text so far, and the passages in view."""

    def __init__(self, question: Question, scope: Scope, settings: IrcotSettings) -> None:
        super().__init__(question, scope, settings)
        self.text = Generation(text="")
        self.passages: tuple[Passage, ...] = ()

    async def answer(self) -> Answer:
        """Return the text that was written sentence by sentence, and the bare answer in it."""
        await self._search(self.question.text)
        sentence = nearest.takes_sentence(self.scope, self.settings.wording)
        if sentence and self.passages and self.scope.given is None:
            return await self._from_sentence()
        piece = await self._first()
        while piece is not None and not self._is_last(piece):
            await self._search(query_of(piece.sentence, self.question))
            piece = await self._next()
        short = read_answer(self.text.text)
        if not short:
            async with self.scope.span("conclude") as step:
                short = await shared.bare_answer(step, self.question, self.text.text)
        if not short:
            self.flag("no_final_answer")
        return Answer(
            text=self.text.text,
            # Nothing that was written is corrected.
            original=self.text.text,
            short=short or None,
            abstained=declines(short),
            flags=tuple(self.flags),
        )

    async def _search(self, query: str) -> None:
        """Take what a search finds into view; what was in view stays where it finds nothing."""
        async with self.scope.span("retrieve", index=len(self.scope.drafts)) as step:
            found = await found_for(step, query, self.settings.passages)
        if not found:
            self.flag("search_incomplete" if found is None else "no_evidence")
            return
        seen = self.passages if self.settings.keep == "all" else ()
        self.passages = distinct((*seen, *found))[-self.settings.max_passages :]

    def _messages(self) -> tuple[Message, ...]:
        shown = demonstrates(self.scope, self.settings.demonstrations)
        if not self.passages:
            return reasoned_messages(self.question, shown=shown)
        asked = grounded_messages(PROMPTS, self.question, self.passages)
        shots = reasoned_messages(self.question, shown=shown)[1:-1]
        return (asked[0], *shots, asked[-1])

    async def _first(self) -> WrittenSentence | None:
        """Return the first sentence, which is draft 0."""
        limit = self.settings.max_tokens
        async with self.scope.span("draft", sentence=0) as step:
            written = await first_draft(step, self._messages(), limit, until(1))
            piece = drafted_piece(written)
            if step.given is not None or piece is None:
                # A given text is kept whole, and checking of it is not this method's.
                self.text = written
                piece = None
            else:
                self.text = piece.generation
            step.revised(self.text)
        return piece

    async def _next(self) -> WrittenSentence | None:
        """Return the next sentence, added to the text; None where the answer ends."""
        before = self.text
        async with self.scope.span("next_sentence", sentence=len(self.scope.drafts)) as step:
            piece, refused = await next_piece(
                step,
                self.question,
                self._messages(),
                before,
                max_tokens=self.settings.max_tokens,
            )
            if piece is None:
                if refused:
                    self.flag("continuation_unusable")
                return None
            self.text = appended(before, piece.generation)
            step.revised(
                self.text,
                draft=len(self.scope.drafts),
                before=before.text,
                start=len(before.text),
                reason="written",
            )
        return piece

    def _is_last(self, piece: WrittenSentence) -> bool:
        """Return whether the text ends with this sentence."""
        if piece.truncated or len(units_of(self.text)) >= self.settings.max_tokens:
            self.flag("truncated")
            return True
        return (
            piece.last
            or bool(read_answer(piece.sentence))
            or len(self.scope.drafts) >= self.settings.max_sentences
        )

    async def _from_sentence(self) -> Answer:
        """Return what the evidence's nearest sentence says, as RAG answers with a weak model."""
        async with self.scope.span("draft", sentence=0) as step:
            correction = await nearest.correct(step, self.question, self.passages)
            text = correction.text or _RAG.fill(self.question.language, "insufficient")
            step.revised(Generation(text=text))
        return Answer(
            text=text,
            original=text,
            short=correction.shortened or None,
            abstained=not correction.changes,
            flags=(*self.flags, correction.flag),
        )
