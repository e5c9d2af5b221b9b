"""What a question is asked of: methods, model, evidence and settings."""

from __future__ import annotations

import streamlit as st

from app.choices import (
    EVIDENCE_MODES,
    EVIDENCE_SOURCES,
    SETTINGS,
    USE_HISTORY,
    chosen_methods,
    chosen_models,
    known_models,
    model_select,
    unmet_need,
)
from app.engine import engine
from app.parts import in_rows
from app.session import keep_key, key_for
from app.settings_form import draw_settings
from components.messages import Catalogue
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.retrieval.web import needs_key
from pipelines.run.spec import ROLES

__all__ = ["draw_setup", "fold_setup"]

_SETUP = "setup"
_SETTINGS = "settings"


def fold_setup() -> None:
    """From a callback: fold the controls away, so that the run is in view."""
    for name in (_SETUP, _SETTINGS):
        st.session_state[name] = False


def draw_setup(t: Catalogue, *, expanded: bool) -> None:
    """The controls; `expanded` is how they are found at first."""
    if _SETUP not in st.session_state:
        st.session_state[_SETUP] = expanded
    with st.expander(t("ask.setup"), key=_SETUP, on_change="rerun"):
        _methods(t)
        _sources(t)
    with st.expander(t("ask.settings"), key=_SETTINGS, on_change="rerun"):
        titles = [t(f"method.{name}.title") for name in METHODS]
        *tabs, run_tab = st.tabs([*titles, t("setting.run.title")])
        for tab, (name, method) in zip(tabs, METHODS.items(), strict=True):
            with tab, st.container(key=f"settings-{name}"):
                draw_settings(method, t, scope=SETTINGS)
                if name == "slm":
                    st.toggle(
                        t("setting.slm.use_history"),
                        key=USE_HISTORY,
                        help=t("setting.slm.use_history.help"),
                        persist_state="session",
                    )
        with run_tab:
            st.toggle(
                t("setting.run.reproducible"),
                key="run.reproducible",
                help=t("setting.run.reproducible.help"),
                persist_state="session",
            )
            st.number_input(
                t("setting.run.seed"),
                min_value=0,
                max_value=2**31 - 1,
                value=0,
                key="run.seed",
                help=t("setting.run.seed.help"),
                persist_state="session",
                width=160,
            )


def _methods(t: Catalogue) -> None:
    models = chosen_models()
    for column, name in in_rows(list(METHODS), 4):
        need = unmet_need(METHODS[name], models)
        with column, st.container(key=f"choice-{name}"):
            st.checkbox(
                t(f"method.{name}.title"),
                value=name in standard_methods(),
                key=f"method.{name}",
                disabled=need is not None,
                persist_state="session",
            )
            st.caption(t(f"need.{need.reason}") if need else t(f"method.{name}.summary"))


def _sources(t: Catalogue) -> None:
    main, others, library, search = st.columns(4, gap="medium", vertical_alignment="bottom")
    with main:
        model_select(t("ask.model"), "main", known_models(), t)
    used = {role for name in chosen_methods() for role in METHODS[name].roles}
    roles = [role for role in ROLES if role in used]
    if roles:
        # Second opinions, for the methods that are ticked and make use of them.
        with others, st.popover(t("models.others"), key="other-models", width="stretch"):
            for role in roles:
                model_select(t(f"role.{role}").capitalize(), role, known_models(), t)
    web = [source for source in EVIDENCE_SOURCES if source != "library"]
    with library:
        place = st.selectbox(
            t("ask.evidence"),
            [*engine().service.libraries.names, *web],
            key="evidence.library",
            format_func=lambda name: _place(name, t),
            persist_state="session",
        )
    with search:
        st.selectbox(
            t("ask.search"),
            EVIDENCE_MODES,
            index=EVIDENCE_MODES.index("hybrid"),
            key="evidence.mode",
            format_func=lambda mode: t(f"evidence.mode.{mode}"),
            disabled=place in web,
            persist_state="session",
        )
    if place in web:
        _web_search(place, t)
    models = chosen_models()
    for role in roles:
        if models.get(role) == models["main"]:
            st.caption(t("models.same", role=t(f"role.{role}")))


def _place(name: str, t: Catalogue) -> str:
    if name in EVIDENCE_SOURCES:
        return t("evidence.web", name=t(f"evidence.web.{name}"))
    return t(f"library.{name}") if t.has(f"library.{name}") else name


def _web_search(name: str, t: Catalogue) -> None:
    st.caption(t("evidence.web.note"))
    if needs_key(name):
        st.text_input(
            t("evidence.key", name=t(f"evidence.web.{name}")),
            type="password",
            key=f"search-key.{name}",
            help=t("evidence.key.note"),
            autocomplete="off",
            placeholder=t("models.key.kept") if key_for(name) else None,
            on_change=_keep_search_key,
            args=(name,),
        )


def _keep_search_key(name: str) -> None:
    keep_key(name, st.session_state.pop(f"search-key.{name}", "") or "")
