"""The part "Study" of an evaluation's results: another setting, read from the recorded runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from app.engine import engine
from app.jobs import StudyJob, StudySubject, start_study, study_by, study_of
from app.page import (
    draw_again,
    draw_error,
    draw_unfolded,
    redraw_whole,
    remembered,
    show_error,
    show_figure,
    show_html,
)
from app.results import ResultKey, computed, score_study, scores_of
from app.session import messages, owner, theme
from components.base.words import Catalogue, integer
from components.evaluate.study import setting_title, study_figure, study_view
from components.evaluate.table import metric_title
from pipelines.evaluation.plan import EvaluationSpec, System
from pipelines.evaluation.results.scores import HALLUCINATED, HALLUCINATION_SCORE
from pipelines.evaluation.studies.grid import read_axis, value_text
from pipelines.evaluation.studies.named import NamedStudy, named_studies
from pipelines.evaluation.studies.replays import find_system
from pipelines.evaluation.studies.running import profile_of
from pipelines.evaluation.studies.table import (
    Study,
    shown_metrics,
    study_csv,
    study_jsonl,
    study_latex,
    study_markdown,
)
from pipelines.methods.base import field_bound, field_kind
from pipelines.methods.registry import get_method

_PERIOD = 0.5
"""Seconds between two looks at a study that goes on."""

_MOST = 4
"""Metrics of the table beside the one that is drawn."""

_ERRORS = "study"
_SCORES = "scores"
"""Stands among the settings for a threshold on the scores."""

_FIRST = "verdict_f1"


def draw_study(key: ResultKey, t: Catalogue) -> None:
    """Draw a fold with the controls of a study and its result; it is empty until it is opened."""
    fold = st.expander(t("study.title"), key="evaluate.study", on_change="rerun")
    draw_unfolded(fold, partial(_draw, key, t))


def _draw(key: ResultKey, t: Catalogue) -> None:
    stored = engine().service.store.evaluations.get(key.evaluation, key.owner)
    spec = EvaluationSpec.model_validate(stored.spec)
    st.caption(t("study.help"))
    scored = _scored_systems(key)
    offered = {
        one.name: [*settings_of(one), *([_SCORES] if one.name in scored else [])]
        for one in spec.systems
    }
    systems = {name: settings for name, settings in offered.items() if settings}
    if not systems:
        st.caption(t("study.nothing"))
        return
    scored_system = _controls(key, spec, systems, t)
    draw_error(_ERRORS)
    if scored_system is not None:
        first = computed(score_study, key, scored_system, _FIRST)
        _result(first, lambda metric: computed(score_study, key, scored_system, metric), t)
        return
    job = study_of(key.owner, key.evaluation)
    if job is None:
        return
    if job.going_on:
        _wait(job)
    elif job.error is not None:
        show_error(job.error, key="study-error")
    elif job.state == "stopped":
        st.caption(t("study.stopped"))
    else:
        _replayed(job, spec, t)


def settings_of(system: System) -> list[str]:
    """Return the settings that a page offers: those which recorded runs mostly answer."""
    known = get_method(system.method.name).settings_type
    # What other means fill in has no values to try.
    return [
        name
        for name in known.REPLAYABLE
        if not str(field_kind(known.model_fields[name])).startswith("dict")
    ]


def named_study(method: str, setting: str) -> NamedStudy | None:
    """Return the study of a paper that varies this setting alone."""
    return next(
        (
            one
            for one in named_studies().values()
            if one.method == method and list(one.axes) == [setting]
        ),
        None,
    )


def _scored_systems(key: ResultKey) -> set[str]:
    """Return the systems with scores and labels, on which a threshold can be moved."""
    return {
        one.method
        for one in computed(scores_of, key).scores
        if one.values.get(HALLUCINATION_SCORE) is not None
        and one.values.get(HALLUCINATED) is not None
    }


def _controls(
    result_key: ResultKey, spec: EvaluationSpec, systems: dict[str, list[str]], t: Catalogue
) -> str | None:
    """Return what is studied; the system, where that is a threshold on its scores."""
    columns = st.columns([2, 2, 3], gap="medium", vertical_alignment="bottom")
    with columns[0]:
        system = st.selectbox(t("evaluate.system"), list(systems), key="study.system")
    method = find_system(spec, system)[1].method.name
    with columns[1]:
        setting = st.selectbox(
            t("study.setting"),
            systems[system],
            key=f"study.setting.{method}",
            format_func=lambda name: (
                t("study.scores") if name == _SCORES else setting_title(method, name, t)
            ),
        )
    if setting == _SCORES:
        st.caption(t("study.scores.help"))
        return system
    known = named_study(method, setting)
    first = ",".join(map(value_text, known.axes[setting])) if known else _range(method, setting)
    key = f"study.values.{method}.{setting}"
    with columns[2]:
        st.text_input(t("study.values"), value=first, key=key, help=t("study.values.help"))
    if known is not None:
        st.caption(known.source.text(t.language))
    st.button(
        t("study.start"),
        key="study.start",
        type="primary",
        on_click=_start,
        args=(result_key, system, method, setting, key),
    )
    return None


def _range(method: str, setting: str) -> str:
    """Return the whole range in ten steps, for a number that has one; else nothing,
    which is all.
    """
    field = get_method(method).settings_type.model_fields[setting]
    low, high = field_bound(field, "ge"), field_bound(field, "le")
    if field_kind(field) is not float or low is None or high is None:
        return ""
    return f"{low:g}:{high:g}:{(high - low) / 10:g}"


def _start(result_key: ResultKey, system: str, method: str, setting: str, key: str) -> None:
    with remembered(_ERRORS):
        written = str(st.session_state.get(key) or "").strip()
        text = f"{setting}={written}" if written else setting
        axis = read_axis(get_method(method), text)
        start_study(result_key.owner, StudySubject(result_key.evaluation, system, (axis,)))


def _wait(job: StudyJob) -> None:
    """Draw how far it is, with Stop beside it; the page is drawn again when it has ended."""

    def body() -> None:
        t = messages()
        _, done, total = job.progress
        share = done / total if total else 0.0
        words = t("study.progress", done=integer(done), total=integer(total))
        st.progress(min(share, 1.0), text=words)
        st.button(t("action.stop"), key="study.stop", on_click=_stop, args=(job,))
        if not job.going_on:
            st.rerun()

    draw_again(body, _PERIOD)


def _stop(job: StudyJob) -> None:
    job.stop()
    redraw_whole()


def _replayed(job: StudyJob, spec: EvaluationSpec, t: Catalogue) -> None:
    """Draw what was replayed, with the paper's figures, and the chosen point to save."""
    subject = job.progress.subject
    (axis,) = subject.axes
    system = find_system(spec, subject.system)[1]
    known = named_study(system.method.name, axis.name)

    def printed(study: Study) -> Study:
        if known is None:
            return study
        points = (
            one.model_copy(update={"papers": known.figures(one.label)}) for one in study.points
        )
        return study.model_copy(update={"points": tuple(points), "source": known.source.en})

    first = study_by(job, None, known.prefer if known else ())
    study = _result(first, lambda metric: printed(study_by(job, metric)), t)
    if study.choice is not None:
        _save(study, system, t)


def _result(first: Study, by: Callable[[str], Study], t: Catalogue) -> Study:
    """Draw the curve, the table and files of a study; `by` is the study where a metric chooses."""
    better = [info.name for info in first.metrics if info.better]
    start = first.choice.metric if first.choice else None
    names = ".".join(axis.name for axis in first.axes)
    metric = st.selectbox(
        t("study.metric"),
        better,
        index=better.index(start) if start in better else 0,
        key=f"study.metric.{first.evaluation}.{first.system}.{names}.{first.kind}",
        format_func=lambda name: metric_title(name, t),
    )
    study = by(metric)
    show_figure(study_figure(study, metric, t, theme()), key="study-figure")
    shown = list(dict.fromkeys([metric, *shown_metrics(study)]))[: _MOST + 1]
    show_html(study_view(study, shown, t), key="study-table")
    _files(study, t)
    return study


def _files(study: Study, t: Catalogue) -> None:
    with st.container(horizontal=True, key="study-exports"):
        for kind, ending, mime, make in (
            ("csv", "csv", "text/csv", study_csv),
            ("jsonl", "jsonl", "application/jsonl", study_jsonl),
            ("markdown", "md", "text/markdown", study_markdown),
            ("latex", "tex", "application/x-tex", study_latex),
        ):
            st.download_button(
                t(f"study.export.{kind}"),
                data=partial(make, study),
                file_name=f"veriscope-{study.evaluation[:8]}-study.{ending}",
                mime=mime,
                key=f"study.export.{kind}",
                on_click="ignore",
            )


def _save(study: Study, system: System, t: Catalogue) -> None:
    """Draw what saves the chosen point under a name, for the next runs."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(t("profile.name"), key="study.profile", help=t("profile.name.help"))
        st.button(t("profile.save"), key="study.save", on_click=_keep, args=(study, system))
    if saved := st.session_state.pop("_study.saved", ""):
        st.caption(t("profile.saved", name=saved))


def _keep(study: Study, system: System) -> None:
    with remembered(_ERRORS):
        name = str(st.session_state.get("study.profile") or "").strip()
        profile = profile_of(study, system.method.settings, name)
        engine().service.store.profiles.save(owner(), profile, replace=False)
        st.session_state["_study.saved"] = profile.name
