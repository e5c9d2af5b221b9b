"""Profiles as runs use them: checked against the methods, applied to settings, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import Template
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from pipelines.base import Choice, FilledPrompt, Generation, Message
from pipelines.engine.calibrations import holding
from pipelines.error_words import first_problem
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.registry import METHODS, different, get_method, wording_of
from pipelines.models.base import ChoiceRequest, GenerationRequest, Model
from pipelines.models.providers import PROVIDERS, ModelSpec, provider_of
from pipelines.prompts import Prompts, Wording, checked_text, checked_wording, load_prompts
from pipelines.run.calibrations import Calibration
from pipelines.run.events import JUDGES, ROLES, MethodSpec, ModelCalled, Trace, default_models
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
    """Return the profile's name for what runs with these methods; "" with other settings."""
    return profile.name if profile is not None and follows(profile, methods, wording) else ""


def held_calibrations(profile: Profile | None) -> tuple[Calibration, ...]:
    """Return the profile's calibrations, for a run; its plan tells which of them hold."""
    return profile.calibrations if profile is not None else ()


def idle_calibrations(profile: Profile) -> list[Calibration]:
    """Return the profile's calibrations that do not hold for its own settings and prompts."""
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
    """Return method, setting, value, default of every setting that differs, by method."""
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


# Which methods use a prompt, and the values that a recorded run filled it with.

CALIBRATED = {"drad": "direct", "haarag": "slm", "slm": "slm"}
"""Methods with numbers that were calibrated with the shipped texts of a prompt file: which file."""


def files_of(method: str) -> list[Prompts]:
    """Return the prompt files of a method, in its order; raises InvalidInputError for no method."""
    return list(dict.fromkeys(get_method(method).prompts))


def users_of(file: str) -> list[str]:
    """Return the methods that use a prompt file, in the order in which methods are listed."""
    return [
        name for name, method in METHODS.items() if file in {one.name for one in method.prompts}
    ]


def uncalibrated(methods: Iterable[str], wording: Wording) -> list[str]:
    """Return those of `methods` with calibrated numbers that do not apply to this wording."""
    return [name for name in methods if CALIBRATED.get(name) in wording]


@dataclass(frozen=True)
class SentPrompt:
    """A prompt as a recorded run sent it: `part` of message `at` of the request of `call`."""

    call: ModelCalled
    at: int
    part: FilledPrompt

    @property
    def message(self) -> Message:
        """The message that it stands in."""
        return _messages(self.call)[self.at]

    @property
    def text(self) -> str:
        """The filled prompt, without what stands around it in its message."""
        return self.message.content[self.part.start : self.part.end]

    @property
    def values(self) -> dict[str, str]:
        """The value of each of its placeholders."""
        return self.part.texts(self.message.content)


def sent_in(trace: Trace, file: str, language: str, key: str) -> SentPrompt | None:
    """Return the last request of a run that a prompt is in, whole or as a part of another prompt.

    None where the run did not use it, did not record it, or recorded it with other placeholders
    than it has now.
    """
    wanted, needed = (file, language, key), set(load_prompts(file).placeholders(language, key))
    for call in reversed(_calls(trace)):
        for at, message in reversed(list(enumerate(_messages(call)))):
            for part in message.filled:
                if (part.file, part.language, part.key) == wanted and needed <= part.values.keys():
                    return SentPrompt(call, at, part)
    return None


def _calls(trace: Trace) -> list[ModelCalled]:
    return [event for event in trace.events if isinstance(event, ModelCalled)]


def fill(file: str, language: str, key: str, text: str, values: Mapping[str, str]) -> str:
    """Return `text`, checked as this prompt's, filled with `values`; raises InvalidInputError."""
    checked = checked_text(file, language, key, text)
    return Template(checked).substitute(values).strip()


def asked_again(found: SentPrompt, text: str) -> GenerationRequest | ChoiceRequest:
    """Return the recorded request with `text` in place of the prompt, filled with the same values.

    It takes its place wherever the request has it, in demonstrations and for each passage of a
    list. Raises InvalidInputError where the text cannot be filled, or the request was of another
    kind.
    """
    request = found.call.request
    if not isinstance(request, GenerationRequest | ChoiceRequest):
        raise failure("prompts.not_asked")
    messages = tuple(_reworded(one, found.part, text) for one in request.messages)
    return request.model_copy(update={"messages": messages})


def _reworded(message: Message, prompt: FilledPrompt, text: str) -> Message:
    """Return the message with `text`, filled, wherever it has `prompt`."""
    content = message.content
    wanted = (prompt.file, prompt.language, prompt.key)
    # From the end, so that the places before stay what they are.
    for part in sorted(message.filled, key=lambda one: one.start, reverse=True):
        same = (part.file, part.language, part.key) == wanted
        if same and part.values.keys() >= prompt.values.keys():
            filled = fill(*wanted, text, part.texts(message.content))
            content = content[: part.start] + filled + content[part.end :]
    return Message(role=message.role, content=content)


async def ask_model(
    model: Model, request: GenerationRequest | ChoiceRequest
) -> Generation | Choice:
    """Return what `model` says to the request; one text, however many the run asked for.

    Raises what the model raises.
    """
    if isinstance(request, ChoiceRequest):
        return await model.choose(request)
    (first, *_) = await model.generate(request.model_copy(update={"n": 1}))
    return first


def recorded_reply(found: SentPrompt) -> Generation | Choice | None:
    """Return what the model of the run said to it; None where the call failed."""
    call = found.call
    if call.choice is not None:
        return call.choice
    return call.generations[0] if call.generations else None


def _messages(call: ModelCalled) -> tuple[Message, ...]:
    request = call.request
    return request.messages if isinstance(request, GenerationRequest | ChoiceRequest) else ()


# Templates of profiles: models for the roles to start from.
#
# A template is not a profile: `made` makes a profile from it, with the addresses and model names
# that the user gives. Keys are never part of it.


@dataclass(frozen=True)
class ProfileTemplate:
    """Models by role under a name; the bundled judges judge.

    `title` is what a profile made of it is called unless it gets a name. A model with the address
    "" needs one.
    """

    name: str
    title: str
    models: Mapping[str, ModelSpec] = field(default_factory=dict)

    @property
    def with_judges(self) -> dict[str, ModelSpec]:
        """Role to model, the bundled judges included."""
        judges = {role: spec for role, spec in default_models().items() if role in JUDGES}
        return {**self.models, **judges}


TEMPLATES: dict[str, ProfileTemplate] = {
    one.name: one
    for one in (
        ProfileTemplate("embedded", "Embedded models", {"main": ModelSpec()}),
        ProfileTemplate(
            "local_qwen",
            "Local Qwen",
            {
                "main": ModelSpec(
                    kind="openai", name="Local Qwen", model="Qwen/Qwen3-4B", base_url=""
                )
            },
        ),
        # Rowen's paper asks ChatGPT, and Qwen-Max for the second opinion.
        ProfileTemplate(
            "openai_qwen_max",
            "OpenAI + Qwen-Max",
            {
                "main": ModelSpec(kind="openai", name="GPT-4o mini", model="gpt-4o-mini"),
                "verifier": ModelSpec(kind="dashscope", name="Qwen-Max", model="qwen-max"),
            },
        ),
    )
}
"""The built-in templates by name, in the order in which they are listed."""


def template(name: str) -> ProfileTemplate:
    """Return the template called `name`; raises InvalidInputError where there is none."""
    if name not in TEMPLATES:
        raise failure("profiles.no_template", name=repr(name), known=[*TEMPLATES])
    return TEMPLATES[name]


def made(
    one: ProfileTemplate,
    name: str = "",
    *,
    addresses: Mapping[str, str] | None = None,
    models: Mapping[str, str] | None = None,
    description: str = "",
) -> Profile:
    """Return a profile of this template, with `addresses` and ids of `models` by role.

    Raises InvalidInputError for a model that needs an address and has none, and as
    `checked_profile`.
    """
    addresses, models = addresses or {}, models or {}
    chosen: dict[str, ModelSpec] = {}
    for role, spec in one.with_judges.items():
        address = addresses.get(role, "").strip()
        model = models.get(role, "").strip()
        update: dict[str, str] = {}
        if address:
            update["base_url"] = address
        elif spec.base_url == "":
            example = provider_of(spec.kind).placeholder
            raise failure("profiles.no_address", model=repr(spec.name), example=example)
        if model and model != spec.model:
            # Another model than the template's: it is called by its own name.
            update |= {"model": model, "name": model}
        chosen[role] = spec.model_copy(update=update)
    profile = Profile(
        name=name.strip() or one.title, description=description.strip(), models=chosen
    )
    return checked_profile(profile)
