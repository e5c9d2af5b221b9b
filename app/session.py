"""What belongs to one visitor: who they are, their language and theme, and their keys.

A cookie identifies the browser, so that each sees its own runs and models only.
Keys stay in the session's memory: they are neither stored nor recorded, and gone with the tab.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast
from zlib import crc32

import streamlit as st
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from app.engine import engine
from app.forms import draw_field, read_form
from components.base.theme import Theme
from components.base.words import LANGUAGES, Catalogue
from components.forms import RUN_LIMITS
from pipelines.base import Language
from pipelines.engine.asking import RunPlan, RunRequest, make_plan, plan_run, within_limits
from pipelines.engine.estimate import Basis, TextSize, basis_for
from pipelines.engine.profiles import checked_profile
from pipelines.errors import VeriscopeError
from pipelines.models.providers import BUILT_IN
from pipelines.prompts import Wording, checked_wording
from pipelines.retrieval.embedders import EmbedderSpec
from pipelines.run.events import ROLES, ModelSpec, RunSpec, default_models
from pipelines.run.ledger import LIMIT_NAMES, RunLimits
from pipelines.store import new_owner
from pipelines.store.profiles import Profile
from pipelines.store.tables import refuse_keys_in_prompts

COOKIE = "veriscope_owner"
_OWNER_FORM = re.compile(r"[0-9a-f]{48}\Z")
_YEAR = 365 * 24 * 3600


def owner() -> str:
    """Return who this browser is. One that refuses cookies is a new visitor in every session."""
    if "_owner" not in st.session_state:
        st.session_state["_owner"] = owner_of(st.context.cookies) or new_owner()
    return st.session_state["_owner"]


def default_language() -> Language:
    """Return Chinese for a browser that asks for it, else English."""
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def language() -> Language:
    """Return the interface's language, as chosen with the switch."""
    chosen = st.session_state.get("lang")
    return cast(Language, chosen) if chosen in LANGUAGES else default_language()


def messages() -> Catalogue:
    """Return the texts of the interface."""
    return Catalogue(language())


def theme() -> Theme:
    """Return light or dark, as the page is shown now."""
    return "dark" if st.context.theme.type == "dark" else "light"


def keep_key(opens: ModelSpec | str, key: str) -> None:
    """Remember the key of a model, or of a search of the web, until the tab is closed.

    An empty key deletes what was remembered.
    """
    _keys().pop(_place(opens), None)
    if key:
        _keys()[_place(opens)] = key


def key_for(opens: ModelSpec | str) -> str | None:
    """Return the key of a model, or of a search of the web by name, if it was given one."""
    return _keys().get(_place(opens))


def keys_for(spec: RunSpec) -> dict[str, str]:
    """Return the keys that a run of `spec` may use, by the name of the model or search
    they open.
    """
    keys = {model.name: key for model in spec.models.values() if (key := key_for(model))}
    evidence = spec.evidence
    # A key is meant for the search's own address: a run from elsewhere may name another.
    if evidence.base_url is None and (key := key_for(evidence.source)):
        # Named so that no model of the same name is sent it.
        keys[f"search:{evidence.source}"] = key
    if evidence.collection is not None and (key := _collection_key(evidence.collection)):
        keys["search:library"] = key
    return keys


def keep_embedder_key(spec: EmbedderSpec, key: str) -> None:
    """Remember the key of an embedding service until the tab is closed."""
    keep_key(f"embedder {spec.address}", key)


def embedder_key(spec: EmbedderSpec) -> str | None:
    """Return the key of an embedding service, if it was given one; it is meant for its
    address alone.
    """
    return key_for(f"embedder {spec.address}") if spec.kind == "openai" else None


def _collection_key(collection: str) -> str | None:
    try:
        stored = engine().service.collections.store.get(owner(), collection)
    except VeriscopeError:
        # The run itself will say that it is not there.
        return None
    return embedder_key(stored.embedder)


def _keys() -> dict[tuple[str, ...], str]:
    return st.session_state.setdefault("_keys", {})


def _place(opens: ModelSpec | str) -> tuple[str, ...]:
    """Return the place that a key is for; it is meant for one address: a model saved with another
    address does not get it.
    """
    if isinstance(opens, str):
        return "search", opens
    return opens.kind, opens.name, opens.base_url or ""


def owner_of(cookies: Mapping[str, str]) -> str | None:
    """Return the owner that `cookies` name, None if there is none or it is not one of ours."""
    value = cookies.get(COOKIE, "")
    return value if _OWNER_FORM.match(value) else None


class OwnerCookie(BaseHTTPMiddleware):
    """Gives every browser that opens a page without one an unguessable owner.

    The cookie is renewed with every page, so that it ends a year after the last visit. Scripts
    cannot read it, other sites cannot send it along, and over https it stays there.
    """

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        if response.headers.get("content-type", "").startswith("text/html"):
            forwarded = request.headers.get("x-forwarded-proto", "")
            response.set_cookie(
                COOKIE,
                owner_of(request.cookies) or new_owner(),
                max_age=_YEAR,
                httponly=True,
                secure="https" in (request.url.scheme, forwarded),
            )
            # A shared cache must not give one visitor's cookie to another.
            response.headers["cache-control"] = "no-store"
        return response


# The profile that a visitor's next runs use, and the wording of their prompts.
#
# Both belong to the session and are independent of other visitors and other windows. The wording
# starts with that of the profile; changes to it are kept for each profile until the session ends.

PROFILE_NAME = "settings.profile"
"""The key of the control with which a profile is chosen."""

_PROFILE = "_profile"
_PROFILES_SCOPE = "ask"
"""Where the session keeps the settings of the next run."""


def chosen_profile() -> Profile | None:
    """Return the profile with which the settings begin, None for the methods' defaults."""
    return st.session_state.get(_PROFILE)


def settings_scope() -> str:
    """Return where the session keeps the settings: each profile has controls of its own."""
    profile = chosen_profile()
    if profile is None:
        return _PROFILES_SCOPE
    # A name may come back with other settings; they must not meet the controls of the former ones.
    return f"{_PROFILES_SCOPE}.{crc32(profile.model_dump_json().encode()):08x}"


def settings_start(method: str) -> dict[str, Any]:
    """Return the profile's settings of a method, with which its controls begin."""
    profile = chosen_profile()
    return {} if profile is None else profile.settings.get(method, {})


def chosen_wording() -> dict[str, dict[str, dict[str, str]]]:
    """Return the prompts that the next runs have in place of the shipped ones."""
    kept = st.session_state.get(_wording_place())
    if kept is not None:
        return kept
    profile = chosen_profile()
    return {} if profile is None else profile.prompts


def keep_wording(wording: Wording) -> None:
    """Use `wording` in the next runs. Raises InvalidInputError for a text that cannot be filled."""
    refuse_keys_in_prompts(wording)
    st.session_state[_wording_place()] = checked_wording(wording)


def use_profile(profile: Profile | None) -> None:
    """Have the next runs use the profile, or None; raises InvalidInputError. Called from a
    callback.
    """
    checked = checked_profile(profile) if profile is not None else None
    st.session_state[_PROFILE] = checked
    st.session_state[PROFILE_NAME] = None if checked is None else checked.name
    if checked is None:
        return
    names = {role: _name(spec, saved_models(), checked) for role, spec in checked.models.items()}
    # A profile with a main model says which roles have none; others name single roles.
    whole = "main" in names
    for role in ROLES if whole else names:
        st.session_state[f"model.{role}"] = names.get(role)


def replace_profile(profile: Profile) -> None:
    """Use `profile` in place of the one it was made of; what was changed over that one, and what is
    being written, is changed over this one. Called from a callback.
    """
    before = settings_scope()
    st.session_state[_PROFILE] = checked_profile(profile)
    st.session_state[PROFILE_NAME] = profile.name
    for key in [key for key in st.session_state if isinstance(key, str)]:
        for place in (before, f"prompts.text.{before}"):
            if key.startswith(f"{place}.") and before != _PROFILES_SCOPE:
                moved = f"{place.replace(before, settings_scope())}{key.removeprefix(place)}"
                st.session_state[moved] = st.session_state[key]
    st.session_state.pop(_wording_place(), None)


def forget_profile(name: str) -> None:
    """Do not use the profile called `name` any more. Called from a callback."""
    profile = chosen_profile()
    if profile is not None and profile.name == name:
        st.session_state[_PROFILE] = None
        st.session_state.pop(PROFILE_NAME, None)


def saved_models() -> dict[str, ModelSpec]:
    """Return the bundled models and those this visitor saved, by name."""
    saved = engine().service.store.models.list(owner())
    here = {spec.name: spec for spec in default_models("en").values()}
    return {**here, **{spec.name: spec for spec in (*BUILT_IN, *saved)}}


def known_models() -> dict[str, ModelSpec]:
    """Return every model that a role can be given to: those saved, and those of the chosen profile.

    Where a model of the profile has the name of another one, its name is followed by the profile's.
    """
    known, profile = saved_models(), chosen_profile()
    mine: dict[str, ModelSpec] = {}
    for spec in profile.models.values() if profile else ():
        name = _name(spec, known, profile) if profile else spec.name
        if name not in known:
            mine[name] = spec.model_copy(update={"name": name})
        elif spec.price is not None:
            mine[name] = known[name].model_copy(update={"price": spec.price})
    return {**known, **mine}


def models_here(profile: Profile) -> dict[str, ModelSpec]:
    """Return, by role, the models of the profile under the names that they have among the
    visitor's.
    """
    known = saved_models()
    return {
        role: spec.model_copy(update={"name": _name(spec, known, profile)})
        for role, spec in profile.models.items()
    }


def keys_of(models: Mapping[str, ModelSpec]) -> dict[str, bool]:
    """Return, by role, whether this session has a key for its model."""
    return {role: key_for(spec) is not None for role, spec in models.items()}


def _name(spec: ModelSpec, known: Mapping[str, ModelSpec], profile: Profile) -> str:
    """Return what a model of the profile is called among the visitor's models."""
    other = known.get(spec.name)
    if other is None or _profile_place(other) == _profile_place(spec):
        return spec.name
    return f"{spec.name} · {profile.name}"


def _profile_place(spec: ModelSpec) -> tuple[str, str, str | None]:
    return spec.kind, spec.model, spec.base_url


def _wording_place() -> str:
    return f"_wording.{settings_scope()}"


# What a visitor's runs may take: limits kept in the session, and the plan of a run within them.

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
