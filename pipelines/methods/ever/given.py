"""EVER for a text that is there already: its sentences are verified one after the other (ours).

Only corrections are written: an unsupported sentence is rectified in its place, on the sentences
verified before it, and the rest of the text stays as it was given.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods import nearest
from pipelines.methods.base import Question
from pipelines.methods.ever.check import Target
from pipelines.methods.ever.writer import SentenceWriter, WrittenSentence
from pipelines.methods.replies.parsing import declines
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Passage


class GivenTextWriter(SentenceWriter):
    """Every sentence of the given text, whatever the settings say of the length of an answer."""

    async def answer(self) -> Answer:
        """See `EverRun`."""
        self.messages = await self.opening()
        given = await self.write_original(self.messages)
        text, spans = given.text, split_sentences(given.text)
        self._sentences = len(spans)
        if not declines(text):
            for number, span in enumerate(spans):
                begins = spans[number - 1].end if number else 0
                piece = WrittenSentence(
                    Generation(text=text[begins : span.end]),
                    span.start - begins,
                    last=number + 1 == len(spans),
                )
                self.rest = text[span.end :]
                await self._verify(number, piece)
        async with self.scope.span("conclude") as step:
            return self.conclude(step)

    @property
    def _speculates(self) -> bool:
        # There is nothing to write ahead.
        return False

    def _is_last(self, index: int, piece: WrittenSentence) -> bool:
        del index
        return piece.last

    def _ends(self, *, corrected: bool) -> bool:
        del corrected
        return False

    def _sought(self, target: Target) -> str:
        return target.text if self.question.about else f"{self.question.text} {target.text}"

    async def _nearest(
        self, step: Scope, target: Target, evidence: Sequence[Passage]
    ) -> nearest.Correction:
        """Return the correction by the sentence of the evidence nearest to the doubtful one.

        An answer of one sentence is corrected as if it had been written here: by the sentence
        nearest to its question.
        """
        if not self.question.about and self._sentences == 1:
            return await super()._nearest(step, target, evidence)
        states = Question(text=target.text, language=self.question.language)
        return await nearest.correct(step, states, evidence, target.text, states=True)
