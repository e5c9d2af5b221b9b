"""What a program is told about a run, its methods and the methods there are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from app.public.check_contract import (
    CheckResult,
    calibrated_scores,
    check_result,
    together_result,
)
from app.public.contract import (
    Expected,
    MethodInfo,
    MethodResult,
    MethodStatus,
    Remark,
    RunResult,
    ScoreFound,
    SourceFound,
    VerdictFound,
)
from app.public.refusals import for_caller, spoken
from components.messages import Catalogue, named
from components.method_cards import MethodRow
from components.run_view import (
    clock,
    language_unsupported,
    method_rows,
    passages_of,
    totals,
)
from pipelines.engine.checked import checked_text
from pipelines.engine.checking import unmet_needs
from pipelines.engine.estimate import RunEstimate, basis_for, estimate
from pipelines.error_words import Phrase, phrase, phrase_in
from pipelines.methods.base import Method, Need
from pipelines.methods.registry import METHODS
from pipelines.methods.together.verdict import answer_together
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.run.calibrated import readings
from pipelines.run.events import Judged
from pipelines.run.spec import ModelSpec, RunSpec
from pipelines.run.view import RunView
from pipelines.types import Language

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
    """Return the check of a given text, with what the standard detectors lack that were
    not asked.
    """
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
