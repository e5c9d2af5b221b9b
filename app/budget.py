"""What a visitor's runs may take: limits kept in the session, and the budget that a run gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from app.engine import engine
from app.profiles import known_models
from app.session import owner
from components.messages import Catalogue
from pipelines.engine.budget import RunBudget, budget_for
from pipelines.engine.estimate import Basis, basis_for, estimate, size_in
from pipelines.engine.text_size import TextSize
from pipelines.models.providers import Currency
from pipelines.run.ledger import LIMIT_NAMES, LimitName, RunLimits
from pipelines.run.spec import ModelSpec, RunSpec

_WHOLE = ("calls", "tokens")
_LEAST: Mapping[str, float] = {"calls": 1, "tokens": 1, "seconds": 1.0, "money": 0.0}
_STEP: Mapping[str, float] = {"calls": 1, "tokens": 100, "seconds": 10.0, "money": 0.01}
_KEPT: Any = {"persist_state": "session"}
_CURRENCY = "limit.currency"


def basis(main: ModelSpec, *, size: TextSize | None = None) -> Basis:
    """Return what is known of runs of the model `main`, this visitor's own among them.

    `size` is that of a text that is to be checked, None for a question.
    """
    past = engine().service.earlier.of(owner(), main, checks=size is not None)
    return basis_for(main, past, size=size)


def session_limits() -> RunLimits:
    """Return what every run of this session may take."""
    found = {name: st.session_state.get(_key(name)) for name in LIMIT_NAMES}
    return RunLimits(**found, currency=st.session_state.get(_CURRENCY) or "USD")


def set_limits(limits: RunLimits) -> None:
    """Change them. Called from a callback."""
    for name in LIMIT_NAMES:
        st.session_state[_key(name)] = getattr(limits, name)


def draw_session_limits(t: Catalogue) -> None:
    """Draw the controls of `session_limits`, in one row."""
    st.caption(t("limit.note"))
    columns = st.columns(len(LIMIT_NAMES) + 1, gap="medium", vertical_alignment="bottom")
    for column, name in zip(columns, LIMIT_NAMES, strict=False):
        with column:
            st.number_input(
                t(f"limit.{name}"),
                min_value=int(_LEAST[name]) if name in _WHOLE else _LEAST[name],
                value=None,
                step=int(_STEP[name]) if name in _WHOLE else _STEP[name],
                format=None if name in _WHOLE else "%.6g",
                key=_key(name),
                placeholder=t("limit.none"),
                help=t(f"limit.{name}.help"),
                **_KEPT,
            )
    with columns[-1]:
        st.selectbox(t("limit.currency"), get_args(Currency), key=_CURRENCY, **_KEPT)


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


def _key(name: LimitName) -> str:
    return f"limit.{name}"
