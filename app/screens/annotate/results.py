"""What the labels of a session say: agreement, detectors, fitted thresholds, judges.

All of it is computed once for each state of the session, in a thread of its own; what takes longest
is computed once it is unfolded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from app.engine import engine
from app.login import require_link
from app.page import (
    choose_one,
    computing_shown,
    draw_error,
    draw_unfolded,
    guarded,
    remembered,
    section_title,
    show_figure,
    show_html,
)
from app.results import (
    Detectors,
    SessionKey,
    agreement_of,
    computed,
    detectors_of,
    fitted_of,
    judged_stamp,
    judges_of,
    labels_of,
    now,
    people_of,
    whole_of,
)
from app.session import owner, theme
from components.annotate.detectors import (
    detectors_view,
    fitted_view,
    judges_view,
    located_view,
    verdicts_view,
)
from components.annotate.results import (
    agreement_view,
    detector_name,
    distribution_figure,
    labels_view,
    pairs_view,
    people_view,
    reveal_view,
    spans_view,
)
from components.base.elements import notice
from components.base.html import tag
from components.base.words import Catalogue
from components.evaluate.compare import (
    precision_recall_figure,
    reliability_figure,
    roc_figure,
)
from pipelines.annotation.detectors import DetectorReport, Savable, fitted_profile, savable
from pipelines.annotation.judges import evaluations_of
from pipelines.annotation.labelling import Which
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import Task
from pipelines.run.calibrations import CalibrationKind

_ERRORS = "annotate-results"
_KEPT: Any = {"persist_state": "session"}
_WHICH: tuple[Which, ...] = get_args(Which)

_Kind = Literal["roc", "precision_recall", "reliability", "spread"]
_Saved = Literal[CalibrationKind, "none"]
_CALIBRATIONS: tuple[_Saved, ...] = ("platt", "isotonic", "none")
_CALIBRATION = "annotate.results.calibration"
"""The key of the control that says which calibration is saved."""

_SAVED = "_annotate.results.saved"
_PART = 50
"""Percent of the groups on which thresholds are fitted at first."""


def draw_results(lead: Lead, t: Catalogue) -> None:
    """Draw all of it."""
    with computing_shown("results"):
        key = now(lead)
        tasks = computed(labels_of, key).tasks
        if not tasks:
            st.html(tag("p", t("annotate.results.nothing"), class_="workbench-empty"))
            return
        task, which = _choice(lead, tasks, t)
        _agreement(key, task, which, t)
        if task != "comparison":
            _detectors(key, task, which, t)
        if task == "answer" and evaluations_of(whole_of(key).items):
            _fold("judges", t, partial(_judges, key, which))


def _choice(lead: Lead, tasks: tuple[Task, ...], t: Catalogue) -> tuple[Task, Which]:
    """Return the task that is looked at, and which of people's labels count."""
    task, which = tasks[0], _WHICH[0]
    with st.container(horizontal=True, key="annotate-results-choice"):
        if len(tasks) > 1:
            task = choose_one(
                t("annotate.results.task"),
                tasks,
                f"annotate.results.task.{'.'.join(tasks)}",
                lambda one: t(f"annotate.results.task.{one}"),
                **_KEPT,
            )
        if lead.spec.show != "never":
            which = choose_one(
                t("annotate.results.which"),
                _WHICH,
                "annotate.results.which",
                lambda one: t(f"annotate.results.which.{one}"),
                help=t("annotate.results.which.help"),
                **_KEPT,
            )
    return task, which


def _agreement(key: SessionKey, task: Task, which: Which, t: Catalogue) -> None:
    section_title(t("annotate.results.agreement"))
    found = computed(agreement_of, key, task, which)
    show_html(agreement_view(found, t), key="annotate-agreement")
    if found.spans is not None:
        section_title(t("annotate.results.spans"))
        show_html(spans_view(found.spans, t), key="annotate-spans")
    held = labels_of(key)
    if len(found.people) > 2:
        _fold("people", t, partial(_people, key, task, which))
    if len(found.people) > 1:
        _fold("pairs", t, lambda t: _html(pairs_view(found, held.names, t), "pairs"))
        _fold("labels", t, lambda t: _html(labels_view(found, t), "labels"))
    if any(one.revealed for one in held.last if held.bodies[one.item].task == task):
        _fold("reveal", t, partial(_reveal, key, task))


def _people(key: SessionKey, task: Task, which: Which, t: Catalogue) -> None:
    _html(people_view(computed(people_of, key, task, which), labels_of(key).names, t), "people")


def _reveal(key: SessionKey, task: Task, t: Catalogue) -> None:
    blind, last = (computed(agreement_of, key, task, which) for which in ("blind", "last"))
    _html(reveal_view(blind, last, labels_of(key).changed[task], t), "reveal")


def _detectors(key: SessionKey, task: Task, which: Which, t: Catalogue) -> None:
    section_title(t("annotate.results.detectors"))
    if not any(one.task == task and one.hidden.get("verdicts") for one in whole_of(key).items):
        st.html(tag("p", t("annotate.results.detectors.none"), class_="workbench-empty"))
        return
    st.caption(t("annotate.results.detectors.note"))
    _fold("scores", t, partial(_scores, key, task, which))
    _fold("fits", t, partial(_fits, key, task, which))


def _scores(key: SessionKey, task: Task, which: Which, t: Catalogue) -> None:
    found = computed(detectors_of, key, task, which)
    if found.report is None:
        _no_scores(found, "scores", t)
    else:
        html = detectors_view(found.scores, found.report, found.errors, found.unresolved, t)
        _html(html, "detectors")
        _figures(key, task, which, found, found.report, t)
    if found.located:
        st.html(tag("h3", t("annotate.results.located"), class_="workbench-part"))
        _html(located_view(found.located, t), "located")
    if found.agreements or found.report is not None:
        st.html(tag("h3", t("annotate.results.verdicts"), class_="workbench-part"))
        _html(verdicts_view(found.agreements, t), "verdicts")


def _no_scores(found: Detectors, part: str, t: Catalogue) -> None:
    """Say why nothing can be compared, and what to do."""
    key = "unresolved.all" if found.unresolved else "scores.none"
    said = t(f"annotate.results.{key}", count=found.unresolved)
    show_html(notice(said, "no-scores"), key=f"annotate-{part}-none")


def _figures(
    session_key: SessionKey,
    task: Task,
    which: Which,
    found: Detectors,
    report: DetectorReport,
    t: Catalogue,
) -> None:
    """Draw one figure at a time, of those that there is something to draw in."""
    names = {method: detector_name(method, t) for method in found.scores.methods}
    there: dict[_Kind, bool] = {
        "roc": bool(report.curves),
        "precision_recall": bool(report.curves),
        "reliability": bool(report.reliability),
        "spread": bool(names),
    }
    kinds = [kind for kind, there_is in there.items() if there_is]
    kind = choose_one(
        t("evaluate.figures"),
        kinds,
        f"annotate.results.figure.{'.'.join(kinds)}",
        lambda one: t(
            "annotate.results.figure.spread" if one == "spread" else f"evaluate.figure.{one}"
        ),
        label_visibility="collapsed",
        **_KEPT,
    )
    look = theme()
    figure: Figure
    if kind == "spread":
        method = _detector(found, names, t)
        row = found.scores.scores[found.scores.methods.index(method)]
        known = row[np.isfinite(row)]
        whole = bool(known.size and known.min() >= 0 and known.max() <= 1)
        fitted, _ = computed(fitted_of, session_key, task, which, *_split())
        cut = fitted[found.scores.methods.index(method)].cut
        labels = found.scores.labels
        figure = distribution_figure(row, labels, t, look, cut=cut, whole=whole)
    elif kind == "reliability":
        points = {names[one]: held for one, held in report.reliability.items()}
        figure = reliability_figure(points, t, look)
    else:
        place = 0 if kind == "roc" else 1
        drawn = {names[one]: pair[place] for one, pair in report.curves.items()}
        if kind == "roc":
            figure = roc_figure(drawn, t, look)
        else:
            rate = report.detection.base_rate
            figure = precision_recall_figure(drawn, t, look, base_rate=rate)
    show_figure(figure, key=f"annotate-figure-{kind}")
    key = "annotate.results.figure.spread" if kind == "spread" else f"evaluate.figure.{kind}"
    st.caption(t(f"{key}.help"))


def _detector(found: Detectors, names: dict[str, str], t: Catalogue) -> str:
    key = "annotate.results.detector"
    if st.session_state.get(key) not in (None, *names):
        st.session_state.pop(key)
    return st.selectbox(
        t("annotate.results.detector"),
        list(found.scores.methods),
        key=key,
        format_func=names.__getitem__,
        **_KEPT,
    )


def _fits(key: SessionKey, task: Task, which: Which, t: Catalogue) -> None:
    """Draw thresholds fitted on a part of the items, how good they are on the rest, and
    saving them.
    """
    st.caption(t("annotate.results.fits.note"))
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        st.slider(
            t("annotate.results.share"),
            min_value=20,
            max_value=80,
            value=_PART,
            step=5,
            format="%d %%",
            key="annotate.results.share",
            help=t("annotate.results.share.help"),
            **_KEPT,
        )
    with right:
        st.number_input(
            t("annotate.results.seed"),
            min_value=0,
            max_value=2**31 - 1,
            value=0,
            key="annotate.results.seed",
            help=t("annotate.results.seed.help"),
            **_KEPT,
        )
    share, seed = _split()
    found = computed(detectors_of, key, task, which)
    if found.report is None:
        _no_scores(found, "fits", t)
        return
    fitted, behind = computed(fitted_of, key, task, which, share, seed)
    known = {one.fitted.method: one for one in savable(fitted, behind)}
    settings = {
        name: (one.behind.method, one.threshold) for name, one in known.items() if one.threshold
    }
    _html(fitted_view(fitted, found.scores.mixed, settings, share, t), "fitted")
    draw_error(_ERRORS)
    if known:
        _save(key, task, which, share, seed, list(known.values()), t)
    else:
        st.caption(t("annotate.results.save.nothing"))


def _split() -> tuple[float, int]:
    """Return the share of groups that is fitted on, and the seed by which they are drawn,
    as chosen.
    """
    part = st.session_state.get("annotate.results.share") or _PART
    return int(part) / 100, int(st.session_state.get("annotate.results.seed") or 0)


def _save(
    session_key: SessionKey,
    task: Task,
    which: Which,
    share: float,
    seed: int,
    known: list[Savable],
    t: Catalogue,
) -> None:
    """Draw what saves the fitted values of the chosen detectors under a name, for the next runs."""
    names = [one.fitted.method for one in known]
    # A profile keeps one of each method: of several systems of a method, at first the first.
    firsts = {one.behind.method: one.fitted.method for one in reversed(known)}
    key = f"annotate.results.save.{'.'.join(names)}"
    st.multiselect(
        t("annotate.results.save.which"),
        names,
        default=[name for name in names if name in firsts.values()],
        key=key,
        format_func=lambda name: detector_name(name, t),
    )
    if any(one.calibrated for one in known):
        choose_one(
            t("annotate.results.save.calibration"),
            _CALIBRATIONS,
            _CALIBRATION,
            lambda one: t(f"annotate.results.save.{one}"),
            help=t("annotate.results.save.calibration.help"),
            **_KEPT,
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            t("profile.name"), key="annotate.results.profile", help=t("profile.name.help")
        )
        st.button(
            t("profile.save"),
            key="annotate.results.save",
            type="primary",
            on_click=_keep,
            args=(session_key, task, which, share, seed, key),
        )
    if saved := st.session_state.pop(_SAVED, ""):
        said = t("profile.saved", name=saved)
        show_html(notice(said, "saved", role="status"), key="annotate-saved")


def _keep(
    session_key: SessionKey, task: Task, which: Which, share: float, seed: int, key: str
) -> None:
    with remembered(_ERRORS):
        require_link()
        name = str(st.session_state.get("annotate.results.profile") or "").strip()
        chosen = st.session_state.get(key) or []
        fitted, behind = fitted_of(session_key, task, which, share, seed)
        kind = st.session_state.get(_CALIBRATION) or _CALIBRATIONS[0]
        profile = fitted_profile(
            name,
            whole_of(session_key).session.name,
            task,
            [one for one in fitted if one.method in chosen],
            behind,
            None if kind == "none" else kind,
        )
        engine().service.store.profiles.save(owner(), profile, replace=False)
        st.session_state[_SAVED] = profile.name


def _judges(key: SessionKey, which: Which, t: Catalogue) -> None:
    """Draw what the labels make of judges' scores."""
    st.caption(t("annotate.results.judges.note"))
    found = computed(judges_of, key, which, judged_stamp(key))
    _html(judges_view(found, t), "judges")


def _fold(name: str, t: Catalogue, draw: Callable[[Catalogue], None]) -> None:
    """Fold a part, which is drawn, and computed, once it is unfolded."""

    def body() -> None:
        with guarded(title, key=name), computing_shown(name):
            draw(t)

    title = t(f"annotate.results.part.{name}")
    fold = st.expander(title, key=f"annotate.results.fold.{name}", on_change="rerun")
    draw_unfolded(fold, body)


def _html(html: str, key: str) -> None:
    show_html(html, key=f"annotate-{key}")
