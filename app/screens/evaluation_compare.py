"""Items one by one: of one system, of several, or beside those of another evaluation.

The items on which systems differ come first, and each answer leads to its run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app.engine import engine
from app.evaluated import Filter, ResultKey, comparison_of, computed, items_of, joined_of, scores_of
from app.parts import (
    Action,
    disambiguate,
    draw_unfolded,
    remembered,
    section_title,
    show_error,
    show_html,
    show_run,
)
from app.screens.evaluation_figures import metric_select
from app.screens.run_row import local_time
from app.session import owner
from components.elements import notice
from components.evaluation_compare import comparison_view, items_view
from components.messages import Catalogue, integer
from pipelines.errors import VeriscopeError
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.arrays import metric_names
from pipelines.evaluation.results.compare import ComparedItem, SystemComparison
from pipelines.evaluation.results.export_comparison import (
    comparison_csv,
    comparison_jsonl,
    comparison_latex,
    comparison_markdown,
)
from pipelines.evaluation.results.items import Wanted, filtered, finds_right
from pipelines.evaluation.results.scores import (
    HALLUCINATED,
    HALLUCINATION_SCORE,
    Evaluation,
    MetricInfo,
)

_PAGE = 10
"""Items on a page."""

_AT_FIRST = 2
_DETECTOR_VALUES = (HALLUCINATION_SCORE, HALLUCINATED)
_MOST_SYSTEMS = 6


def draw_items(key: ResultKey, spec: EvaluationSpec, part: Filter, t: Catalogue) -> None:
    """Draw the section of the page, below the table; raises NotYet while it is computed."""
    section_title(t("evaluate.compare"))
    fold = st.expander(t("evaluate.compare.other"), key="evaluate.compare.fold", on_change="rerun")
    draw_unfolded(fold, partial(_choose_other, key, spec, t))
    other = _other(key, spec, t)
    if isinstance(other, VeriscopeError):
        show_error(other, key="compare-refused")
        return
    found = computed(scores_of, key) if other is None else computed(joined_of, key, *other)
    names, metrics = list(found.systems), _metrics(found)
    if not metrics:
        return
    # Systems of two evaluations are named in the language of the page.
    labels = (other[0].evaluation, *other[1]) if other else ()
    columns = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with columns[0]:
        systems = st.multiselect(
            t("evaluate.compare.systems"),
            names,
            default=names[:_AT_FIRST] if other is None else _pair(names),
            key=".".join(["evaluate.compare", key.evaluation, *labels]),
            max_selections=_MOST_SYSTEMS,
            placeholder=t("compare.hint"),
        )
    with columns[1]:
        metric = metric_select(metrics, "evaluate.compare.metric", t)
    if not systems:
        st.caption(t("evaluate.compare.hint"))
        return
    info = found.metric(metric)
    if len(systems) == 1:
        items = computed(items_of, key, part, systems[0], metric, other)
    else:
        try:
            compared = computed(comparison_of, key, part, tuple(systems), metric, other)
        except VeriscopeError as error:
            show_error(error, key="compare-error")
            return
        items = compared.items
        show_html(comparison_view(compared, t), key="evaluation-comparison")
        _exports(key, compared, t)
    _draw_list(items, info, systems, f"{key} {part} {other} {metric}", t)


def _exports(key: ResultKey, compared: SystemComparison, t: Catalogue) -> None:
    """Offer the comparison as files that are made when they are asked for."""
    fold = st.expander(
        t("evaluate.compare.export"), key="evaluate.compare.export", on_change="rerun"
    )
    files: list[tuple[str, str, str, Callable[[SystemComparison], str]]] = [
        ("items_csv", "items.csv", "text/csv", comparison_csv),
        ("items_jsonl", "items.jsonl", "application/jsonl", comparison_jsonl),
        ("pairs_markdown", "pairs.md", "text/markdown", comparison_markdown),
        ("pairs_latex", "pairs.tex", "application/x-tex", comparison_latex),
    ]

    def draw() -> None:
        with st.container(horizontal=True, key="evaluate-compare-exports"):
            for kind, ending, mime, make in files:
                st.download_button(
                    t(f"evaluate.compare.export.{kind}"),
                    data=partial(make, compared),
                    file_name=f"veriscope-{key.evaluation[:8]}-comparison-{ending}",
                    mime=mime,
                    key=f"evaluate.compare.export.{kind}",
                    on_click="ignore",
                )

    draw_unfolded(fold, draw)


def _draw_list(
    items: Sequence[ComparedItem],
    info: MetricInfo,
    systems: Sequence[str],
    what: str,
    t: Catalogue,
) -> None:
    binary = finds_right(items, info)
    wanted = _wanted(systems, binary, t)
    chosen = filtered(items, wanted, info)
    start = _page(len(chosen), f"{what} {systems} {wanted}", t)
    html = items_view(chosen, t, binary=binary, start=start, count=_PAGE)
    show_html(html, key="evaluation-items", on_action=open_run)


def _wanted(systems: Sequence[str], binary: bool, t: Catalogue) -> Wanted:
    """Return which items are shown; a change takes effect at once."""
    options = ["all", "different"] if len(systems) > 1 else ["worst"]
    if binary:
        options += [f"wrong {system}" for system in systems]

    def words(option: str) -> str:
        kind, _, system = option.partition(" ")
        return t(f"evaluate.which.{kind}", system=system)

    columns = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with columns[0]:
        which = st.selectbox(
            t("evaluate.which"),
            options,
            key=f"evaluate.which.{'.'.join(options)}",
            format_func=words,
        )
    with columns[1]:
        text = st.text_input(
            t("evaluate.search"),
            key="evaluate.search",
            placeholder=t("evaluate.search.hint"),
            live="300ms",
        )
    kind, _, system = which.partition(" ")
    return Wanted(text=text or "", different=kind == "different", wrong_by=system)


def _choose_other(key: ResultKey, spec: EvaluationSpec, t: Catalogue) -> None:
    """Choose an evaluation to compare with; those of the same items come first."""
    listed = engine().service.store.evaluations.list(owner())
    known = [one for one in listed if one.done and one.id != key.evaluation]
    known.sort(key=lambda one: one.spec.get("data_hash") != spec.data_hash)
    names = disambiguate({one.id: f"{one.name} · {local_time(one)}" for one in known})
    if not names:
        st.caption(t("evaluate.compare.no_other"))
        return
    if st.session_state.get(_other_key(key)) not in (None, *names):
        st.session_state.pop(_other_key(key))
    st.selectbox(
        t("evaluate.compare.with"),
        list(names),
        index=None,
        key=_other_key(key),
        format_func=names.__getitem__,
        placeholder=t("evaluate.compare.nothing"),
        help=t("evaluate.compare.with.help"),
        persist_state="session",
    )
    st.toggle(
        t("evaluate.compare.same_ids"),
        key=f"evaluate.same_ids.{key.evaluation}",
        help=t("evaluate.compare.same_ids.help"),
        persist_state="session",
    )


def _other(
    key: ResultKey, spec: EvaluationSpec, t: Catalogue
) -> tuple[ResultKey, tuple[str, str], bool] | VeriscopeError | None:
    """Return the evaluation that is chosen, the labels of both, and whether equal ids are
    equal items.

    An error says why it cannot be compared; None where none is chosen.
    """
    chosen = st.session_state.get(_other_key(key))
    if not chosen:
        return None
    try:
        store = engine().service.store
        stored = store.evaluations.get(chosen, owner())
        judged = store.judgements.stamp(chosen, owner())
    except VeriscopeError as error:
        return error
    same_ids = bool(st.session_state.get(f"evaluate.same_ids.{key.evaluation}"))
    other = EvaluationSpec.model_validate(stored.spec)
    if other.data_hash != spec.data_hash and not same_ids:
        said = t("evaluate.compare.other_data", this=spec.data, other=other.data)
        show_html(notice(said, "other-data"), key="other-data")
        return None
    labels = t("evaluate.compare.this"), t("evaluate.compare.that")
    return ResultKey(chosen, owner(), stored.done, judged), labels, same_ids


def _other_key(key: ResultKey) -> str:
    return f"evaluate.other.{key.evaluation}"


def _pair(names: Sequence[str]) -> list[str]:
    """Return the first system of each of two evaluations."""
    label = names[0].partition(":")[0]
    return [names[0], next(name for name in names if name.partition(":")[0] != label)]


def _metrics(found: Evaluation) -> list[str]:
    return [name for name in metric_names(found) if name not in _DETECTOR_VALUES]


def _page(count: int, what: str, t: Catalogue) -> int:
    """Return the first item of the page that is looked at; a list of its own begins at its
    beginning.
    """
    pages = max(1, -(-count // _PAGE))
    if st.session_state.get("_evaluate.paged") != what:
        st.session_state["_evaluate.paged"] = what
        st.session_state["evaluate.page"] = 1
    if pages == 1:
        return 0
    st.session_state["evaluate.page"] = min(st.session_state.get("evaluate.page") or 1, pages)
    page = st.number_input(
        t("evaluate.page", count=integer(pages)),
        min_value=1,
        max_value=pages,
        key="evaluate.page",
        width=200,
    )
    return (int(page) - 1) * _PAGE


def open_run(action: Action) -> None:
    """Open a run, as a button that was used asks."""
    if action["action"] == "open_run" and action["value"]:
        with remembered("evaluate"):
            show_run(action["value"])
