"""From a run, as far as it has come, to what the components show of it. Pure, for every screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from components.heatmap import EntityMark
from components.method_card import MethodRow
from components.verdict import Status
from pipelines.methods import get_method
from pipelines.methods.drad.path import headline
from pipelines.methods.drad.rhd import EntityReading, EntityVerdict, judge, read_judged
from pipelines.methods.drad.settings import DradSettings
from pipelines.retrieval.highlight import best_sentence
from pipelines.run.events import Judged, Score, Verdict
from pipelines.run.view import MethodView, RunView
from pipelines.types import Language, Passage, Token

__all__ = [
    "BASELINES",
    "CHECKERS",
    "Original",
    "Totals",
    "clock",
    "entity_marks",
    "language_unsupported",
    "marks_of",
    "method_row",
    "method_rows",
    "original_of",
    "passages_of",
    "run_status",
    "settings_of",
    "supporting",
    "totals",
]

BASELINES = ("direct", "rag")
"""Methods that answer once and judge nothing."""

CHECKERS = ("slm",)
"""Methods that judge an answer and leave it as it is."""

_OF_THE_RUN = ("language_unsupported",)
"""Remarks that concern the whole run and are made once, not with every method."""


@dataclass(frozen=True, slots=True)
class Original:
    """The answer before any correction: of which method, and whether it is still being written."""

    method: str
    text: str
    tokens: tuple[Token, ...]
    writing: bool
    entities: tuple[EntityMark, ...] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """What a run cost so far. Cached replies count as no call and no token."""

    calls: int
    retrievals: int
    tokens: int


def run_status(view: RunView) -> Status:
    """How far the run is, in the words of the badges."""
    return "done" if view.status == "finished" else view.status


def clock(view: RunView, now: float | None) -> float:
    """Seconds since the run started; `now` (seconds since the epoch) drives it while it runs."""
    if view.over or now is None or view.header is None:
        return view.time
    return max(view.time, now - view.header.created)


def totals(view: RunView) -> Totals:
    """Calls, searches and tokens over all methods."""
    methods = view.methods.values()
    return Totals(
        calls=sum(len(method.made) for method in methods),
        retrievals=sum(len(method.searches) for method in methods),
        tokens=sum(method.tokens for method in methods),
    )


def language_unsupported(view: RunView) -> bool:
    """Whether the main model does not speak the question's language."""
    if view.header is None:
        return False
    answered = any(
        method.answer is not None and "language_unsupported" in method.answer.flags
        for method in view.methods.values()
    )
    declared = any(
        "main" in method.models and view.header.language not in method.models["main"].languages
        for method in view.methods.values()
    )
    return answered or declared


def original_of(view: RunView) -> Original | None:
    """The answer everything is compared with: Direct's, else DRAD's draft, else the first known.

    Both come from the same prompt; whichever is further on is shown.
    """
    ranked = sorted(view.methods.values(), key=lambda m: {"direct": 0, "drad": 1}.get(m.name, 2))
    for method in ranked:
        if method.drafts:
            generation, text = method.drafts[0].generation, _original(method)
            return Original(
                method.name,
                text,
                (generation.tokens or ()) if text == generation.text else (),
                writing=False,
                entities=_entities_of(view, text),
            )
    for method in ranked:
        for step in method.steps:
            if step.step == "draft" and step.text:
                writing = step.outcome is None and not view.over
                return Original(method.name, step.text, step.tokens, writing)
    return None


def method_rows(view: RunView, now: float | None = None) -> list[MethodRow]:
    """One row for each method asked for, in that order, whether it has begun or not."""
    if view.header is None:
        return []
    return [method_row(view, spec.name, now) for spec in view.header.spec.methods]


def method_row(view: RunView, name: str, now: float | None = None) -> MethodRow:
    """The row of a method that was asked for. The run has to have a header."""
    assert view.header is not None
    language: Language = view.header.language
    method = view.methods.get(name)
    judges, rewrites = name not in BASELINES, name not in CHECKERS
    if method is None:
        status: Status = "waiting" if not view.over else "cancelled"
        return MethodRow(
            method=name, status=status, language=language, judges=judges, rewrites=rewrites
        )
    ended = method.ended if method.ended is not None else clock(view, now)
    verdict, score = (None, None) if language_unsupported(view) else _judgement(view, method)
    flags = method.answer.flags if method.answer else ()
    return MethodRow(
        method=name,
        status=_status(view, method),
        language=language,
        judges=judges,
        rewrites=rewrites,
        verdict=verdict,
        score=score,
        calls=len(method.made),
        cached=sum(call.cached for call in method.calls),
        retrievals=len(method.searches),
        tokens=method.tokens,
        seconds=max(0.0, ended - method.started),
        original=_original(method) if judges else "",
        answer=_answer(method, judges=judges),
        abstained=method.answer is not None and method.answer.abstained,
        flags=tuple(flag for flag in flags if flag not in _OF_THE_RUN),
        error=method.error,
        step=_step(method),
    )


def entity_marks(judged: Iterable[Judged], draft: int) -> list[EntityMark]:
    """The recorded verdicts on the entities of a draft."""
    return [
        EntityMark(
            start=event.start,
            end=event.end,
            label=event.label,
            verdict=event.verdict,
            probability=_value(event, "entity_probability"),
            entropy=_value(event, "entity_entropy"),
            repeats=read_judged(event).repeats,
        )
        for event in judged
        if event.what == "entity" and event.draft == draft
    ]


def marks_of(
    readings: Sequence[EntityReading], verdicts: Sequence[EntityVerdict]
) -> list[EntityMark]:
    """Entities with verdicts taken again from recorded readings."""
    return [
        EntityMark(
            start=reading.start,
            end=reading.end,
            label=reading.label,
            verdict=_verdict(verdict),
            probability=verdict.probability,
            entropy=verdict.entropy,
            repeats=reading.repeats,
        )
        for reading, verdict in zip(readings, verdicts, strict=True)
    ]


@lru_cache(maxsize=1024)
def supporting(passage: str, target: str) -> tuple[tuple[int, int], ...]:
    """The [start, end) of the passage's sentence nearest to `target`; none if nothing is shared."""
    span = best_sentence(passage, target)
    return () if span is None else ((span.start, span.end),)


def passages_of(method: MethodView) -> list[tuple[Passage, str]]:
    """Every passage a method found, each once, with the query that found it first."""
    found: dict[str, tuple[Passage, str]] = {}
    for search in method.searches:
        for passage in search.passages:
            found.setdefault(passage.id, (passage, search.query))
    return list(found.values())


def _entities_of(view: RunView, text: str) -> tuple[EntityMark, ...]:
    drad = view.methods.get("drad")
    if drad is None or not drad.drafts or drad.drafts[0].after != text:
        return ()
    return tuple(entity_marks(drad.judged, 0))


def _status(view: RunView, method: MethodView) -> Status:
    match method.outcome:
        case "ok":
            return "done"
        case "failed":
            return "failed"
        case "cancelled":
            return "cancelled"
        case None:
            return "cancelled" if view.over else "running"


def _original(method: MethodView) -> str:
    """What a method started from: as its answer has it, which may have been written in parts."""
    if method.answer is not None:
        return method.answer.original
    return method.drafts[0].after if method.drafts else ""


def _step(method: MethodView) -> str:
    return next((step.step for step in reversed(method.steps) if step.outcome is None), "")


def _answer(method: MethodView, *, judges: bool) -> str | None:
    if method.answer is not None:
        return method.answer.text
    if judges:
        # Until there is a correction, there is nothing that the original does not show already.
        return method.drafts[-1].after if len(method.drafts) > 1 else None
    if method.drafts:
        return method.drafts[0].after
    return method.writing.text if method.writing else None


def _judgement(view: RunView, method: MethodView) -> tuple[Verdict | None, Score | None]:
    """The verdict on the original, and the number that settled it."""
    answers = [event for event in method.judged if event.what == "answer"]
    if answers:
        last = answers[-1]
        return last.verdict, last.scores[0] if last.scores else None
    return _entities_judged(view, method) if method.name == "drad" else (None, None)


def _entities_judged(view: RunView, method: MethodView) -> tuple[Verdict | None, Score | None]:
    """DRAD's verdict: it judges entities, and a single doubtful one makes the answer doubtful."""
    first = [event for event in method.judged if event.what == "entity" and event.draft == 0]
    detected = any(step.step == "detect" and step.outcome == "ok" for step in method.steps)
    if not detected:
        return None, None
    settings = settings_of(view)
    thresholds = settings.thresholds()
    readings = [read_judged(event) for event in first]
    verdicts = [judge(reading, thresholds) for reading in readings]
    score = headline(readings, verdicts, thresholds, skip_repeats=settings.skip_repeats)
    if score is None:
        return "unchecked", None
    return ("doubtful" if score.flagged else "confident"), score


def settings_of(view: RunView) -> DradSettings:
    """The settings DRAD ran with."""
    values = {spec.name: spec.settings for spec in view.header.spec.methods} if view.header else {}
    settings = get_method("drad").settings(values.get("drad"))
    assert isinstance(settings, DradSettings)
    return settings


def _verdict(verdict: EntityVerdict) -> Verdict:
    if verdict.probability is None and verdict.entropy is None:
        return "unchecked"
    return "doubtful" if verdict.doubtful else "confident"


def _value(event: Judged, name: str) -> float | None:
    return next((score.value for score in event.scores if score.name == name), None)
