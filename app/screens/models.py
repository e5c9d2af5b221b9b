"""The Models page: which models there are, what they can do, and which roles they have."""

from __future__ import annotations

import streamlit as st

from app import session
from app.choices import assumed_capabilities, known_models, model_select
from app.engine import engine
from app.parts import page_title, remember_error, section_title, show_error, take_error
from app.probing import Check, begin_check, current_check, forget_check
from app.session import messages, owner, theme
from app.view_component import show_html
from components.messages import Catalogue
from components.models import (
    judge_report,
    kind_label,
    model_facts,
    probe_table,
    reliability_figure,
)
from components.page import loading_note
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.models.providers import BUILT_IN, PROVIDERS, ModelSpec, provider_of
from pipelines.run.spec import ROLES

_BUILT_IN = frozenset(spec.name for spec in BUILT_IN)
_FIELDS = ("name", "model", "address", "key")


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("models.title"), t("models.note"))
    models = known_models()
    section_title(t("models.roles"))
    for start in range(0, len(ROLES), 3):
        for column, role in zip(st.columns(3), ROLES[start : start + 3], strict=True):
            with column:
                model_select(t(f"role.{role}").capitalize(), role, models, t)
    check = current_check()
    section_title(t("models.known"))
    for spec in models.values():
        _model(spec, check, t)
    section_title(t("models.add"))
    _add(check, t)


def _model(spec: ModelSpec, check: Check | None, t: Catalogue) -> None:
    with st.container(border=True, key=f"card-model-{_slug(spec)}"):
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"row-model-{_slug(spec)}"
        ):
            facts = model_facts(spec, assumed_capabilities(spec), t)
            show_html(facts, key=f"facts-{_slug(spec)}", language=t.language)
            if spec.kind in PROVIDERS and PROVIDERS[spec.kind].hosted:
                st.text_input(
                    t("models.key"),
                    type="password",
                    key=f"key-{_slug(spec)}",
                    placeholder=t("models.key.kept") if _key(spec) else t("models.key"),
                    label_visibility="collapsed",
                    autocomplete="off",
                    width=260,
                    on_change=_keep_key,
                    args=(spec,),
                )
            if assumed_capabilities(spec).writes:
                st.button(
                    t("models.probe"),
                    key=f"probe-{_slug(spec)}",
                    on_click=_check_saved,
                    args=(spec,),
                )
            if spec.name not in _BUILT_IN:
                with st.popover(t("action.delete"), key=f"delete-{_slug(spec)}"):
                    st.text(t("models.delete.sure", name=spec.name))
                    st.button(
                        t("action.delete"),
                        key=f"sure-{_slug(spec)}",
                        type="primary",
                        on_click=_delete,
                        args=(spec,),
                    )
        _measurements(spec, t)
        if check is not None and check.spec.name == spec.name and not _is_new(check):
            _findings(check, t)


def _measurements(spec: ModelSpec, t: Catalogue) -> None:
    """How reliable the model is as a judge, where it was measured."""
    report = judge_report(spec.name, t) if spec.name in _BUILT_IN else ""
    if not report:
        return
    with st.expander(t("judged.title")):
        show_html(report, key=f"judged-{_slug(spec)}", language=t.language)
        st.caption(t("judged.reliability"))
        st.plotly_chart(
            reliability_figure(spec.name, t, theme()),
            theme=None,
            key=f"reliability-{_slug(spec)}",
            config={"displayModeBar": False},
        )


def _findings(check: Check, t: Catalogue) -> None:
    if check.under_way:
        st.fragment(_wait, run_every=0.5)()
        return
    found = check.result()
    if isinstance(found, VeriscopeError):
        show_error(found, key="probe-error")
    else:
        show_html(probe_table(found, t), key="probe-table", language=t.language)


def _wait() -> None:
    check = current_check()
    if check is None or not check.under_way:
        st.rerun()
    t = messages()
    loading = [item for item in engine().service.loading() if item.name == check.spec.name]
    note = loading_note(loading, t)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(t("probe.under_way"))
        st.button(t("action.stop"), key="probe-stop", on_click=forget_check)
    if note:
        show_html(note, key="probe-loading", language=t.language)


def _add(check: Check | None, t: Catalogue) -> None:
    with st.container(border=True, key="card-new-model"):
        kind = st.segmented_control(
            t("models.kind"),
            _offered(),
            default=_offered()[0],
            required=True,
            format_func=lambda kind: kind_label(kind, t),
            key="new.kind",
        )
        address = provider_of(kind).placeholder
        if t.has(f"models.kind.{kind}.note"):
            st.caption(t(f"models.kind.{kind}.note"))
        left, right = st.columns(2)
        with left:
            st.text_input(t("models.name"), key="new.name", placeholder="Qwen3-4B")
            if address:
                st.text_input(t("models.address"), key="new.address", placeholder=address)
        with right:
            st.text_input(t.first(f"models.model.{kind}", "models.model"), key="new.model")
            if address:
                st.text_input(
                    t("models.key"),
                    key="new.key",
                    type="password",
                    autocomplete="off",
                    help=t("models.key.note"),
                )
        with st.container(horizontal=True):
            st.button(t("models.probe"), key="new-probe", on_click=_check_new)
            st.button(t("action.save"), key="new-save", type="primary", on_click=_save)
        problem = take_error("models")
        if problem is not None:
            show_error(problem, key="models-error")
        if check is not None and _is_new(check):
            _findings(check, t)


def _described() -> ModelSpec:
    """The model that the form describes; raises InvalidInputError for what is missing."""
    given = {name: (st.session_state.get(f"new.{name}") or "").strip() for name in _FIELDS}
    kind = st.session_state.get("new.kind") or _offered()[0]
    if not given["model"]:
        raise InvalidInputError(
            "The model was not named.",
            remedy="Write the id, folder or file under which it is to be found.",
        )
    if given["name"] in _BUILT_IN:
        raise InvalidInputError(
            "That is the name of a bundled model.", remedy="Choose another name."
        )
    return ModelSpec(
        kind=kind,
        name=given["name"] or given["model"],
        model=given["model"],
        base_url=(given["address"] or None) if provider_of(kind).hosted else None,
    )


def _offered() -> list[str]:
    """The kinds of models that can be added here."""
    return [kind for kind, provider in PROVIDERS.items() if provider.offered]


def _is_new(check: Check) -> bool:
    """Whether the check is of the model in the form, not of a saved one."""
    return st.session_state.get("_checked_new", False)


def _check_new() -> None:
    try:
        spec = _described()
    except VeriscopeError as error:
        remember_error("models", error)
        return
    remember_error("models", None)
    st.session_state["_checked_new"] = True
    begin_check(spec, st.session_state.get("new.key") or None)


def _check_saved(spec: ModelSpec) -> None:
    st.session_state["_checked_new"] = False
    begin_check(spec, _key(spec))


def _save() -> None:
    try:
        spec = _described()
        check = current_check()
        if check is not None and check.spec == spec and not check.under_way:
            found = check.result()
            if not isinstance(found, VeriscopeError):
                spec = spec.with_capabilities(found.capabilities)
        engine().service.store.models.save(owner(), spec)
    except VeriscopeError as error:
        remember_error("models", error)
        return
    remember_error("models", None)
    session.keep_key(spec, st.session_state.get("new.key") or "")
    forget_check()
    for name in _FIELDS:
        st.session_state[f"new.{name}"] = ""


def _delete(spec: ModelSpec) -> None:
    forget_check()
    session.forget_key(spec)
    try:
        engine().service.store.models.delete(owner(), spec.name)
    except VeriscopeError as error:
        remember_error("models", error)


def _keep_key(spec: ModelSpec) -> None:
    place = f"key-{_slug(spec)}"
    session.keep_key(spec, st.session_state.get(place) or "")


def _key(spec: ModelSpec) -> str | None:
    return session.key_for(spec)


def _slug(spec: ModelSpec) -> str:
    """A key for a container's class name, the same for the same model."""
    return spec.name.encode().hex()
