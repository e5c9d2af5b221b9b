"""What a visitor's runs may take: limits kept in the session, and the plan of a run within them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import streamlit as st

from app.engine import engine
from app.forms import draw_field, read_form
from app.profiles import known_models
from app.session import owner
from components.forms import RUN_LIMITS
from components.messages import Catalogue
from pipelines.engine.asking import RunPlan, RunRequest, make_plan, plan_run, within_limits
from pipelines.engine.estimate import Basis, basis_for
from pipelines.engine.text_size import TextSize
from pipelines.run.ledger import LIMIT_NAMES, RunLimits
from pipelines.run.spec import ModelSpec, RunSpec

_SCOPE = "limit"


def basis(main: ModelSpec, *, size: TextSize | None = None) -> Basis:
    """Return what is known of runs of the model `main`, this visitor's own among them.

    `size` is that of a text that is to be checked, None for a question.
    """
    past = engine().service.earlier.of(owner(), main, checks=size is not None)
    return basis_for(main, past, size=size)


def session_limits() -> RunLimits:
    """Return what every run of this session may take."""
    return read_form(RUN_LIMITS, _SCOPE)


def set_limits(limits: RunLimits) -> None:
    """Change them. Called from a callback."""
    for name in LIMIT_NAMES:
        st.session_state[f"{_SCOPE}.{name}"] = getattr(limits, name)


def draw_session_limits(t: Catalogue) -> None:
    """Draw the controls of `session_limits`, in one row."""
    st.caption(t("limit.note"))
    fields = RUN_LIMITS.fields.values()
    columns = st.columns(len(fields), gap="medium", vertical_alignment="bottom")
    for column, field in zip(columns, fields, strict=True):
        with column:
            draw_field(field, t, f"{_SCOPE}.{field.name}")


def planned(asked: RunRequest | RunSpec) -> RunPlan:
    """Return the plan of what is asked for, or of what was run and is run again, within the limits
    of this session.

    Illustrations ask no model, so that nothing is limited. Raises InvalidInputError with what to
    change, also where the limit of money cannot be kept.
    """
    past = partial(engine().service.earlier.of, owner())
    if isinstance(asked, RunRequest):
        return plan_run(replace(asked, limits=session_limits()), past)
    plan = make_plan(asked)
    if any(model.kind == "scripted" for model in asked.models.values()):
        return plan
    return within_limits(plan, session_limits(), _priced(asked.models), past)


def _priced(models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """Return the models of a run, which holds no prices, with the prices that are saved
    for them.
    """
    known = known_models()
    return {
        role: spec.model_copy(update={"price": saved.price})
        if (saved := known.get(spec.name)) is not None and saved.base_url == spec.base_url
        else spec
        for role, spec in models.items()
    }
