"""How fast an evaluation goes and where it stops: controls on the form and on its own page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from components.messages import Catalogue
from pipelines.evaluation.limits import LIMITS
from pipelines.evaluation.plan import Budget

MOST_AT_ONCE = 16
_AT_ONCE = 2
_WHOLE = ("calls", "tokens")
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
    columns = st.columns(len(LIMITS) + 1, gap="medium", vertical_alignment="bottom")
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
    for column, name in zip(columns[1:], LIMITS, strict=True):
        whole, key = name in _WHOLE, _key(scope, name)
        known = getattr(start, name) if start else None
        impossible = name == "money" and one is None and known is None
        money = t("evaluate.most.money", currency=one) if one else t("evaluate.most.any_money")
        if st.session_state.get(key) is not None and impossible:
            # Models with a price were chosen when it was set.
            st.session_state[key] = None
        with column:
            st.number_input(
                money if name == "money" else t(f"evaluate.most.{name}"),
                min_value=1 if whole else 0.01,
                value=max(1, known) if whole and known is not None else known,
                step=1 if whole else 0.5,
                key=key,
                placeholder=t("evaluate.most.none"),
                help=t("evaluate.most.help"),
                disabled=impossible,
                **_KEPT,
            )
    if one is None:
        st.caption(t("evaluate.most.several" if currencies else "evaluate.most.no_price"))


def chosen_limits(*, scope: str = "", start: Budget | None = None) -> Budget:
    """Return what the controls say; where they were never drawn, `start`."""
    known = (start or Budget()).model_dump()
    return Budget(**{name: st.session_state.get(_key(scope, name), known[name]) for name in LIMITS})


def _key(scope: str, name: str) -> str:
    return ".".join(filter(None, ["evaluate", scope, "most", name]))
