"""EVER for short answers: each is the concept of the statement it makes with the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.methods.ever.calls import PROMPTS, ask_line, ask_list, together
from pipelines.methods.ever.check import Checked, Target, check
from pipelines.methods.ever.concepts import find_concept
from pipelines.methods.ever.record import Attempt, Check, SentenceRecord, Stopped
from pipelines.methods.ever.rectify import evidence_listed, rectify
from pipelines.methods.ever.state import EverState, may_go_on
from pipelines.methods.replies.parsing import is_refusal, parse_list
from pipelines.run.scope import Scope
from pipelines.text import Span
from pipelines.types import Answer, Generation, Message

__all__ = ["answer_shortly"]


@dataclass
class _Item:
    """One answer of possibly several, and what stands before it in the draft."""

    index: int
    glue: str
    text: str
    checks: list[Check] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    dropped: bool = False

    @property
    def rounds(self) -> int:
        return sum(check.attempt == "rectified" for check in self.checks)


async def answer_shortly(state: EverState) -> Answer:
    """Answer in a few words; every answer is checked, mended, replaced, or left out on its own.

    With no answer left EVER abstains.
    """
    return await _Short(state).answer()


class _Short:
    """The answers of one run; they are checked side by side and share the draft."""

    def __init__(self, state: EverState) -> None:
        self.state = state
        self.items: list[_Item] = []

    async def answer(self) -> Answer:
        state = self.state
        draft = await state.write_original(await state.opening())
        if draft.finish_reason == "length":
            state.flag("truncated")
        declined = is_refusal(draft.text)
        if draft.text and not declined:
            self.items = _items(draft.text)
        records = await together(self._settle(item) for item in self.items)
        async with state.scope.span("conclude") as step:
            left = [item.text for item in self.items if not item.dropped]
            abstained = declined or bool(self.items and not left)
            if abstained:
                state.revise(step, Generation(text=""), 0, "abstained")
            short = "\n".join(left) if left else None
            return state.conclude(step, records, short=short, abstained=abstained)

    async def _settle(self, item: _Item) -> SentenceRecord:
        async with self.state.scope.span("sentence", sentence=item.index) as step:
            checked, target, stopped = await self._rectified(step, item)
            if item.checks[-1].verdict == "not_enough" and not item.dropped:
                # Rewriting cannot settle what nothing settles: another answer, or none.
                target = await self._another(step, item, checked, target)
                stopped = "settled"
            return self.state.settle(
                step,
                target,
                item.checks,
                stopped=stopped,
                last=item.index == len(self.items) - 1,
                dropped=item.dropped,
            )

    async def _rectified(self, step: Scope, item: _Item) -> tuple[Checked, Target, Stopped]:
        limit = self.state.settings.max_rounds
        attempt: Attempt = "draft"
        while True:
            checked, target = await self._check(step, item, attempt)
            if not may_go_on(checked.check, item.rounds, limit):
                limited = bool(checked.check.of("contradicted"))
                return checked, target, "limit" if limited else "settled"
            written = await rectify(step, self.state.question, target, checked)
            if not written:
                return checked, target, "unusable"
            if _key(written) in {_key(other) for other in self._others(item)}:
                # What it should have said is in the list already, and need not stand there twice.
                self._drop(step, item)
                return checked, target, "settled"
            if not self._is_new(item, written):
                return checked, target, "same"
            verdict = checked.check.verdict
            self._put(step, item, written, "revise" if verdict == "contradicted" else "rewrite")
            attempt = "rectified"

    async def _check(self, step: Scope, item: _Item, attempt: Attempt) -> tuple[Checked, Target]:
        state, answer = self.state, item.text
        item.tried.append(answer)
        statement, concept = await self._statement(step, item)
        target = Target(
            sentence=item.index,
            round=len(item.checks),
            # An answer beside this one may have changed the draft while the statement was written.
            draft=state.draft,
            start=self._place(item),
            text=statement,
            attempt=attempt,
            concept=concept,
            shown=answer,
        )
        checked = await check(step, state.question, state.settings, target, state.known)
        item.checks.append(checked.check)
        return checked, target

    async def _statement(self, step: Scope, item: _Item) -> tuple[str, Span]:
        """The claim that question and answer make together, and where it holds the answer."""
        question = self.state.question
        values = {"question": question.text, "answer": item.text}
        async with step.span("statement", sentence=item.index, round=len(item.checks)) as own:
            content = PROMPTS.fill(question.language, "statement", **values)
            written = await ask_line(own, (Message(role="user", content=content),))
        found = find_concept(written, item.text)
        if found is None:
            written = PROMPTS.fill(question.language, "statement_plain", **values)
            start = written.rfind(item.text)
            found = start, start + len(item.text)
        return written, Span.of(written, *found)

    async def _another(self, step: Scope, item: _Item, checked: Checked, target: Target) -> Target:
        """The first other answer that is verified takes the item's place; else it is left out."""
        for candidate in await self._candidates(step, item, checked):
            if not self._is_new(item, candidate):
                continue
            self._put(step, item, candidate, "candidate")
            checked, target = await self._check(step, item, "candidate")
            if checked.check.verdict == "supported":
                return target
        self._drop(step, item)
        return target

    def _drop(self, step: Scope, item: _Item) -> None:
        item.dropped = True
        if any(not other.dropped for other in self.items):
            self._revise(step, item, "dropped")

    async def _candidates(self, step: Scope, item: _Item, checked: Checked) -> list[str]:
        limit = self.state.settings.candidates
        if not limit:
            return []
        question = self.state.question
        _, passages = checked.doubts()
        async with step.span("candidates", sentence=item.index) as own:
            content = PROMPTS.fill(
                question.language,
                "candidates",
                question=question.text,
                count=str(limit),
                tried="; ".join([*item.tried, *self._others(item)]),
                evidence=evidence_listed(question.language, passages),
            )
            reply = await ask_list(own, (Message(role="user", content=content),), "answers")
        return parse_list(reply, limit=limit)

    def _is_new(self, item: _Item, text: str) -> bool:
        known = {_key(one) for one in (*item.tried, *self._others(item))}
        return _key(text) not in known

    def _others(self, item: _Item) -> list[str]:
        return [other.text for other in self.items if other is not item and not other.dropped]

    def _put(self, step: Scope, item: _Item, text: str, reason: str) -> None:
        item.text = text
        self._revise(step, item, reason)

    def _revise(self, step: Scope, item: _Item, reason: str) -> None:
        text = self._joined(self.items).strip()
        start = min(self._place(item), len(text))
        self.state.revise(step, Generation(text=text), start, reason, sentence=item.index)

    def _place(self, item: _Item) -> int:
        """Where the item stands in the current draft, or stood before it was left out."""
        whole = self._joined(self.items)
        before = self._joined(self.items[: item.index])
        glue = "" if item.dropped else item.glue
        return max(0, len(before) + len(glue) - (len(whole) - len(whole.lstrip())))

    @staticmethod
    def _joined(items: Sequence[_Item]) -> str:
        return "".join(one.glue + one.text for one in items if not one.dropped)


def _key(answer: str) -> str:
    return "".join(character for character in answer.casefold() if character.isalnum())


def _items(text: str) -> list[_Item]:
    """The answers in `text`: one, or one a line where there are several lines."""
    listed = parse_list(text) if len(text.strip().splitlines()) > 1 else []
    items: list[_Item] = []
    position = 0
    for answer in listed:
        start = text.find(answer, position)
        if start >= 0:
            items.append(_Item(len(items), text[position:start], answer))
            position = start + len(answer)
    return items if len(items) > 1 else [_Item(0, "", text)]
