"""Profiles as runs use them: checked against the methods, applied to settings, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from pipelines.engine.calibrations import holding
from pipelines.error_words import first_problem
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.registry import METHODS, different, get_method, wording_of
from pipelines.models.providers import PROVIDERS, ModelSpec, provider_of
from pipelines.prompts import Wording, checked_wording
from pipelines.run.calibrations import Calibration
from pipelines.run.spec import ROLES, MethodSpec
from pipelines.store.profiles import MAX_SIZE, Profile, refuse_keys_in_profile

_FORMAT = "veriscope-profile-1"


def checked_profile(profile: Profile) -> Profile:
    """Return `profile` with the settings and prompts that differ from the defaults.

    Raises InvalidInputError for a method, setting, role, kind of model or prompt that does not
    exist, also for a calibration of such a method, for a prompt that cannot be filled, for a name
    that is a kind of model (as `--profile` takes), and for anything that looks like a key.
    """
    if profile.name in PROVIDERS:
        raise failure("profiles.name_of_kind", name=repr(profile.name))
    refuse_keys_in_profile(profile)
    settings = {name: different(name, values) for name, values in profile.settings.items()}
    if odd := [role for role in profile.models if role not in ROLES]:
        raise failure("profiles.no_role", role=repr(odd[0]), known=[*ROLES])
    for model in profile.models.values():
        provider_of(model.kind)
    for number, one in enumerate(profile.calibrations):
        if one.method not in METHODS:
            where, name = f"calibrations.{number}.method", repr(one.method)
            raise failure("profiles.no_method", where=where, name=name, known=[*METHODS])
    return profile.model_copy(
        update={
            "settings": {name: values for name, values in settings.items() if values},
            "prompts": checked_wording(profile.prompts),
        }
    )


def follows(
    profile: Profile, methods: Iterable[MethodSpec], wording: Wording | None = None
) -> bool:
    """Return whether the settings of these methods are those of the profile.

    With `wording`, the prompts that these methods use have to be the profile's too.
    """
    methods = list(methods)
    if wording is not None:
        names = [one.name for one in methods]
        if wording_of(names, wording) != wording_of(names, profile.prompts):
            return False
    return all(
        different(one.name, one.settings) == different(one.name, profile.settings.get(one.name, {}))
        for one in methods
    )


def recorded_name(
    profile: Profile | None, methods: Iterable[MethodSpec], wording: Wording | None = None
) -> str:
    """Return the profile's name for what runs with these methods; "" where one has other
    settings.
    """
    return profile.name if profile is not None and follows(profile, methods, wording) else ""


def held_calibrations(profile: Profile | None) -> tuple[Calibration, ...]:
    """Return the profile's calibrations, for a run; which of them hold for it is seen in
    its plan.
    """
    return profile.calibrations if profile is not None else ()


def idle_calibrations(profile: Profile) -> list[Calibration]:
    """Return those of the profile's calibrations that do not hold for its own settings and
    prompts.
    """
    idle: list[Calibration] = []
    for one in profile.calibrations:
        method = MethodSpec(name=one.method, settings=profile.settings.get(one.method, {}))
        # A stored profile may be of a version with other methods, settings or prompts.
        try:
            held = holding([one], [method], profile.prompts)
        except VeriscopeError:
            held = ()
        idle += [] if held else [one]
    return idle


class Lack(NamedTuple):
    """What the model of a role still needs before it can be asked.

    "key": its provider wants one, and none is in the session or the environment; "address": its
    server has not been named.
    """

    role: str
    model: ModelSpec
    what: Literal["key", "address"]


def lacks(models: Mapping[str, ModelSpec], has_key: Mapping[str, bool]) -> list[Lack]:
    """Return what the models of a profile still need. `has_key` says for which roles there
    is a key.

    A server at an address of its own may want a key or not; only a provider's own address always
    does.
    """
    found: list[Lack] = []
    for role, model in models.items():
        if not provider_of(model.kind).hosted:
            continue
        if model.base_url == "":
            found.append(Lack(role, model, "address"))
        elif model.base_url is None and not has_key.get(role):
            found.append(Lack(role, model, "key"))
    return found


def setting_rows(profile: Profile) -> list[tuple[str, str, Any, Any]]:
    """Return method, setting, value and default of every setting that differs, in the
    methods' order.
    """
    rows: list[tuple[str, str, Any, Any]] = []
    for name in [one for one in METHODS if one in profile.settings]:
        defaults = get_method(name).settings().model_dump(mode="json")
        rows += [
            (name, setting, value, defaults.get(setting))
            for setting, value in profile.settings[name].items()
        ]
    return rows


def profile_text(profile: Profile) -> str:
    """Return a profile as a JSON file."""
    body = profile.model_dump(mode="json", exclude_none=True)
    return json.dumps({"format": _FORMAT, **body}, ensure_ascii=False, indent=2) + "\n"


def read_profile(text: str) -> Profile:
    """Return a profile from its JSON file. Raises InvalidInputError for what is none."""
    if len(text) > 4 * MAX_SIZE:
        raise failure("storage.profile_too_large", most=f"{MAX_SIZE:,}")
    try:
        body = json.loads(text)
    except RecursionError:
        raise failure("profiles.no_profile") from None
    except json.JSONDecodeError as error:
        raise failure(
            "profiles.no_json", line=error.lineno, column=error.colno, problem=error.msg
        ) from None
    except ValueError:
        raise failure("profiles.no_profile") from None
    if not isinstance(body, dict) or body.get("format") != _FORMAT:
        raise failure("profiles.no_profile")
    try:
        found = Profile.model_validate({k: v for k, v in body.items() if k != "format"})
    except ValidationError as error:
        where, problem = first_problem(error)
        raise failure("profiles.bad_field", where=where or "–", problem=problem) from None
    return checked_profile(found)
