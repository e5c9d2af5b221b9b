"""HAARAG's decision taken again from a recorded run, for other thresholds and filters."""

from __future__ import annotations

from typing import Literal

from pipelines.methods.base import Decision
from pipelines.methods.haarag.record import Record, Round
from pipelines.methods.haarag.rules import (
    Refinement,
    Status,
    Thresholds,
    answer_of,
    headline,
    plan_refinement,
    status_of,
    wants_widening,
)
from pipelines.methods.haarag.scores import Alignment, Found, Retrieval, align, rate_retrieval
from pipelines.methods.haarag.settings import HaaragSettings
from pipelines.types import Frozen, Language, Passage

__all__ = ["DraftReading", "HaaragDecision", "RoundReading", "walk"]

_DRAFT = ("subject", "answer")

Stop = Literal["", "holds", "unchecked", "iterations", "exhausted", "unchanged", "nothing"]


class RoundReading(Frozen):
    """A recorded round of searching under given settings.

    `after` is the draft it refines, None for the rounds before the first; `used` says whether the
    decision's path goes through it.
    """

    after: int | None
    depth: int
    retrieval: Retrieval
    used: bool = False


class DraftReading(Frozen):
    """A recorded draft under given settings and its context; `used` as for a round."""

    alignment: Alignment
    status: Status
    context: tuple[Passage, ...] = ()
    used: bool = False


class HaaragDecision(Decision):
    """What the recorded cosines say under given settings, and how far the recorded run holds.

    `rounds` and `drafts` are everything recorded, in order; `path` lists the drafts the run would
    go through; `stopped` says why it would end there: the answer holds or cannot be checked, no
    iteration or no new query was left, the context stayed the same, or nothing was found ("" where
    it is not known).
    """

    embedder: str | None = None
    thresholds: Thresholds = Thresholds()
    rounds: tuple[RoundReading, ...] = ()
    drafts: tuple[DraftReading, ...] = ()
    path: tuple[int, ...] = ()
    stopped: Stop = ""


def walk(
    record: Record, settings: HaaragSettings, recorded: HaaragSettings, language: Language
) -> HaaragDecision:
    """Follow the record for as long as `settings` lead the way that `recorded` led."""
    return _Walk(record, settings, recorded, language).decide()


class _Walk:
    def __init__(
        self,
        record: Record,
        settings: HaaragSettings,
        recorded: HaaragSettings,
        language: Language,
    ) -> None:
        self.record = record
        self.settings = settings
        self.recorded = recorded
        self.thresholds = Thresholds.of(settings, record.embedder, language)
        self.rounds = [one for one in record.rounds() if one.found is not None]
        self.compared = [
            compared
            for draft in record.drafts
            if (compared := record.compared(draft.draft)) is not None
        ]
        self.alignments = [align(compared) for compared in self.compared]
        self.statuses: list[Status] = [
            status_of(each, self.thresholds.tau_a) for each in self.alignments
        ]
        self.used: list[Round] = []
        self.path: list[int] = []

    def decide(self) -> HaaragDecision:
        if not self._same("k", "k_limit", "key_terms", "rephrase", "forms", "max_tokens", *_DRAFT):
            return self._diverges(0, "settings")
        at = self._widened()
        if at is None:
            return self._diverges(0, "haarag_widening")
        if at < 0:
            return self._decision()
        found = self.rounds[at].found
        assert found is not None
        context = self._rate(found).holds
        if not context:
            # Every round had to be empty for that: the recorded one was no other.
            return self._ended("nothing") if self.record.drafts else self._decision()
        final = [one for one in self.rounds if one.after is None][-1]
        if not self._same_context(self.rounds[at], final):
            return self._diverges(0, "haarag_context")
        if not self._same("entailment", "max_iterations"):
            return self._diverges(0, "settings")
        return self._refined(at, context, whole=self.rounds[at] is final)

    def _widened(self) -> int | None:
        """Which round the searching ends with; None for one never made, -1 for not yet known."""
        first = [one for one in self.rounds if one.after is None]
        for at, one in enumerate(first):
            assert one.found is not None
            self.used.append(one)
            wants = wants_widening(self._rate(one.found), self.thresholds.tau_r)
            if not wants or at + 1 == len(self.settings.depths()):
                return at
        return None if self.record.drafts or self.record.finished else -1

    def _refined(self, at: int, context: frozenset[str], *, whole: bool) -> HaaragDecision:
        rephrasing = self.settings.rephrase == "widen" and at == 0
        while True:
            number = len(self.path)
            if number >= len(self.record.drafts):
                return self._decision()
            self.path.append(number)
            if number >= len(self.alignments):
                return self._decision()
            status, asked = self.statuses[number], self.used[-1].found
            assert asked is not None
            plan = plan_refinement(
                self.alignments[number],
                status,
                self.thresholds.tau_a,
                queries=asked.queries,
                can_rephrase=rephrasing,
            )
            if status in ("supported", "unchecked"):
                return self._ended("holds" if status == "supported" else "unchecked")
            if plan is None or number + 1 >= self.settings.max_iterations:
                return self._ended("exhausted" if plan is None else "iterations")
            following = next((one for one in self.rounds if one.after == number), None)
            if following is None:
                over = self.record.finished
                return self._diverges(number, "haarag_refining") if over else self._decision()
            if not whole:
                return self._diverges(number, "haarag_widening")
            if plan != _plan_of(following):
                return self._diverges(number, "haarag_refining")
            if not self._same_context(following, following):
                return self._diverges(number, "haarag_context")
            assert following.found is not None
            self.used.append(following)
            rephrasing = rephrasing and not plan.rephrase
            holds = self._rate(following.found).holds
            if holds == context:
                return self._ended("unchanged")
            context = holds

    def _same(self, *fields: str) -> bool:
        return all(getattr(self.settings, f) == getattr(self.recorded, f) for f in fields)

    def _rate(self, found: Found, settings: HaaragSettings | None = None) -> Retrieval:
        by = settings or self.settings
        return rate_retrieval(
            found,
            k=by.k,
            min_similarity=by.min_similarity,
            duplicate_similarity=by.duplicate_similarity,
        )

    def _same_context(self, one: Round, recorded: Round) -> bool:
        """Whether `one` under these settings gives the very context that was recorded."""
        assert one.found is not None
        assert recorded.found is not None
        ours = self._rate(one.found).context
        theirs = self._rate(recorded.found, self.recorded).context
        return [p.text for p in ours] == [p.text for p in theirs]

    def _diverges(self, draft: int, reason: str) -> HaaragDecision:
        return self._decision().model_copy(update={"diverges_at": draft, "reason": reason})

    def _ended(self, stopped: Stop) -> HaaragDecision:
        if stopped == "nothing":
            self.path.append(0)
        draft = self.path[-1]
        texts = [one.after for one in self.record.drafts]
        failed = self.record.failed(one.step.span for one in self.used)
        answer = answer_of(
            texts[0],
            texts[draft],
            "insufficient" if stopped == "nothing" else self.statuses[draft],
            found=stopped != "nothing",
            failed=failed,
            weak=any(self.record.weak_judges(number) for number in self.path),
        )
        update = {"answer": answer, "stopped": stopped}
        return self._decision().model_copy(update=update)

    def _decision(self) -> HaaragDecision:
        used = {one.step.span for one in self.used}
        first = self.alignments[0] if self.alignments else None
        status = self.statuses[0] if self.statuses else "unchecked"
        if first is None and self.path:
            first = Alignment(text=self.record.drafts[0].after)
        return HaaragDecision(
            flagged=status == "doubtful",
            score=headline(first, status, self.thresholds.tau_a) if first is not None else None,
            embedder=self.record.embedder,
            thresholds=self.thresholds,
            rounds=tuple(
                RoundReading(
                    after=one.after,
                    depth=one.step.detail["depth"],
                    retrieval=self._rate(one.found),
                    used=one.step.span in used,
                )
                for one in self.rounds
                if one.found is not None
            ),
            drafts=tuple(
                DraftReading(
                    alignment=self.alignments[number],
                    status=self.statuses[number],
                    context=compared.passages,
                    used=number in self.path,
                )
                for number, compared in enumerate(self.compared)
            ),
            path=tuple(self.path),
        )


def _plan_of(following: Round) -> Refinement:
    detail = following.step.detail
    return Refinement(parts=tuple(detail["parts"]), rephrase=detail["rephrase"])
