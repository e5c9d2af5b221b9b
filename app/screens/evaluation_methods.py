"""Choosing what is evaluated: what is done with the items, the methods, and their settings.

A method can stand in an evaluation several times, each time with settings of its own: "drad" has
those of the Ask page, "drad 2" begins with the method's defaults.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import streamlit as st

from app.parts import choose_one, in_rows, show_html
from app.screens.setup import (
    chosen_models,
    draw_method_settings,
    method_settings,
    unmet_need,
)
from components.elements import notice
from components.evaluation_state import metrics_view
from components.markup import tag
from components.messages import Catalogue, named
from pipelines.evaluation.applicability import metric_reasons
from pipelines.evaluation.items import DataSet, Item, Offer
from pipelines.evaluation.plan import system_names
from pipelines.methods.registry import METHODS
from pipelines.models.providers import ModelSpec
from pipelines.run.spec import MethodSpec

Checks = Literal["questions", "texts"]

MOST_OF_ONE = 5
"""So many times a method can be chosen."""

_KEPT: Any = {"persist_state": "session"}
_FIRST_METHODS: dict[Checks, tuple[str, ...]] = {
    "questions": ("direct", "rag"),
    "texts": ("slm",),
}
"""What is ticked until somebody chooses: what takes the fewest calls."""


def choose_checks(data: DataSet, t: Catalogue) -> Checks:
    """Return what methods do with the items. What the data set does not allow is said below."""
    possible: list[Checks] = [
        *(["questions"] if "questions" in data.offers else []),
        *(["texts"] if "texts" in data.offers else []),
    ]
    chosen = choose_one(
        t("evaluate.checks"),
        possible,
        f"evaluate.checks.{'.'.join(possible)}",
        lambda name: t(f"evaluate.checks.{name}"),
        help=t("evaluate.checks.help"),
        **_KEPT,
    )
    for other in ("questions", "texts"):
        if other not in possible:
            what, reason = t(f"evaluate.checks.{other}"), t(f"evaluate.lacks.{other}")
            st.caption(t("evaluate.checks.not", what=what, reason=reason))
    return chosen


def choose_methods(checks: Checks, t: Catalogue) -> list[str]:
    """Return the methods that are ticked; one that does not apply says why."""
    models = chosen_models()
    chosen: list[str] = []
    st.html(tag("h3", t("evaluate.methods"), class_="workbench-part"))
    for column, name in in_rows(list(METHODS), 4):
        reason = _why_not(name, checks, models, t)
        with column, st.container(key=f"choice-evaluate-{name}"):
            ticked = st.checkbox(
                t(f"method.{name}.title"),
                value=name in _FIRST_METHODS[checks],
                key=f"evaluate.method.{checks}.{name}",
                disabled=reason is not None,
                **_KEPT,
            )
            st.caption(reason or t(f"method.{name}.summary"))
        if ticked and reason is None:
            chosen.append(name)
    return chosen


def _why_not(
    name: str, checks: Checks, models: Mapping[str, ModelSpec], t: Catalogue
) -> str | None:
    method = METHODS[name]
    if checks == "texts" and not method.judges:
        return t("evaluate.judges_nothing")
    need = unmet_need(method, models)
    return t(f"need.{need.reason}") if need else None


def draw_metrics(
    items: Sequence[Item], checks: Checks, methods: Collection[str], t: Catalogue
) -> None:
    """Draw the metrics of these items; one that does not apply says why."""
    offers: set[Offer] = {offer for item in items for offer in item.offers}
    reasons = metric_reasons(offers, checks, methods)
    show_html(metrics_view(reasons, t), key="evaluate-metrics")


def draw_system_settings(methods: Sequence[str], t: Catalogue) -> None:
    """Draw the settings of every system, each in a tab of its own."""
    systems = system_names(_repeated(methods))
    tabs = st.tabs([_title(system, method, t) for system, method in systems.items()])
    for tab, (system, method) in zip(tabs, systems.items(), strict=True):
        with tab, st.container(key=f"settings-evaluate-{system.replace(' ', '-')}"):
            if system == method:
                st.number_input(
                    t("evaluate.copies"),
                    min_value=1,
                    max_value=MOST_OF_ONE,
                    value=1,
                    key=_copies_key(method),
                    help=t("evaluate.copies.help", method=named("method", method, t)),
                    width=220,
                    **_KEPT,
                )
            draw_method_settings(method, t, scope=_scope(system, method))


def chosen_systems(methods: Sequence[str]) -> dict[str, MethodSpec]:
    """Return a map from system to its method with its settings: "drad", and "drad 2" where it
    stands twice.
    """
    return {
        system: MethodSpec(name=method, settings=method_settings(method, _scope(system, method)))
        for system, method in system_names(_repeated(methods)).items()
    }


def draw_problems(systems: Mapping[str, MethodSpec], t: Catalogue) -> bool:
    """Say what stands against beginning with these systems; True where something does.

    Systems with equal settings are no problem, but nobody wants them.
    """
    models = chosen_models()
    unable = False
    for system, chosen in systems.items():
        need = unmet_need(METHODS[chosen.name], models, chosen.settings)
        if need is not None:
            unable = True
            said = t("evaluate.system.unable", system=system, reason=t(f"need.{need.reason}"))
            show_html(notice(said, f"unable-{system}"), key=f"unable-{system}")
    known = list(systems.items())
    for place, (system, chosen) in enumerate(known):
        twin = next((name for name, other in known[:place] if other == chosen), None)
        if twin is not None:
            said = t("evaluate.system.twin", first=twin, second=system)
            show_html(notice(said, f"twin-{system}"), key=f"twin-{system}")
    return unable


def _repeated(methods: Sequence[str]) -> list[str]:
    return [name for name in methods for _ in range(_copies(name))]


def _copies(method: str) -> int:
    return int(st.session_state.get(_copies_key(method)) or 1)


def _copies_key(method: str) -> str:
    return f"evaluate.copies.{method}"


def _scope(system: str, method: str) -> str | None:
    """Return where the settings of a system are kept; those of the first one are the Ask page's."""
    return None if system == method else f"evaluate.{system}"


def _title(system: str, method: str, t: Catalogue) -> str:
    return named("method", method, t) + system.removeprefix(method)
