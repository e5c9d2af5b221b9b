"""The DRAD page: the detector under other thresholds, and the corrections step by step."""

from __future__ import annotations

from functools import cache, partial
from typing import cast, get_args

import streamlit as st

from app import live
from app.method_page import (
    act,
    begin,
    chosen_settings,
    draw_controls,
    draw_papers,
    run_again_button,
)
from app.parts import draw_live_run, heading, redraw_if_asked, section_title, show_error
from app.session import messages, theme
from app.view_component import show_html
from components.drad_view import confidence_note, decision_view, steps_view
from components.figures import entities_figure, profile_figure
from components.messages import Catalogue
from components.run_pages import PANELS
from components.run_view import language_unsupported, marks_of
from components.sections import notice
from components.units import Measure
from pipelines.methods import get_method
from pipelines.methods.drad.path import DradDecision
from pipelines.methods.drad.settings import DradSettings
from pipelines.run.view import RunView
from pipelines.text import EntityRecognizer
from pipelines.types import Language

_MEASURES: tuple[Measure, ...] = get_args(Measure)


_PANEL = PANELS["drad"]


def show() -> None:
    """Draw the page."""
    t = messages()
    watched = begin("drad", ["drad"], t)
    if watched is not None:
        _taken_apart(watched, t)
    draw_papers(["drad"], t)


def _taken_apart(watched: live.Watched, t: Catalogue) -> None:
    view = watched.view
    if not view.over:
        st.fragment(_under_way, run_every=live.PERIOD)()
        return
    heading(view, t)
    _ending(view, t)
    if language_unsupported(view):
        note = notice(t("flag.language_unsupported"), "language")
        show_html(note, key="language", language=t.language)
    elif "drad" not in view.methods or not view.methods["drad"].drafts:
        show_html(notice(t("drad.no_draft"), "no-draft"), key="no-draft", language=t.language)
    else:
        _recorded(watched, t)


def _ending(view: RunView, t: Catalogue) -> None:
    """Why there is not everything to see, for a run that did not end well."""
    if view.status == "cancelled":
        note = notice(t(f"run.cancelled.{view.reason or 'stopped'}"), "cancelled")
        show_html(note, key="drad-cancelled", language=t.language)
    method = view.methods.get("drad")
    error = (method.error if method else None) or view.error
    if error is not None:
        show_error(error, key="drad-failed")


def _under_way() -> None:
    draw_live_run(key="drad-live", on_action=partial(act, "drad"), running=True)


def _recorded(watched: live.Watched, t: Catalogue) -> None:
    view = watched.view
    language: Language = view.header.language if view.header else "en"
    note = confidence_note(view, t, recognizer=_recognizer(language))
    show_html(note, key="drad-source", language=t.language)
    st.fragment(_detector)(watched)
    show_html(steps_view(view, t), key="drad-steps", language=t.language)


def _detector(watched: live.Watched) -> None:
    """Decides the recorded run again, at every move of a control, without a call."""
    redraw_if_asked()
    t = messages()
    draw_controls(_PANEL, watched, t)
    settings = cast(DradSettings, chosen_settings(_PANEL, watched))
    decision = cast(DradDecision, get_method("drad").decide(watched.trace, settings))
    draft, measure = _view_choice(watched.view, t)
    html = decision_view(watched.view, decision, settings, t, draft=draft, measure=measure)
    show_html(html, key="drad-decision", language=t.language)
    run_again_button("drad", _PANEL, decision, t)
    _figures(watched.view, decision, settings, draft, t)


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


@cache
def _recognizer(language: Language) -> str:
    return EntityRecognizer().source_for(language)
