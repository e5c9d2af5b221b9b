"""How fast an evaluation goes and where it stops: controls on the form and on its own page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.forms import draw_field, read_form
from components.forms import BUDGET
from components.messages import Catalogue
from pipelines.evaluation.plan import Budget

MOST_AT_ONCE = 16
_AT_ONCE = 2
_KEPT: Any = {"persist_state": "session"}


def at_once() -> int:
    """Return how many answers are worked on at a time."""
    return int(st.session_state.get("evaluate.at_once") or _AT_ONCE)


def draw_limits(
    t: Catalogue, currencies: Sequence[str], *, scope: str = "", start: Budget | None = None
) -> None:
    """Draw the controls; `scope` tells those of one evaluation, which begin with `start`.

    `currencies` are those of the models' prices: without any, or with several, there can be no
    limit of money.
    """
    columns = st.columns(len(BUDGET.fields) + 1, gap="medium", vertical_alignment="bottom")
    with columns[0]:
        st.number_input(
            t("evaluate.at_once"),
            min_value=1,
            max_value=MOST_AT_ONCE,
            value=_AT_ONCE,
            key="evaluate.at_once",
            help=t("evaluate.at_once.help"),
            **_KEPT,
        )
    one = currencies[0] if len(currencies) == 1 else None
    for column, (name, field) in zip(columns[1:], BUDGET.fields.items(), strict=True):
        key, known = f"{_place(scope)}.{name}", getattr(start, name) if start else None
        look: dict[str, Any] = {}
        if name == "money" and one is not None:
            look["label"] = t("evaluate.most.money_in", currency=one)
        elif name == "money" and known is None:
            look["disabled"] = True
            if st.session_state.get(key) is not None:
                # Models with a price were chosen when it was set.
                st.session_state[key] = None
        with column:
            draw_field(field, t, key, known, **look)
    if one is None:
        st.caption(t("evaluate.most.several" if currencies else "evaluate.most.no_price"))


def chosen_limits(*, scope: str = "", start: Budget | None = None) -> Budget:
    """Return what the controls say; where they were never drawn, `start`."""
    return read_form(BUDGET, _place(scope), start)


def _place(scope: str) -> str:
    return f"evaluate.{scope}.most" if scope else "evaluate.most"
