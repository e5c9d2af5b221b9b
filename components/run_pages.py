"""A run as every front end shows it: its pages, and what draws which method on them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from components.ask_view import ask_view
from components.compare_view import MOST_COMPARED, CompareColumn, compare_view
from components.drad_view import decision_view, steps_view
from components.ever_view import ever_view
from components.haarag_view import haarag_view
from components.markup import Child, shown, tag
from components.messages import Catalogue
from components.method_card import error_note
from components.names import named
from components.notices import run_notices
from components.rowen_view import rowen_view
from components.run_view import language_unsupported
from components.sections import illustration_note, notice
from components.slm_view import slm_view
from pipelines.errors import VeriscopeError
from pipelines.methods import get_method
from pipelines.methods.drad.settings import DRAD_DECIDABLE
from pipelines.methods.ever.settings import EVER_DECIDABLE
from pipelines.methods.haarag.settings import HAARAG_DECIDABLE
from pipelines.methods.rowen.settings import ROWEN_DECIDABLE
from pipelines.methods.slm.settings import SLM_DECIDABLE
from pipelines.run.pool import Loading
from pipelines.run.trace import Trace
from pipelines.run.view import RunView

__all__ = ["PAGES", "PANELS", "Panel", "page_html", "whole_run"]

View = Callable[[RunView, Any, Any, Catalogue], str]


class Panel(NamedTuple):
    """A method's part of a page.

    `fields` are the settings that a recorded run is decided again for, without a call; `view`
    draws the run with such a decision, or without one while it goes on.
    """

    method: str
    fields: tuple[str, ...]
    view: View


PANELS: dict[str, Panel] = {
    panel.method: panel
    for panel in (
        Panel("rowen", ROWEN_DECIDABLE, rowen_view),
        Panel("drad", DRAD_DECIDABLE, decision_view),
        Panel("ever", EVER_DECIDABLE, ever_view),
        Panel("haarag", HAARAG_DECIDABLE, haarag_view),
        Panel("slm", SLM_DECIDABLE, slm_view),
    )
}
"""What takes each method apart."""

PAGES: dict[str, tuple[str, ...]] = {
    "ask": (),
    "rowen": ("rowen",),
    "drad": ("drad",),
    "ever": ("ever",),
    "grounding": ("haarag", "slm"),
    "compare": (),
}
"""The pages of a run, with the methods that each takes apart; the first and the last show all."""


def page_html(
    page: str,
    view: RunView,
    trace: Trace,
    t: Catalogue,
    *,
    now: float | None = None,
    loading: Sequence[Loading] = (),
) -> str:
    """A page of the run as far as it has come, with the settings it was run with."""
    if page == "ask" or (page == "drad" and not view.over):
        # What DRAD does can be seen in the answer being written; its decision follows.
        return ask_view(view, t, now=now, loading=loading)
    asked = [method.name for method in view.header.spec.methods] if view.header else []
    if page == "compare":
        columns = [CompareColumn(view, method) for method in asked[:MOST_COMPARED]]
        return compare_view(columns, t, now=now)
    parts: list[Child] = [
        illustration_note(view, t),
        tag("h2", _question(view), class_="vs-question", dir="auto", data_key="question"),
    ]
    for method in PAGES[page]:
        if len(PAGES[page]) > 1:
            parts.append(tag("h2", named("method", method, t), data_key=f"title-{method}"))
        if method in asked:
            parts.append(_panel(PANELS[method], view, trace, t))
        else:
            words = t("page.not_used", method=named("method", method, t))
            parts.append(notice(words, f"not-used-{method}"))
    return tag("div", parts, class_="vs-run", data_key=page)


def whole_run(view: RunView, trace: Trace, t: Catalogue) -> str:
    """Every page of a run that is over, one below the other: for a file that is kept."""
    asked = {method.name for method in view.header.spec.methods} if view.header else set[str]()
    pages = [page for page, methods in PAGES.items() if not methods or asked & set(methods)]
    return tag(
        "div",
        (
            tag("section", page_html(page, view, trace, t), data_key=f"page-{page}")
            for page in pages
        ),
        class_="vs-stack",
    )


def _question(view: RunView) -> Child:
    return shown(view.header.spec.question if view.header else "")


def _panel(panel: Panel, view: RunView, trace: Trace, t: Catalogue) -> Child:
    try:
        values = {one.name: one.settings for one in view.header.spec.methods} if view.header else {}
        settings = get_method(panel.method).settings(values.get(panel.method))
        decision = get_method(panel.method).decide(trace, settings) if view.over else None
    except VeriscopeError as error:
        # A run from elsewhere may have been run with what cannot be set here.
        return error_note(error.info(), t)
    if panel.method == "drad":
        return _drad(panel, view, decision, settings, t)
    return panel.view(view, decision, settings, t)


def _drad(panel: Panel, view: RunView, decision: Any, settings: Any, t: Catalogue) -> Child:
    method = view.methods.get("drad")
    if language_unsupported(view):
        return notice(t("flag.language_unsupported"), "language")
    if method is None or not method.drafts:
        error = (method.error if method else None) or view.error
        return tag("div", run_notices(view, error, t), notice(t("drad.no_draft"), "no-draft"))
    return tag("div", panel.view(view, decision, settings, t), steps_view(view, t))
