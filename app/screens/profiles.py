"""The Profiles page: models, settings and prompts under a name, to make, use, change and share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from app.engine import engine
from app.exposure import workbench_exposure
from app.page import (
    delete_button,
    draw_error,
    draw_unfolded,
    go_to,
    guarded,
    in_rows,
    key_field,
    page_title,
    remembered,
    section_title,
    show_html,
)
from app.screens.setup import assumed_capabilities, chosen_models, method_settings
from app.session import (
    chosen_profile,
    chosen_wording,
    forget_profile,
    keep_key,
    key_for,
    keys_of,
    messages,
    models_here,
    owner,
    saved_models,
    use_profile,
)
from components.base.elements import notice
from components.base.html import tag
from components.base.words import Catalogue
from components.profiles import contents_words, profile_details, profile_view, template_view
from pipelines.engine.profiles import (
    TEMPLATES,
    checked_profile,
    lacks,
    made,
    profile_text,
    read_profile,
)
from pipelines.errors import failure
from pipelines.methods.registry import METHODS
from pipelines.models.providers import ModelSpec, provider_of, why_refused
from pipelines.run.events import JUDGES, ROLES
from pipelines.store.profiles import MAX_DESCRIPTION, Profile
from pipelines.store.tables import MAX_NAME

_PAGE = "profiles"
_UPLOADS, _SAID = "profiles.uploads", "_profiles.said"
_PARTS = ("models", "settings", "prompts")
_KEPT: Any = {"persist_state": "session"}


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("profiles.title"), t("profiles.note"))
    draw_error(_PAGE)
    if said := st.session_state.pop(_SAID, None):
        show_html(notice(said, "said", role="status"), key="profiles-said")
    section_title(t("profiles.yours"))
    with guarded(t("profiles.yours"), key="list"):
        _list(t)
    section_title(t("profiles.make"))
    _make(t)
    section_title(t("profiles.templates"))
    for column, name in in_rows(list(TEMPLATES), 3):
        with column:
            _template(name, t)
    section_title(t("profiles.import"))
    _import(t)


def _list(t: Catalogue) -> None:
    known = engine().service.store.profiles.list(owner())
    if not known:
        st.html(tag("p", t("profiles.none"), class_="workbench-empty"))
    used = chosen_profile()
    if used is not None:
        st.button(t("profiles.use_none"), key="profiles-use-none", on_click=_use, args=(None,))
    for profile in known:
        _card(profile, used is not None and used.name == profile.name, t)


def _card(profile: Profile, in_use: bool, t: Catalogue) -> None:
    slug = _slug(profile.name)
    with st.container(border=True, key=f"card-profile-{slug}"):
        models = models_here(profile)
        lacking = lacks(models, keys_of(models))
        show_html(profile_view(profile, lacking, in_use, t), key=f"profile-{slug}")
        _keys(models, slug, t)
        with st.container(horizontal=True, key=f"profile-buttons-{slug}"):
            st.button(
                t("profiles.use"),
                key=f"use-{slug}",
                type="primary",
                disabled=in_use,
                on_click=_use,
                args=(profile.name,),
            )
            st.download_button(
                t("profiles.export"),
                data=partial(profile_text, profile),
                file_name=f"veriscope-profile-{_file_name(profile.name)}.json",
                mime="application/json",
                key=f"export-{slug}",
                on_click="ignore",
            )
            sure = t("profile.delete.sure", name=profile.name)
            delete_button(f"profile-{slug}", sure, partial(_delete, profile.name))
        details = st.expander(t("profiles.details"), key=f"details-{slug}", on_change="rerun")
        draw_unfolded(details, partial(_details, profile, slug, t))
        edit = st.expander(t("profiles.edit"), key=f"edit-{slug}", on_change="rerun")
        draw_unfolded(edit, partial(_edit, profile, slug, t))


def _keys(models: Mapping[str, ModelSpec], slug: str, t: Catalogue) -> None:
    """Draw a field for the key of each service; what is typed stays in the session."""
    hosted = {
        (spec.kind, spec.name, spec.base_url): spec
        for spec in models.values()
        if provider_of(spec.kind).hosted
    }
    for column, (number, spec) in in_rows(list(enumerate(hosted.values())), 2):
        with column:
            key_field(
                t("profiles.key", name=spec.name),
                f"profile-key-{slug}-{number}",
                placeholder=t("models.key.kept") if key_for(spec) else None,
                help=t("models.key.note"),
                on_change=_keep_key,
                args=(spec, f"profile-key-{slug}-{number}"),
            )


def _keep_key(spec: ModelSpec, field: str) -> None:
    keep_key(spec, (st.session_state.get(field) or "").strip())


def _details(profile: Profile, slug: str, t: Catalogue) -> None:
    show_html(profile_details(profile, t), key=f"profile-details-{slug}")
    if profile.prompts:
        st.button(
            t("profiles.edit_prompts"),
            key=f"prompts-{slug}",
            on_click=_edit_prompts,
            args=(profile.name,),
        )


def _edit(profile: Profile, slug: str, t: Catalogue) -> None:
    _text(t("profiles.name"), f"name-{slug}", profile.name, max_chars=MAX_NAME)
    st.text_area(
        t("profiles.description"),
        _kept(f"description-{slug}", profile.description),
        key=f"description-{slug}",
        max_chars=MAX_DESCRIPTION,
        height=96,
        **_KEPT,
    )
    st.caption(t("profiles.roles.note"))
    known = _models_for(profile)
    for column, role in in_rows(ROLES, 3):
        with column:
            _role(profile, role, known, slug, t)
    with st.container(horizontal=True):
        st.button(
            t("action.save"),
            key=f"save-{slug}",
            type="primary",
            on_click=_save_edit,
            args=(profile, slug),
        )
        st.button(
            t("profiles.take_present"),
            key=f"present-{slug}",
            help=t("profiles.take_present.help"),
            on_click=_take_present,
            args=(profile,),
        )


def _kept(key: str, start: Any) -> Any:
    """Return what the control of this key says, at first `start`: Streamlit wants one value,
    not two.
    """
    return st.session_state.get(key, start)


def _text(label: str, key: str, start: str, **look: Any) -> None:
    st.text_input(label, _kept(key, start), key=key, **look, **_KEPT)


def _models_for(profile: Profile) -> dict[str, ModelSpec]:
    """Return the models that a role of the profile can be given to: its own go before
    saved ones.
    """
    return {**saved_models(), **{spec.name: spec for spec in profile.models.values()}}


def _role(
    profile: Profile, role: str, known: Mapping[str, ModelSpec], slug: str, t: Catalogue
) -> None:
    able = [
        name for name, spec in known.items() if role in JUDGES or assumed_capabilities(spec).writes
    ]
    now, key = profile.models.get(role), f"role-{slug}-{role}"
    chosen = _kept(key, now.name if now is not None else None)
    st.selectbox(
        t(f"role.{role}").capitalize(),
        able,
        index=able.index(chosen) if chosen in able else None,
        key=key,
        placeholder=t("profiles.role.open"),
        help=t(f"models.role.{role}"),
        **_KEPT,
    )


def _make(t: Catalogue) -> None:
    """Draw what makes a profile of what Ask and Prompts say at the moment."""
    with st.container(border=True, key="card-new-profile"):
        present = _present("", "", _PARTS)
        st.caption(t("profiles.present", list=contents_words(present, t)))
        st.text_input(t("profiles.name"), key="profiles.name", max_chars=MAX_NAME, **_KEPT)
        st.text_area(
            t("profiles.description"),
            key="profiles.description",
            max_chars=MAX_DESCRIPTION,
            height=80,
            **_KEPT,
        )
        with st.container(horizontal=True, vertical_alignment="center", key="profiles-parts"):
            for name in _PARTS:
                key = f"profiles.part.{name}"
                st.checkbox(t(key), _kept(key, True), key=key, **_KEPT)
        with st.container(horizontal=True):
            st.button(t("action.save"), key="profiles-save", type="primary", on_click=_save_new)
            st.button(t("profiles.to_ask"), key="profiles-ask", on_click=go_to, args=("ask",))


def _present(name: str, description: str, parts: tuple[str, ...]) -> Profile:
    """Return the present choice of this session as a profile; without its keys."""
    settings = {one: method_settings(one) for one in METHODS} if "settings" in parts else {}
    return Profile(
        name=name,
        description=description,
        models=chosen_models() if "models" in parts else {},
        settings={one: values for one, values in settings.items() if values},
        prompts=chosen_wording() if "prompts" in parts else {},
    )


def _save_new() -> None:
    with remembered(_PAGE):
        state = st.session_state
        parts = tuple(name for name in _PARTS if state.get(f"profiles.part.{name}", True))
        name = (state.get("profiles.name") or "").strip()
        profile = _present(name, (state.get("profiles.description") or "").strip(), parts)
        if not (profile.models or profile.settings or profile.prompts):
            raise failure("profiles.nothing_ticked")
        _keep(profile, replace=False)
        state["profiles.name"] = state["profiles.description"] = ""
        _say("profiles.saved", name)


def _template(name: str, t: Catalogue) -> None:
    one = TEMPLATES[name]
    with st.container(border=True, key=f"card-template-{name}"):
        show_html(
            template_view(one, lacks(one.models, keys_of(one.models)), t), key=f"template-{name}"
        )
        _text(t("profiles.name"), f"template.{name}.name", one.title, max_chars=MAX_NAME)
        for role, spec in one.models.items():
            if not provider_of(spec.kind).hosted:
                continue
            label = t("profiles.model_id", name=spec.name)
            _text(label, f"template.{name}.model.{role}", spec.model)
            if spec.base_url == "":
                st.text_input(
                    t("models.address"),
                    key=f"template.{name}.address.{role}",
                    placeholder=provider_of(spec.kind).placeholder,
                    **_KEPT,
                )
        st.button(
            t("profiles.from_template"), key=f"make-{name}", on_click=_from_template, args=(name,)
        )


def _from_template(name: str) -> None:
    with remembered(_PAGE):
        one, state = TEMPLATES[name], st.session_state

        def given(what: str) -> dict[str, str]:
            found = {role: state.get(f"template.{name}.{what}.{role}") for role in one.models}
            return {role: text for role, text in found.items() if text}

        profile = made(
            one,
            state.get(f"template.{name}.name") or "",
            addresses=given("address"),
            models=given("model"),
        )
        _keep(profile, replace=False)
        _say("profiles.saved", profile.name)


def _import(t: Catalogue) -> None:
    with st.container(border=True, key="card-import-profile"):
        st.file_uploader(
            t("profiles.file"),
            type=["json"],
            key=f"profiles.upload.{st.session_state.get(_UPLOADS, 0)}",
            on_change=_bring_in,
            max_upload_size=4,
        )
        st.checkbox(t("profiles.replace"), key="profiles.replace", **_KEPT)


def _bring_in() -> None:
    uploads = st.session_state.get(_UPLOADS, 0)
    file = st.session_state.get(f"profiles.upload.{uploads}")
    if file is None:
        return
    # The uploader keeps its file until it is another uploader.
    st.session_state[_UPLOADS] = uploads + 1
    with remembered(_PAGE):
        try:
            text = file.getvalue().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise failure("profiles.no_utf8") from None
        profile = read_profile(text)
        _keep(profile, replace=bool(st.session_state.get("profiles.replace")))
        _say("profiles.imported", profile.name)


def _save_edit(profile: Profile, slug: str) -> None:
    with remembered(_PAGE):
        state, known = st.session_state, _models_for(profile)
        chosen = {role: state.get(f"role-{slug}-{role}") for role in ROLES}
        changed = profile.model_copy(
            update={
                "name": (state.get(f"name-{slug}") or "").strip(),
                "description": (state.get(f"description-{slug}") or "").strip(),
                "models": {role: known[name] for role, name in chosen.items() if name in known},
            }
        )
        _change(profile, changed)


def _take_present(profile: Profile) -> None:
    with remembered(_PAGE):
        present = _present(profile.name, profile.description, _PARTS)
        kept = {"origin": profile.origin, "calibrations": profile.calibrations}
        _change(profile, present.model_copy(update=kept))


def _change(before: Profile, after: Profile) -> None:
    """Keep `after` in place of `before`; where that is in use, use it."""
    checked = checked_profile(after)
    _refuse(checked)
    used = chosen_profile()
    engine().service.store.profiles.edit(owner(), before.name, checked)
    if used is not None and used.name == before.name:
        use_profile(checked)
    # The form begins anew with what is saved.
    slug = _slug(before.name)
    for key in (f"name-{slug}", f"description-{slug}", *(f"role-{slug}-{one}" for one in ROLES)):
        st.session_state.pop(key, None)
    _say("profiles.changed", checked.name)


def _keep(profile: Profile, *, replace: bool) -> None:
    checked = checked_profile(profile)
    _refuse(checked)
    engine().service.store.profiles.save(owner(), checked, replace=replace)


def _refuse(profile: Profile) -> None:
    """Raise where a stranger may not use one of the models."""
    if workbench_exposure().restricted:
        for spec in profile.models.values():
            if refusal := why_refused(spec):
                raise refusal


def _use(name: str | None) -> None:
    with remembered(_PAGE):
        profile = engine().service.store.profiles.get(owner(), name) if name else None
        if profile is not None:
            _refuse(profile)
        use_profile(profile)
        if name:
            _say("profiles.used", name)


def _edit_prompts(name: str) -> None:
    with remembered(_PAGE):
        use_profile(engine().service.store.profiles.get(owner(), name))
        go_to("prompts")


def _delete(name: str) -> None:
    with remembered(_PAGE):
        forget_profile(name)
        engine().service.store.profiles.delete(owner(), name)
        _say("profiles.deleted", name)


def _say(key: str, name: str) -> None:
    st.session_state[_SAID] = messages()(key, name=name)


def _slug(name: str) -> str:
    """Return a key for a container's class name, the same for the same profile."""
    return name.encode().hex()


def _file_name(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name).strip("-")[:60] or "profile"
