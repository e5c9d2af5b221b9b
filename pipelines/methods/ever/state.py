"""The drafts of one EVER run and how it ends, the same for every task."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.drafts import record_original
from pipelines.methods.ever.calls import PROMPTS, distinct, numbered
from pipelines.methods.ever.check import Target
from pipelines.methods.ever.record import (
    Check,
    SentenceRecord,
    Stopped,
    answer_verdict,
    headline,
    remarks,
)
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.ever.support import Known, checking_role
from pipelines.methods.ever.text import cut, said, stripped
from pipelines.models.base import Watcher
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Message

__all__ = ["EverState", "may_go_on"]


def may_go_on(check: Check, rounds: int, limit: int) -> bool:
    """Whether a sentence is rectified once more after `rounds` times.

    Anything doubtful is rectified once; after that only what is still contradicted is, as long as
    `limit` allows: rewriting again what nothing settles would settle it no better.
    """
    if not check.doubtful or rounds >= limit:
        return False
    return rounds == 0 or bool(check.of("contradicted"))


class EverState:
    """Question, settings and the drafts of a run. Draft 0 is the model's answer in one go.

    That is what the model would have said unchecked: the same prompt, greedy, so that its first
    sentence is the first draft sentence and one call serves both.
    """

    def __init__(self, question: Question, scope: Scope, settings: EverSettings) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        self.flags: list[str] = []
        self.known: Known = {}
        self.draft = 0
        self.current = Generation(text="")
        self.original = Generation(text="")
        if checking_role(scope, question, settings) == "main":
            if settings.checked_by == "judge":
                self.flags.append("no_judge")
            if not scope.model().capabilities.judges:
                self.flags.append("weak_judge")

    async def opening(self) -> tuple[Message, ...]:
        """The prompt that text is written for; with RAG+ER it holds passages for the question."""
        language, settings = self.question.language, self.settings
        limit = str(settings.max_sentences)
        user = PROMPTS.fill(language, "question", question=self.question.text)
        if settings.variant == "rag_er":
            async with self.scope.span("retrieve") as step:
                try:
                    found = distinct(await step.search(self.question.text, settings.passages))
                except VeriscopeError:
                    found = ()
                    self.flag("lookup_failed")
                else:
                    if not found:
                        self.flag("no_evidence")
            if found:
                user = PROMPTS.fill(
                    language, "grounded", passages=numbered(language, found), question=user
                )
        return (
            Message(role="system", content=PROMPTS.fill(language, settings.task, limit=limit)),
            Message(role="user", content=user),
        )

    async def write_original(
        self,
        messages: Sequence[Message],
        watch: Watcher | None = None,
        *,
        sentences: int | None = None,
    ) -> Generation:
        """Draft 0, recorded; not longer than `watch` lets it grow, nor than `sentences`."""
        async with self.scope.span("draft") as step:
            written = await step.write(
                step.request(
                    messages,
                    max_tokens=self.settings.max_tokens,
                    logprobs=step.model().capabilities.logprobs,
                ),
                watch=watch,
            )
            whole = stripped(said(written))
            spans = split_sentences(whole.text)
            if sentences is not None and len(spans) > sentences:
                whole = cut(whole, spans[sentences - 1].end)
            self.original = self.current = whole
            record_original(step, self.original)
        return self.original

    def flag(self, name: str) -> None:
        """Remark on the answer, once."""
        if name not in self.flags:
            self.flags.append(name)

    def revise(
        self, step: Scope, after: Generation, start: int, reason: str, **detail: int
    ) -> None:
        """The next draft; text before `start` stays."""
        self.draft += 1
        step.revised(
            draft=self.draft,
            before=self.current.text,
            after=after.text,
            start=start,
            reason=reason,
            generation=after,
            detail=detail,
        )
        self.current = after

    def settle(
        self,
        step: Scope,
        target: Target,
        checks: Sequence[Check],
        *,
        stopped: Stopped,
        last: bool = False,
        dropped: bool = False,
        speculation: str = "",
    ) -> SentenceRecord:
        """Record how a sentence was settled; `target` is what it came to be."""
        text = "" if dropped else (target.shown or target.text)
        event = step.judged(
            what="sentence",
            text=text,
            start=target.start,
            end=target.start + len(text),
            draft=target.draft,
            sentence=target.sentence,
            verdict=checks[-1].verdict,
            detail={
                "stopped": stopped,
                "dropped": dropped,
                "last": last,
                "speculation": speculation,
            },
        )
        return SentenceRecord(
            index=target.sentence,
            checks=tuple(checks),
            text=text,
            verdict=event.verdict,
            **event.detail,
        )

    def conclude(
        self,
        step: Scope,
        records: Sequence[SentenceRecord],
        *,
        short: str | None = None,
        abstained: bool = False,
    ) -> Answer:
        """Record the verdict on the original, which ends the run, and give its answer."""
        step.judged(
            what="answer",
            text=self.original.text,
            start=0,
            end=len(self.original.text),
            draft=0,
            verdict=answer_verdict(records),
            scores=(headline(records),),
            detail={"flags": list(self.flags), "short": short, "abstained": abstained},
        )
        return Answer(
            text=self.current.text,
            original=self.original.text,
            short=short,
            abstained=abstained,
            flags=(*remarks(records), *self.flags),
        )
