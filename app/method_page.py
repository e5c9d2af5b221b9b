"""The page of a method: a run in detail while it happens, and re-evaluated afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import streamlit as st

from app import live
from app.engine import engine
from app.parts import (
    disambiguate,
    draw_run_bar,
    go_to,
    heading,
    page_title,
    redraw_if_asked,
    remember_error,
    section_title,
    show_error,
    take_error,
    whole_page,
)
from app.session import messages, owner, theme
from app.settings_form import draw_settings, read_settings
from app.view_component import Action, show_html
from components.elements import notice
from components.messages import Catalogue, named
from components.papers import has_paper, paper_section
from components.run_pages import FIGURES, PAGES, panel_of
from pipelines.engine.reevaluate import reevaluate
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Settings
from pipelines.methods.registry import get_method
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.view import RunView

__all__ = ["show_page"]


def show_page(page: str) -> None:
    """Draw one of `PAGES`, whose name begins its catalogue keys."""
    t = messages()
    methods = PAGES[page]
    watched = begin(page, methods, t)
    if watched is None:
        draw_papers(methods, t)
        return
    heading(watched.view, t)
    used = [method for method in methods if method in _asked(watched.view)]
    running = not watched.view.over
    # One fragment, running or not: what is drawn stays where it is when the run ends.
    draw = st.fragment(draw_run, run_every=live.PERIOD if running else None)
    draw(page, used, titled=len(methods) > 1, running=running)
    if not running:
        for method in methods:
            if method not in used:
                _offer(page, method, t)
    draw_papers(used, t)


def draw_papers(methods: Sequence[str], t: Catalogue) -> None:
    """What the papers of `methods` report, each closed until it is asked for."""
    for method in filter(has_paper, methods):
        show_html(paper_section(method, t), key=f"paper-{method}", language=t.language)


def begin(page: str, methods: Sequence[str], t: Catalogue) -> live.Watched | None:
    """Title, errors and the run that is looked at; None when there is nothing to show yet."""
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


def draw_run(page: str, methods: Sequence[str], *, titled: bool, running: bool) -> None:
    """From a fragment: the run as it is now, under controls that re-evaluate it once it is over.

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
    for method in methods:
        if titled:
            section_title(named("method", method, t))
        _draw_panel(page, method, watched, t)
    if running and view.over:
        st.rerun()


def _draw_panel(page: str, name: str, watched: live.Watched, t: Catalogue) -> None:
    """The method's view, re-evaluated at every move of a control once the run is over."""
    over = watched.view.over
    draw_controls(name, watched, t, disabled=not over)
    view, diverges_at = watched.view, None
    settings = chosen_settings(name, watched)
    if over and settings != recorded_settings(watched.view, name):
        again = reevaluate(watched.trace, get_method(name), settings)
        view, diverges_at = again.view, again.diverges_at
    html = panel_of(name)(view, t, diverges_at=diverges_at)
    show_html(html, key=f"{name}-view", language=t.language, on_action=partial(act, page))
    if diverges_at is not None:
        st.button(
            t("page.run_again"),
            type="primary",
            key=f"{name}-again",
            on_click=_run_again,
            args=(page, name),
        )
    if over and name in FIGURES:
        _draw_figures(name, view, t)


def _draw_figures(name: str, view: RunView, t: Catalogue) -> None:
    """Two figures beside each other."""
    found = FIGURES[name](view, t, theme())
    for number, column in enumerate(st.columns(2, gap="large") if found else ()):
        for title, figure in found[number::2]:
            with column:
                section_title(title)
                key = f"{name}-figure-{title}"
                st.plotly_chart(figure, theme=None, key=key, config={"displayModeBar": False})


def draw_controls(
    name: str, watched: live.Watched, t: Catalogue, *, disabled: bool = False
) -> None:
    """Controls that begin with what the run was run with."""
    method = get_method(name)
    if not method.settings_type.REPLAYABLE:
        return
    with (
        st.container(border=True, key=f"card-detector-{name}"),
        st.container(key=f"settings-detector-{name}"),
    ):
        draw_settings(
            method,
            t,
            scope=_scope(watched),
            start=recorded_settings(watched.view, name).model_dump(),
            only=method.settings_type.REPLAYABLE,
            disabled=disabled,
        )


def chosen_settings(name: str, watched: live.Watched) -> Settings:
    """The run's settings with what the controls say."""
    method = get_method(name)
    start = recorded_settings(watched.view, name).model_dump()
    return method.settings(read_settings(method, scope=_scope(watched), start=start))


def recorded_settings(view: RunView, method: str) -> Settings:
    """The settings a method of the run was run with."""
    if method in view.methods:
        # What applied, also where a default has changed since.
        with suppress(VeriscopeError):
            return get_method(method).settings(view.methods[method].settings)
    values = {spec.name: spec.settings for spec in view.header.spec.methods} if view.header else {}
    return get_method(method).settings(values.get(method))


def act(page: str, action: Action) -> None:
    """A button inside the run that `page` shows was used."""
    watched = live.current()
    if action["action"] == "open":
        go_to(action["value"] or "ask")
    elif action["action"] == "retry" and watched is not None and watched.view.header is not None:
        _start(page, watched.view.header.spec)


def _run_again(page: str, name: str) -> None:
    watched = live.current()
    if watched is None or watched.view.header is None:
        return
    settings = chosen_settings(name, watched).model_dump()
    defaults = get_method(name).settings().model_dump()
    changed = {key: value for key, value in settings.items() if value != defaults[key]}
    spec = watched.view.header.spec
    methods = tuple(
        MethodSpec(name=name, settings=changed) if method.name == name else method
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
    names = disambiguate({run.id: run.question for run in runs})
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
