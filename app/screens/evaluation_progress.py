"""One evaluation on its page: how far it is, its forecast, and to stop or continue it."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from app.engine import engine
from app.evaluated import ResultKey, computed, forecast_of
from app.jobs import evaluations, start_evaluation
from app.parts import (
    draw_again,
    guarded,
    redraw_whole,
    remembered,
    show_error,
    show_html,
    stop_button,
)
from app.screens.evaluation_compare import open_run
from app.screens.evaluation_limits import at_once, chosen_limits, draw_limits
from app.screens.evaluation_results import draw_results
from app.session import keys_for, messages, owner
from components.elements import notice
from components.evaluation_state import (
    Progress,
    about_view,
    ended_view,
    forecast_view,
    latest_view,
    progress_view,
)
from components.messages import Catalogue
from pipelines.evaluation.beginning import probe_size
from pipelines.evaluation.limits import change_limits, currencies_of, spent_so_far
from pipelines.evaluation.plan import EvaluationSpec, code_version
from pipelines.jobs import NotYet
from pipelines.models.providers import refuse_shared_names
from pipelines.run.spec import EvidenceSpec, RunSpec
from pipelines.store.evaluations import StoredEvaluation

PERIOD = 1.0
"""Seconds between two looks at an evaluation that goes on."""


def standing_of(stored: StoredEvaluation) -> Progress:
    """Return how an evaluation stands: as its job says while there is one, else as it
    is stored.
    """
    job = evaluations.get((owner(), stored.id))
    going_on = job is not None and job.going_on
    done = stored.done
    if job is not None and going_on and job.progress is not None:
        done = job.progress.answered
    return Progress(done, stored.tasks, going_on)


def draw_evaluation(stored: StoredEvaluation, t: Catalogue) -> None:
    """Draw the whole page of one evaluation."""
    standing = standing_of(stored)
    show_html(about_view(stored, t), key="evaluation-about")
    spec = EvaluationSpec.model_validate(stored.spec)
    if spec.code != code_version() and standing.status != "done":
        show_html(notice(t("evaluate.other_code"), "other-code"), key="other-code")
    _draw_progress(stored, standing)
    if not standing.going_on:
        _draw_continuing(stored, standing, t)
    draw_results(stored, standing, t)


def _draw_progress(stored: StoredEvaluation, standing: Progress) -> None:
    """Draw what ticks, with Stop beside it; the page is drawn again when it has ended."""
    going_on = standing.going_on
    spent = None if going_on else spent_so_far(engine().service.store.evaluations, stored.id)

    def body() -> None:
        t = messages()
        job = evaluations.get((owner(), stored.id))
        progress = job.progress if job is not None else None
        now = standing_of(stored) if going_on else standing
        with st.container(key="run-bar", horizontal=True, vertical_alignment="center"):
            with guarded(t("nav.evaluate"), key="bar"):
                html = progress_view(progress, now, t, spent=spent)
                show_html(html, key="evaluation-progress")
            if now.going_on:
                stop_button(t, key="evaluate.stop", stop=_stop, of=stored.id)
        if now.going_on:
            latest = progress.latest if progress is not None else ()
            html = latest_view(latest, t)
            show_html(html, key="evaluation-latest", on_action=open_run)
        if going_on and not now.going_on:
            st.rerun()

    # One fragment, running or not: what is drawn stays where it is when it ends.
    draw_again(body, PERIOD if going_on else None)


def _draw_continuing(stored: StoredEvaluation, standing: Progress, t: Catalogue) -> None:
    """Draw why it ended, what is left, and the button that goes on."""
    spec = EvaluationSpec.model_validate(stored.spec)
    job = evaluations.get((owner(), stored.id))
    if job is not None:
        if job.error is not None:
            show_error(job.error, key="evaluation-error")
        elif (ended := ended_view(job.progress, job.error, spec, t)) is not None:
            show_html(ended, key="evaluation-ended")
    if standing.done >= standing.total:
        return
    probe = probe_size(spec, stored.tasks)
    if standing.done:
        # Where it takes long, it is shown when the page is drawn again.
        with suppress(NotYet):
            found = computed(forecast_of, ResultKey(stored.id, owner(), standing.done), at_once())
            show_html(forecast_view(found, t), key="evaluation-forecast")
    with st.expander(t("evaluate.limits"), key="evaluate.limits"):
        draw_limits(t, currencies_of(spec), scope=stored.id, start=spec.limits)
    with st.container(horizontal=True, key="evaluate-continue"):
        if standing.done < probe:
            st.button(
                t("evaluate.try"),
                key="evaluate.try",
                help=t("evaluate.try.help"),
                on_click=_carry_on,
                args=(stored.id, True),
            )
        st.button(
            t("evaluate.continue" if standing.done else "evaluate.run"),
            type="primary",
            key="evaluate.run",
            on_click=_carry_on,
            args=(stored.id, False),
        )


def carry_on(evaluation: str, *, probe: bool) -> None:
    """Work on an evaluation: all that is missing, or with `probe` its first items.

    Keys are those of this tab. Raises NotFoundError for one that is not this browser's.
    """
    stored = engine().service.store.evaluations.get(evaluation, owner())
    spec = EvaluationSpec.model_validate(stored.spec)
    most = probe_size(spec, stored.tasks) - stored.done if probe else None
    if stored.done >= stored.tasks or (most is not None and most <= 0):
        return
    start_evaluation(
        evaluation,
        owner=owner(),
        keys=_keys(spec),
        at_once=at_once(),
        most=most,
    )


def _carry_on(evaluation: str, probe: bool) -> None:
    with remembered("evaluate"):
        store = engine().service.store.evaluations
        spec = EvaluationSpec.model_validate(store.get(evaluation, owner()).spec)
        limits = chosen_limits(scope=evaluation, start=spec.limits)
        change_limits(store, evaluation, owner(), limits)
        carry_on(evaluation, probe=probe)


def _keys(spec: EvaluationSpec) -> dict[str, str]:
    """Return the keys of this tab that open the models and searches of all systems.

    Raises InvalidInputError where one of them would go to two services.
    """
    keys: dict[str, str] = {}
    for system in spec.systems:
        evidence = system.evidence or EvidenceSpec(source="given")
        keys |= keys_for(RunSpec(question="", methods=(), models=system.models, evidence=evidence))
    models = [one for system in spec.systems for one in system.models.values()]
    refuse_shared_names(one for one in models if one.name in keys)
    return keys


def _stop(evaluation: str) -> None:
    with remembered("evaluate"):
        job = evaluations.get((owner(), evaluation))
        if job is not None:
            job.stop()
            job.wait()
    redraw_whole()
