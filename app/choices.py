"""What a run can be made of: models, libraries, methods, and what the visitor chose of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import streamlit as st

from app.engine import engine
from app.session import owner
from app.settings_form import read_settings
from components.messages import Catalogue
from pipelines.methods import METHODS, Method, Need
from pipelines.models.base import Capabilities
from pipelines.run.spec import BUILT_IN, EvidenceMode, EvidenceSpec, MethodSpec, ModelSpec, RunSpec
from pipelines.types import Language

__all__ = [
    "EVIDENCE_MODES",
    "ROLES",
    "assumed_capabilities",
    "chosen_methods",
    "chosen_models",
    "chosen_spec",
    "examples",
    "known_models",
    "model_select",
    "unmet_need",
]

ROLES = ("main", "proxy")
"""The roles that a method of this installation gives to a model."""

EVIDENCE_MODES: tuple[EvidenceMode, ...] = get_args(EvidenceMode)

SETTINGS = "ask"
"""Where the session keeps the settings of the next run."""

_QUESTIONS = Path(__file__).parents[1] / "sample_data" / "questions.csv"
_EXAMPLES = {
    "en": ("en-001", "en-037", "en-016", "en-018", "en-027", "en-095"),
    "zh": ("zh-001", "zh-010", "zh-012", "zh-005", "zh-002", "zh-049"),
}


@cache
def examples(language: Language) -> tuple[str, ...]:
    """A handful of the sample questions in `language`."""
    with _QUESTIONS.open(encoding="utf-8", newline="") as file:
        questions = {row["id"]: row["question"] for row in csv.DictReader(file)}
    return tuple(questions[name] for name in _EXAMPLES[language])


def known_models() -> dict[str, ModelSpec]:
    """The models that come with the app and those this visitor saved, by name."""
    saved = engine().service.store.models.list(owner())
    return {spec.name: spec for spec in (*BUILT_IN, *saved)}


def chosen_models() -> dict[str, ModelSpec]:
    """Role to model, for every role that was given one; "main" always is."""
    known = known_models()
    chosen = {role: known.get(st.session_state.get(f"model.{role}") or "") for role in ROLES}
    models = {role: spec for role, spec in chosen.items() if spec is not None}
    return {"main": next(iter(known.values())), **models}


def model_select(label: str, role: str, models: Mapping[str, ModelSpec], t: Catalogue) -> None:
    """Lets a role be given to a model; every role but "main" may stay without one."""
    place = f"model.{role}"
    if st.session_state.get(place) not in models:
        st.session_state.pop(place, None)
    st.selectbox(
        label,
        list(models),
        index=0 if role == "main" else None,
        key=place,
        placeholder=t("models.nobody"),
        help=t(f"models.role.{role}"),
        persist_state="session",
    )


def assumed_capabilities(spec: ModelSpec) -> Capabilities:
    """What a model can probably do, before it is loaded: for what is greyed out, not for a run."""
    here = spec.kind in ("embedded", "local")
    usual = ("en",) if spec.kind == "embedded" else ("en", "zh")
    return Capabilities(
        languages=frozenset(spec.languages or usual),
        logprobs=here or spec.top_logprobs is None or spec.top_logprobs > 0,
        top_logprobs=spec.top_logprobs,
        scores=spec.kind == "local" and not spec.model.lower().endswith(".gguf"),
    )


def unmet_need(method: Method[Any], models: Mapping[str, ModelSpec]) -> Need | None:
    """The first thing the method lacks with these models and its chosen settings."""
    settings = method.settings(read_settings(method, scope=SETTINGS))
    capabilities = {role: assumed_capabilities(spec) for role, spec in models.items()}
    needs = method.needs(settings)
    return next((n for n in needs if n.unmet(capabilities, has_evidence=True)), None)


def chosen_methods() -> list[str]:
    """The methods that are ticked and can run, in the order they are listed."""
    models = chosen_models()
    return [
        name
        for name, method in METHODS.items()
        if st.session_state.get(f"method.{name}", True) and unmet_need(method, models) is None
    ]


def chosen_spec(question: str) -> RunSpec:
    """The run that the Ask page describes at the moment."""
    methods = tuple(
        MethodSpec(name=name, settings=read_settings(METHODS[name], scope=SETTINGS))
        for name in chosen_methods()
    )
    models = chosen_models()
    if not any(method.name == "drad" for method in methods):
        models.pop("proxy", None)
    return RunSpec(
        question=question,
        methods=methods,
        models=models,
        evidence=EvidenceSpec(
            library=st.session_state.get("evidence.library") or "sample",
            mode=st.session_state.get("evidence.mode") or "hybrid",
        ),
        seed=int(st.session_state.get("run.seed") or 0),
        reproducible=bool(st.session_state.get("run.reproducible")),
    )
