"""A model judges the answers of an evaluation, and is held against labels of people."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from app.engine import engine
from app.forms import draw_field
from app.jobs import judgings, start_judging
from app.parts import (
    draw_again,
    draw_error,
    draw_unfolded,
    guarded,
    redraw_whole,
    remembered,
    show_error,
    show_html,
)
from app.profiles import known_models
from app.screens.evaluation_data import safe_name
from app.screens.setup import assumed_capabilities
from app.session import key_for, messages, owner
from components.elements import notice
from components.evaluation_judge import calibration_view, judging_view
from components.forms import BUDGET
from components.messages import Catalogue, integer
from pipelines.errors import failure
from pipelines.evaluation.judging.calibration import JudgeCalibration, calibrated, read_labels
from pipelines.evaluation.judging.prompts import checked_prompts, shipped_source
from pipelines.evaluation.judging.reading import graded_answers
from pipelines.evaluation.judging.spec import JudgeSpec
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.models.providers import ModelSpec, only_judges
from pipelines.store.judgements import StoredJudge
from pipelines.store.tables import to_json

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
        for one in engine().service.store.judgements.judges(evaluation, owner())
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
