"""The calls that programs make, written once: HTTP, `gradio_client` and MCP are skins over them.

A run that a program asks for belongs to an owner that is made for it, and the owner's name is the
run's id: it cannot be guessed, nobody else can name it, and no reply is shared with other runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple, TypeVar

import gradio as gr
from pydantic import BaseModel, ValidationError
from starlette.requests import HTTPConnection

from app.engine import PERIOD, Watched
from app.public.contract import (
    ApiError,
    AskRequest,
    CheckRequest,
    CheckResult,
    Expected,
    GetRunRequest,
    MethodInfo,
    MethodResult,
    MethodStatus,
    Refused,
    Remark,
    RunResult,
    ScoreFound,
    SentenceReport,
    SourceFound,
    StreamEnd,
    StreamRequest,
    VerdictFound,
    calibrated_scores,
    check_result,
    for_caller,
    problems_of,
    refused,
    spoken,
    together_result,
    told,
)
from app.public.visitors import Caller, ModelCatalog, Runs, caller_of
from components.base.words import Catalogue, named
from components.run.ask import (
    MethodRow,
    clock,
    language_unsupported,
    method_rows,
    passages_of,
    totals,
)
from pipelines.base import Language
from pipelines.engine.asking import RunPlan, RunRequest, plan_run
from pipelines.engine.checking import (
    CITING,
    FEWER,
    TextToCheck,
    checked_text,
    detectors,
    models_for,
    unmet_needs,
)
from pipelines.engine.estimate import RunEstimate, basis_for, estimate, excess_error
from pipelines.engine.messages import utterances
from pipelines.engine.pool import Turn
from pipelines.engine.streaming import StreamedSentence, WrittenAnswer
from pipelines.engine.turns import turns_of
from pipelines.error_words import Phrase, phrase, phrase_in
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.base import Method, Need
from pipelines.methods.registry import METHODS
from pipelines.methods.together.verdict import TogetherFound, answer_together, text_together
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.run.calibrated import readings
from pipelines.run.events import CancelReason, Judged, MethodSpec, ModelSpec, RunSpec
from pipelines.run.ledger import RunLimits
from pipelines.run.view import RunView, fold
from pipelines.store import RunSummary, is_owner, new_owner
from pipelines.text import detect_language

# What a program is told about a run, its methods and the methods there are.

_VERDICT = {"what", "text", "draft", "start", "end", "verdict"}
_SCORE = {"name", "value", "threshold", "bad", "flagged"}
_PASSAGE = {"id", "title", "text", "url"}
_REMARKS = {
    "language_unsupported": "The model of this server does not speak the language of this question."
    " What it writes is noise, so no probability or verdict is given for it."
}
"""Remarks that are worded for screens, as programs are told them."""


def result_of(view: RunView, run: str, shared: str | None = None) -> RunResult:
    """Return everything that the run's methods came to, each under its name, and what it cost."""
    so_far, now = totals(view), time.time()
    header, rows = view.header, method_rows(view, now)
    return RunResult(
        run=run,
        status=view.status,
        shared=shared,
        reason=view.reason,
        limit_reached=view.limit,
        question=header.spec.question if header else "",
        language=header.language if header else None,
        methods={row.method: _method(row, view) for row in rows},
        checked=_checked(view),
        error=for_caller(view.error) if view.error else None,
        calls=so_far.calls,
        cached_calls=sum(row.cached for row in rows),
        searches=so_far.retrievals,
        tokens=so_far.tokens,
        seconds=round(clock(view, now), 2),
    )


def _checked(view: RunView) -> CheckResult | None:
    """Return the check of a given text, with the needs of standard detectors not asked."""
    found = checked_text(view)
    if found is None:
        return None
    unavailable = {
        name: phrase_in(phrase("detail.needs", what=_needed(why)), spoken())
        for name, why in found.unavailable.items()
    }
    if language_unsupported(view):
        # What it would say is noise.
        found = found.model_copy(update={"sentences": (), "detectors": (), "together": None})
    return check_result(found, unavailable)


def lacking(
    models: Mapping[str, ModelSpec],
    *,
    asked: bool,
    has_evidence: bool,
    language: Language,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Phrase]:
    """Return the detectors that cannot check a text on these models, and what they need."""
    able = {role: known_capabilities(spec) or Capabilities() for role, spec in models.items()}
    needs = unmet_needs(
        able, asked=asked, has_evidence=has_evidence, language=language, settings=settings
    )
    return {name: _needed(need.reason) for name, need in needs.items() if need}


def _needed(reason: str) -> Phrase:
    return phrase(f"needed.{reason}")


def expected_in(found: RunEstimate) -> Expected:
    """Return an estimate as a program is told it."""
    return Expected(
        calls=round(found.calls + found.judge_calls, 1),
        tokens=round(found.read + found.written),
        seconds=None if found.seconds is None else round(found.seconds, 1),
    )


def _method(row: MethodRow, view: RunView) -> MethodResult:
    """Return a method as the overviews of the pages have it, with its verdicts and passages."""
    t, method = Catalogue("en"), view.methods.get(row.method)
    answer = method.answer if method is not None else None
    noise = language_unsupported(view)
    together = answer_together(view, row.method)
    header, judged = view.header, list[VerdictFound]()
    if method is not None and header is not None and not noise:
        judged = [_verdict(one, row.method, header.spec) for one in method.judged]
    return MethodResult(
        status=_status(row),
        step=named("step", row.step, t) if row.step and not view.over else None,
        answer=answer.text if answer else None,
        original=answer.original if answer else None,
        verdict=row.verdict,
        together=None if together is None or noise else together_result(together),
        remarks=[
            Remark(code=flag, text=_REMARKS.get(flag) or named("flag", flag, t))
            for flag in (answer.flags if answer else ())
        ],
        judged=judged,
        evidence=[
            SourceFound(**passage.model_dump(include=_PASSAGE), query=query)
            for passage, query in (passages_of(method) if method is not None else ())
        ],
        error=for_caller(row.error) if row.error else None,
        calls=row.calls,
        cached_calls=row.cached,
        tokens=row.tokens,
        seconds=round(row.seconds, 2),
    )


def _verdict(one: Judged, method: str, spec: RunSpec) -> VerdictFound:
    scores = [
        ScoreFound(
            **score.model_dump(include=_SCORE),
            calibrated=calibrated_scores(readings(spec, method, one.what, score)),
        )
        for score in one.scores
    ]
    return VerdictFound(**one.model_dump(include=_VERDICT), scores=scores)


def _status(row: MethodRow) -> MethodStatus:
    if row.status == "done":
        return "abstained" if row.abstained else "finished"
    return row.status


def methods_for(models: Mapping[str, ModelSpec]) -> list[MethodInfo]:
    """Return every method, with what it costs and whether it can run on `models`, role to model."""
    able = {role: known_capabilities(spec) or Capabilities() for role, spec in models.items()}
    return [_info(name, method, models, able) for name, method in METHODS.items()]


def _info(
    name: str,
    method: Method[Any],
    models: Mapping[str, ModelSpec],
    able: Mapping[str, Capabilities],
) -> MethodInfo:
    t, cost = Catalogue("en"), estimate([name], models, basis_for(models["main"]))
    needs: tuple[Need, ...] = method.needs(method.settings())
    return MethodInfo(
        name=name,
        title=t(f"method.{name}.title"),
        summary=t(f"method.{name}.summary"),
        checks=method.judges,
        checks_given=method.checks,
        rewrites=method.rewrites,
        grounded=method.grounded,
        calls=round(cost.calls, 1),
        judge_calls=round(cost.judge_calls, 1),
        seconds=None if cost.seconds is None else round(cost.seconds, 1),
        needs=list(dict.fromkeys(phrase_in(_needed(need.reason), "en") for need in needs)),
        available=not any(need.unmet(able, has_evidence=True) for need in needs),
        settings=method.settings_type.model_json_schema(),
    )


R = TypeVar("R", bound=BaseModel)
Connection = HTTPConnection | gr.Request

_REMEMBERED = 2000
"""Runs that are over of which more is known than the store keeps."""

_logger = logging.getLogger(__name__)

_LOOK = 2.0
"""Seconds between two looks at a run that another process carries out."""

_NEXT = 'Call get_run with run "{run}" and wait 45 (HTTP: GET /api/runs/{run}?wait=45).'


def checked(kind: type[R], given: Any) -> R:
    """Return `given` as a request; raises Refused, which names the field."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise refused(problems_of(error), kind.model_fields) from None


def check_settings(
    name: str, values: Mapping[str, Any], within: tuple[str, ...] = ("settings",)
) -> None:
    """Raise Refused where the method `name` has no such setting, or not with such a value."""
    kind = METHODS[name].settings_type
    try:
        # As JSON, where a list may stand for a tuple.
        kind.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise refused(problems_of(error), kind.model_fields, within=within) from None


class PendingRun:
    """A run that a program asked for, from its place in the queue to its end."""

    def __init__(self, runs: Runs, plan: RunPlan, visitor: Caller, *, share: bool) -> None:
        self.run = new_owner()
        self._runs = runs
        self._share = share
        self._expected = plan.budget.expected
        self._stage: Turn | Watched | None = None
        self._shared: str | None = None
        self._reason: CancelReason | None = None
        self._error: ApiError | None = None
        self._known = asyncio.Event()
        self.task = asyncio.create_task(self._go(plan, visitor))
        self.task.add_done_callback(lambda _: self._known.set())

    async def begun(self) -> None:
        """Wait until it runs or has a place in the queue; raises why it gets none."""
        try:
            await self._known.wait()
        except asyncio.CancelledError:
            self.task.cancel()
            raise
        if self._stage is None:
            # It ended before anything was known: with the error that the caller has to see.
            await self.task

    @property
    def run_id(self) -> str | None:
        """What the store calls the run, once it has begun."""
        return self._stage.run_id if isinstance(self._stage, Watched) else None

    def result(self) -> RunResult:
        """Return where it stands now."""
        stage, ended = self._stage, "failed" if self._error else "cancelled"
        if isinstance(stage, Watched):
            found = result_of(stage.view, self.run, self._shared)
            if found.over and not self.task.done():
                # Not before it can be shared, where that was wanted.
                found = found.model_copy(update={"status": "running"})
            elif not found.over and self.task.done():
                found = found.model_copy(update={"status": ended, "reason": self._reason})
        elif self.task.done():
            found = RunResult(run=self.run, status=ended, reason=self._reason)
        else:
            before, wait = stage if stage is not None else Turn(None)
            found = RunResult(run=self.run, status="waiting", before=before, expected_wait=wait)
        if self._error is not None:
            found = found.model_copy(update={"error": self._error})
        if self._expected is not None:
            found = found.model_copy(update={"expected": expected_in(self._expected)})
        if found.over:
            return found
        return found.model_copy(update={"next": _NEXT.format(run=self.run)})

    async def follow(
        self, seconds: float = inf, *, leave: bool = False
    ) -> AsyncGenerator[RunResult]:
        """Yield how far it has come, again and again until it is over or `seconds` have passed.

        Closing the generator earlier ends the run, unless it may `leave`.
        """
        until = time.monotonic() + seconds
        stays = leave
        try:
            while True:
                # Looked at before: it may end while the caller reads, who has to see the end too.
                over = self.task.done()
                yield self.result()
                left = until - time.monotonic()
                if over or left <= 0:
                    stays = True
                    return
                await asyncio.wait({self.task}, timeout=min(PERIOD, left))
        finally:
            if not stays:
                self.task.cancel()

    async def stop(self) -> None:
        """End it, and wait for that."""
        self._reason = "stopped"
        if self.run_id is None:
            self.task.cancel()
        else:
            service = self._runs.engine.service
            await self._runs.call(service.stop(self.run_id, owner=self.run))
        await asyncio.wait({self.task})

    async def _go(self, plan: RunPlan, visitor: Caller) -> None:
        try:
            async with aclosing(self._runs.ask(plan, self.run, visitor=visitor)) as stages:
                async for stage in stages:
                    self._stage = stage
                    self._known.set()
            if self._share and self.run_id is not None:
                self._shared = await self._runs.share(self.run_id, self.run)
        except Exception as error:
            # Whatever it was: who asked is told, now or when they look.
            if self._stage is None:
                raise
            if not isinstance(error, VeriscopeError):
                _logger.exception("A run that a program asked for failed unexpectedly")
                error = failure("asking.unexpected")
            self._error = told(error)


def _text_to_check(asked: CheckRequest) -> TextToCheck:
    """Return what is to be checked: the answer, or one of the conversation with its context.

    Raises Refused where there is none, or both.
    """
    sources = tuple(filter(None, (asked.context, *asked.sources)))
    if not asked.messages:
        if asked.turn is not None:
            raise Refused("request.turn_of_messages", "turn")
        if not asked.answer:
            raise Refused("request.missing_field", "answer", field="answer")
        return TextToCheck(
            text=asked.answer,
            question=asked.question,
            sources=sources,
            samples=tuple(asked.samples),
        )
    if asked.answer:
        raise Refused("request.answer_or_messages", "messages")
    turns = turns_of(utterances(asked.messages), sources=sources)
    if not turns:
        raise Refused("request.no_turn", "messages")
    if asked.turn is not None and asked.turn > len(turns):
        raise Refused("request.few_turns", "turn", turn=asked.turn, count=len(turns))
    given = turns[(asked.turn or len(turns)) - 1].given
    question = asked.question or given.question
    return given.model_copy(update={"question": question, "samples": tuple(asked.samples)})


class _Over(NamedTuple):
    """A run that is over: what the store calls it, None where it never began, and its result."""

    run_id: str | None
    result: RunResult


class Api:
    """What programs can do. All methods belong to the loop that serves visitors."""

    def __init__(self, runs: Runs, catalog: ModelCatalog) -> None:
        self._runs = runs
        self._catalog = catalog
        self._pending: dict[str, PendingRun] = {}
        self._over: OrderedDict[str, _Over] = OrderedDict()

    async def ask(self, asked: AskRequest, request: Connection | None) -> PendingRun:
        """Start what `asked` describes. Raises Refused or VeriscopeError where it cannot be."""
        names = [asked.method, *asked.compare_with]
        for place, name in enumerate(names):
            field = "method" if place == 0 else f"compare_with.{place - 1}"
            if name not in METHODS:
                raise Refused("request.no_method", field, name=name, known=[*METHODS])
            if name in names[:place]:
                raise Refused("request.method_twice", field, name=name)
        check_settings(asked.method, asked.settings)
        methods = [
            MethodSpec(name=name, settings=asked.settings if place == 0 else {})
            for place, name in enumerate(names)
        ]
        wanted = RunRequest(asked.question, methods=methods, models=self._catalog.models)
        return await self._begin(wanted, request, asked)

    async def check(self, asked: CheckRequest, request: Connection | None) -> PendingRun:
        """Start the check of a given text, as `ask` starts a run."""
        given = _text_to_check(asked)
        known, models = detectors(), self._catalog.models
        named = (
            *((f"detectors.{n}", name) for n, name in enumerate(asked.detectors)),
            *((f"settings.{name}", name) for name in asked.settings),
        )
        for field, name in named:
            if name not in known:
                raise Refused("request.no_detector", field, name=name, known=[*known])
        for name, values in asked.settings.items():
            check_settings(name, values, within=("settings", name))
        models = models_for(given, models)
        lacks = lacking(
            models,
            asked=given.asked,
            has_evidence=True,
            language=detect_language(given.text),
            settings=asked.settings,
        )
        chosen = list(dict.fromkeys(asked.detectors or (n for n in FEWER if n not in lacks)))
        for name in chosen:
            if name in lacks:
                raise Refused("request.cannot_work", "detectors", name=name, needed=lacks[name])
        methods = [MethodSpec(name=name, settings=asked.settings.get(name, {})) for name in chosen]
        wanted = RunRequest(text=given, methods=methods, models=models)
        return await self._begin(wanted, request, asked)

    async def written(
        self, asked: StreamRequest, pieces: AsyncIterator[str], request: Connection | None
    ) -> AsyncGenerator[SentenceReport | StreamEnd]:
        """Yield a report of each sentence of an answer that is being written, and one at its end.

        Raises Refused or VeriscopeError where there is no place for it; closing the generator ends
        what goes on.
        """
        sources = tuple(filter(None, (asked.context, *asked.sources)))
        about = TextToCheck(text="", question=asked.question, sources=sources)
        answer = WrittenAnswer(about, tuple(utterances(asked.messages)))
        complete: asyncio.Queue[tuple[StreamedSentence, float] | Exception | None] = asyncio.Queue()

        async def read() -> None:
            try:
                async for piece in pieces:
                    for sentence in answer.add(piece):
                        complete.put_nowait((sentence, time.monotonic()))
                for sentence in answer.end():
                    complete.put_nowait((sentence, time.monotonic()))
            except Exception as error:
                # Whatever it was, also that the client hung up: who judges sentences is told.
                complete.put_nowait(error)
            else:
                complete.put_nowait(None)

        found: list[TogetherFound] = []
        async with self._runs.place(caller_of(request)):
            reading = asyncio.create_task(read())
            try:
                while (one := await complete.get()) is not None:
                    if isinstance(one, Exception):
                        raise one
                    report, whole = await self._sentence(*one)
                    if whole is not None:
                        found.append(whole)
                    yield report
            finally:
                reading.cancel()
        whole = text_together(found)
        yield StreamEnd(
            together=None if whole is None else together_result(whole),
            sentences=answer.count,
            cut=answer.cut,
        )

    async def _sentence(
        self, sentence: StreamedSentence, since: float
    ) -> tuple[SentenceReport, TogetherFound | None]:
        """Judge one sentence, in a run of its own."""
        report = SentenceReport(
            number=sentence.number,
            start=sentence.start,
            end=sentence.end,
            text=sentence.text,
            together=None,
            citations=[],
            run="",
            seconds=0.0,
        )
        if sentence.given is None:
            return report, None
        told: dict[str, Any] = {}
        whole = None
        try:
            models = models_for(sentence.given, self._catalog.models)
            methods = [MethodSpec(name=CITING)]
            request = RunRequest(text=sentence.given, methods=methods, models=models)
            run = new_owner()
            trace = await self._runs.record(plan_run(request), run)
            found = checked_text(fold(trace.events))
            assert found is not None
            whole = found.together
            result = check_result(found, {})
            at = sentence.start
            told = {
                "run": run,
                "together": result.together,
                "citations": [
                    one.model_copy(
                        update={
                            "sentence": sentence.number,
                            "start": at + one.start,
                            "end": at + one.end,
                        }
                    )
                    for one in result.citations
                ],
                "error": next((for_caller(d.error) for d in found.detectors if d.error), None),
            }
        except VeriscopeError as error:
            # The other sentences are judged all the same.
            told = {"error": for_caller(error.info())}
        told["seconds"] = round(time.monotonic() - since, 3)
        return report.model_copy(update=told), whole

    async def start(
        self, asked: AskRequest | CheckRequest, request: Connection | None
    ) -> AsyncGenerator[RunResult]:
        """Start what `asked` describes: how far it comes in the seconds that the caller waits.

        Closing the generator earlier ends the run, unless the caller waits for nothing. Raises
        Refused or VeriscopeError where it cannot be started.
        """
        begin = (
            self.ask(asked, request)
            if isinstance(asked, AskRequest)
            else self.check(asked, request)
        )
        return (await begin).follow(asked.wait, leave=asked.wait == 0)

    async def follow(self, asked: GetRunRequest) -> AsyncGenerator[RunResult]:
        """Yield how far a run comes; closing it ends nothing. Raises NotFoundError."""
        if pending := self._pending.get(asked.run):
            async with aclosing(pending.follow(asked.wait, leave=True)) as stages:
                async for stage in stages:
                    yield stage
            return
        # One that another process carries out is looked up in the storage that both have.
        until = time.monotonic() + asked.wait
        while True:
            found = await self.get(asked.run)
            yield found
            left = until - time.monotonic()
            if found.over or left <= 0:
                return
            await asyncio.sleep(min(_LOOK, left))

    async def get(self, run: str) -> RunResult:
        """Return a run by id: the caller's own, a shared one, a sample. Raises NotFoundError."""
        if pending := self._pending.get(run):
            return pending.result()
        # One that is shared belongs to nobody, as do samples.
        run_id, owner = run, ""
        over = self._over.get(run)
        if over is not None:
            if over.run_id is None:
                return over.result
            run_id, owner = over.run_id, run
        elif stored := await self._stored(run):
            run_id, owner = stored.id, run
        trace = await self._runs.load(run_id, owner)
        found = result_of(fold(trace.events), run, over.result.shared if over else None)
        if over is not None:
            found = found.model_copy(update={"expected": over.result.expected})
        return found if found.over else found.model_copy(update={"next": _NEXT.format(run=run)})

    async def cancel(self, run: str) -> RunResult:
        """End a run of the caller's own; what it is now.

        Raises NotFoundError, and Refused where another process carries it out.
        """
        if pending := self._pending.get(run):
            await pending.stop()
            return pending.result()
        if run not in self._over and await self._stored_here(run) is None:
            raise failure("storage.no_run")
        return await self.get(run)

    async def delete(self, run: str) -> None:
        """End a run of the caller's own and delete it; a shared copy stays.

        Raises NotFoundError, and Refused where another process carries it out.
        """
        if pending := self._pending.get(run):
            await pending.stop()
        run_id, over = await self._stored_here(run), self._over.pop(run, None)
        if run_id is not None:
            await self._runs.call(self._runs.engine.service.delete(run_id, owner=run))
        elif over is None:
            raise failure("storage.no_run")

    def methods(self) -> list[MethodInfo]:
        """Return every method that `ask` knows."""
        return methods_for(self._catalog.models)

    async def aclose(self) -> None:
        """End every run."""
        tasks = [pending.task for pending in self._pending.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(
        self, wanted: RunRequest, request: Connection | None, asked: AskRequest | CheckRequest
    ) -> PendingRun:
        wanted = replace(wanted, limits=RunLimits(**asked.limits.model_dump()))
        # Every run has an owner of its own, who has no earlier ones.
        plan = plan_run(wanted, past=lambda *_, **__: ())
        if not asked.anyway and (error := excess_error(plan.budget)) is not None:
            raise Refused("request.over_limit", "limits", **error.facts)
        pending = PendingRun(self._runs, plan, caller_of(request), share=asked.share)
        await pending.begun()
        if pending.task.done():
            self._keep(pending)
        else:
            self._pending[pending.run] = pending
            pending.task.add_done_callback(lambda _: self._ended(pending))
        return pending

    def _ended(self, pending: PendingRun) -> None:
        self._pending.pop(pending.run, None)
        self._keep(pending)

    def _keep(self, pending: PendingRun) -> None:
        """Remember what the store does not know: where it is shared, and runs that never began."""
        if not pending.task.cancelled():
            # Whatever it raised was told, or is in the result.
            pending.task.exception()
        result, run_id = pending.result(), pending.run_id
        if run_id is not None:
            # The store knows the rest.
            kept = {"status", "shared", "expected"}
            result = RunResult(run=pending.run, **{name: getattr(result, name) for name in kept})
        self._over[pending.run] = _Over(run_id, result)
        if len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)

    async def _stored_here(self, run: str) -> str | None:
        """Return what `_stored` returns, to change it; raises Refused where another runs it."""
        found = await self._stored(run)
        if found is None:
            return None
        if found.status == "running" and run not in self._over:
            raise Refused("request.elsewhere")
        return found.id

    async def _stored(self, run: str) -> RunSummary | None:
        """Return the run as the store has it, None where it has none."""
        # Ids of runs that a program asked for are names of owners.
        if not is_owner(run):
            return None
        store = self._runs.engine.service.store
        found = await asyncio.to_thread(store.list, run, 1)
        return found[0] if found else None
