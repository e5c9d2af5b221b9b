"""The questions, and what is kept of the run that answered one.

Rows are counted from 1 in the order in which a file lists its questions of one language: even rows
are for tuning, odd rows for the report. The calibration of DRAD counts from 0, so the English rows
that are odd here are those that its threshold theta_2 was fitted on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, get_args

from pipelines.base import Frozen, Language
from pipelines.engine.service import Service
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.evaluation.metrics.reference import Outcome, Reference, score
from pipelines.methods.registry import get_method
from pipelines.run.events import (
    JUDGES,
    Event,
    MethodSpec,
    RunSpec,
    SpanStarted,
    Verdict,
    default_models,
)
from pipelines.run.findings import (
    ConceptsListed,
    ConceptVerified,
    ParaphraseDiscarded,
    ParaphraseTaken,
)
from pipelines.run.view import MethodView, fold
from pipelines.text import detect_language

Part = Literal["tune", "report", "held-out"]
"""Even rows, odd rows, or the questions that nothing was chosen by."""

PARTS: tuple[Part, ...] = get_args(Part)

_OWNER = "default-report"
_WARM_UP: dict[Language, str] = {
    "en": "Which planet of the solar system has the most moons?",
    "zh": "太阳系中卫星最多的是哪颗行星？",
}


class ReportQuestion(Frozen):
    """A question of a part; `number` counts the rows of its file in its language from 1."""

    part: Part
    language: Language = "en"
    number: int
    id: str
    reference: Reference


class Paraphrase(Frozen):
    """A text written as a paraphrase; `discarded` is the reason, empty where it was taken."""

    text: str
    discarded: str = ""


class ReportConcept(Frozen):
    """A concept with the sentence it was checked in, its validation question and the verdict."""

    text: str
    sentence: str
    question: str
    claim: str
    fallback: bool
    verdict: Verdict
    reason: str = ""
    by: str = ""


class MethodAnswer(Frozen):
    """What one method answered.

    `verdict` is the method's own on its original. `seconds` go from the start of the run to its
    answer. `calls` are those of language models and `judge_calls` those of judges, without cached
    ones; tokens are counted where a model reports them.
    """

    original: str = ""
    answer: str = ""
    abstained: bool = False
    error: str = ""
    original_outcome: Outcome = "failed"
    outcome: Outcome = "failed"
    verdict: Verdict | None = None
    flags: tuple[str, ...] = ()
    seconds: float | None = None
    calls: int = 0
    judge_calls: int = 0
    prompt_tokens: int = 0
    tokens: int = 0

    def scored(self, reference: Reference) -> MethodAnswer:
        """Return the attempt with its outcomes, by the scoring as it is now."""
        if self.error:
            return self
        return self.model_copy(
            update={
                "original_outcome": score(self.original, reference),
                "outcome": score(self.answer, reference, abstained=self.abstained),
            }
        )


class QuestionRecord(Frozen):
    """One question: what every method answered, and what Rowen and EVER wrote on the way.

    `seconds` is the duration of the whole run.
    """

    asked: ReportQuestion
    methods: dict[str, MethodAnswer]
    paraphrases: tuple[Paraphrase, ...] = ()
    concepts: tuple[ReportConcept, ...] = ()
    seconds: float = 0.0

    def scored(self) -> QuestionRecord:
        """Return the record with outcomes by the scoring as it is now."""
        reference = self.asked.reference
        methods = {name: one.scored(reference) for name, one in self.methods.items()}
        return self.model_copy(update={"methods": methods})


def questions(
    part: Part, limit: int | None = None, language: Language = "en"
) -> list[ReportQuestion]:
    """Return the questions of a part in `language` in file order, the first `limit` of them."""
    name = "held_out_questions.csv" if part == "held-out" else "questions.csv"
    rows = sample_rows(name, language)
    numbered = list(enumerate(rows, start=1))
    if part != "held-out":
        numbered = [pair for pair in numbered if pair[0] % 2 == (part == "report")]
    return [
        ReportQuestion(
            part=part, language=language, number=number, id=row["id"], reference=Reference.of(row)
        )
        for number, row in numbered[:limit]
    ]


async def ask_all(
    service: Service,
    asked: Sequence[ReportQuestion],
    methods: Sequence[str],
    *,
    apart: bool = False,
) -> AsyncIterator[QuestionRecord]:
    """Answer one question after the other with all `methods` in one run, as a visitor has it.

    With `apart` each method, with the baseline that it starts from, has its own run and shares no
    reply with another method: so the run shows what one method takes by itself. A first question in
    each language, which is not counted, loads models and library.
    """
    asked_in = {one.language for one in asked}
    for language, question in _WARM_UP.items():
        if language in asked_in:
            await service.record(_spec(question, methods[:1] if apart else methods), owner=_OWNER)
    for one in asked if apart else ():
        for name in methods:
            base = get_method(name).starts_from
            # Replies are shared by the runs of one owner.
            spec = _spec(one.reference.question, [*filter(None, (base,)), name])
            trace = await service.record(spec, owner=f"{_OWNER} {name}")
            yield record_of(one, trace.events)
    for one in () if apart else asked:
        trace = await service.record(_spec(one.reference.question, methods), owner=_OWNER)
        yield record_of(one, trace.events)


def _spec(question: str, methods: Sequence[str]) -> RunSpec:
    return RunSpec(
        question=question,
        methods=tuple(MethodSpec(name=name) for name in methods),
        models=default_models(detect_language(question)),
    )


def record_of(asked: ReportQuestion, events: Sequence[Event]) -> QuestionRecord:
    """Return what is kept of a run that is over; without Rowen there are no paraphrases, without
    EVER no concepts."""
    view = fold(events)
    asked_for = view.header.spec.methods if view.header is not None else ()
    missing = view.error.message if view.error is not None else "The run was stopped."
    methods = {
        spec.name: _attempt(view.methods[spec.name])
        if spec.name in view.methods
        else MethodAnswer(error=missing)
        for spec in asked_for
    }
    spans = {event.span: event for event in events if isinstance(event, SpanStarted)}
    found = QuestionRecord(
        asked=asked,
        methods=methods,
        paraphrases=_paraphrases(view.methods.get("rowen")),
        concepts=_concepts(view.methods.get("ever"), spans),
        seconds=view.time,
    )
    return found.scored()


def _attempt(method: MethodView) -> MethodAnswer:
    verdicts: list[Verdict] = [event.verdict for event in method.judged if event.what == "answer"]
    written = [one for call in method.made for one in call.generations]
    judged = sum(call.role in JUDGES for call in method.made)
    answer, error = method.answer, ""
    if answer is None:
        error = method.error.message if method.error is not None else "The method was stopped."
    return MethodAnswer(
        original=answer.original if answer else "",
        answer=answer.text if answer else "",
        abstained=bool(answer and answer.abstained),
        error=error,
        verdict=verdicts[-1] if verdicts else None,
        flags=answer.flags if answer else (),
        seconds=method.ended if answer else None,
        calls=len(method.made) - judged,
        judge_calls=judged,
        prompt_tokens=sum(one.usage.prompt_tokens for one in written),
        tokens=method.tokens,
    )


def _paraphrases(rowen: MethodView | None) -> tuple[Paraphrase, ...]:
    if rowen is None:
        return ()
    taken = [
        Paraphrase(text=step.detail.text)
        for step in rowen.steps
        if isinstance(step.detail, ParaphraseTaken)
    ]
    discarded = [
        Paraphrase(text=event.text, discarded=event.detail.reason)
        for event in rowen.judged
        if isinstance(event.detail, ParaphraseDiscarded)
    ]
    return (*taken, *discarded)


def _concepts(ever: MethodView | None, spans: dict[str, SpanStarted]) -> tuple[ReportConcept, ...]:
    if ever is None:
        return ()
    checked = {
        event.span: event.detail.text
        for event in ever.judged
        if isinstance(event.detail, ConceptsListed)
    }
    found: list[ReportConcept] = []
    for event in ever.judged:
        if isinstance(event.detail, ConceptVerified):
            said = event.detail
            found.append(
                ReportConcept(
                    text=event.text,
                    # A concept's span lies within the check of its sentence.
                    sentence=checked[spans[event.span].parent or ""],
                    question=said.question,
                    claim=said.claim,
                    fallback=said.fallback,
                    verdict=event.verdict,
                    reason=said.reason,
                    by=said.by,
                )
            )
    return tuple(found)
