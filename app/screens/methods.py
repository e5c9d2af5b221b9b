"""The page of a method: a run in detail while it happens, and re-evaluated afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from app import page as live
from app.engine import engine
from app.forms import draw_settings, forget_settings, read_settings
from app.page import (
    act,
    begin_run,
    disambiguate,
    draw_error,
    draw_no_run,
    draw_run,
    draw_unfolded,
    guarded,
    heading,
    in_rows,
    page_title,
    section_title,
    show_error,
    show_figure,
    show_html,
)
from app.screens.baselines import draw_overview
from app.session import messages, owner, theme
from components.base.elements import notice
from components.base.words import Catalogue, method_names, named
from components.methods.panel import what_if
from components.run.ask import method_row
from components.run.calls import flow_diagram
from components.run.report import FIGURES, PAGES, panel_of, paper_section
from pipelines.engine.reevaluate import recorded_settings, reevaluate, threshold_ends
from pipelines.errors import VeriscopeError
from pipelines.evaluation.results.papers import has_paper
from pipelines.methods.registry import get_method
from pipelines.run.events import MethodSpec, RunSpec
from pipelines.run.view import RunView
from pipelines.store import RunFilter

_MOST_OPEN = 2
"""So many methods of a page are in view at once; of more, the first, and the others unfold."""

_MOST_NOTICES = 2
"""So many methods that a run did not use have a notice of their own."""


def show_page(page: str) -> None:
    """Draw one of `PAGES`, whose name begins its catalogue keys."""
    t = messages()
    methods = PAGES[page]
    page_title(t(f"{page}.title"), t(f"{page}.note"))
    draw_error(page, live.follow_address())
    watched = live.current()
    used = [name for name in methods if name in watched.methods] if watched else []
    overview = page == "baselines"
    if watched is None and overview:
        draw_overview()
        _pick(page, methods, t)
        return
    if watched is None:
        _pick(page, methods, t)
        _explain(methods, t)
    else:
        heading(watched, t)
        try:
            for name in used:
                recorded_settings(watched.view, get_method(name))
        except VeriscopeError as error:
            # A run from elsewhere may have been run with what cannot be set here.
            show_error(error, key=f"{page}-settings")
            used = []
        else:
            if used:
                draw_run(watched, partial(_draw_panels, page, used), title=t(f"{page}.title"))
            if watched.view.over or not used:
                _offer_others(page, [name for name in methods if name not in used], watched, t)
    if overview and watched is not None:
        fold = st.expander(t("baselines.all"), key="baselines-all", on_change="rerun")
        draw_unfolded(fold, partial(draw_overview, watched.spec.question))
    # What the papers report, each closed until it is asked for.
    for name in filter(has_paper, used or methods):
        show_html(paper_section(name, t), key=f"paper-{name}")


def _draw_panels(page: str, names: Sequence[str], watched: live.Watched, t: Catalogue) -> None:
    several = len(names) > _MOST_OPEN
    for place, name in enumerate(names):
        title = named("method", name, t)
        draw = partial(_guarded_panel, title, page, name, watched, t)
        if several:
            verdict = method_row(watched.view, name).verdict
            label = f"{title} · {named('verdict', verdict, t)}" if verdict else title
            key = f"panel-{watched.run_id}-{name}"
            fold = st.expander(label, expanded=not place, key=key, on_change="rerun")
            draw_unfolded(fold, draw)
            continue
        if len(PAGES[page]) > 1:
            section_title(title, method=True)
        draw()


def _guarded_panel(title: str, page: str, name: str, watched: live.Watched, t: Catalogue) -> None:
    with guarded(title):
        _draw_panel(page, name, watched, t)


def _draw_panel(page: str, name: str, watched: live.Watched, t: Catalogue) -> None:
    """Draw the method's view, under controls that re-evaluate it once the run is over."""
    method, view, diverges_at = get_method(name), watched.view, None
    recorded = recorded_settings(watched.view, get_method(name))
    # Controls of their own for every run.
    scope, start = f"detector.{watched.run_id}", recorded.model_dump()
    only = method.settings_type.REPLAYABLE
    card = st.container(border=True, key=f"card-detector-{name}") if only else None
    changed = read_settings(method, scope=scope, start=start)
    settings = method.settings(changed)
    reevaluated = view.over and settings != recorded
    if reevaluated:
        again = reevaluate(watched.trace, method, settings)
        view, diverges_at = again.view, again.diverges_at
    if card is not None:
        with card:
            with st.container(key=f"settings-detector-{name}"):
                ends = threshold_ends(view, method, settings)
                over = view.over
                look: dict[str, Any] = {"only": only, "disabled": not over, "ends": ends}
                draw_settings(method, t, scope=scope, start=start, **look)
            # In its place from the beginning: nothing moves when there is something to undo.
            st.button(
                t("whatif.reset"),
                key=f"reset-{name}",
                type="tertiary",
                disabled=not reevaluated,
                on_click=_reset,
                args=(name, scope),
            )
    if reevaluated:
        before, after = method_row(watched.view, name), method_row(view, name)
        show_html(what_if(before, after, t), key=f"{name}-what-if")
    html = panel_of(name)(view, t, diverges_at=diverges_at, reevaluated=reevaluated)
    show_html(html, key=f"{name}-view", on_action=partial(act, page))
    if diverges_at is not None:
        st.button(
            t("page.run_again"),
            type="primary",
            key=f"{name}-again",
            on_click=begin_run,
            args=(page, _with_method(watched.spec, MethodSpec(name=name, settings=changed))),
        )
    if view.over and name in FIGURES:
        _draw_figures(name, view, t)


def _reset(name: str, scope: str) -> None:
    forget_settings(get_method(name), scope)


def _draw_figures(name: str, view: RunView, t: Catalogue) -> None:
    found = FIGURES[name](view, t, theme())
    for number, column in enumerate(st.columns(2, gap="large") if found else ()):
        for title, figure in found[number::2]:
            with column:
                section_title(title)
                show_figure(figure, key=f"{name}-figure-{title}")


def _with_method(spec: RunSpec, method: MethodSpec) -> RunSpec:
    """Return the same run with `method`, in the place it had, or at the end."""
    methods = {**{one.name: one for one in spec.methods}, method.name: method}
    return spec.model_copy(update={"methods": tuple(methods.values())})


def _offer_others(page: str, names: Sequence[str], watched: live.Watched, t: Catalogue) -> None:
    """Offer methods that the run did not use; more than two are folded under one line."""
    if len(names) <= _MOST_NOTICES:
        for name in names:
            _offer(page, name, watched, t)
        return
    fold = st.expander(
        t("page.not_used.several", count=len(names)), key=f"{page}-not-used", on_change="rerun"
    )
    draw_unfolded(fold, partial(_offer_each, page, names, watched, t))


def _offer_each(page: str, names: Sequence[str], watched: live.Watched, t: Catalogue) -> None:
    for column, name in in_rows(names, 3):
        with column:
            st.button(
                t("page.add.short", method=named("method", name, t)),
                key=f"{name}-add",
                width="stretch",
                help=t(f"method.{name}.summary"),
                on_click=begin_run,
                args=(page, _with_method(watched.spec, MethodSpec(name=name))),
            )


def _offer(page: str, name: str, watched: live.Watched, t: Catalogue) -> None:
    title = named("method", name, t)
    note = notice(t("page.not_used", method=title), f"not-used-{name}")
    show_html(note, key=f"not-used-{name}")
    st.button(
        t("page.add", method=title),
        type="primary",
        key=f"{name}-add",
        on_click=begin_run,
        args=(page, _with_method(watched.spec, MethodSpec(name=name))),
    )


def _explain(methods: Sequence[str], t: Catalogue) -> None:
    """Explain what the methods do, step by step, while no run shows it."""
    for name in methods:
        if (steps := flow_diagram(name, None, t)) is not None:
            section_title(t("flow.title", method=named("method", name, t)))
            show_html(steps, key=f"flow-{name}")


def _pick(page: str, methods: Sequence[str], t: Catalogue) -> None:
    where = RunFilter(methods=tuple(methods))
    runs = engine().service.store.list(owner(), where=where)
    if not runs and page == "baselines":
        # A run begins here.
        return
    if not runs:
        draw_no_run(page, t("page.no_runs", methods=method_names(methods, t)), methods, t)
        return
    names = disambiguate({run.id: run.title for run in runs})
    chosen = st.selectbox(
        t("page.pick"), list(names), index=None, format_func=names.__getitem__, key=f"{page}-pick"
    )
    if chosen:
        live.open_run(chosen)
        st.rerun()
