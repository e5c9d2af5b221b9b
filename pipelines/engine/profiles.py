"""Profiles as runs use them: checked against the methods, applied to settings, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from pipelines.errors import InvalidInputError, first_problem
from pipelines.methods.registry import get_method
from pipelines.models.providers import PROVIDERS
from pipelines.run.spec import ROLES, MethodSpec
from pipelines.store.profiles import Profile, refuse_keys_in_profile

_FORMAT = "veriscope-profile-1"


def checked_profile(profile: Profile) -> Profile:
    """`profile` with the settings that differ from the defaults of their methods.

    Raises InvalidInputError for a method, a setting or a role that there is not, for a name that
    `--profile` has for kinds of models, and for anything that looks like a key.
    """
    if profile.name in PROVIDERS:
        raise InvalidInputError(
            f"{profile.name!r} is the name of a kind of model.",
            remedy="Give the profile another name.",
        )
    refuse_keys_in_profile(profile)
    settings = {name: different(name, values) for name, values in profile.settings.items()}
    if odd := [role for role in profile.models if role not in ROLES]:
        raise InvalidInputError(
            f"There is no role {odd[0]!r}.", remedy=f"Choose from: {', '.join(ROLES)}."
        )
    return profile.model_copy(update={"settings": settings})


def different(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` that differ from the method's defaults. Raises InvalidInputError."""
    known = get_method(method)
    defaults = known.settings().model_dump(mode="json")
    chosen = known.settings(values).model_dump(mode="json")
    return {name: value for name, value in chosen.items() if value != defaults[name]}


def follows(profile: Profile, methods: Iterable[MethodSpec]) -> bool:
    """Whether the settings of these methods are those of the profile."""
    return all(
        different(one.name, one.settings) == different(one.name, profile.settings.get(one.name, {}))
        for one in methods
    )


def recorded_name(profile: Profile | None, methods: Iterable[MethodSpec]) -> str:
    """The profile's name for what runs with these methods; "" where one has other settings."""
    return profile.name if profile is not None and follows(profile, methods) else ""


def with_profile(
    profile: Profile | None, settings: Mapping[str, Mapping[str, Any]], methods: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Method to settings: the profile's, under those that were given for themselves."""
    held = profile.settings if profile else {}
    return {name: {**held.get(name, {}), **settings.get(name, {})} for name in methods}


def profile_text(profile: Profile) -> str:
    """A profile as a JSON file."""
    body = profile.model_dump(mode="json", exclude_none=True)
    return json.dumps({"format": _FORMAT, **body}, ensure_ascii=False, indent=2) + "\n"


def read_profile(text: str) -> Profile:
    """A profile from its JSON file. Raises InvalidInputError for what is none."""
    remedy = "Give a file made by `profiles export`."
    try:
        body = json.loads(text)
    except ValueError:
        raise InvalidInputError("The file is no JSON.", remedy=remedy) from None
    if not isinstance(body, dict) or body.get("format") != _FORMAT:
        raise InvalidInputError("The file holds no profile.", remedy=remedy)
    try:
        found = Profile.model_validate({k: v for k, v in body.items() if k != "format"})
    except ValidationError as error:
        where, problem = first_problem(error)
        raise InvalidInputError(f"{where} of the profile: {problem}.", remedy=remedy) from None
    return checked_profile(found)
