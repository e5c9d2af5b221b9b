"""The page of a method: a run taken apart while it happens, and decided again afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import live
from app.engine import engine
from app.parts import (
    draw_run_bar,
    go_to,
    heading,
    page_title,
    redraw_if_asked,
    remember_error,
    section_title,
    show_error,
    take_error,
    told_apart,
    whole_page,
)
from app.session import messages, owner
from app.settings_form import draw_settings, read_settings
from app.view_component import Action, show_html
from components.messages import Catalogue
from components.names import named
from components.papers import paper_section
from components.run_pages import PAGES, PANELS, Panel
from components.sections import notice
from pipelines.errors import VeriscopeError
from pipelines.methods import Decision, Settings, get_method
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.view import RunView

__all__ = [
    "act",
    "begin",
    "chosen_settings",
    "draw_controls",
    "draw_papers",
    "run_again_button",
    "show_page",
]


def show_page(page: str) -> None:
    """Draw one of `PAGES`, whose name begins its catalogue keys."""
    t = messages()
    panels = [PANELS[method] for method in PAGES[page]]
    watched = begin(page, [panel.method for panel in panels], t)
    if watched is None:
        draw_papers([panel.method for panel in panels], t)
        return
    heading(watched.view, t)
    used = [panel for panel in panels if panel.method in _asked(watched.view)]
    running = not watched.view.over
    # One fragment, running or not: what is drawn stays where it is when the run ends.
    draw = st.fragment(draw_run, run_every=live.PERIOD if running else None)
    draw(page, used, titled=len(panels) > 1, running=running)
    if not running:
        for panel in panels:
            if panel not in used:
                _offer(page, panel.method, t)
    draw_papers([panel.method for panel in used], t)


def draw_papers(methods: Sequence[str], t: Catalogue) -> None:
    """What the papers of `methods` report, each closed until it is asked for."""
    for method in methods:
        show_html(paper_section(method, t), key=f"paper-{method}", language=t.language)


def begin(page: str, methods: Sequence[str], t: Catalogue) -> live.Watched | None:
    """Title, errors and the run that is looked at; None when there is nothing to take apart yet."""
    page_title(t(f"{page}.title"), t(f"{page}.note"))
    missing = live.follow_address()
    watched = live.current()
    problem = take_error(page) or (missing.info() if missing else None)
    if problem is not None:
        show_error(problem, key=f"{page}-error")
    if watched is None:
        _pick(page, methods, t)
        return None
    view = watched.pull()
    if view.header is None or not set(methods) & set(_asked(view)):
        heading(view, t)
        for method in methods:
            _offer(page, method, t)
        return None
    try:
        for method in methods:
            recorded_settings(view, method)
    except VeriscopeError as error:
        # A run from elsewhere may have been run with what cannot be set here.
        heading(view, t)
        show_error(error, key=f"{page}-settings")
        return None
    return watched


def draw_run(page: str, panels: Sequence[Panel], *, titled: bool, running: bool) -> None:
    """From a fragment: the run as it is now, under controls that decide it again once it is over.

    `running` says that it went on when the fragment was set up: once it is over, the whole page is
    drawn again, without the fragment's period.
    """
    watched = live.current()
    if watched is None:
        return
    redraw_if_asked()
    t = messages()
    view = watched.pull()
    draw_run_bar(view, t)
    for panel in panels:
        if titled:
            section_title(named("method", panel.method, t))
        _draw_panel(page, panel, watched, t)
    if running and view.over:
        st.rerun()


def _draw_panel(page: str, panel: Panel, watched: live.Watched, t: Catalogue) -> None:
    over = watched.view.over
    draw_controls(panel, watched, t, disabled=not over)
    settings = recorded_settings(watched.view, panel.method)
    decision = None
    if over:
        settings = chosen_settings(panel, watched)
        decision = get_method(panel.method).decide(watched.trace, settings)
    html = panel.view(watched.view, decision, settings, t)
    show_html(html, key=f"{panel.method}-view", language=t.language, on_action=partial(act, page))
    if decision is not None:
        run_again_button(page, panel, decision, t)


def draw_controls(
    panel: Panel, watched: live.Watched, t: Catalogue, *, disabled: bool = False
) -> None:
    """Controls that begin with what the run was run with."""
    method = get_method(panel.method)
    start = recorded_settings(watched.view, panel.method).model_dump()
    with (
        st.container(border=True, key=f"card-detector-{panel.method}"),
        st.container(key=f"settings-detector-{panel.method}"),
    ):
        draw_settings(
            method,
            t,
            scope=_scope(watched),
            start=start,
            only=panel.fields,
            disabled=disabled,
        )


def chosen_settings(panel: Panel, watched: live.Watched) -> Settings:
    """The run's settings with what the controls say."""
    method = get_method(panel.method)
    start = recorded_settings(watched.view, panel.method).model_dump()
    return method.settings(read_settings(method, scope=_scope(watched), start=start))


def recorded_settings(view: RunView, method: str) -> Settings:
    """The settings a method of the run was run with."""
    values = {spec.name: spec.settings for spec in view.header.spec.methods} if view.header else {}
    return get_method(method).settings(values.get(method))


def run_again_button(page: str, panel: Panel, decision: Decision, t: Catalogue) -> None:
    """Offers a new run where the recorded one does not go on."""
    if decision.diverges_at is not None:
        st.button(
            t("page.run_again"),
            type="primary",
            key=f"{panel.method}-again",
            on_click=_run_again,
            args=(page, panel),
        )


def act(page: str, action: Action) -> None:
    """A button inside the run that `page` shows was used."""
    watched = live.current()
    if action["action"] == "open":
        go_to(action["value"] or "ask")
    elif action["action"] == "retry" and watched is not None and watched.view.header is not None:
        _start(page, watched.view.header.spec)


def _run_again(page: str, panel: Panel) -> None:
    watched = live.current()
    if watched is None or watched.view.header is None:
        return
    settings = chosen_settings(panel, watched).model_dump()
    defaults = get_method(panel.method).settings().model_dump()
    changed = {key: value for key, value in settings.items() if value != defaults[key]}
    spec = watched.view.header.spec
    methods = tuple(
        MethodSpec(name=panel.method, settings=changed) if method.name == panel.method else method
        for method in spec.methods
    )
    _start(page, spec.model_copy(update={"methods": methods}))


def _add(page: str, method: str) -> None:
    watched = live.current()
    if watched is not None and watched.view.header is not None:
        spec = watched.view.header.spec
        methods = (*spec.methods, MethodSpec(name=method))
        _start(page, spec.model_copy(update={"methods": methods}))


def _start(page: str, spec: RunSpec) -> None:
    remember_error(page, None)
    try:
        live.start(spec)
    except VeriscopeError as error:
        remember_error(page, error)
    whole_page()


def _offer(page: str, method: str, t: Catalogue) -> None:
    name = named("method", method, t)
    note = notice(t("page.not_used", method=name), f"not-used-{method}")
    show_html(note, key=f"not-used-{method}", language=t.language)
    st.button(
        t("page.add", method=name),
        type="primary",
        key=f"{method}-add",
        on_click=_add,
        args=(page, method),
    )


def _pick(page: str, methods: Sequence[str], t: Catalogue) -> None:
    runs = [r for r in engine().service.store.list(owner()) if set(methods) & set(r.methods)]
    if not runs:
        names = t("list.separator").join(named("method", method, t) for method in methods)
        note = notice(t("page.no_runs", methods=names), "no-runs")
        show_html(note, key="no-runs", language=t.language)
        st.button(t("nav.ask"), on_click=go_to, args=("ask",))
        return
    names = told_apart({run.id: run.question for run in runs})
    chosen = st.selectbox(
        t("page.pick"), list(names), index=None, format_func=names.__getitem__, key=f"{page}-pick"
    )
    if chosen:
        live.open_run(chosen)
        st.rerun()


def _asked(view: RunView) -> list[str]:
    return [method.name for method in view.header.spec.methods] if view.header else []


def _scope(watched: live.Watched) -> str:
    """Controls of their own for every run."""
    return f"detector.{watched.run_id}"
