"""Templates of profiles: models for the roles to start from.

A template is not a profile: `made` makes a profile from it, with the addresses and model names that
the user gives. Keys are never part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.engine.profiles import checked_profile
from pipelines.errors import failure
from pipelines.models.providers import ModelSpec, provider_of
from pipelines.run.defaults import default_models
from pipelines.run.spec import JUDGES
from pipelines.store.profiles import Profile


@dataclass(frozen=True)
class Template:
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


TEMPLATES: dict[str, Template] = {
    one.name: one
    for one in (
        Template("embedded", "Embedded models", {"main": ModelSpec()}),
        Template(
            "local_qwen",
            "Local Qwen",
            {
                "main": ModelSpec(
                    kind="openai", name="Local Qwen", model="Qwen/Qwen3-4B", base_url=""
                )
            },
        ),
        # Rowen's paper asks ChatGPT, and Qwen-Max for the second opinion.
        Template(
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


def template(name: str) -> Template:
    """Return the template called `name`; raises InvalidInputError where there is none."""
    if name not in TEMPLATES:
        raise failure("profiles.no_template", name=repr(name), known=[*TEMPLATES])
    return TEMPLATES[name]


def made(
    one: Template,
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
