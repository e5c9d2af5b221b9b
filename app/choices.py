"""What a run can be made of: models, libraries, methods, and what the visitor chose of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, get_args

import streamlit as st

from app.engine import engine
from app.session import owner
from app.settings_form import read_settings
from components.messages import Catalogue
from pipelines.engine.executor import used_models
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Method, Need
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.methods.slm.scale import history_of
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.run.defaults import default_models
from pipelines.run.spec import (
    BUILT_IN,
    JUDGES,
    ROLES,
    EvidenceMode,
    EvidenceSource,
    EvidenceSpec,
    MethodSpec,
    ModelSpec,
    RunSpec,
)
from pipelines.run.trace import Trace
from pipelines.text import detect_language

__all__ = [
    "EVIDENCE_MODES",
    "EVIDENCE_SOURCES",
    "USE_HISTORY",
    "assumed_capabilities",
    "chosen_methods",
    "chosen_models",
    "chosen_spec",
    "known_models",
    "model_select",
    "unmet_need",
]

EVIDENCE_MODES: tuple[EvidenceMode, ...] = get_args(EvidenceMode)
EVIDENCE_SOURCES: tuple[EvidenceSource, ...] = tuple(
    source for source in get_args(EvidenceSource) if source != "given"
)

SETTINGS = "ask"
"""Where the session keeps the settings of the next run."""

USE_HISTORY = "slm.use_history"
"""Whether judges are measured against their scores in this visitor's earlier runs."""


def known_models() -> dict[str, ModelSpec]:
    """The bundled models and those this visitor saved, by name."""
    saved = engine().service.store.models.list(owner())
    return {spec.name: spec for spec in (*BUILT_IN, *saved)}


def chosen_models() -> dict[str, ModelSpec]:
    """Role to model, for every role that was given one; "main" always is."""
    known = known_models()
    chosen = {role: known.get(_chosen_name(role) or "") for role in ROLES}
    models = {role: spec for role, spec in chosen.items() if spec is not None}
    return {"main": next(iter(known.values())), **models}


def _chosen_name(role: str) -> str | None:
    """The model of `role`; None for a role that is left open, or was emptied."""
    default = default_models().get(role)
    return st.session_state.get(f"model.{role}", default and default.name)


def model_select(label: str, role: str, models: Mapping[str, ModelSpec], t: Catalogue) -> None:
    """Lets a role be given to a model; every role but "main" may stay without one."""
    if role not in JUDGES:
        models = {name: spec for name, spec in models.items() if assumed_capabilities(spec).writes}
    place = f"model.{role}"
    if st.session_state.get(place) not in (None, *models):
        st.session_state.pop(place)
    if role != "main" and place not in st.session_state:
        # Not by `index`: a control that has one cannot be emptied.
        st.session_state[place] = _chosen_name(role)
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
    return known_capabilities(spec) or Capabilities()


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
        if st.session_state.get(f"method.{name}", name in standard_methods())
        and unmet_need(method, models) is None
    ]


def _settings(name: str, question: str) -> dict[str, Any]:
    settings = read_settings(METHODS[name], scope=SETTINGS)
    if name == "slm" and st.session_state.get(USE_HISTORY):
        earlier = history_of(_earlier_runs(), detect_language(question))
        settings["history"] = {judge: scale.model_dump() for judge, scale in earlier.items()}
    return settings


def _earlier_runs() -> Iterator[Trace]:
    """The visitor's latest runs of the SLM check, as far as they can still be read."""
    service = engine().service
    for run in service.store.list(owner(), limit=50):
        if "slm" in run.methods:
            with suppress(VeriscopeError):
                yield engine().call(service.load(run.id, owner=owner()))


def chosen_spec(question: str) -> RunSpec:
    """The run that the Ask page describes at the moment."""
    names = chosen_methods()
    place = st.session_state.get("evidence.library") or "sample"
    mode = st.session_state.get("evidence.mode") or "hybrid"
    return RunSpec(
        question=question,
        methods=tuple(MethodSpec(name=name, settings=_settings(name, question)) for name in names),
        models=used_models(names, chosen_models()),
        evidence=EvidenceSpec(source=place, mode=mode)
        if place in EVIDENCE_SOURCES
        else EvidenceSpec(library=place, mode=mode),
        seed=int(st.session_state.get("run.seed") or 0),
        reproducible=bool(st.session_state.get("run.reproducible")),
    )
