"""The part of a page for a method without a view of its own: verdict, text, every judged piece.

It shows what any detector records: a verdict on the answer with its scores, verdicts on sentences
or entities with theirs, samples it compared, and the calls behind each number.
"""

from __future__ import annotations

from components.calls import call_list, calls_behind
from components.diff import diff_html
from components.elements import (
    divergence,
    error_note,
    flag_list,
    judged_text,
    score_line,
    verdict_badge,
)
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue, named
from components.page import section
from pipelines.run.events import Judged, Verdict
from pipelines.run.view import MethodView, RunView
from pipelines.types import Language

__all__ = ["detector_view"]


def detector_view(
    view: RunView, t: Catalogue, *, method: str, diverges_at: int | None = None
) -> str:
    """What `method` found, as far as the run has come."""
    seen = view.methods.get(method)
    running = not view.over and (seen is None or seen.outcome is None)
    if seen is None or not seen.drafts:
        words = t("status.waiting") if running else t("ask.no_answer")
        error = error_note(seen.error, t, retry=method) if seen and seen.error else None
        empty = tag("p", words, class_="vs-empty", data_key="none")
        return tag("div", error, empty, class_="vs-run", data_key=method)
    language: Language = view.header.language if view.header else "en"
    parts: list[Child] = []
    if seen.error is not None:
        parts.append(error_note(seen.error, t, retry=method))
    parts.append(divergence(diverges_at, t))
    parts.append(section("decision", t("detector.verdict"), *_verdict(seen, t, running=running)))
    parts.append(section("answer", t("detector.text"), _text(seen, t)))
    pieces = [event for event in seen.judged if event.what in ("sentence", "entity")]
    if pieces:
        rows = [_piece(seen, event, t) for event in pieces]
        parts.append(section("pieces", t("detector.pieces"), tag("ol", rows, class_="vs-stack")))
    if len(seen.drafts) > 1:
        change = diff_html(seen.drafts[0].after, seen.drafts[-1].after, language, t, form="side")
        parts.append(section("change", t("ask.corrected"), tag("div", change, class_="vs-card")))
    return tag("div", parts, class_="vs-run", data_key=method)


def _verdict(method: MethodView, t: Catalogue, *, running: bool) -> list[Child]:
    answers = [event for event in method.judged if event.what == "answer"]
    if not answers:
        return [tag("p", t("status.running" if running else "verdict.none"), class_="vs-note")]
    last = answers[-1]
    return [
        tag("p", verdict_badge(last.verdict, t), data_key=f"{method.name}-verdict"),
        *(_score_lines(method, last, t)),
        flag_list(method.answer.flags if method.answer else (), t, f"{method.name}-flags"),
    ]


def _text(method: MethodView, t: Catalogue) -> Html:
    """The original answer, its judged pieces underlined."""
    marks: list[tuple[int, int, Verdict]] = [
        (event.start, event.end, event.verdict)
        for event in method.judged
        if event.what in ("sentence", "entity") and event.draft == 0
    ]
    text = method.drafts[0].after
    return tag("p", judged_text(text, marks, t), class_="vs-answer vs-card vs-padded", dir="auto")


def _piece(method: MethodView, event: Judged, t: Catalogue) -> Html:
    label = named("entity.label", event.label, t) if event.label else None
    return tag(
        "li",
        tag(
            "p",
            tag("bdi", shown(event.text)),
            tag("span", label, class_="vs-chip") if label else None,
            verdict_badge(event.verdict, t),
            class_="vs-chips",
        ),
        _score_lines(method, event, t),
        class_="vs-card vs-padded",
        data_key=f"piece-{event.seq}",
    )


def _score_lines(method: MethodView, event: Judged, t: Catalogue) -> list[Child]:
    return [
        score_line(
            score,
            t,
            behind=call_list(
                calls_behind(method, event, score), t, id=f"behind-{event.seq}-{score.name}"
            ),
        )
        for score in event.scores
    ]
