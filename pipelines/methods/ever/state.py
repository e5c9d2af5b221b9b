"""The drafts of one EVER run, what it found out about each sentence, and how it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.methods.base import Question
from pipelines.methods.direct import DirectSettings, direct_messages
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.ever.check import Checker, SentenceCheck, decided
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.nearest import takes_sentence
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.slm.judging import taught_judges
from pipelines.methods.writing import appended, cut, distinct, first_draft, found_for
from pipelines.models.base import Watcher
from pipelines.run.events import Place, RevisionReason, Score
from pipelines.run.findings import SentenceVerified
from pipelines.run.scope import Scope
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Message


@dataclass(frozen=True)
class Sentence:
    """A sentence, or one item of a short answer: every check of it and how it ended."""

    checks: Sequence[SentenceCheck]
    end: SentenceVerified


class EverRun(ABC):
    """Question, settings and the drafts of a run. Draft 0 is the model's answer in one go.

    That is what the model would have said unchecked: the same prompt, greedy, so that its first
    sentence is the first draft sentence and one call serves both.
    """

    def __init__(self, question: Question, scope: Scope, settings: EverSettings) -> None:
        self.question = question
        self.scope = scope
        self.settings = settings
        # From memory only the main model can tell.
        wanted = "main" if settings.variant == "nrg_sq" else settings.checked_by
        role = checker(scope, {question.language}, wanted)
        if role == "main" and wanted == "auto" and scope.model().capabilities.weak:
            # Its own verdicts were measured to be poor; those that an adapter taught are not.
            role = next(iter(taught_judges(scope, question.language)), role)
        self.checker = Checker(question, settings, role)
        self.flags: list[str] = []
        self.sentences: list[Sentence] = []
        self.draft = 0
        # What stands behind the sentence that is being verified, where the text is a given one.
        self.rest = ""
        self.current = Generation(text="")
        self.original = Generation(text="")
        # What the model recalls is no evidence to quote.
        self.takes_sentence = settings.variant != "nrg_sq" and takes_sentence(
            scope, settings.wording
        )
        # A weak model answers better where it is told less about the form (ours).
        self.starts_direct = (
            self.takes_sentence and settings.task == "long" and settings.variant != "rag_er"
        )
        if role == "main":
            if settings.checked_by == "judge":
                self.flag("no_judge")
            if not scope.model().capabilities.judges:
                self.flag("weak_judge")

    @abstractmethod
    async def answer(self) -> Answer:
        """Carry the run out."""

    async def opening(self) -> tuple[Message, ...]:
        """Return the prompt that text is written for; with RAG+ER it holds passages for the
        question.
        """
        language, settings = self.question.language, self.settings
        if self.starts_direct:
            return direct_messages(self.question)
        user, passages = "question", ""
        if settings.variant == "rag_er":
            async with self.scope.span("retrieve") as step:
                found = await found_for(step, self.question.text, settings.passages)
            if found:
                user, passages = "grounded", PROMPTS.listed(language, distinct(found))
            else:
                self.flag("lookup_failed" if found is None else "no_evidence")
        return PROMPTS.turns(
            language,
            settings.task,
            user,
            limit=str(settings.max_sentences),
            passages=passages,
            question=self.question.text,
        )

    async def write_original(
        self,
        messages: Sequence[Message],
        watch: Watcher | None = None,
        *,
        sentences: int | None = None,
    ) -> Generation:
        """Return draft 0, recorded; not longer than `watch` lets it grow, nor than `sentences`."""
        longest = self.settings.max_tokens
        if self.starts_direct:
            # Asked for in the same way as Direct's answer, it is written once for both.
            longest, watch = min(longest, DirectSettings().max_tokens), None
        async with self.scope.span("draft") as step:
            whole = await first_draft(step, messages, longest, watch)
            spans = split_sentences(whole.text)
            if sentences is not None and len(spans) > sentences:
                whole = cut(whole, spans[sentences - 1].end)
            self.original = self.current = whole
            step.revised(whole)
        return whole

    def flag(self, name: str) -> None:
        """Remark on the answer, once."""
        if name not in self.flags:
            self.flags.append(name)

    def revise(
        self,
        step: Scope,
        after: Generation,
        start: int,
        reason: RevisionReason,
        *,
        sentence: int | None = None,
        round: int | None = None,
    ) -> None:
        """Record the next draft; text before `start` stays, and so does the rest of a
        given text.
        """
        self.draft += 1
        if self.rest:
            after = appended(after, Generation(text=self.rest))
        step.revised(
            after,
            draft=self.draft,
            before=self.current.text,
            start=start,
            reason=reason,
            at=Place(sentence=sentence, round=round),
        )
        self.current = after

    def record(self, step: Scope, checks: Sequence[SentenceCheck], end: SentenceVerified) -> None:
        """Record how a sentence ended; its last check is of what it came to be.

        Unless a sentence of the evidence took its place, which ends the text and rests on itself.
        """
        target = checks[-1].target
        self.sentences.append(Sentence(checks, end))
        if end.stopped == "corrected":
            step.judged(
                "sentence",
                self.current.text[target.start : len(self.current.text) - len(self.rest)],
                start=target.start,
                draft=self.draft,
                sentence=target.sentence,
                verdict="supported",
                detail=end,
            )
            return
        step.judged(
            "sentence",
            "" if end.dropped else (target.shown or target.text),
            start=target.start,
            draft=target.draft,
            sentence=target.sentence,
            verdict=checks[-1].verdict,
            detail=end,
        )

    def abstain(self, step: Scope) -> Answer:
        """Return the end of a run that gives no answer."""
        self.revise(step, Generation(text=""), 0, "abstained")
        return self.conclude(step, abstained=True)

    def conclude(self, step: Scope, *, short: str | None = None, abstained: bool = False) -> Answer:
        """Record the verdict on the original, which ends the run, and give its answer.

        It is that of all concepts of the sentences as first written.
        """
        first = [sentence.checks[0] for sentence in self.sentences]
        decision = decided(first)
        score = _supported_share(first, decision.share)
        step.judged("answer", self.original.text, verdict=decision.verdict, scores=(score,))
        return Answer(
            text=self.current.text,
            original=self.original.text,
            short=short,
            abstained=abstained,
            flags=(*self._remarks(), *self.flags),
        )

    def _remarks(self) -> list[str]:
        """Return flags on the answer from how its sentences ended, always in the same order."""
        kept = [
            sentence
            for sentence in self.sentences
            if not sentence.end.dropped and sentence.end.stopped != "corrected"
        ]
        checks = [sentence.checks[-1] for sentence in kept]
        concepts = [concept for check in checks for concept in check.concepts]
        reasons = {concept.detail.reason for concept in concepts}
        unread = any(check.listed == "unreadable" for check in checks)
        present = {
            "contradicted": any(check.of("contradicted") for check in checks),
            "not_sure": any(check.of("not_enough") for check in checks),
            "rectification_unusable": any(sentence.end.stopped == "unusable" for sentence in kept),
            "concept_unchecked": unread or any(check.of("unchecked") for check in checks),
            "concepts_left_out": any(check.left_out for check in checks),
            "parts_dropped": any(check.dropped and check.concepts for check in checks),
            "concept_no_evidence": "no_evidence" in reasons,
            "lookup_failed": "search_failed" in reasons,
            "search_incomplete": any(concept.detail.incomplete for concept in concepts),
            "item_dropped": any(sentence.end.dropped for sentence in self.sentences),
        }
        return [flag for flag, applies in present.items() if applies]


def _supported_share(first: Sequence[SentenceCheck], share: float | None) -> Score:
    """Return the share of concepts supported as first written, among all that there are to check.

    Any concept short of support puts it below its threshold of 1.
    """
    counts = [check.counts for check in first]
    supported = sum(one.supported for one in counts)
    parts = sum(one.parts or 1 for one in counts)
    return Score(
        name="supported_share",
        value=share,
        threshold=1.0,
        bad="below",
        flagged=share is not None and supported < parts,
        formula="ever.supported_share",
        inputs=(float(supported), float(parts)),
        behind=tuple(check.step for check in first),
    )
