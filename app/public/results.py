"""What a program is told about a run, its methods and the methods there are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from app.public.contract import (
    MethodInfo,
    MethodResult,
    MethodStatus,
    Remark,
    RunResult,
    ScoreFound,
    SourceFound,
    VerdictFound,
    for_caller,
)
from components.messages import Catalogue, named
from components.run_view import clock, passages_of, totals
from pipelines.engine.estimate import basis_for, estimate
from pipelines.methods.base import Method, Need
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.run.events import Outcome, Verdict
from pipelines.run.spec import ModelSpec
from pipelines.run.view import MethodView, RunView

_NEEDS = {
    "model": "a model that writes",
    "evidence": "passages to search",
    "logprobs": "a model that reports token probabilities",
    "proxy": "a local model that scores a given text",
    "languages": "a model that speaks both languages of the variant",
}
_VERDICT = {"what", "text", "draft", "start", "end", "verdict"}
_SCORE = {"name", "value", "threshold", "bad", "flagged"}
_PASSAGE = {"id", "title", "text", "url"}
_ENDS: dict[Outcome, MethodStatus] = {
    "ok": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
}


def result_of(view: RunView, run: str, shared: str | None = None) -> RunResult:
    """Everything that the run's methods came to, each under its name, and what it cost."""
    so_far = totals(view)
    header = view.header
    cached = sum(call.cached for method in view.methods.values() for call in method.calls)
    return RunResult(
        run=run,
        status=view.status,
        shared=shared,
        reason=view.reason,
        question=header.spec.question if header else "",
        language=header.language if header else None,
        methods={name: _method(one, over=view.over) for name, one in view.methods.items()},
        error=for_caller(view.error) if view.error else None,
        calls=so_far.calls,
        cached_calls=cached,
        searches=so_far.retrievals,
        tokens=so_far.tokens,
        seconds=round(clock(view, time.time()), 2),
    )


def _method(method: MethodView, *, over: bool) -> MethodResult:
    answer, t = method.answer, Catalogue("en")
    step = method.steps[-1] if method.steps and method.outcome is None and not over else None
    on_answer: list[Verdict] = [one.verdict for one in method.judged if one.what == "answer"]
    return MethodResult(
        status=_status(method, over=over),
        step=named("step", step.name, t) if step else None,
        answer=answer.text if answer else None,
        original=answer.original if answer else None,
        verdict=on_answer[-1] if on_answer else None,
        remarks=[Remark(code=flag, text=named("flag", flag, t)) for flag in answer.flags]
        if answer
        else [],
        judged=[
            VerdictFound(
                **one.model_dump(include=_VERDICT),
                scores=[ScoreFound(**score.model_dump(include=_SCORE)) for score in one.scores],
            )
            for one in method.judged
        ],
        evidence=[
            SourceFound(**passage.model_dump(include=_PASSAGE), query=query)
            for passage, query in passages_of(method)
        ],
        error=for_caller(method.error) if method.error else None,
    )


def _status(method: MethodView, *, over: bool) -> MethodStatus:
    if method.outcome is None:
        return "cancelled" if over else "running"
    if method.answer is not None and method.answer.abstained:
        return "abstained"
    return _ENDS[method.outcome]


def methods_for(models: Mapping[str, ModelSpec]) -> list[MethodInfo]:
    """Every method, with what it costs and whether it can run on `models`, role to model."""
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
        rewrites=method.rewrites,
        grounded=method.grounded,
        calls=round(cost.calls, 1),
        judge_calls=round(cost.judge_calls, 1),
        seconds=None if cost.seconds is None else round(cost.seconds, 1),
        needs=list(dict.fromkeys(_NEEDS[need.reason] for need in needs)),
        available=not any(need.unmet(able, has_evidence=True) for need in needs),
        settings=method.settings_type.model_json_schema(),
    )
