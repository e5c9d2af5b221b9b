"""What EVER found out about each sentence, read back from recorded verdicts, and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pipelines.methods.base import Decision
from pipelines.run.events import Judged, Score, Verdict
from pipelines.types import Frozen

__all__ = [
    "Attempt",
    "Check",
    "ConceptCheck",
    "EverDecision",
    "SentenceRecord",
    "Stopped",
    "answer_verdict",
    "headline",
    "read_records",
    "remarks",
    "with_limit",
]

Attempt = Literal["draft", "rectified", "candidate"]
Listed = Literal["read", "none", "unreadable"]
Stopped = Literal["settled", "limit", "same", "unusable"]


class ConceptCheck(Frozen):
    """A concept and the answer to its validation question.

    `start` and `end` are offsets in the text that was checked. `by` is the judge whose verdict it
    is, empty where the main model checked itself. `reason` says why nothing was asked
    or decided: "no_evidence" (not enough, without a call), "search_failed", "unreadable" or "tie"
    (unchecked). `evidence` holds ids of passages in the order in which they were given. `reused` is
    the span in which the same question was answered before, where its verdict was taken over.
    """

    text: str
    start: int
    end: int
    verdict: Verdict
    question: str = ""
    fallback: bool = False
    reason: str = ""
    reasoning: str = ""
    evidence: tuple[str, ...] = ()
    reused: str = ""
    by: str = ""
    span: str = ""


class Check(Frozen):
    """One look at a sentence, or at the statement that question and short answer make together.

    `round` counts looks at the same sentence from 0. `start` is where the sentence stands in draft
    `draft`; `places` are the concepts' offsets in `text`, `concepts` those that were decided.
    """

    round: int
    draft: int
    start: int
    text: str
    attempt: Attempt = "draft"
    listed: Listed = "read"
    places: tuple[tuple[int, int], ...] = ()
    left_out: int = 0
    concepts: tuple[ConceptCheck, ...] = ()
    span: str = ""

    def of(self, verdict: Verdict) -> tuple[ConceptCheck, ...]:
        """The concepts with this verdict, in order of place."""
        return tuple(concept for concept in self.concepts if concept.verdict == verdict)

    @property
    def doubtful(self) -> tuple[ConceptCheck, ...]:
        """The concepts to rectify: contradicted, or not settled by the evidence."""
        return tuple(c for c in self.concepts if c.verdict in ("contradicted", "not_enough"))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its concepts; a sentence without concepts was not checked."""
        if self.listed == "none":
            return "unchecked"
        for verdict in ("contradicted", "not_enough", "unchecked"):
            if self.of(verdict):
                return verdict
        return "supported" if self.concepts else "unchecked"


class SentenceRecord(Frozen):
    """A sentence (or one item of a short answer) from its draft to how it was settled.

    `verdict` is None while it is under way. `stopped` says why it was not rectified any further;
    `text` is what it came to be, empty when `dropped`. `speculation` tells what became of a next
    sentence written ahead.
    """

    index: int
    checks: tuple[Check, ...]
    text: str = ""
    verdict: Verdict | None = None
    stopped: Stopped = "settled"
    dropped: bool = False
    last: bool = False
    speculation: Literal["", "kept", "thrown"] = ""


class EverDecision(Decision):
    """EVER's verdicts sentence by sentence, ended after the rounds that the settings allow."""

    sentences: tuple[SentenceRecord, ...] = ()


def read_records(judged: Iterable[Judged]) -> list[SentenceRecord]:
    """The sentences as far as they have come, in order; also from the beginning of a run."""
    checks: dict[int, dict[int, Check]] = {}
    ends: dict[int, Judged] = {}
    for event in judged:
        if event.sentence is None:
            continue
        mine = checks.setdefault(event.sentence, {})
        if event.what == "concepts":
            check = _check(event)
            mine[check.round] = check
        elif event.what == "concept" and event.detail["round"] in mine:
            check = mine[event.detail["round"]]
            concepts = sorted((*check.concepts, _concept(event)), key=lambda c: c.start)
            mine[check.round] = check.model_copy(update={"concepts": tuple(concepts)})
        elif event.what == "sentence":
            ends[event.sentence] = event
    return [
        _record(index, [mine[number] for number in sorted(mine)], ends.get(index))
        for index, mine in sorted(checks.items())
    ]


def with_limit(record: SentenceRecord, rounds: int) -> SentenceRecord:
    """The record as it would stand had it ended after `rounds` rectifications at most."""
    places = [n for n, check in enumerate(record.checks) if check.attempt == "rectified"]
    if len(places) <= rounds:
        return record
    kept = record.checks[: places[rounds]]
    final = kept[-1]
    return record.model_copy(
        update={
            "checks": kept,
            "text": final.text,
            "verdict": final.verdict,
            "stopped": "limit",
            "dropped": False,
        }
    )


def headline(records: Sequence[SentenceRecord]) -> Score:
    """The share of concepts supported as first written; those not decided are left out.

    Any concept short of support puts it below its threshold of 1.
    """
    first = [record.checks[0] for record in records]
    supported = sum(len(check.of("supported")) for check in first)
    decided = supported + sum(len(check.doubtful) for check in first)
    return Score(
        name="supported_share",
        value=supported / decided if decided else None,
        threshold=1.0,
        bad="below",
        flagged=supported < decided,
        formula="ever.supported_share",
        inputs=(float(supported), float(decided)),
        behind=tuple(check.span for check in first),
    )


def answer_verdict(records: Sequence[SentenceRecord]) -> Verdict:
    """The worst verdict on the sentences as first written; "supported" only if all were checked."""
    first = [record.checks[0] for record in records]
    for verdict in ("contradicted", "not_enough"):
        if any(check.of(verdict) for check in first):
            return verdict
    checked = [check for check in first if check.listed != "none"]
    whole = bool(checked) and all(check.verdict == "supported" for check in checked)
    return "supported" if whole else "unchecked"


def remarks(records: Sequence[SentenceRecord]) -> list[str]:
    """Flags on the answer from how its sentences were settled, always in the same order."""
    kept = [record.checks[-1] for record in records if not record.dropped]
    concepts = [concept for check in kept for concept in check.concepts]
    reasons = {concept.reason for concept in concepts}
    unread = any(check.listed == "unreadable" for check in kept)
    present = {
        "contradicted": any(check.of("contradicted") for check in kept),
        "not_sure": any(check.of("not_enough") for check in kept),
        "concept_unchecked": unread or any(check.of("unchecked") for check in kept),
        "concept_no_evidence": "no_evidence" in reasons,
        "lookup_failed": "search_failed" in reasons,
        "item_dropped": any(record.dropped for record in records),
    }
    return [flag for flag, applies in present.items() if applies]


def _check(event: Judged) -> Check:
    detail = event.detail
    return Check(
        round=detail["round"],
        draft=event.draft,
        start=event.start,
        text=detail["text"],
        attempt=detail["attempt"],
        listed=detail["listed"],
        places=tuple((start, end) for start, end in detail["places"]),
        left_out=detail["left_out"],
        span=event.span,
    )


def _concept(event: Judged) -> ConceptCheck:
    detail = event.detail
    start, end = detail["at"]
    return ConceptCheck(
        text=event.text,
        start=start,
        end=end,
        verdict=event.verdict,
        question=detail["question"],
        fallback=detail["fallback"],
        reason=detail["reason"],
        reasoning=detail["reasoning"],
        evidence=tuple(detail["evidence"]),
        reused=detail.get("reused", ""),
        by=detail.get("by", ""),
        span=event.span,
    )


def _record(index: int, checks: Sequence[Check], end: Judged | None) -> SentenceRecord:
    if end is None:
        return SentenceRecord(index=index, checks=tuple(checks))
    return SentenceRecord(
        index=index,
        checks=tuple(checks),
        text=end.text,
        verdict=end.verdict,
        stopped=end.detail["stopped"],
        dropped=end.detail["dropped"],
        last=end.detail["last"],
        speculation=end.detail["speculation"],
    )
