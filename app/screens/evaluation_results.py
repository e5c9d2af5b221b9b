"""The results of an evaluation: table, figures, systems compared item by item, and exports.

What is computed is kept by the number of answers, so that a page that is drawn again is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import streamlit as st

from app.computing import shown
from app.engine import engine
from app.evaluated import (
    Filter,
    ResultKey,
    begin,
    computed,
    detection_of,
    overview_of,
    parts_ready,
    scores_of,
    table_of,
)
from app.parts import (
    draw_unfolded,
    section_title,
    show_html,
)
from app.screens.evaluation_compare import draw_items
from app.screens.evaluation_figures import draw_figures
from app.screens.evaluation_judge import draw_judge
from app.screens.evaluation_study import draw_study
from app.session import owner
from components.evaluation_numbers import metric_title
from components.evaluation_state import Progress
from components.evaluation_table import ranking_view, results_view
from components.markup import tag
from components.messages import Catalogue, integer
from pipelines.evaluation.overview import Overview
from pipelines.evaluation.plan import EvaluationSpec
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
from pipelines.store.evaluations import StoredEvaluation
from pipelines.types import Language

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
    with shown("results"):
        judged = engine().service.store.judgements.stamp(stored.id, owner())
        key = ResultKey(stored.id, owner(), stored.done, judged)
        _draw(key, EvaluationSpec.model_validate(stored.spec), t)


def _draw(key: ResultKey, spec: EvaluationSpec, t: Catalogue) -> None:
    """Draw everything, as far as it is computed; raises NotYet for the rest."""
    first = computed(overview_of, key)
    part, chosen = _filter(first, t)
    table = computed(table_of, key, part, chosen)
    show_html(results_view(table, t), key="evaluation-results")
    # The detectors of a part take longest to compute, so that they are drawn last, in their place.
    place = st.container(key="evaluate-detectors")
    draw_figures(key, part, table, t)
    fold = st.expander(t("action.export"), key="evaluate.export", on_change="rerun")
    draw_unfolded(fold, partial(_exports, key, part, table, t))
    if "accuracy" in first.table.held:
        draw_judge(key.evaluation, spec, key.answered, t)
    draw_items(key, spec, part, t)
    draw_study(key, t)
    with place, shown("detectors"):
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
    with shown("exports"):
        found = computed(scores_of, key)
        ranked = computed(detection_of, key, part)
        whole = table.model_copy(update={"detection": ranked})
        _download_buttons(key.evaluation[:8], found, whole, t)


def _download_buttons(name: str, found: Evaluation, table: ResultsTable, t: Catalogue) -> None:
    files: list[tuple[str, str, str, Callable[[], str]]] = [
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


def _download(label: str, name: str, mime: str, make: Callable[[], str], key: str) -> None:
    st.download_button(
        label,
        data=make,
        file_name=f"veriscope-{name}",
        mime=mime,
        key=f"evaluate.export.{key}",
        on_click="ignore",
    )
