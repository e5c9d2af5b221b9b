"""The results of an evaluation: table, figures, systems compared item by item, and exports.

What is computed is kept by the number of answers, so that a page that is drawn again is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import cast

import streamlit as st

from app.engine import engine
from app.jobs import evaluations, start_evaluation
from app.page import (
    computing_shown,
    draw_again,
    draw_unfolded,
    guarded,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
    stop_button,
)
from app.results import (
    Filter,
    ResultKey,
    begin,
    computed,
    detection_of,
    forecast_of,
    overview_of,
    parts_ready,
    scores_of,
    table_of,
)
from app.screens.evaluate.compare import draw_items, draw_judge, open_run
from app.screens.evaluate.data import at_once, chosen_limits, draw_limits
from app.screens.evaluate.figures import draw_figures
from app.screens.evaluate.study import draw_study
from app.session import keys_for, messages, owner
from components.base.elements import notice
from components.base.html import tag
from components.base.words import Catalogue, integer
from components.evaluate.progress import (
    Progress,
    about_view,
    ended_view,
    forecast_view,
    latest_view,
    progress_view,
)
from components.evaluate.table import metric_title, ranking_view, results_view
from pipelines.base import Language
from pipelines.evaluation.beginning import change_limits, currencies_of, probe_size, spent_so_far
from pipelines.evaluation.plan import EvaluationSpec, code_version
from pipelines.evaluation.results.export import (
    inspect_jsonl,
    scores_csv,
    scores_jsonl,
    table_csv,
    table_latex,
    table_markdown,
)
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import ResultsTable
from pipelines.evaluation.results.workbook import EXCEL, evaluation_workbook
from pipelines.evaluation.runner import Overview
from pipelines.jobs import NotYet
from pipelines.models.providers import refuse_shared_names
from pipelines.run.events import EvidenceSpec, RunSpec
from pipelines.store.evaluations import StoredEvaluation

_FEWEST = 2
_TAGS = 200
"""A longer list of tags helps nobody."""


def draw_results(stored: StoredEvaluation, standing: Progress, t: Catalogue) -> None:
    """Draw all there is to see of what was answered."""
    if not standing.done and not standing.going_on:
        section_title(t("evaluate.table"))
        st.html(tag("p", t("evaluate.nothing_yet"), class_="workbench-empty"))
        return
    if standing.going_on:
        some = t("evaluate.results.of", count=integer(stored.done))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(some if stored.done else t("evaluate.results.later"))
            # What it draws is newer, because the page is drawn again.
            st.button(t("evaluate.results.update"), key="evaluate.update")
    if not stored.done:
        return
    with computing_shown("results"):
        judged = engine().service.store.judgements.stamp(stored.id, owner())
        key = ResultKey(stored.id, owner(), stored.done, judged)
        _draw(key, EvaluationSpec.model_validate(stored.spec), t)


def _draw(key: ResultKey, spec: EvaluationSpec, t: Catalogue) -> None:
    """Draw everything, as far as it is computed; raises NotYet for the rest."""
    first = computed(overview_of, key)
    part, chosen = _filter(first, t)
    table = computed(table_of, key, part, chosen)
    show_html(results_view(table, t, whole=bool(chosen)), key="evaluation-results")
    # The detectors of a part take longest to compute, so that they are drawn last, in their place.
    place = st.container(key="evaluate-detectors")
    fold = st.expander(t("evaluate.figures"), key="evaluate.figures", on_change="rerun")
    draw_unfolded(fold, partial(draw_figures, key, part, table, t))
    fold = st.expander(t("action.export"), key="evaluate.export", on_change="rerun")
    draw_unfolded(fold, partial(_exports, key, part, table, t))
    if "accuracy" in first.table.held:
        draw_judge(key.evaluation, spec, key.answered, t)
    draw_items(key, spec, part, t)
    draw_study(key, t)
    with place, computing_shown("detectors"):
        ranked = computed(detection_of, key, part)
        if ranked is not None:
            show_html(ranking_view(ranked, table, t), key="evaluation-detectors")
    begin(parts_ready, key)


def _filter(found: Overview, t: Catalogue) -> tuple[Filter, tuple[str, ...]]:
    """Return tags, language and metrics; no metrics are all."""
    known, languages = found.tags[:_TAGS], found.languages
    tags: list[str] = []
    language: str | None = None
    # What there is nothing to choose of is not shown.
    several = len(languages) >= _FEWEST
    widths = [*([2] if known else []), *([1] if several else []), 2]
    columns = iter(st.columns(widths, gap="medium", vertical_alignment="bottom"))
    if known:
        with next(columns):
            tags = st.multiselect(
                t("evaluate.filter.tags"),
                known,
                key="evaluate.filter.tags",
                placeholder=t("evaluate.filter.all"),
                help=t("evaluate.filter.tags.help"),
                # Items have to have all of them, which hardly any item has.
                select_all=False,
            )
    if several:
        with next(columns):
            language = st.selectbox(
                t("evaluate.filter.language"),
                languages,
                index=None,
                key="evaluate.filter.language",
                placeholder=t("evaluate.filter.all"),
                format_func=lambda code: t(f"language.{code}"),
            )
    with next(columns):
        metrics = st.multiselect(
            t("evaluate.filter.metrics"),
            found.table.held,
            key="evaluate.filter.metrics",
            format_func=lambda name: metric_title(name, t),
            placeholder=t("evaluate.filter.all"),
        )
    return Filter(tuple(tags), cast("Language | None", language)), tuple(metrics)


def _exports(key: ResultKey, part: Filter, table: ResultsTable, t: Catalogue) -> None:
    """Offer files that are made when they are asked for; their table has the detectors too."""
    with computing_shown("exports"):
        found = computed(scores_of, key)
        ranked = computed(detection_of, key, part)
        whole = table.model_copy(update={"detection": ranked})
        _download_buttons(key.evaluation[:8], found, whole, t)


def _download_buttons(name: str, found: Evaluation, table: ResultsTable, t: Catalogue) -> None:
    files: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("xlsx", "results.xlsx", EXCEL, partial(evaluation_workbook, found)),
        ("table_csv", "table.csv", "text/csv", partial(table_csv, table)),
        ("table_markdown", "table.md", "text/markdown", partial(table_markdown, table)),
        ("table_latex", "table.tex", "application/x-tex", partial(table_latex, table)),
        ("scores_csv", "scores.csv", "text/csv", partial(scores_csv, found)),
        ("scores_jsonl", "scores.jsonl", "application/jsonl", partial(scores_jsonl, found)),
    ]
    with st.container(horizontal=True, key="evaluate-exports"):
        for kind, ending, mime, make in files:
            _download(t(f"evaluate.export.{kind}"), f"{name}-{ending}", mime, make, kind)
        for number, system in enumerate(found.systems):
            _download(
                t("evaluate.export.inspect", system=system),
                f"{name}-inspect-{number + 1}.jsonl",
                "application/jsonl",
                partial(inspect_jsonl, found, system),
                f"inspect-{number}",
            )
    st.caption(t("evaluate.export.help"))


def _download(label: str, name: str, mime: str, make: Callable[[], str | bytes], key: str) -> None:
    st.download_button(
        label,
        data=make,
        file_name=f"veriscope-{name}",
        mime=mime,
        key=f"evaluate.export.{key}",
        on_click="ignore",
    )


# One evaluation on its page: how far it is, its forecast, and to stop or continue it.

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
