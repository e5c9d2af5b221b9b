"""The Ask page of a run: answer, methods, calls and evidence, as one piece of HTML."""

from __future__ import annotations

from collections.abc import Sequence

from components.call_bars import call_bars
from components.counters import counters
from components.evidence import EvidenceItem, evidence
from components.heatmap import heatmap
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.method_card import error_note, method_cards
from components.run_view import (
    BASELINES,
    clock,
    language_unsupported,
    method_rows,
    original_of,
    passages_of,
    run_status,
    supporting,
    totals,
)
from components.sections import loading_note, notice, section
from components.timeline import timeline
from components.units import Measure
from pipelines.run.pool import Loading
from pipelines.run.view import MethodView, RunView

__all__ = ["ask_view", "evidence_items", "run_bar"]


def run_bar(view: RunView, t: Catalogue, *, now: float | None = None) -> str:
    """The line that ticks while the run goes on."""
    so_far = totals(view)
    return counters(
        t,
        status=run_status(view),
        seconds=clock(view, now),
        calls=so_far.calls,
        retrievals=so_far.retrievals,
        tokens=so_far.tokens,
    )


def ask_view(
    view: RunView,
    t: Catalogue,
    *,
    now: float | None = None,
    loading: Sequence[Loading] = (),
    measure: Measure = "probability",
) -> str:
    """Everything about the run. `now` is the present (seconds since the epoch) while it runs.

    `loading` says what is being prepared before the methods can begin.
    """
    question = view.header.spec.question if view.header else ""
    return tag(
        "div",
        tag("h2", shown(question), class_="vs-question", dir="auto", data_key="question"),
        loading_note(_own(loading, view), t) if not view.over else None,
        _notices(view, t),
        tag(
            "div",
            section("answer", t("ask.original"), _answer(view, t, measure)),
            section(
                "methods",
                t("ask.results"),
                method_cards(method_rows(view, now), t),
                _steps_link(view, t),
            ),
            class_="vs-run-main",
            data_key="main",
        ),
        section(
            "timeline",
            t("ask.timeline"),
            timeline(call_bars(view), t, now=None if view.over else clock(view, now)),
        ),
        section("evidence", t("evidence.title"), _evidence(view, t)),
        class_="vs-run",
        data_key="run",
    )


def _own(loading: Sequence[Loading], view: RunView) -> list[Loading]:
    """What this run waits for: others' models are none of a visitor's business."""
    if view.header is None:
        return []
    spec = view.header.spec
    names = {spec.evidence.library, *(model.name for model in spec.models.values())}
    return [item for item in loading if item.name in names]


def evidence_items(view: RunView) -> list[EvidenceItem]:
    """Every passage found, each once, with the methods that used it and its nearest sentence."""
    items: dict[str, EvidenceItem] = {}
    for method in view.methods.values():
        target = _claim(method)
        for passage, query in passages_of(method):
            known = items.get(passage.id)
            marks = supporting(passage.text, target)
            if known is None:
                items[passage.id] = EvidenceItem(passage, query, (method.name,), marks)
            else:
                items[passage.id] = EvidenceItem(
                    known.passage,
                    known.query,
                    (*known.methods, method.name),
                    tuple(dict.fromkeys((*known.marks, *marks))),
                )
    return list(items.values())


def _claim(method: MethodView) -> str:
    """What the method wrote with the passages in view."""
    if len(method.drafts) > 1:
        return " ".join(draft.after[draft.start :] for draft in method.drafts[1:])
    return "" if method.name not in BASELINES or not method.drafts else method.drafts[0].after


def _notices(view: RunView, t: Catalogue) -> Html | None:
    notes: list[Child] = []
    if language_unsupported(view):
        notes.append(notice(t("flag.language_unsupported"), "language"))
    if view.status == "cancelled":
        reason = view.reason or "stopped"
        notes.append(notice(t(f"run.cancelled.{reason}"), "cancelled", t("action.retry")))
    told = any(method.error == view.error for method in view.methods.values())
    if view.error is not None and not told:
        notes.append(error_note(view.error, t, retry="run"))
    return tag("div", notes, class_="vs-notices", data_key="notices") if notes else None


def _answer(view: RunView, t: Catalogue, measure: Measure) -> Html:
    original = original_of(view)
    if original is None:
        empty = tag("p", t("ask.no_answer"), class_="vs-note") if view.over else _reserved()
        return tag("div", empty, class_="vs-answer-panel vs-card vs-padded", data_key="panel")
    if language_unsupported(view):
        plain_text = tag("p", shown(original.text), class_="vs-answer", dir="auto")
        body = tag("div", plain_text, class_="vs-card vs-padded")
    else:
        body = heatmap(
            original.text,
            original.tokens,
            original.entities,
            measure=measure,
            t=t,
            id="original",
        )
    plain = not original.writing and not original.tokens
    return tag(
        "div",
        body,
        tag("p", t("ask.no_heat"), class_="vs-note") if plain else None,
        class_="vs-answer-panel" + (" vs-writing" if original.writing else ""),
        aria_busy="true" if original.writing else None,
        data_key="panel",
    )


def _reserved() -> list[Html]:
    return [
        tag("span", class_="vs-reserved", style=f"width:{width}%", aria_hidden="true")
        for width in (96, 88, 62)
    ]


def _steps_link(view: RunView, t: Catalogue) -> Html | None:
    drad = view.methods.get("drad")
    if drad is None or not drad.drafts or language_unsupported(view):
        return None
    return tag(
        "button",
        t("ask.open_drad"),
        type="button",
        class_="vs-button vs-steps-link",
        data_action="open",
        data_value="drad",
        data_key="open-drad",
    )


def _evidence(view: RunView, t: Catalogue) -> str:
    items = evidence_items(view)
    if not items and not view.over:
        return tag("p", t("ask.no_evidence_yet"), class_="vs-empty", data_key="evidence")
    if not any(method.searches for method in view.methods.values()):
        return tag("p", t("evidence.unasked"), class_="vs-empty", data_key="evidence")
    return evidence(items, t)
