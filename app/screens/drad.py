"""The DRAD page: the detector under other thresholds, and the corrections step by step."""

from __future__ import annotations

from functools import cache
from typing import get_args

import streamlit as st

from app import live
from app.engine import engine
from app.parts import (
    draw_live_run,
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
from components.drad_view import confidence_note, decision_view, steps_view
from components.figures import entities_figure, profile_figure
from components.messages import Catalogue
from components.run_view import language_unsupported, marks_of, settings_of
from components.sections import notice
from components.units import Measure
from pipelines.errors import VeriscopeError
from pipelines.methods import get_method
from pipelines.methods.drad_path import DradDecision
from pipelines.methods.drad_settings import DradSettings
from pipelines.run.spec import MethodSpec, RunSpec
from pipelines.run.view import RunView
from pipelines.text import EntityRecognizer
from pipelines.types import Language

_DETECTOR = ("theta_1", "theta_2", "pooling", "entropy_pooling", "skip_repeats")
_MEASURES: tuple[Measure, ...] = get_args(Measure)


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("drad.title"), t("method.drad.summary"))
    missing = live.follow_address()
    watched = live.current()
    problem = take_error("drad") or (missing.info() if missing else None)
    if problem is not None:
        show_error(problem, key="drad-error")
    if watched is None:
        _pick(t)
        return
    view = watched.pull()
    if not view.over:
        st.fragment(_under_way, run_every=live.PERIOD)()
    elif view.header is None or "drad" not in view.methods:
        _without_drad(view, t)
    elif language_unsupported(view):
        heading(view, t)
        show_html(
            notice(t("flag.language_unsupported"), "language"), key="language", language=t.language
        )
    elif not view.methods["drad"].drafts:
        heading(view, t)
        show_html(notice(t("drad.no_draft"), "no-draft"), key="no-draft", language=t.language)
    else:
        _recorded(watched, t)


def _recorded(watched: live.Watched, t: Catalogue) -> None:
    view = watched.view
    heading(view, t)
    language: Language = view.header.language if view.header else "en"
    recognizer = _recognizer(language)
    note = confidence_note(view, t, recognizer=recognizer)
    show_html(note, key="drad-source", language=t.language)
    st.fragment(_detector)(watched)
    show_html(steps_view(view, t), key="drad-steps", language=t.language)


def _detector(watched: live.Watched) -> None:
    """Decides the recorded run again, at every move of a control, without a call."""
    redraw_if_asked()
    t = messages()
    view = watched.view
    scope = _scope(watched)
    recorded = settings_of(view).model_dump()
    with st.container(border=True, key="card-detector"), st.container(key="settings-detector"):
        draw_settings(get_method("drad"), t, scope=scope, start=recorded, only=_DETECTOR)
    settings = _chosen(watched)
    decision = get_method("drad").decide(watched.trace, settings)
    assert isinstance(decision, DradDecision)
    draft, measure = _view_choice(view, t)
    html = decision_view(view, decision, settings, t, draft=draft, measure=measure)
    show_html(html, key="drad-decision", language=t.language)
    if decision.diverges_at is not None:
        st.button(t("drad.run_again"), type="primary", key="drad-again", on_click=_run_again)
    _figures(view, decision, settings, draft, t)


def _view_choice(view: RunView, t: Catalogue) -> tuple[int, Measure]:
    drafts = range(len(view.methods["drad"].drafts))
    with st.container(horizontal=True, gap="medium"):
        measure: Measure | None = st.segmented_control(
            t("drad.measure"),
            _MEASURES,
            default=_MEASURES[0],
            required=True,
            format_func=lambda name: t(f"drad.measure.{name}"),
            key="drad-measure",
            persist_state="session",
        )
        draft = 0
        if len(drafts) > 1:
            draft = st.segmented_control(
                t("drad.draft"),
                list(drafts),
                default=0,
                required=True,
                format_func=lambda n: (
                    t("drad.draft.corrected", number=n) if n else t("ask.original")
                ),
                key=f"drad-draft-{view.run}",
            )
    return draft or 0, measure or _MEASURES[0]


def _figures(
    view: RunView, decision: DradDecision, settings: DradSettings, draft: int, t: Catalogue
) -> None:
    generation = view.methods["drad"].drafts[draft].generation
    if not generation.tokens:
        return
    marks = marks_of(decision.readings[draft], decision.verdicts[draft])
    look = theme()
    lines = {"theta_1": settings.theta_1, "theta_2": settings.theta_2}
    profile = profile_figure(generation.tokens, t, look, **lines)
    scatter = entities_figure(generation.text, marks, t, look, **lines)
    left, right = st.columns(2, gap="large")
    with left:
        section_title(t("drad.profile"))
        st.plotly_chart(profile, theme=None, key="profile", config={"displayModeBar": False})
    with right:
        section_title(t("drad.scatter"))
        st.plotly_chart(scatter, theme=None, key="scatter", config={"displayModeBar": False})


def _scope(watched: live.Watched) -> str:
    """Controls of their own for every run: they begin with what it was run with."""
    return f"detector.{watched.run_id}"


def _chosen(watched: live.Watched) -> DradSettings:
    recorded = settings_of(watched.view).model_dump()
    method = get_method("drad")
    return method.settings(read_settings(method, scope=_scope(watched), start=recorded))


def _run_again() -> None:
    watched = live.current()
    if watched is None or watched.view.header is None:
        return
    settings = _chosen(watched).model_dump()
    defaults = get_method("drad").settings().model_dump()
    changed = {key: value for key, value in settings.items() if value != defaults[key]}
    spec = watched.view.header.spec
    methods = tuple(
        MethodSpec(name="drad", settings=changed) if method.name == "drad" else method
        for method in spec.methods
    )
    _start(spec.model_copy(update={"methods": methods}))


def _add_drad() -> None:
    watched = live.current()
    if watched is not None and watched.view.header is not None:
        spec = watched.view.header.spec
        methods = (*spec.methods, MethodSpec(name="drad"))
        _start(spec.model_copy(update={"methods": methods}))


def _start(spec: RunSpec) -> None:
    remember_error("drad", None)
    try:
        live.start(spec)
    except VeriscopeError as error:
        remember_error("drad", error)
    whole_page()


def _under_way() -> None:
    draw_live_run(key="drad-live", on_action=_act, running=True)


def _act(action: Action) -> None:
    if action["action"] == "open":
        go_to(action["value"] or "ask")


def _without_drad(view: RunView, t: Catalogue) -> None:
    heading(view, t)
    show_html(notice(t("drad.not_used"), "not-used"), key="not-used", language=t.language)
    st.button(t("drad.add"), type="primary", key="drad-add", on_click=_add_drad)


def _pick(t: Catalogue) -> None:
    runs = [run for run in engine().service.store.list(owner()) if "drad" in run.methods]
    if not runs:
        show_html(notice(t("drad.no_runs"), "no-runs"), key="no-runs", language=t.language)
        st.button(t("nav.ask"), on_click=go_to, args=("ask",))
        return
    names = {run.id: run.question for run in runs}
    chosen = st.selectbox(
        t("drad.pick"), list(names), index=None, format_func=names.__getitem__, key="drad-pick"
    )
    if chosen:
        live.open_run(chosen)
        st.rerun()


@cache
def _recognizer(language: Language) -> str:
    return EntityRecognizer().source_for(language)
