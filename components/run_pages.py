"""A run as every front end shows it: its pages, and what draws which method on them. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import plotly.graph_objects as go

from components.ask import ask_view
from components.check_view import check_view
from components.compare import CompareColumn, compare_view
from components.detector_view import detector_view
from components.drad_view import drad_figures, drad_view
from components.elements import notice
from components.ever_view import ever_view
from components.flow import flow_diagram
from components.haarag_view import haarag_view
from components.markup import Child, tag
from components.messages import Catalogue, named
from components.page import illustration_note
from components.rowen_view import rowen_view
from components.slm_view import slm_view
from components.theme import Theme
from pipelines.engine.pool import Loading
from pipelines.methods.registry import method_pages
from pipelines.run.view import RunView

_log = logging.getLogger(__name__)


class Panel(Protocol):
    """Draws a method's part of a page from the run's events, as far as the run has come.

    `view` may be a re-evaluated run: then `diverges_at` is the draft from which on only a new run
    can tell, None where everything was recorded.
    """

    def __call__(self, view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str: ...


class WholePanel(Protocol):
    """A panel below the steps of its method; these have no times where the run was re-evaluated."""

    def __call__(
        self,
        view: RunView,
        t: Catalogue,
        *,
        diverges_at: int | None = None,
        reevaluated: bool = False,
    ) -> str: ...


PANELS: dict[str, Panel] = {
    "rowen": rowen_view,
    "drad": drad_view,
    "ever": ever_view,
    "haarag": haarag_view,
    "slm": slm_view,
}
"""Methods with a view of their own."""

FIGURES: dict[str, Callable[[RunView, Catalogue, Theme], list[tuple[str, go.Figure]]]] = {
    "drad": drad_figures
}
"""Figures with their titles, which the workbench draws below a method's panel."""

PAGES: dict[str, tuple[str, ...]] = {"ask": (), **method_pages(), "compare": (), "check": ()}
"""The pages of a run, each with the methods it shows in detail; those of all methods have none."""


def page_html(
    page: str,
    view: RunView,
    t: Catalogue,
    *,
    now: float | None = None,
    loading: Sequence[Loading] = (),
) -> str:
    """Return a page of the run as far as it has come, with the settings it was run with.

    A part that cannot be drawn is replaced by a remark, and the rest is shown.
    """
    if page == "ask":
        return safely(t("nav.ask"), t, partial(ask_view, view, t, now=now, loading=loading))
    if page == "check":
        return safely(t("check.title"), t, partial(check_view, view, t))
    spec = view.header.spec if view.header else None
    asked = [method.name for method in spec.methods] if spec else []
    if page == "compare":
        columns = [CompareColumn(view, method) for method in asked]
        return safely(t("nav.compare"), t, partial(compare_view, columns, t, now=now))
    parts: list[Child] = [
        illustration_note(view, t),
        tag("h2.vs-question", spec and spec.question, dir="auto", key="question"),
    ]
    for method in PAGES[page]:
        if len(PAGES[page]) > 1:
            parts.append(tag("h2", named("method", method, t), key=f"title-{method}"))
        if method in asked:
            parts.append(safely(named("method", method, t), t, partial(panel_of(method), view, t)))
        else:
            words = t("page.not_used", method=named("method", method, t))
            parts.append(notice(words, f"not-used-{method}"))
    return tag("div.vs-run", parts, key=page)


def safely(name: str, t: Catalogue, draw: Callable[[], str]) -> str:
    """Return what `draw` draws, or the remark that the view of that name cannot be drawn.

    Why is in the log. A view may only fail by a mistake of ours, and that must not take the rest of
    the page away.
    """
    try:
        return draw()
    except Exception:
        _log.exception("The view %s cannot be drawn", name)
        return view_failed(name, t)


def view_failed(name: str, t: Catalogue) -> str:
    """Return the remark that the view of that name cannot be drawn."""
    return notice(t("page.view_failed", view=name), f"failed-{name}", role="alert")


def panel_of(method: str) -> WholePanel:
    """Return the panel of `method`: its steps, then its own view or the general one for
    detectors.
    """
    draw = PANELS.get(method) or partial(detector_view, method=method)

    def panel(
        view: RunView, t: Catalogue, *, diverges_at: int | None = None, reevaluated: bool = False
    ) -> str:
        steps = flow_diagram(method, view, t, timed=not reevaluated)
        return tag("div.vs-panel", steps, draw(view, t, diverges_at=diverges_at))

    return panel
