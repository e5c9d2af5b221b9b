"""Together: every judge is asked about each sentence, and one fitted combination gives a verdict.

The verdict is the one that a check of several detectors ends with (`verdict.py`, ours), as a method
of its own: so it can be run alone and be evaluated beside the detectors it is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Answer, Passage
from pipelines.errors import VeriscopeError
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    CheckedAnswer,
    judge_sentences,
    scored,
    take_subject,
    unchecked,
)
from pipelines.methods.limits import Use
from pipelines.methods.slm.method import (
    Context,
    found_by_sentences,
    judge_sentence,
    probability_of_yes,
)
from pipelines.methods.together.citations import judge_citations
from pipelines.methods.together.features import Reading, SentenceReadings, reading_of
from pipelines.methods.together.verdict import TogetherFound, judged_together, text_together
from pipelines.methods.writing import found_for
from pipelines.prompts import load_prompts
from pipelines.run.events import JUDGES, Score
from pipelines.run.scope import Scope
from pipelines.text.citations import claims_in


class TogetherSettings(Settings):
    """Settings of the one verdict."""

    passages: int = Field(3, ge=1, le=20, description="Passages searched for (ours: 3).")
    max_tokens: AnswerTokens = 128


class Together(Method[TogetherSettings]):
    """One verdict on each sentence, by all judges and by what the passages hold (ours); of a given
    text that cites its sources, also one on each citation, by that source alone.
    """

    name = "together"
    page = "baselines"
    rewrites = False
    grounded = True
    baseline = True
    roles = JUDGES
    effort = 3
    starts_from = "direct"
    checks = "text"
    settings_type = TogetherSettings
    flow = (
        Stage("draft"),
        Stage("retrieve"),
        Stage("judge_sentence", optional=True, repeats=True),
        Stage("judge_citation", optional=True, repeats=True),
    )
    prompts = (load_prompts("slm"), load_prompts("direct"))

    def needs(self, settings: TogetherSettings) -> tuple[Need, ...]:
        return (Need(reason="model"), Need(reason="evidence"))

    async def run(self, question: Question, scope: Scope, settings: TogetherSettings) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        context = await _context(question, scope, subject, settings)
        cited = scope.given.citations if scope.given is not None else ()
        claims = [one.text for one in claims_in(subject.sentences, cited)]
        judges = _judges(question, scope)
        rows = await together(
            *(
                _of_sentence(question, scope, judges, number, context, claim)
                for number, claim in enumerate(claims)
            )
        )
        passages = {one.id: one for of in context.of_sentences for one in of}
        passages |= {one.id: one for one in context.passages}
        failed = "judges_search_failed" in context.remarks
        found = judged_together(
            claims,
            rows,
            None if failed else list(passages.values()),
            _use(scope, context),
            question.language,
            question="" if question.about else question.text,
            expected=bool(judges),
        )

        async def ask(step: Scope, passages: Sequence[Passage], claim: str) -> SentenceReadings:
            return await _readings(question, step, judges, passages, claim)

        await judge_citations(question, scope, subject, found, ask, _score, settings.passages)
        scores = [(_score(one),) for one in found]
        judge_sentences(scope, subject, scores, [one.verdict for one in found])
        whole = text_together(found)
        assert whole is not None
        scope.judged("answer", subject.text, verdict=whole.verdict, scores=(_score(whole),))
        flags = [*subject.flags, *context.remarks]
        if whole.verdict == "unchecked":
            flags.append("not_checked")
        return Answer(text=subject.text, original=subject.text, flags=tuple(dict.fromkeys(flags)))


async def _context(
    question: Question, scope: Scope, subject: CheckedAnswer, settings: TogetherSettings
) -> Context:
    if scope.given is not None:
        return await found_by_sentences(question, scope, subject.text, settings.passages)
    async with scope.span("retrieve") as step:
        found = await found_for(step, question.query, settings.passages)
    remarks = ("judges_search_failed",) if found is None else ()
    return Context(tuple(found or ()), remarks or (() if found else ("judges_no_evidence",)))


def _judges(question: Question, scope: Scope) -> dict[str, Reading]:
    """Return the roles whose word counts, and what it counts as; the main model where it
    can judge.
    """
    found: dict[str, Reading] = {}
    for role in (*JUDGES, "main"):
        if not scope.has_model(role) or (role == "main" and found):
            continue
        model = scope.model(role)
        reading = reading_of(model.name, model.capabilities)
        if reading is not None and question.language in model.capabilities.languages:
            found[role] = reading
    return found


async def _of_sentence(
    question: Question,
    scope: Scope,
    judges: dict[str, Reading],
    number: int,
    context: Context,
    sentence: str,
) -> SentenceReadings:
    """Return what the judges say of a sentence, each in a step of its own."""
    passages = context.of(number)

    async def ask(role: str) -> tuple[str, float | None]:
        async with scope.span("judge_sentence", role=role, sentence=number) as step:
            return role, await _p_yes(question, step, role, passages, sentence)

    said = await together(*(ask(role) for role in judges)) if passages else ()
    return _combined(judges, said)


async def _readings(
    question: Question,
    step: Scope,
    judges: dict[str, Reading],
    passages: Sequence[Passage],
    claim: str,
) -> SentenceReadings:
    """Return what the judges say of a claim by these passages, asked in one step."""
    values = await together(*(_p_yes(question, step, role, passages, claim) for role in judges))
    return _combined(judges, list(zip(judges, values, strict=True)))


async def _p_yes(
    question: Question, step: Scope, role: str, passages: Sequence[Passage], claim: str
) -> float | None:
    try:
        choice = await judge_sentence(step, role, question.text, passages, claim, question.language)
    except VeriscopeError:
        # Recorded with the call.
        return None
    return probability_of_yes(choice)


def _combined(
    judges: dict[str, Reading], said: Iterable[tuple[str, float | None]]
) -> SentenceReadings:
    """Return the mean of what judges of a kind say; one whose call failed says nothing."""
    found: dict[Reading, list[float]] = {}
    for role, value in said:
        if value is not None:
            found.setdefault(judges[role], []).append(value)
    return SentenceReadings(
        values={reading: fmean(of) for reading, of in found.items()},
        methods=dict.fromkeys(found, ("together",)),
    )


def _use(scope: Scope, context: Context) -> Use:
    if scope.given is None:
        return "own"
    given = any(one.source == "given" for one in context.passages)
    return "given" if given else "library"


def _score(found: TogetherFound) -> Score:
    return scored(
        "together",
        found.supported,
        bad="below",
        threshold=found.threshold,
        formula="together",
    )
