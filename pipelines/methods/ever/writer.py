"""EVER for long answers and reasoning chains: a sentence is verified before the next is written."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pipelines.aio import ended
from pipelines.base import Answer, Generation, Message, Passage
from pipelines.methods import nearest
from pipelines.methods.base import Question
from pipelines.methods.direct import DirectSettings, direct_messages
from pipelines.methods.ever.calls import PROMPTS, ask_line
from pipelines.methods.ever.check import (
    Checker,
    SentenceCheck,
    Target,
    decided,
    may_go_on,
    rectify,
    rectify_reason,
)
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.nearest import takes_sentence
from pipelines.methods.replies.lists import asks_yes_or_no
from pipelines.methods.replies.parsing import declines, visible
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.replies.verdicts import checker
from pipelines.methods.slm.method import taught_judges
from pipelines.methods.writing import (
    Continuation,
    appended,
    cut,
    distinct,
    first_draft,
    found_for,
    part_of,
    units_of,
    unwrapped,
    write,
)
from pipelines.models.base import Delta, Watcher
from pipelines.run.events import Place, RevisionReason, Score
from pipelines.run.findings import SentenceVerified, Stopped
from pipelines.run.scope import Scope
from pipelines.text import has_han, split_sentences, text_key

# The drafts of one EVER run, what it found out about each sentence, and how it ends.


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
        self.checker = Checker(question, settings, role, settings.max_sentences)
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

        It is that of all concepts of the sentences as first written; what says no more than the
        question does is no answer that evidence could support.
        """
        first = [sentence.checks[0] for sentence in self.sentences]
        decision = decided(first)
        verdict, score = decision.verdict, _supported_share(first, decision.share)
        remark = no_answer(self.original.text, self.question)
        if remark and verdict in ("supported", "unchecked"):
            verdict = "unchecked"
            if not abstained:
                self.flag(remark)
        step.judged("answer", self.original.text, verdict=verdict, scores=(score,))
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


_AROUND = " \t\n.,;:!?\"'`*。，；！？“”"


@dataclass(frozen=True)
class WrittenSentence:
    """A sentence as it continues a text: `generation.text[start:]`, white space before it.

    `last` says that the writer ended the text with it, `truncated` that the token limit did, and
    `drafted` that it stands in the original as it is.
    """

    generation: Generation
    start: int
    last: bool = False
    truncated: bool = False
    drafted: bool = False

    @property
    def sentence(self) -> str:
        """The sentence without what stands before it."""
        return self.generation.text[self.start :]


def until(limit: int, known: Collection[str] = ()) -> Watcher:
    """Return a watcher that ends the writing once `limit` sentences are complete that are not among
    `known`.

    A sentence is complete when the next one has begun, so that "Dr." or "3." ends none.
    """
    text = ""

    def watch(delta: Delta) -> bool:
        nonlocal text
        text = "" if delta.restart else text + delta.text
        complete = split_sentences(visible(text))[:-1]
        return sum(text_key(span.text) not in known for span in complete) >= limit

    return watch


def drafted_piece(draft: Generation, begins: int = 0) -> WrittenSentence | None:
    """Return the first sentence of a whole answer behind the offset `begins`; None when there
    is none.
    """
    spans = [span for span in split_sentences(draft.text) if span.start >= begins]
    if not spans:
        return None
    first, last = spans[0], len(spans) == 1
    truncated = last and draft.is_cut
    text = part_of(draft, begins, first.end)
    return WrittenSentence(text, first.start - begins, last, truncated, drafted=True)


async def next_piece(
    step: Scope,
    question: Question,
    messages: tuple[Message, ...],
    base: Generation,
    *,
    max_tokens: int,
) -> tuple[WrittenSentence | None, bool]:
    """Return the sentence that the model writes after `base`; None when the answer ends there.

    It ends when the model writes nothing more, says that it is done or knows nothing more, or only
    repeats itself; and where `max_tokens` are written. With it, whether the answer ends there only
    because the reply cannot be used: it is empty, declines to write, was filtered, or is Chinese
    although neither the question nor the text is.
    """
    left = max_tokens - len(units_of(base))
    if left < 1:
        return None, False
    before = {text_key(span.text) for span in split_sentences(base.text)}
    handed = step.model().capabilities.prefill
    asked = Continuation.of(step, question, messages, base.text, PROMPTS)
    # Handed its own text, a model that says a sentence again has begun to go in circles.
    watch = until(1, () if handed else before)
    written = unwrapped(asked.added(await write(step, asked.messages, left, watch)))
    spans = split_sentences(written.text)
    if handed:
        spans = spans[:1]
    fresh = next((span for span in spans if text_key(span.text) not in before), None)
    if written.finish_reason == "filter" or (fresh is not None and declines(fresh.text)):
        return None, True
    if base.text and question.is_foreign(written.text, base.text):
        return None, True
    if fresh is None:
        # Handed its own text, a model ends it by writing nothing; asked for a sentence, by a word.
        return None, not handed and not written.text.strip()
    if _is_done(fresh.text):
        return None, False
    ended = not written.text[fresh.end :].strip() and written.finish_reason != "watcher"
    truncated = ended and written.is_cut
    body = cut(written, fresh.end)
    if fresh is not spans[0]:
        body = part_of(body, fresh.start, fresh.end)
    space = "" if body.text[:1].isspace() else _space(base.text, fresh.text)
    generation = appended(Generation(text=space), body)
    # Asked for one sentence, a model stops after it whether or not the answer is complete.
    last = truncated or (ended and handed)
    return WrittenSentence(
        generation, len(generation.text) - len(fresh.text), last, truncated
    ), False


def _space(before: str, after: str) -> str:
    return "" if not before or has_han(after[:1]) or has_han(before[-2:]) else " "


def _is_done(text: str) -> bool:
    words = {PROMPTS.fill(language, "done").casefold() for language in ("en", "zh")}
    return text.strip(_AROUND).casefold() in words


class SentenceWriter(EverRun):
    """One sentence is written and verified after the other; what is verified never changes."""

    def __init__(self, question: Question, scope: Scope, settings: EverSettings) -> None:
        super().__init__(question, scope, settings)
        self.messages: tuple[Message, ...] = ()
        self.verified = Generation(text="")
        # Whether the reply to the last request for a sentence was one that cannot be used.
        self.refused = False

    async def answer(self) -> Answer:
        limit = self.settings.max_sentences
        self.messages = await self.opening()
        original = await self.write_original(self.messages, until(limit), sentences=limit)
        if declines(original.text):
            async with self.scope.span("conclude") as step:
                return self.abstain(step)
        piece = drafted_piece(original)
        while piece is not None:
            if piece.truncated:
                self.flag("truncated")
            index = len(self.sentences)
            following = await self._verify(index, piece)
            if len(units_of(self.verified)) >= self.settings.max_tokens:
                self.flag("truncated")
                break
            if self.sentences[-1].end.last:
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
    ) -> WrittenSentence | None:
        """Return the sentence after `base`; written `ahead`, it is not taken yet.

        As long as nothing was changed, it is that of the original: the model has written it.
        """
        if self._goes_on_as_drafted(base):
            self.refused = False
            return drafted_piece(self.original, len(base.text))
        name = "speculate" if ahead else "next_sentence"
        async with scope.span(name, sentence=index) as step:
            piece, self.refused = await next_piece(
                step, self.question, self.messages, base, max_tokens=self.settings.max_tokens
            )
            if not ahead:
                self._take(step, index, piece)
        return piece

    def _goes_on_as_drafted(self, base: Generation) -> bool:
        """Return whether nothing was changed so far."""
        return self.original.text.startswith(base.text)

    def _take(self, step: Scope, index: int, piece: WrittenSentence | None) -> None:
        """Go on with `piece`, or end the text; that it ends for another reason is flagged."""
        if piece is None:
            if self.refused:
                self.flag("continuation_unusable")
            return
        if piece.drafted:
            return
        after = appended(self.verified, piece.generation)
        self.revise(step, after, len(self.verified.text), "written", sentence=index)

    async def _verify(self, index: int, piece: WrittenSentence) -> WrittenSentence | None:
        """Check and rectify the sentence until that ends; the next one where it is known."""
        async with self.scope.span("sentence", sentence=index) as step:
            last = self._is_last(index, piece)
            base = appended(self.verified, piece.generation)
            ahead = None
            if self._speculates and not last and not self._goes_on_as_drafted(base):
                ahead = asyncio.ensure_future(self._continue(step, index + 1, base, ahead=True))
            try:
                checks, stopped = await self._rectified(step, index, piece)
                target = checks[-1].target
                corrected = stopped == "corrected"
                end = len(self.current.text) - len(self.rest)
                if not corrected:
                    end = target.start + len(target.text)
                self.verified = cut(self.current, end)
                kept = ahead is not None and self.verified.text == base.text
                following = await ahead if ahead is not None and kept else None
            finally:
                if ahead is not None:
                    await ended(ahead)
            # Written ahead and kept, an end of the text is as good as one found afterwards.
            last = last or self._ends(corrected=corrected) or (kept and following is None)
            speculation = "" if ahead is None else "kept" if kept else "discarded"
            end = SentenceVerified(stopped=stopped, last=last, speculation=speculation)
            self.record(step, checks, end)
            if kept:
                self._take(step, index + 1, following)
        return following

    async def _rectified(
        self, step: Scope, index: int, piece: WrittenSentence
    ) -> tuple[list[SentenceCheck], Stopped]:
        checks: list[SentenceCheck] = []
        while True:
            target = Target(
                sentence=index,
                round=len(checks),
                draft=self.draft,
                start=len(self.verified.text) + piece.start,
                text=piece.sentence,
                context=self.verified.text,
                attempt="rectified" if checks else "draft",
            )
            check = await self.checker.check(step, target)
            checks.append(check)
            if self._is_no_answer(check):
                return checks, await self._take_sentence(step, check, piece)
            if not may_go_on(check, target.round, self.settings.max_rounds):
                return checks, "limit" if check.of("contradicted") else "finished"
            if self.takes_sentence:
                return checks, await self._take_sentence(step, check, piece)
            written = await rectify(step, self.question, check, self.settings.demonstrations)
            if not written:
                return checks, "unusable"
            if written == piece.sentence:
                # The same words would be judged the same.
                return checks, "same"
            rewritten = Generation(text=piece.generation.text[: piece.start] + written)
            # What is rewritten has no tokens; the text around it keeps its own.
            none = part_of(piece.generation, 0, 0)
            piece = replace(piece, generation=appended(none, rewritten))
            self.revise(
                step,
                appended(self.verified, piece.generation),
                target.start,
                rectify_reason(check),
                sentence=index,
                round=len(checks),
            )

    @property
    def _speculates(self) -> bool:
        """Whether the next sentence is written while this one is checked."""
        return self.settings.speculative

    def _is_last(self, index: int, piece: WrittenSentence) -> bool:
        """Return whether no sentence is written after this one."""
        return piece.last or index + 1 >= self.settings.max_sentences

    def _ends(self, *, corrected: bool) -> bool:
        """Return whether the text ends where a sentence of the evidence took a sentence's place."""
        return corrected

    def _is_no_answer(self, check: SentenceCheck) -> bool:
        """Return whether the first sentence has nothing to look up but its yes or no, the answer to
        the question, or begins a text that is no answer.

        The nearest sentence says what is right, where corrections are worded by it.
        """
        if not self.starts_direct or check.target.sentence != 0:
            return False
        bare = check.listed == "unreadable" and asks_yes_or_no(self.question)
        return bare or bool(no_answer(self.original.text, self.question))

    async def _take_sentence(
        self, scope: Scope, check: SentenceCheck, piece: WrittenSentence
    ) -> Stopped:
        """Put what the evidence's nearest sentence says in the place of a doubtful one.

        The text ends there: what a weak model adds to a quotation is seldom worth its checks.
        """
        target = check.target
        async with scope.span(
            "rectify", sentence=target.sentence, round=target.round + 1, draft=target.draft
        ) as step:
            evidence = check.evidence
            if not evidence:
                # Nothing was looked up for it, or nothing found.
                found = await found_for(step, self._sought(target), self.settings.passages)
                if found is None:
                    self.flag("lookup_failed")
                evidence = distinct(found or ())
            correction = await self._nearest(step, target, evidence)
            self.flag(correction.flag)
            if not correction.changes:
                return "same" if correction.form == "kept" else "nothing_near"
            before = appended(self.verified, part_of(piece.generation, 0, piece.start))
            self.revise(
                step,
                appended(before, Generation(text=correction.text)),
                target.start,
                "quoted",
                sentence=target.sentence,
                round=target.round + 1,
            )
        return "corrected"

    def _sought(self, target: Target) -> str:
        """Return what is searched for where no concept of a sentence found anything."""
        return self.question.text

    async def _nearest(
        self, step: Scope, target: Target, evidence: Sequence[Passage]
    ) -> nearest.Correction:
        # Only the first sentence of an answer is the place for its yes or no.
        return await nearest.correct(
            step, self.question, evidence, target.text, says_yes_no=not target.sentence
        )

    async def _short(self, step: Scope) -> str:
        """Return the bare answer that follows from the verified chain; "" where none does."""
        if not split_sentences(self.verified.text):
            return ""
        question = self.question
        asked = PROMPTS.turns(
            question.language, "conclude", question=question.text, chain=self.verified.text
        )
        return await ask_line(step, asked, max_tokens=48)
