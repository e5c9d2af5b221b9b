"""The profile that a visitor's next runs use, and the wording of their prompts.

Both belong to the session and are independent of other visitors and other windows. The wording
starts with that of the profile; changes to it are kept for each profile until the session ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import streamlit as st

from app.engine import engine
from app.session import key_for, owner
from pipelines.engine.profiles import checked_profile
from pipelines.models.providers import BUILT_IN
from pipelines.prompts import Wording, checked_wording
from pipelines.run.defaults import default_models
from pipelines.run.spec import ROLES, ModelSpec
from pipelines.store.profiles import Profile
from pipelines.store.tables import refuse_keys_in_prompts

PROFILE_NAME = "settings.profile"
"""The key of the control with which a profile is chosen."""

_PROFILE = "_profile"
_SCOPE = "ask"
"""Where the session keeps the settings of the next run."""


def chosen_profile() -> Profile | None:
    """Return the profile with which the settings begin, None for the methods' defaults."""
    return st.session_state.get(_PROFILE)


def settings_scope() -> str:
    """Return where the session keeps the settings: each profile has controls of its own."""
    profile = chosen_profile()
    if profile is None:
        return _SCOPE
    # A name may come back with other settings; they must not meet the controls of the former ones.
    return f"{_SCOPE}.{crc32(profile.model_dump_json().encode()):08x}"


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
            if key.startswith(f"{place}.") and before != _SCOPE:
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
    if other is None or _place(other) == _place(spec):
        return spec.name
    return f"{spec.name} · {profile.name}"


def _place(spec: ModelSpec) -> tuple[str, str, str | None]:
    return spec.kind, spec.model, spec.base_url


def _wording_place() -> str:
    return f"_wording.{settings_scope()}"
