"""A recorded run with other settings, without a new call.

A method is written once, as its `run`. To see what other settings would have led to, `run` is
carried out again on the recorded replies. Where it asks for something that was not recorded, the
run leaves the record: from there on only a new run can tell.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

from pipelines.base import Answer
from pipelines.engine.asking import RunPlan, make_plan, question_of
from pipelines.engine.calibrations import holding
from pipelines.engine.executor import run_method
from pipelines.errors import LimitReached, MissingReply, VeriscopeError
from pipelines.methods.base import Method, Settings
from pipelines.remote import RetryPolicy
from pipelines.run.events import (
    Event,
    MethodSpec,
    Revised,
    RunFinished,
    RunStarted,
    SpanEnded,
    SpanStarted,
    Trace,
)
from pipelines.run.live import Recorder
from pipelines.run.replay import recorded_again, replay_materials
from pipelines.run.view import MethodView, RunView, fold


@dataclass(frozen=True)
class Reevaluation:
    """One method of a recorded run under given settings.

    `trace` holds the run's header and the method's events under these settings, `view` is folded
    from them. `answer` is known unless the run leaves the record; then `diverges_at` is the draft
    (counted from 0) that would have to be written again, and the events end there.
    """

    trace: Trace
    view: RunView
    answer: Answer | None
    diverges_at: int | None = None

    @property
    def method(self) -> MethodView:
        """The method under the given settings; the recorded run has to have begun with it."""
        return next(iter(self.view.methods.values()))


def reevaluate(trace: Trace, method: Method[Any], settings: Settings) -> Reevaluation:
    """Return what `settings` would have led to in the recorded run `trace`; takes milliseconds.

    May be called from any thread, also from one whose event loop is running.
    """
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, _replayed(trace, method, settings)).result()


def recorded_settings(view: RunView, method: Method[Any]) -> Settings:
    """Return the settings that `method` had in the run `view`, also where a default has
    changed since.

    Where none were recorded, or today's method cannot have them, they are those that were asked
    for. Raises InvalidInputError when those cannot be used either.
    """
    started = view.methods.get(method.name)
    if started is not None and started.settings:
        with suppress(VeriscopeError):
            return method.settings(started.settings)
    methods = view.header.spec.methods if view.header else ()
    return method.settings({one.name: one.settings for one in methods}.get(method.name))


_THRESHOLDS = ("threshold", "theta", "tau")
"""How the settings begin that are compared with a score."""

_BEYOND = 1.25
"""How far past the largest number a threshold can be moved where the score has no end."""


def threshold_ends(
    view: RunView, method: Method[Any], settings: Settings
) -> dict[str, tuple[float, float]]:
    """Return where the scores begin and end that each threshold of `settings` is compared with in
    the run `view`; thresholds that no score of it was compared with are left out.

    Where a score has no end, it is a quarter past the largest number of the run.
    """
    found = view.methods.get(method.name)
    scores = [score for event in found.judged for score in event.scores] if found else []
    ends: dict[str, tuple[float, float]] = {}
    for name in method.settings_type.REPLAYABLE:
        value = getattr(settings, name)
        numbers = settings.effective_default(name).values() if value is None else [value]
        if not name.startswith(_THRESHOLDS):
            continue
        used = [
            score
            for score in scores
            if score.threshold is not None
            and any(isclose(score.threshold, one, abs_tol=1e-6) for one in numbers)
        ]
        if used:
            seen = [abs(number) for one in used for number in (one.value, one.threshold) if number]
            beyond = max(seen, default=1.0) * _BEYOND
            highs = (beyond if one.high is None else one.high for one in used)
            ends[name] = (min(one.low for one in used), max(highs))
    return ends


def recorded_plan(trace: Trace) -> RunPlan:
    """Return the run as recorded, to be run again; raises InvalidInputError when it cannot."""
    plan = make_plan(trace.header.spec)
    # Only what says how methods began: folding every event would take long.
    view = fold(event for event in trace.events if _begins(event))
    question = plan.question.model_copy(update={"language": trace.header.language})
    methods = tuple((method, recorded_settings(view, method)) for method, _ in plan.methods)
    # They held when the run was made, also where a default has changed since.
    held = {"calibrations": trace.header.spec.calibrations}
    spec = plan.spec.model_copy(update=held)
    return replace(plan, spec=spec, question=question, methods=methods)


async def _replayed(trace: Trace, method: Method[Any], settings: Settings) -> Reevaluation:
    header = trace.header
    changed = settings.model_dump(mode="json")
    asked = (MethodSpec(name=method.name, settings=changed),)
    held = header.spec.calibrations
    # With the settings that it had, the run keeps what it recorded; see `recorded_plan`.
    if held and settings != recorded_settings(fold(filter(_begins, trace.events)), method):
        held = holding(held, asked, header.spec.prompts)
    spec = header.spec.model_copy(update={"methods": asked, "calibrations": held})
    events: list[Any] = [header.model_copy(update={"spec": spec})]
    recorder = Recorder(header.run, events.append)
    plan = RunPlan(spec, question_of(spec, header.language), ((method, settings),))
    answer: Answer | None = None
    diverges = False
    try:
        answer = await run_method(
            recorder,
            plan,
            replay_materials(trace, method.name),
            method,
            settings,
            # What was tried again is recorded with its last outcome.
            RetryPolicy(attempts=1),
        )
    except MissingReply:
        diverges = True
    except (VeriscopeError, LimitReached):
        # Recorded with the method's span: the run failed like this, and would again.
        pass
    answers = {} if answer is None else {method.name: answer}
    recorder.emit(RunFinished, span=header.span, parent=None, answers=answers)
    # A step that asked for what was not recorded is left open.
    known = [event for event in events if not _missed_a_reply(event)]
    again = recorded_again(known, trace, method.name)
    return Reevaluation(
        trace=Trace(events=tuple(again)),
        view=fold(again),
        answer=answer,
        diverges_at=sum(isinstance(event, Revised) for event in again) if diverges else None,
    )


def _begins(event: Event) -> bool:
    """Return whether it is the header, or begins a method."""
    is_method = isinstance(event, SpanStarted) and event.name == "method"
    return is_method or isinstance(event, RunStarted)


def _missed_a_reply(event: Event) -> bool:
    error = event.error if isinstance(event, SpanEnded) else None
    return error is not None and error.code == MissingReply.code
