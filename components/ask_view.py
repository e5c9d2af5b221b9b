"""The Ask page of a run: answer, methods, calls and evidence, as one piece of HTML."""

from __future__ import annotations

from collections.abc import Sequence

from components.agreement import agreement_strip
from components.call_bars import call_bars
from components.counters import counters
from components.evidence import EvidenceItem, evidence
from components.heatmap import heatmap
from components.markup import Html, shown, tag
from components.messages import Catalogue
from components.method_card import MethodRow, method_cards
from components.names import named
from components.notices import run_notices
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
from components.sections import illustration_note, loading_note, section
from components.timeline import timeline
from components.units import Measure
from pipelines.errors import ErrorInfo
from pipelines.run.pool import Loading
from pipelines.run.view import MethodView, RunView

__all__ = ["ask_view", "evidence_items", "run_bar"]

_PAGES = {
    "rowen": "rowen",
    "drad": "drad",
    "ever": "ever",
    "haarag": "grounding",
    "slm": "grounding",
}
"""The page that takes a method apart."""

_GROUNDED = (*BASELINES, "haarag", "slm")
"""Methods that have passages in view from the first draft on."""


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
    rows = method_rows(view, now)
    return tag(
        "div",
        illustration_note(view, t),
        tag("h2", shown(question), class_="vs-question", dir="auto", data_key="question"),
        loading_note(_own(loading, view), t) if not view.over else None,
        run_notices(view, _untold(view), t),
        tag(
            "div",
            section("answer", t("ask.original"), _answer(view, t, measure)),
            section(
                "methods",
                t("ask.results"),
                _agreement(view, rows, t),
                method_cards(rows, t),
                _links(view, t),
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
    """What the method wrote, or checked, with the passages in view."""
    if len(method.drafts) > 1:
        return " ".join(draft.after[draft.start :] for draft in method.drafts[1:])
    return method.drafts[0].after if method.name in _GROUNDED and method.drafts else ""


def _untold(view: RunView) -> ErrorInfo | None:
    """What went wrong with the run, unless a method's card says so already."""
    told = any(method.error == view.error for method in view.methods.values())
    return None if told else view.error


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


def _agreement(view: RunView, rows: Sequence[MethodRow], t: Catalogue) -> Html | None:
    if language_unsupported(view):
        return None
    original = original_of(view)
    settled = original is not None and not original.writing
    return agreement_strip(rows, original.text if original is not None and settled else "", t)


def _links(view: RunView, t: Catalogue) -> Html | None:
    """What leads from the run to the pages that take its methods apart, and to the comparison."""
    if not view.methods or language_unsupported(view):
        return None
    steps = [
        _link(name, page, t("ask.open_steps", name=named("method", name, t)))
        for name in view.methods
        if (page := _PAGES.get(name)) is not None
    ]
    compare = _link("compare", "compare", t("ask.open_compare"))
    return tag("div", steps, compare, class_="vs-steps-links", data_key="links")


def _link(key: str, page: str, words: str) -> Html:
    return tag(
        "button",
        words,
        type="button",
        class_="vs-button",
        data_action="open",
        data_value=page,
        data_key=f"open-{key}",
    )


def _evidence(view: RunView, t: Catalogue) -> str:
    items = evidence_items(view)
    if not items and not view.over:
        return tag("p", t("ask.no_evidence_yet"), class_="vs-empty", data_key="evidence")
    if not any(method.searches for method in view.methods.values()):
        return tag("p", t("evidence.unasked"), class_="vs-empty", data_key="evidence")
    return evidence(items, t)
