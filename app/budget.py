"""What a visitor's runs may take: limits kept in the session, and the budget that a run gets."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.engine import engine
from app.forms import draw_field, read_form
from app.profiles import known_models
from app.session import owner
from components.forms import RUN_LIMITS
from components.messages import Catalogue
from pipelines.engine.budget import RunBudget, budget_for
from pipelines.engine.estimate import Basis, basis_for, estimate, size_in
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


def budget_of(spec: RunSpec) -> RunBudget:
    """Return the budget of a run of this session.

    Illustrations ask no model, so that nothing is limited. Raises InvalidInputError where the
    limit of money cannot be kept.
    """
    if any(model.kind == "scripted" for model in spec.models.values()):
        return RunBudget()
    models = _priced(spec.models)
    known = basis(models["main"], size=size_in(spec))
    expected = estimate((one.name for one in spec.methods), models, known)
    return budget_for(session_limits(), models, expected)


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
