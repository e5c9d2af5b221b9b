"""What detectors have in common: the answer they check, and the verdicts that they record on it.

A detector leaves the answer as it is. Each of its scores has a range, a threshold and a bad side;
the verdict is "doubtful" where the score that decides lies on the bad side of its threshold,
"confident" where it does not, and "unchecked" where there is no score or no threshold, or where it
would speak for sentences that could not be scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from pipelines.methods.base import Question
from pipelines.methods.deciding import PartCounts, decide, withheld
from pipelines.methods.direct import direct_messages
from pipelines.methods.replies.statements import no_answer
from pipelines.methods.writing import first_draft
from pipelines.run.events import Score, Verdict
from pipelines.run.scope import Scope
from pipelines.text import Span, split_sentences
from pipelines.types import Answer, Generation, Message

_DIGITS = 9
"""Decimals of a score: a mean of tenths that equals its threshold must not lie beyond it."""


@dataclass(frozen=True)
class CheckedAnswer:
    """The answer that is checked, the prompt it answers, and the span it was taken in.

    `sentences` are those of its text; none where it states nothing, or repeats the question.
    """

    generation: Generation
    messages: tuple[Message, ...]
    span: str
    sentences: tuple[Span, ...]
    flags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer."""
        return self.generation.text


async def take_subject(question: Question, scope: Scope, max_tokens: int) -> CheckedAnswer:
    """Return the Direct answer, or the one that the run was given, recorded as draft 0."""
    messages = direct_messages(question)
    async with scope.span("draft") as step:
        draft = await first_draft(step, messages, max_tokens)
        step.revised(draft)
    remark = no_answer(draft.text, question)
    if remark:
        return CheckedAnswer(draft, messages, step.id, (), (remark,))
    return CheckedAnswer(draft, messages, step.id, tuple(split_sentences(draft.text)))


def scored(
    name: str,
    value: float | None,
    *,
    bad: Literal["below", "above"],
    threshold: float | None = None,
    low: float = 0.0,
    high: float | None = 1.0,
    formula: str = "",
    inputs: Iterable[float] = (),
    behind: Iterable[str] = (),
) -> Score:
    """Return a score, flagged where it lies beyond its threshold on the bad side; on it,
    it is not.
    """
    if value is not None:
        value = round(value, _DIGITS)
    flagged = False
    if value is not None and threshold is not None:
        flagged = value > threshold if bad == "above" else value < threshold
    return Score(
        name=name,
        value=value,
        threshold=threshold,
        bad=bad,
        flagged=flagged,
        low=low,
        high=high,
        formula=formula,
        inputs=tuple(inputs),
        behind=tuple(dict.fromkeys(behind)),
    )


def verdict_of(score: Score) -> Verdict:
    """Return what follows from the score that decides."""
    if score.value is None or score.threshold is None:
        return "unchecked"
    return "doubtful" if score.flagged else "confident"


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def judge_sentences(
    step: Scope,
    subject: CheckedAnswer,
    scores: Sequence[Sequence[Score]],
    verdicts: Sequence[Verdict] | None = None,
) -> PartCounts:
    """Record the verdict on each sentence; return their counts.

    The first of its scores decides, where no `verdicts` are given.

    A score that no threshold is known for is a score all the same: its sentence is not missing.
    """
    known: list[Verdict] = [
        "confident" if of_sentence[0].value is not None else "unchecked" for of_sentence in scores
    ]
    said = verdicts or [verdict_of(of_sentence[0]) for of_sentence in scores]
    for number, (sentence, of_sentence, verdict) in enumerate(
        zip(subject.sentences, scores, said, strict=True)
    ):
        step.judged(
            "sentence",
            sentence.text,
            start=sentence.start,
            end=sentence.end,
            sentence=number,
            verdict=verdict,
            scores=of_sentence,
        )
    return PartCounts.of(known)


def judge_answer(
    step: Scope,
    subject: CheckedAnswer,
    scores: Sequence[Score],
    flags: Iterable[str] = (),
    sentences: PartCounts | None = None,
) -> Answer:
    """Record the verdict on the answer, which the first score decides, and give the answer back.

    `sentences` are those that the score was made of.
    """
    counts = sentences or PartCounts()
    verdict = withheld(verdict_of(scores[0]) if scores else "unchecked", counts)
    step.judged("answer", subject.text, verdict=verdict, scores=scores)
    remarks = [*subject.flags, *flags, *decide(counts).flags]
    if subject.sentences and (not scores or scores[0].value is None):
        remarks.append("not_checked")
    flags = tuple(dict.fromkeys(remarks))
    return Answer(text=subject.text, original=subject.text, flags=flags)


def unchecked(scope: Scope, subject: CheckedAnswer) -> Answer:
    """Return the answer of a method that finds nothing to check in it."""
    return judge_answer(scope, subject, ())
