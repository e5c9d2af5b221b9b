"""DRAD for a text that is there already: its doubtful sentences are corrected in place (ours).

The writer of the text is not here: the main model goes on from the doubtful entity to the end of
its sentence, and what the text says after that is read anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods import nearest
from pipelines.methods.base import Question
from pipelines.methods.direct import direct_messages
from pipelines.methods.drad import rhd, sek
from pipelines.methods.drad.detection import PROMPTS, Detection, Draft, goes_on, joined
from pipelines.methods.drad.rhd import EntityReading
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.writing import Continuation, grounded_messages, units_of, write
from pipelines.models.base import ScoreRequest
from pipelines.run.findings import DraftMeasured
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Message, Passage


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
