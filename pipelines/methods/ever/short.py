"""EVER for short answers: each is the concept of the statement it makes with the question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from pipelines.aio import together
from pipelines.base import Answer, Generation, Passage
from pipelines.methods import nearest
from pipelines.methods.base import Question
from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.check import SentenceCheck, Target, evidence_listed, may_go_on, rectify
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.ever.writer import EverRun, SentenceWriter, WrittenSentence
from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.parsing import declines
from pipelines.methods.subjects import find_concept
from pipelines.methods.writing import ask_list
from pipelines.run.events import RevisionReason
from pipelines.run.findings import Attempt, SentenceVerified, Stopped
from pipelines.run.scope import Scope
from pipelines.text import Span, split_sentences, text_key

_SEPARATED = re.compile(r"[;；、]|\s\|\s")


@dataclass
class _Item:
    """One answer of possibly several: its span, and what stands before it in the draft."""

    step: Scope
    index: int
    glue: str
    text: str
    checks: list[SentenceCheck] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    stopped: Stopped = "finished"
    dropped: bool = False


def _answers_in(text: str) -> list[tuple[str, str]]:
    """Return the answers in `text`, each with what stands before it.

    One, one a line, or several on a line between semicolons and 、.
    """
    found: list[tuple[str, str]] = []
    position = 0
    several = len(text.strip().splitlines()) > 1 or _SEPARATED.search(text)
    for answer in parse_list(text.rstrip(" .。")) if several else []:
        start = text.find(answer, position)
        if start >= 0:
            found.append((text[position:start], answer))
            position = start + len(answer)
    if len(found) > 1:
        return found
    return [("", text)] if text else []


class ShortAnswer(EverRun):
    """An answer in a few words; every answer of a list is corrected, replaced, or left out.

    They are checked side by side and changed in their order, so that what is asked for one does
    not depend on how long another takes. With no answer left EVER abstains.
    """

    def __init__(self, question: Question, scope: Scope, settings: EverSettings) -> None:
        super().__init__(question, scope, settings)
        self.items: list[_Item] = []

    async def answer(self) -> Answer:
        draft = await self.write_original(await self.opening())
        if draft.is_cut:
            self.flag("truncated")
        declined = declines(draft.text)
        async with AsyncExitStack() as stack:
            for index, (glue, text) in enumerate([] if declined else _answers_in(draft.text)):
                span = self.scope.span("sentence", sentence=index)
                item = _Item(await stack.enter_async_context(span), index, glue, text)
                self.items.append(item)
            await self._check(self.items, "draft")
            await self._rectify()
            await self._try_others()
            for item in self.items:
                last = item is self.items[-1]
                end = SentenceVerified(stopped=item.stopped, last=last, dropped=item.dropped)
                self.record(item.step, item.checks, end)
        async with self.scope.span("conclude") as step:
            left = [item.text for item in self.items if not item.dropped]
            if declined or (self.items and not left):
                return self.abstain(step)
            return self.conclude(step, short="\n".join(left) if left else None)

    async def _rectify(self) -> None:
        checked, rounds = list(self.items), 0
        demonstrations = self.settings.demonstrations
        while checked:
            doubtful: list[_Item] = []
            for item in checked:
                if may_go_on(item.checks[-1], rounds, self.settings.max_rounds):
                    doubtful.append(item)
                elif item.checks[-1].of("contradicted"):
                    item.stopped = "limit"
            written = await together(
                *(
                    rectify(item.step, self.question, item.checks[-1], demonstrations)
                    for item in doubtful
                )
            )
            corrected = zip(doubtful, written, strict=True)
            checked = [item for item, text in corrected if self._takes(item, text)]
            rounds += 1
            await self._check(checked, "rectified")

    def _takes(self, item: _Item, written: str) -> bool:
        """Return whether a corrected answer takes the place of the one before, to be
        checked anew.
        """
        contradicted = item.checks[-1].verdict == "contradicted"
        if not written:
            item.stopped = "unusable"
        elif self._is_new(item, written):
            self._put(item, written, "revise" if contradicted else "rewrite")
            return True
        elif contradicted and text_key(written) in map(text_key, self._others(item)):
            # What it should have said is in the list already, and need not stand there twice.
            self._drop(item)
        else:
            item.stopped = "same"
        return False

    async def _try_others(self) -> None:
        """Try other answers for what is contradicted or not decided; the first verified one stays.

        Rewriting cannot verify what no evidence decides, nor what it only says again: it takes
        another answer, or none.
        """
        kept = (item for item in self.items if not item.dropped)
        open_items = [item for item in kept if item.checks[-1].doubtful]
        lists = await together(*(self._candidates(item) for item in open_items))
        left = {item.index: iter(found) for item, found in zip(open_items, lists, strict=True)}
        while open_items:
            trying: list[_Item] = []
            for item in open_items:
                item.stopped = "finished"
                other = next((o for o in left[item.index] if self._is_new(item, o)), None)
                if other is None:
                    self._drop(item)
                else:
                    self._put(item, other, "candidate")
                    trying.append(item)
            await self._check(trying, "candidate")
            open_items = [item for item in trying if item.checks[-1].verdict != "supported"]

    async def _check(self, items: Iterable[_Item], attempt: Attempt) -> None:
        await together(*(self._check_one(item, attempt) for item in items))

    async def _check_one(self, item: _Item, attempt: Attempt) -> None:
        item.tried.append(item.text)
        statement, concept = await self._statement(item)
        target = Target(
            sentence=item.index,
            round=len(item.checks),
            draft=self.draft,
            start=self._place(item),
            text=statement,
            attempt=attempt,
            concept=concept,
            shown=item.text,
        )
        item.checks.append(await self.checker.check(item.step, target))

    async def _statement(self, item: _Item) -> tuple[str, Span]:
        """Return the claim that question and answer make together, and where it holds
        the answer.
        """
        language = self.question.language
        values: dict[str, Any] = {"question": self.question.text, "answer": item.text}
        async with item.step.span("statement", sentence=item.index, round=len(item.checks)) as own:
            written = await ask_line(own, PROMPTS.turns(language, "statement", **values))
        found = find_concept(written, item.text)
        if found is None:
            written = PROMPTS.fill(language, "statement_plain", **values)
            start = written.rfind(item.text)
            found = start, start + len(item.text)
        return written, Span.of(written, *found)

    async def _candidates(self, item: _Item) -> list[str]:
        limit = self.settings.candidates
        if not limit:
            return []
        question = self.question
        async with item.step.span("candidates", sentence=item.index) as own:
            asked = PROMPTS.turns(
                question.language,
                "candidates",
                question=question.text,
                count=str(limit),
                tried="; ".join([*item.tried, *self._others(item)]),
                evidence=evidence_listed(question.language, item.checks[-1]),
            )
            reply = await ask_list(own, asked, "answers")
        return [answer for answer in parse_list(reply, limit=limit) if not declines(answer)]

    def _is_new(self, item: _Item, text: str) -> bool:
        known = {text_key(answer) for answer in (*item.tried, *self._others(item))}
        return text_key(text) not in known

    def _others(self, item: _Item) -> list[str]:
        return [other.text for other in self.items if other is not item and not other.dropped]

    def _drop(self, item: _Item) -> None:
        item.dropped = True
        if any(not other.dropped for other in self.items):
            self._put(item, item.text, "dropped")

    def _put(self, item: _Item, text: str, reason: RevisionReason) -> None:
        item.text = text
        text = _joined(self.items).strip()
        start = min(self._place(item), len(text))
        self.revise(item.step, Generation(text=text), start, reason, sentence=item.index)

    def _place(self, item: _Item) -> int:
        """Return where the item stands in the current draft, or stood before it was left out."""
        whole = _joined(self.items)
        before = _joined(self.items[: item.index])
        glue = "" if item.dropped else item.glue
        return max(0, len(before) + len(glue) - (len(whole) - len(whole.lstrip())))


def _joined(items: Sequence[_Item]) -> str:
    return "".join(item.glue + item.text for item in items if not item.dropped)


# EVER for a text that is there already: its sentences are verified one after the other (ours).
#
# Only corrections are written: an unsupported sentence is rectified in its place, on the sentences
# verified before it, and the rest of the text stays as it was given.


class GivenTextWriter(SentenceWriter):
    """Every sentence of the given text, whatever the settings say of the length of an answer."""

    async def answer(self) -> Answer:
        """See `EverRun`."""
        self.messages = await self.opening()
        given = await self.write_original(self.messages)
        text, spans = given.text, split_sentences(given.text)
        self._sentences = self.checker.sentences = len(spans)
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
