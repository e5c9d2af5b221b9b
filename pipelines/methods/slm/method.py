"""SLM check: several small models judge an answer sentence by sentence; it is scored, not changed.

Every judge is asked about every sentence at the same time (`judging.py`); `reading.py`
records what they say and `decision.py` makes scores and a verdict of it, live and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.methods.base import Method, Need, Question
from pipelines.methods.direct import direct_messages
from pipelines.methods.drafts import record_original
from pipelines.methods.replies.parsing import visible
from pipelines.methods.slm.decision import SlmDecision, weigh
from pipelines.methods.slm.judging import judge_sentence
from pipelines.methods.slm.reading import (
    Cell,
    Judge,
    Panel,
    Reading,
    Statement,
    cell_of,
    read_back,
    record_cell,
)
from pipelines.methods.slm.scale import shipped_scale, shipped_thresholds
from pipelines.methods.slm.settings import SlmSettings
from pipelines.prompts import load_prompts
from pipelines.run.events import Judged, SpanEnded, SpanStarted
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.run.trace import Trace
from pipelines.text import split_sentences
from pipelines.types import Answer, Generation, Passage

__all__ = ["Slm", "SlmSettings"]

Context = tuple[tuple[Passage, ...], tuple[str, ...]]
"""What the judges read, and remarks on how it was found."""


class Slm(Method[SlmSettings]):
    """Hallucination detection by small language models (the SLM framework)."""

    name = "slm"
    roles = JUDGES
    settings_type = SlmSettings
    prompts = (load_prompts("slm"), load_prompts("direct"))

    def needs(self, settings: SlmSettings) -> tuple[Need, ...]:
        needs = [Need(reason="model")]
        if settings.context == "retrieved":
            needs.append(Need(reason="evidence"))
        return tuple(needs)

    async def run(self, question: Question, scope: Scope, settings: SlmSettings) -> Answer:
        _check_given(settings)
        text, (context, remarks) = await _prepare(question, scope, settings)
        panel = _panel(scope, question, text, remarks)
        async with scope.span("ask_judges", **panel.detail()) as asking:
            cells = await _ask_all(asking, panel, question, context, settings)
            decision = weigh(Reading(panel=panel, cells=cells), settings, complete=True)
            _record(asking, decision)
        assert decision.answer is not None
        return decision.answer

    def decide(self, trace: Trace, settings: SlmSettings) -> SlmDecision:
        """Weigh the recorded words of the judges again; see `SlmDecision`."""
        events = trace.of_method(self.name)
        asking = next(
            (e for e in events if isinstance(e, SpanStarted) and e.step == "ask_judges"), None
        )
        if asking is None:
            return SlmDecision(flagged=False)
        done = any(
            isinstance(e, SpanEnded) and e.span == asking.span and e.outcome == "ok" for e in events
        )
        reading = read_back(asking.detail, (e for e in events if isinstance(e, Judged)))
        recorded = {spec.name: spec.settings for spec in trace.header.spec.methods}
        reason = _divergence(self.settings(recorded.get(self.name)), settings)
        decision = weigh(reading, settings, complete=done and not reason)
        return decision.model_copy(update={"diverges_at": 0, "reason": reason} if reason else {})


def _check_given(settings: SlmSettings) -> None:
    if settings.subject == "given" and not settings.answer.strip():
        raise InvalidInputError(
            "There is no answer to judge.",
            remedy="Write it into the method's settings, or let the Direct answer be judged.",
        )
    if settings.context == "given" and not settings.passage.strip():
        raise InvalidInputError(
            "There is no text for the judges to read.",
            remedy="Write it into the method's settings, or let passages be searched for.",
        )


async def _prepare(question: Question, scope: Scope, settings: SlmSettings) -> tuple[str, Context]:
    """The answer and the context, found at the same time."""
    finding = asyncio.create_task(_context(question, scope, settings))
    try:
        text = await _subject(question, scope, settings)
        return text, await finding
    finally:
        finding.cancel()
        await asyncio.wait({finding})


async def _subject(question: Question, scope: Scope, settings: SlmSettings) -> str:
    if settings.subject == "given":
        async with scope.span("take_answer") as step:
            draft = Generation(text=settings.answer.strip())
            record_original(step, draft)
        return draft.text
    async with scope.span("draft") as step:
        # The very request of Direct: whichever method asks first answers for both.
        can = step.model().capabilities
        request = step.request(
            direct_messages(question), max_tokens=settings.max_tokens, logprobs=can.logprobs
        )
        draft = await step.write(request)
        text = visible(draft.text)
        if text != draft.text.strip():
            # Without its thoughts, the tokens no longer stand where they say.
            draft = draft.model_copy(update={"text": text, "tokens": None})
        record_original(step, draft)
    return draft.text


async def _context(question: Question, scope: Scope, settings: SlmSettings) -> Context:
    if settings.context == "none":
        return (), ()
    if settings.context == "given":
        text = settings.passage.strip()
        return (Passage(id="given", title="", text=text, source="given", rank=1),), ()
    async with scope.span("retrieve") as step:
        try:
            found = await step.search(question.text, settings.passages)
        except VeriscopeError:
            return (), ("judges_search_failed",)
    return tuple(found), () if found else ("judges_no_evidence",)


def _panel(scope: Scope, question: Question, text: str, remarks: Sequence[str]) -> Panel:
    chosen = [role for role in JUDGES if scope.has_model(role)]
    flags = [*remarks]
    if not chosen:
        chosen = ["main"]
        flags.append("judge_is_main")
    judges: list[Judge] = []
    left_out: list[str] = []
    for role in chosen:
        same = next((n for n, j in enumerate(judges) if scope.same_model(role, j.role)), None)
        model = scope.model(role)
        if same is not None:
            judges[same] = judges[same].model_copy(update={"also": (*judges[same].also, role)})
        elif question.language not in model.capabilities.languages:
            left_out.append(model.name)
        else:
            shipped = shipped_scale(model.name, question.language)
            judges.append(Judge(role=role, name=model.name, shipped=shipped))
            if not model.capabilities.judges:
                flags.append("weak_judge")
    if any(judge.also for judge in judges):
        flags.append("same_judge_twice")
    if left_out:
        flags.append("judge_language")
    spans = split_sentences(text)
    return Panel(
        text=text,
        sentences=tuple(Statement(text=s.text, start=s.start, end=s.end) for s in spans),
        judges=tuple(judges),
        thresholds=shipped_thresholds(judge.name for judge in judges),
        flags=tuple(dict.fromkeys(flags)),
        left_out=tuple(dict.fromkeys(left_out)),
    )


async def _ask_all(
    asking: Scope,
    panel: Panel,
    question: Question,
    context: Sequence[Passage],
    settings: SlmSettings,
) -> tuple[Cell, ...]:
    """Every judge on every sentence, and on the whole response if wanted, all at the same time.

    Raises the first error when every single call failed: then nobody can be asked at all.
    """
    statements: list[tuple[int | None, Statement]] = [*enumerate(panel.sentences)]
    if settings.whole_response and statements:
        whole = Statement(text=panel.text.strip(), start=0, end=len(panel.text))
        statements.append((None, whole))

    async def ask(judge: Judge, number: int | None, statement: Statement) -> Cell:
        step_name = "judge_sentence" if number is not None else "judge_response"
        async with asking.span(step_name, role=judge.role, sentence=number) as step:
            try:
                choice = await judge_sentence(
                    step, judge.role, question.text, context, statement.text, question.language
                )
                cell = cell_of(choice, judge.role, number, step.id)
            except VeriscopeError as error:
                failures.append(error)
                cell = Cell(role=judge.role, sentence=number, span=step.id, error=error.info())
            record_cell(step, cell, judge, statement)
        return cell

    failures: list[VeriscopeError] = []
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ask(judge, number, statement))
            for number, statement in statements
            for judge in panel.judges
        ]
    if tasks and len(failures) == len(tasks):
        raise failures[0]
    return tuple(task.result() for task in tasks)


def _record(step: Scope, decision: SlmDecision) -> None:
    judged = zip(decision.sentences, decision.sentence_scores, decision.verdicts, strict=True)
    for number, (sentence, score, verdict) in enumerate(judged):
        step.judged(
            what="sentence",
            text=sentence.text,
            start=sentence.start,
            end=sentence.end,
            sentence=number,
            verdict=verdict,
            scores=(score,),
        )
    scales = {judge.role: judge.scale.model_dump(mode="json") for judge in decision.judges}
    step.judged(
        what="answer",
        text=decision.text,
        start=0,
        end=len(decision.text),
        verdict=decision.verdict,
        scores=decision.response,
        detail={"scales": scales, "threshold_source": decision.threshold_source},
    )


def _divergence(recorded: SlmSettings, settings: SlmSettings) -> str:
    """Why the judges would be asked something else with these settings; empty if they would not."""

    def differ(*fields: str) -> bool:
        return any(getattr(recorded, field) != getattr(settings, field) for field in fields)

    if differ("subject") or differ("max_tokens" if settings.subject == "direct" else "answer"):
        return "slm_answer"
    of_context = {"retrieved": "passages", "given": "passage"}.get(settings.context)
    if differ("context") or (of_context and differ(of_context)):
        return "slm_context"
    return "slm_whole" if differ("whole_response") and settings.whole_response else ""
