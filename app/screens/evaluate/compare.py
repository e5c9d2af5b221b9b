"""Items one by one: of one system, of several, or beside those of another evaluation.

The items on which systems differ come first, and each answer leads to its run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from app.engine import engine
from app.forms import draw_field
from app.jobs import judgings, start_judging
from app.page import (
    Action,
    disambiguate,
    draw_again,
    draw_error,
    draw_unfolded,
    guarded,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
    show_run,
)
from app.results import Filter, ResultKey, comparison_of, computed, items_of, joined_of, scores_of
from app.screens.evaluate.data import safe_name
from app.screens.evaluate.figures import metric_select
from app.screens.runs import local_time
from app.screens.setup import assumed_capabilities
from app.session import key_for, known_models, messages, owner
from components.base.elements import notice
from components.base.words import Catalogue, integer, system_title
from components.evaluate.compare import comparison_view, items_view
from components.evaluate.progress import calibration_view, judging_view
from components.forms import BUDGET
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.judging.calibration import JudgeCalibration, calibrated, read_labels
from pipelines.evaluation.judging.prompts import checked_prompts, shipped_source
from pipelines.evaluation.judging.reading import graded_answers, judges_of_answers
from pipelines.evaluation.judging.spec import JudgeSpec
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.evaluation.results.compare import (
    ComparedItem,
    SystemComparison,
    Wanted,
    filtered,
    finds_right,
)
from pipelines.evaluation.results.export import (
    comparison_csv,
    comparison_jsonl,
    comparison_latex,
    comparison_markdown,
)
from pipelines.evaluation.results.scores import (
    DETECTOR_VALUES,
    Evaluation,
    MetricInfo,
)
from pipelines.models.providers import ModelSpec, only_judges
from pipelines.store.evaluations import StoredJudge
from pipelines.store.tables import to_json

_PAGE = 5
"""Items on a page: two screens of them."""

_AT_FIRST = 2
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
            format_func=partial(system_title, t=t),
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
        return t(f"evaluate.which.{kind}", system=system_title(system, t))

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
    return [name for name in found.metric_names() if name not in DETECTOR_VALUES]


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
    page = st.pagination(pages, key="evaluate.page", width="stretch")
    return (page - 1) * _PAGE


def open_run(action: Action) -> None:
    """Open a run, as a button that was used asks."""
    if action["action"] == "open_run" and action["value"]:
        with remembered("evaluate"):
            show_run(action["value"])


# A model judges the answers of an evaluation, and is held against labels of people.

_PERIOD = 1.0
"""Seconds between two looks at what is being judged."""

_AT_ONCE = 4
_ERRORS = "evaluation-judge"
_MOST_MEGABYTES = 16


def draw_judge(evaluation: str, spec: EvaluationSpec, answers: int, t: Catalogue) -> None:
    """Draw the part of the page, folded away; `answers` may be judged."""
    fold = st.expander(t("evaluate.judge.title"), key="evaluate.judge", on_change="rerun")
    draw_unfolded(fold, partial(_draw, evaluation, spec, answers, t))


def _draw(evaluation: str, spec: EvaluationSpec, answers: int, t: Catalogue) -> None:
    st.caption(t("evaluate.judge.note"))
    draw_error(_ERRORS)
    judges = _judges()
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        name = st.selectbox(
            t("evaluate.judge.model"),
            list(judges),
            key="evaluate.judge.model",
            help=t("evaluate.judge.model.help"),
        )
    with right:
        told = t("evaluate.judge.calls.help")
        draw_field(BUDGET["calls"], t, "evaluate.judge.calls", help=told, persist_state=None)
    st.file_uploader(
        t("evaluate.judge.prompt"),
        type=["toml"],
        key="evaluate.judge.prompt",
        help=t("evaluate.judge.prompt.help"),
        max_upload_size=1,
    )
    if JudgeSpec(model=judges[name]).weak:
        show_html(notice(t("evaluate.judge.weak"), "weak-judge"), key="weak-judge")
    _draw_progress(evaluation, name, answers, t)
    _draw_labels(evaluation, spec, t)


def _judges() -> Mapping[str, ModelSpec]:
    """Return models that can judge an answer: those that write, and those that were made
    to judge.
    """
    return {
        name: spec
        for name, spec in known_models().items()
        if only_judges(spec) or assumed_capabilities(spec).writes
    }


def _draw_progress(evaluation: str, name: str, answers: int, t: Catalogue) -> None:
    job = judgings.get((owner(), evaluation))
    going_on = job is not None and job.going_on
    if not going_on:
        st.caption(t("evaluate.judge.size", count=integer(answers)))
        st.button(
            t("evaluate.judge.begin"),
            key="evaluate.judge.begin",
            on_click=_begin,
            args=(evaluation, name),
        )
        if job is not None and job.error is not None:
            show_error(job.error, key="judging-error")
        elif job is not None:
            show_html(judging_view(job.progress, t, going_on=False), key="judging")
        return

    def body() -> None:
        t = messages()
        job = judgings.get((owner(), evaluation))
        if job is None or not job.going_on:
            st.rerun()
        with guarded(t("evaluate.judge.title"), key="judging"):
            show_html(judging_view(job.progress, t, going_on=True), key="judging")
        st.button(t("action.stop"), key="evaluate.judge.stop", on_click=_stop, args=(evaluation,))

    draw_again(body, _PERIOD)


def _begin(evaluation: str, name: str) -> None:
    with remembered(_ERRORS):
        model = _judges()[name]
        source, prompt_name = _prompt()
        start_judging(
            evaluation,
            JudgeSpec(model=model, prompt=source, prompt_name=prompt_name),
            owner=owner(),
            key=key_for(model),
            budget=Budget(calls=st.session_state.get("evaluate.judge.calls")),
            at_once=_AT_ONCE,
        )


def _prompt() -> tuple[str, str]:
    """Return the prompt that was given, checked, and its name; else the one that ships."""
    upload: Any = st.session_state.get("evaluate.judge.prompt")
    if upload is None:
        return shipped_source(), "answer_judge"
    name = safe_name(upload.name)
    try:
        source = upload.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise failure("judging.no_utf8", file=name) from None
    checked_prompts(source, name)
    return source, name


def _stop(evaluation: str) -> None:
    with remembered(_ERRORS):
        job = judgings.get((owner(), evaluation))
        if job is not None:
            job.stop()
            job.wait()
    redraw_whole()


def _draw_labels(evaluation: str, spec: EvaluationSpec, t: Catalogue) -> None:
    """Draw labels of people for a judge that judged something, and what they said of each judge."""
    known = {
        JudgeSpec.model_validate(one.spec).title: one
        for one in judges_of_answers(engine().service.store.judgements.judges(evaluation, owner()))
    }
    if not known:
        return
    left, right = st.columns(2, gap="medium")
    with left:
        chosen = st.selectbox(
            t("evaluate.judge.against"), list(known), key="evaluate.judge.against"
        )
    with right:
        st.file_uploader(
            t("evaluate.judge.labels"),
            type=["csv", "tsv", "jsonl", "json"],
            key="evaluate.judge.labels",
            help=t("evaluate.judge.labels.help"),
            max_upload_size=_MOST_MEGABYTES,
        )
    st.button(
        t("evaluate.judge.compare"),
        key="evaluate.judge.compare",
        disabled=st.session_state.get("evaluate.judge.labels") is None,
        on_click=_compare,
        args=(evaluation, spec, known[chosen]),
    )
    for title, one in known.items():
        if one.calibration:
            found = JudgeCalibration.model_validate(one.calibration)
            show_html(calibration_view(title, found, t), key=f"calibration-{one.judge[:12]}")


def _compare(evaluation: str, spec: EvaluationSpec, judge: StoredJudge) -> None:
    upload: Any = st.session_state.get("evaluate.judge.labels")
    if upload is None:
        return
    with remembered(_ERRORS):
        with TemporaryDirectory() as folder:
            path = Path(folder) / safe_name(upload.name)
            path.write_bytes(upload.getvalue())
            labels = read_labels(path)
        store = engine().service.store
        systems = [one.name for one in spec.systems]
        graded = graded_answers(store.evaluations, evaluation, owner(), judge.judge, systems)
        found = calibrated(graded, labels)
        store.judgements.calibrate(evaluation, owner(), judge.judge, to_json(found))
