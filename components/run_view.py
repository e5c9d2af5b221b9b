"""From a run, as far as it has come, to what the components show of it. Pure, for every screen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from components.elements import Status
from components.heatmap import EntityMark
from components.method_cards import MethodRow
from pipelines.engine.checking import BY_JUDGES, is_check
from pipelines.methods.registry import METHODS
from pipelines.retrieval.passages import best_sentence
from pipelines.run.calibrated import readings
from pipelines.run.events import Judged, Score, Verdict
from pipelines.run.findings import EntityReading
from pipelines.run.view import MethodView, RunView, method_status, passages_found
from pipelines.types import Passage, Token


@dataclass(frozen=True, slots=True)
class Original:
    """The answer before any correction: of which method, and whether it is still being written."""

    method: str
    text: str
    tokens: tuple[Token, ...]
    writing: bool
    entities: tuple[EntityMark, ...] = ()


class Totals(NamedTuple):
    """What a run cost so far. Cached replies count as no call and no token."""

    calls: int
    retrievals: int
    tokens: int


def run_status(view: RunView) -> Status:
    """Return how far the run is, in the words of the badges; one that ended at a limit was
    stopped.
    """
    if view.over and view.limit is not None:
        return "cancelled"
    return "done" if view.status == "finished" else view.status


def clock(view: RunView, now: float | None) -> float:
    """Return seconds since the run started; `now` (seconds since the epoch) drives it while
    it runs.
    """
    if view.over or now is None or view.header is None:
        return view.time
    return max(view.time, now - view.header.created)


def totals(view: RunView) -> Totals:
    """Return calls, searches and tokens over all methods."""
    methods = view.methods.values()
    return Totals(
        calls=sum(len(method.made) for method in methods),
        retrievals=sum(len(method.searches) for method in methods),
        tokens=sum(method.tokens for method in methods),
    )


def language_unsupported(view: RunView) -> bool:
    """Return whether the main model does not speak the question's language."""
    if view.header is None:
        return False
    spec = view.header.spec
    if is_check(spec) and all(method.name in BY_JUDGES for method in spec.methods):
        # Nothing is written: judges have their own languages.
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
    """Return the answer everything is compared with: Direct's, where it is asked, or DRAD's draft,
    which comes from the same prompt, whichever is further on; else the first one known.
    """
    asked = [spec.name for spec in view.header.spec.methods] if view.header else []
    ranked = sorted(view.methods.values(), key=lambda m: {"direct": 0, "drad": 1}.get(m.name, 2))
    direct = view.methods.get("direct")
    if "direct" in asked and not view.over and (direct is None or direct.outcome is None):
        # While Direct writes, what another method wrote first is not the original.
        ranked = [method for method in ranked if method.name in ("direct", "drad")]
    for method in ranked:
        if method.drafts:
            generation, text = method.drafts[0].generation, _original(method)
            tokens = generation.tokens if text == generation.text else None
            drad = view.methods.get("drad")
            known = drad is not None and drad.drafts and drad.drafts[0].after == text
            entities = tuple(entity_marks(drad.judged, 0)) if drad and known else ()
            return Original(method.name, text, tokens or (), writing=False, entities=entities)
    for method in ranked:
        for step in method.steps:
            if step.name == "draft" and step.text:
                writing = step.outcome is None and not view.over
                return Original(method.name, step.text, step.tokens, writing)
    return None


def method_rows(view: RunView, now: float | None = None) -> list[MethodRow]:
    """Return one row for each method asked for, in that order, whether it has begun or not."""
    if view.header is None:
        return []
    return [method_row(view, spec.name, now) for spec in view.header.spec.methods]


def method_row(view: RunView, name: str, now: float | None = None) -> MethodRow:
    """Return the row of a method that was asked for. The run has to have a header."""
    assert view.header is not None
    registered, method = METHODS.get(name), view.methods.get(name)
    row = MethodRow(
        method=name,
        status="cancelled" if view.over else "waiting",
        language=view.header.language,
        judges=registered is None or registered.judges,
        rewrites=registered is None or registered.rewrites,
    )
    if method is None:
        return row
    ended = method.ended if method.ended is not None else clock(view, now)
    verdict, score = (None, None) if language_unsupported(view) else _judgement(method)
    flags = method.answer.flags if method.answer else ()
    return replace(
        row,
        status=method_status(view, method),
        verdict=verdict,
        corrected=_corrected(method),
        score=score,
        calibrated=readings(view.header.spec, name, "answer", score),
        calls=len(method.made),
        cached=sum(call.cached for call in method.calls),
        retrievals=len(method.searches),
        tokens=method.tokens,
        seconds=max(0.0, ended - method.started),
        original=_original(method) if row.judges else "",
        answer=_answer(method, judges=row.judges),
        abstained=method.answer is not None and method.answer.abstained,
        # That one concerns the whole run, and is made once.
        flags=tuple(flag for flag in flags if flag != "language_unsupported"),
        error=method.error,
        step=next((step.name for step in reversed(method.steps) if step.outcome is None), ""),
    )


def score_of(event: Judged, name: str) -> Score | None:
    """Return the number of that name behind a verdict."""
    return next((score for score in event.scores if score.name == name), None)


def entity_marks(judged: Iterable[Judged], draft: int) -> list[EntityMark]:
    """Return the recorded verdicts on the entities of a draft."""
    marks: list[EntityMark] = []
    for event in judged:
        if event.what == "entity" and event.draft == draft:
            p, h = score_of(event, "entity_probability"), score_of(event, "entity_entropy")
            mark = EntityMark(
                event.start,
                event.end,
                event.label,
                event.verdict,
                probability=p.value if p else None,
                entropy=h.value if h else None,
                repeats=isinstance(event.detail, EntityReading) and event.detail.repeats,
            )
            marks.append(mark)
    return marks


@lru_cache(maxsize=1024)
def supporting(passage: str, target: str) -> tuple[tuple[int, int], ...]:
    """Return the [start, end) of the passage's sentence nearest to `target`; none if nothing
    is shared.
    """
    span = best_sentence(passage, target)
    return () if span is None else ((span.start, span.end),)


def passages_of(method: MethodView) -> list[tuple[Passage, str]]:
    """Return every passage a method found, each once, with the query that found it first."""
    return passages_found([method])


def _original(method: MethodView) -> str:
    """Return what a method started from: as its answer has it, which may have been written
    in parts.
    """
    if method.answer is not None:
        return method.answer.original
    return method.drafts[0].after if method.drafts else ""


def _answer(method: MethodView, *, judges: bool) -> str | None:
    if method.answer is not None:
        return method.answer.text
    if judges:
        # Until there is a correction, there is nothing that the original does not show already.
        return method.drafts[-1].after if len(method.drafts) > 1 else None
    if method.drafts:
        return method.drafts[0].after
    return method.writing.text if method.writing else None


def _corrected(method: MethodView) -> Verdict | None:
    """Return the verdict on what stands in the original's place; None where nothing does."""
    answer = method.answer
    if answer is None or answer.abstained or answer.text == answer.original:
        return None
    found: list[Verdict] = [one.verdict for one in method.judged if one.what == "correction"]
    return found[-1] if found and found[-1] != "unchecked" else None


def _judgement(method: MethodView) -> tuple[Verdict | None, Score | None]:
    """Return the verdict on the original, and the number that decided it."""
    answers = [event for event in method.judged if event.what == "answer"]
    if answers:
        last = answers[-1]
        return last.verdict, last.scores[0] if last.scores else None
    return None, None
