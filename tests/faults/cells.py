"""One run with one fault, and what has to hold of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from components.base.words import Catalogue
from components.run.report import PAGES, page_html
from pipelines.base import Answer, Generation
from pipelines.error_words import entries
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import get_method
from pipelines.models.base import GenerationRequest, Model, Watcher
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.openai import OpenAIModel
from pipelines.models.probe import probe
from pipelines.remote import RetryPolicy
from pipelines.retrieval.indexes import EmbedderSimilarity, LexicalEmbedder
from pipelines.run.calls import RunModel, Slot
from pipelines.run.events import JUDGES, Judged, ModelCalled, RunFailed, SpanEnded, TerminalEvent
from pipelines.run.view import fold
from pipelines.store.exchange import export_lines, parse_lines
from tests.faults import baselines
from tests.faults.brain import FALSE_DETAILS, VERDICT_KINDS, WORLDS, kind_of
from tests.faults.faults import FAULTS, REFUSAL_EN, REFUSAL_ZH, Fault
from tests.faults.programs import ALL_PROGRAMS, REWRITES, VERDICTS, Cell
from tests.scripted.bench import ClaimReader, FixedRecognizer, Outcome, Shelf, run_method

ROOT = Path(__file__).resolve().parents[2]
PATIENT, SLOW = (60.0, 120.0), (2.0, 3.0)
"""Seconds that a call waits for the next bytes, and may take in all: with faults that end by
themselves, and calls that a fault strikes which only a limit ends."""

LIMIT = 180.0
"""Seconds that a cell may take while many others are under way on the same cores."""


_UNUSABLE = {
    *("refusal_english", "refusal_chinese", "refusal_field", "content_filtered", "content_null"),
    *("content_empty", "content_spaces", "filtered_halfway", "cut_at_the_limit", "tool_calls"),
    *("thinking_unclosed", "thinking_only", "thinking_in_its_field", "other_language"),
}
_ANSWERS = ("draft", "first_short", *baselines.ANSWERS)
_SILENT = {"content_empty", "content_null", "content_spaces", "thinking_unclosed",
           "thinking_in_its_field"}  # fmt: skip
_FAVOURABLE = ("supported", "confident")
_STILL_RIGHT = {
    "stream_duplicated",
    "stream_reordered",
    "cut_at_the_limit",
    "wrong_content_type",
    "answers_the_other_way",
    # The verdict stands whole in its own field.
    "finish_unknown",
    "finish_of_another_type",
}
_WITHOUT: dict[str, str] = {
    "flare": "early",
    "detect_and_mitigate": "early",
    "token_probability": "early",
}
"""Methods that nothing can stand in for log-probabilities in: their draft is the answer then."""

_NUMBERS = {name for name in FAULTS if name.startswith("logprobs_")} | {"no_logprobs"}


@dataclass
class Result:
    """What came of a cell. `outcome` is recovered, remarked, early, failed or void."""

    cell: Cell
    outcome: str
    problems: list[str] = field(default_factory=list)
    code: str = ""
    answer: Answer | None = None


class Server(NamedTuple):
    """The faulty server's port, and a client for its state."""

    port: int
    client: httpx.AsyncClient

    async def state(self, cell: str) -> dict[str, Any]:
        """How often the fault struck, which connections are open, which kinds were asked."""
        answer = await self.client.get(f"http://127.0.0.1:{self.port}/state/{cell}")
        return json.loads(answer.content)


@asynccontextmanager
async def served() -> AsyncIterator[Server]:
    """The faulty server, running in its own process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.server"),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        port = int(await process.stdout.readline())
        async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
            yield Server(port, client)
    finally:
        process.stdin.close()
        await process.wait()


class _Whole(OpenAIModel):
    """Never streams."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await super().generate(request)


class _NativeWhole(DashScopeModel):
    """Never streams."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        return await super().generate(request)


_numbers = count()
_cell_tasks: ContextVar[set[asyncio.Task[Any]] | None] = ContextVar("cell_tasks", default=None)


def follow_tasks() -> None:
    """Note which tasks each cell of the running loop makes."""

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        tasks = _cell_tasks.get()
        if tasks is not None:
            tasks.add(task)
        return task

    asyncio.get_running_loop().set_task_factory(make)


class _Hurried(Model):
    """Gives calls of one kind little time, and all others enough, however busy the machine is."""

    def __init__(self, cell: Cell, hurried: Model, patient: Model) -> None:
        self.name = patient.name
        self._cell = cell
        self._models = (hurried, patient)
        self._capabilities = patient.capabilities

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        turns = [turn.model_dump() for turn in request.messages]
        asked = {
            "messages": turns,
            "temperature": request.temperature,
            "logprobs": request.logprobs,
        }
        kind = kind_of(asked)
        struck = kind == self._cell.kind or (kind == "again" and self._cell.kind in VERDICT_KINDS)
        return await self._models[not struck].generate(request, watch)

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()


def _model(cell: Cell, address: str, known: dict[str, Any], *, slow: bool) -> Model:
    patient = _limited(cell, address, known, *PATIENT)
    return _Hurried(cell, _limited(cell, address, known, *SLOW), patient) if slow else patient


def _limited(
    cell: Cell, address: str, known: dict[str, Any], timeout: float, longest: float
) -> Model:
    if cell.native:
        kind: Any = DashScopeModel if cell.streamed else _NativeWhole
        model = kind(
            name="Model",
            model="m",
            base_url=f"{address}/api/v1",
            api_key="sk-key-of-the-test",
            timeout=timeout,
            longest=longest,
            **known,
        )
    else:
        kind = OpenAIModel if cell.streamed else _Whole
        url = f"{address}/v1"
        model = kind("Model", "m", base_url=url, timeout=timeout, longest=longest, **known)
    model._always_stream = cell.streamed
    return model


async def _no_pause(seconds: float) -> None:
    await asyncio.sleep(0)


_RETRY = RetryPolicy(sleep=_no_pause)


async def run_cell(server: Server, cell: Cell, baseline: Answer | None) -> Result:
    """Run one cell and check everything that has to hold."""
    place = f"{next(_numbers)}~{cell.fault}~{cell.kind}~{cell.often}"
    tasks: set[asyncio.Task[Any]] = set()
    token = _cell_tasks.set(tasks)
    fault = FAULTS.get(cell.fault)
    try:
        async with asyncio.timeout(LIMIT):
            if cell.program == "probe":
                result = await _probed(server, cell, place, fault)
            else:
                result = await _run(server, cell, place, fault, baseline)
    except TimeoutError:
        return Result(cell, "hung", [f"it did not end within {LIMIT} s"])
    except Exception as error:
        return Result(cell, "crashed", [f"{type(error).__name__}: {error}"])
    finally:
        _cell_tasks.reset(token)
    for _ in range(200):
        state = await server.state(place) if not result.problems else None
        left = [t for t in tasks if not t.done() and t is not asyncio.current_task()]
        if state is None or (not state["open"] and not left):
            break
        await asyncio.sleep(0.02)
    else:
        result.problems.append("tasks or connections are left over")
    return result


async def _struck(server: Server, place: str) -> int:
    return (await server.state(place))["struck"]


async def _run(
    server: Server, cell: Cell, place: str, fault: Fault | None, baseline: Answer | None
) -> Result:
    program, world = ALL_PROGRAMS[cell.program], WORLDS[cell.language]
    slow = fault is not None and fault.slow
    address = f"http://127.0.0.1:{server.port}/{place}"
    model = _model(cell, address, program.known, slow=slow)
    judge = ClaimReader(lambda claim: ClaimVerdict(0.9, 0.05, 0.05), ("en", "zh"))
    names = (*FALSE_DETAILS, "1904", "Delft", "代尔夫特")
    verifier = _model(cell, address, program.known, slow=slow)
    verifier.name = "Verifier"
    others = {JUDGES[0]: judge} if program.judged else {}
    others |= {"verifier": verifier} if program.verified else {}
    nothing = cell.program == "ever_candidates"
    outcome = await run_method(
        get_method(program.method),
        world.question,
        model,
        shelf=Shelf(lambda _: [] if nothing else list(world.evidence)),
        models=others or None,
        similarity=EmbedderSimilarity(LexicalEmbedder()),
        recognizer=FixedRecognizer(*names),
        retry=_RETRY,
        **program.settings,
    )
    await model.aclose()
    await verifier.aclose()
    result = _outcome(cell, outcome, baseline)
    problems = result.problems
    if fault is not None and not await _struck(server, place):
        result.outcome = "void"
    elif fault is not None:
        problems += _expected(cell, fault, outcome, result, baseline)
    problems += _verdicts(cell, fault, outcome)
    problems += _readable(outcome, _CATALOGUES[cell.language])
    return result


def _method_error(outcome: Outcome) -> Any:
    ends = (e for e in outcome.events if isinstance(e, SpanEnded) and e.parent == "run")
    return next((e.error for e in ends if e.error), None)


def _outcome(cell: Cell, outcome: Outcome, baseline: Answer | None) -> Result:
    """How the run ended, and whether that is one of the ways it may end."""
    events, result = outcome.trace.events, Result(cell, "recovered", answer=outcome.final)
    if sum(isinstance(event, TerminalEvent) for event in events) != 1:
        result.problems.append("not exactly one event ends the run")
    error = _method_error(outcome)
    codes = [e.error for e in events if isinstance(e, SpanEnded | ModelCalled) and e.error]
    known = {entry.code for entry in entries().values() if entry.code}
    known |= {"cancelled"}
    for one in (*codes, *(e.error for e in events if isinstance(e, RunFailed))):
        if one.code not in known or one.code == "unexpected" or not one.remedy:
            result.problems.append(f"error {one.code}: {one.message}")
    if isinstance(events[-1], RunFailed):
        result.outcome, result.code = "failed", events[-1].error.code
    elif error is not None:
        result.outcome, result.code = "early", error.code
    elif baseline is not None and set(outcome.answer.flags) - set(baseline.flags):
        result.outcome = "remarked"
    return result


def _expected(
    cell: Cell, fault: Fault, outcome: Outcome, result: Result, baseline: Answer | None
) -> list[str]:
    """What has to come of the fault by its sort."""
    final = outcome.final
    undone = result.outcome in ("failed", "early")
    if fault.sort == "harmless" or (fault.sort == "passing" and cell.often == "once"):
        if undone and not (fault.name in _NUMBERS and result.outcome == _WITHOUT.get(cell.program)):
            return [f"not recovered: {result.code}"]
        numbers = fault.name in _NUMBERS
        if baseline and final and not numbers and final.text != baseline.text:
            return [f"another answer: {final.text!r}"]
    if fault.sort != "broken" and cell.often == "always" and final and baseline and not undone:
        changed = final.text != baseline.text and fault.name not in _NUMBERS
        if changed and not set(final.flags) - set(baseline.flags):
            return [f"another answer without a remark: {final.text!r}"]
    if final is None:
        return []
    said = [] if cell.kind in _ANSWERS else [REFUSAL_EN, REFUSAL_ZH, "<think>"]
    found = [words for words in said if words in final.text]
    if found:
        return [f"the answer holds {found[0]!r}"]
    broken = fault.name in _UNUSABLE and cell.kind in REWRITES and cell.often == "always"
    # A model that is handed its own text says by an empty reply that it is complete.
    if cell.program == "ever_prefill" and fault.name in _SILENT:
        broken = False
    if fault.name == "other_language" and cell.language == "zh":
        # It is the language of the run.
        broken = False
    if not broken or baseline is None or undone or _bare(final) == _bare(baseline):
        return []
    if set(final.flags) - set(baseline.flags) or final.abstained:
        return []
    return [f"a broken text without a remark: {final.text!r}"]


def _bare(answer: Answer) -> str:
    """Its text without the full stop, which another call for the same answer may leave out."""
    return answer.text.rstrip(".。")


def _verdicts(cell: Cell, fault: Fault | None, outcome: Outcome) -> list[str]:
    """Nothing false is supported, and nothing is supported by replies that say nothing."""
    judged = [e for e in outcome.events if isinstance(e, Judged) and e.verdict == "supported"]
    found = [e for e in outcome.events if isinstance(e, Judged) and e.verdict in _FAVOURABLE]
    problems = [
        f"{event.what} supported: {event.text!r}"
        for event in judged
        if event.what not in ("pair", "retrieval") and any(d in event.text for d in FALSE_DETAILS)
    ]
    what = VERDICTS.get(cell.kind)
    if fault and what and cell.often == "always" and fault.sort != "harmless":
        whole = fault.name.startswith("stream_") and not cell.streamed
        if fault.name not in _STILL_RIGHT and not whole:
            side = cell.kind.removeprefix("same_")
            problems += [
                f"{event.what} {event.verdict} by nothing: {event.text!r}"
                for event in found
                if event.what == what and (what != "pair" or event.label == side)
            ]
    return problems


def _readable(outcome: Outcome, catalogue: Catalogue) -> list[str]:
    """The run can be exported, imported and shown on every page."""
    try:
        text = "".join(export_lines(outcome.trace))
        text.encode()
        events = parse_lines(text)
    except VeriscopeError as error:
        return [f"cannot be imported: {error}"]
    except Exception as error:
        return [f"cannot be exported: {type(error).__name__}: {error}"]
    problems = []
    view = fold(events)
    for page in PAGES:
        try:
            shown = page_html(page, view, catalogue)
            shown.encode()
        except Exception as error:
            problems.append(f"page {page} fails: {type(error).__name__}: {error}")
            continue
        if "<script>alert" in shown or "<img src=x" in shown:
            problems.append(f"page {page} holds markup of the reply")
    return problems


_CATALOGUES = {"en": Catalogue("en"), "zh": Catalogue("zh")}


async def _probed(server: Server, cell: Cell, place: str, fault: Fault | None) -> Result:
    """The capability check: what it could not carry out is unknown, never a no."""
    slow = fault is not None and fault.slow
    address = f"http://127.0.0.1:{server.port}/{place}"
    model = _model(cell, address, {}, slow=slow)
    asked = RunModel("main", Slot(model), _RETRY, lambda *_, **__: None, lambda: 0.0)
    result = Result(cell, "recovered")
    try:
        report = await probe(asked)
    except VeriscopeError as error:
        result.outcome, result.code = "failed", error.code
        report = None
    await model.aclose()
    if fault is not None and not await _struck(server, place):
        result.outcome = "void"
        return result
    passes = fault is None or fault.sort == "harmless"
    passes = passes or (fault is not None and fault.sort == "passing" and cell.often == "once")
    if report is None:
        return result if not passes else Result(cell, "failed", [f"not recovered: {result.code}"])
    wrong = [f.key for f in report.findings if not f.ok]
    # A stream that comes in one piece is none.
    missing = sorted(set(wrong) - {"streaming", "schema"})
    if passes and fault is not None and fault.name not in _NUMBERS and missing:
        result.problems.append(f"not found: {missing}")
    if report.unknown:
        result.outcome = "remarked"
    if fault is not None and fault.sort == "passing" and cell.often == "always":
        no = [f.key for f in report.findings if f.ok is False and f.key == cell.kind]
        if no and cell.kind != "streaming":
            result.problems.append(f"a no that was never heard: {no}")
    return result
