"""Which models a command works with: the main one by its options, other roles by assignments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from components.forms import MODEL
from pipelines.cli.forms import add_option
from pipelines.engine.service import Service
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.models.hub_judges.formats import parse_format, parse_labels
from pipelines.models.hub_judges.model import judge_name, split_revision
from pipelines.models.probe import probe
from pipelines.models.providers import PROVIDERS, ModelSpec, provider_of, refuse_shared_names
from pipelines.run.defaults import default_models
from pipelines.run.spec import JUDGES, ROLES
from pipelines.types import Language

_BUNDLED = "embedded"
_OF_JUDGES = {
    "--judge-format": "judge_format",
    "--judge-labels": "judge_labels",
    "--judge-languages": "languages",
}
_OTHER_ROLES = [role for role in ROLES if role != "main"]


def add_main_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `main_model` reads."""
    own = " or ".join(one.key_variable for one in PROVIDERS.values() if one.key_variable)
    add_option(parser, MODEL["kind"], "--profile", choices=list(PROVIDERS), default=_BUNDLED)
    add_option(parser, MODEL["model"], default="")
    add_option(parser, MODEL["base_url"])
    parser.add_argument(
        "--key-env",
        metavar="NAME",
        help="environment variable that holds the key; at a provider's own address"
        f" {own} without it",
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `models_by_role` reads."""
    add_main_model_options(parser)
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE=PROFILE[:MODEL]",
        help=f"another model beside the main one, as {', '.join(_OTHER_ROLES)}; repeat for several,"
        " for example verifier=openai:qwen-max",
    )
    parser.add_argument(
        "--role-url",
        action="append",
        default=[],
        metavar="ROLE=URL",
        help="address of the model in this role",
    )
    parser.add_argument(
        "--role-key-env",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="name of the variable that holds the key of the model in this role",
    )
    parser.add_argument(
        "--proxy",
        metavar="MODEL",
        help="short for --role proxy=local:MODEL; 'embedded' for the bundled weights",
    )
    parser.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="MODEL",
        help="a judge, in place of the bundled ones: trained, similarity, overlap, or a hub id or"
        " folder of an NLI model or fact checker, if need be as ID@REVISION; at most three."
        " Short for --role judge_1=hub_judge:MODEL",
    )
    for option, name in _OF_JUDGES.items():
        metavar = f"ROLE={option.rpartition('-')[2].upper()}"
        look: dict[str, Any] = {"action": "append", "default": [], "metavar": metavar}
        add_option(parser, MODEL[name], option, type=None, choices=None, **look)


async def main_model(service: Service, options: argparse.Namespace) -> tuple[ModelSpec, str | None]:
    """Return the one model that the options name, probed where it is hosted, and its key.

    Raises InvalidInputError when an option cannot be understood.
    """
    every = argparse.ArgumentParser()
    add_model_options(every)
    # The other roles are left as they are without their options.
    alone = argparse.Namespace(**{**vars(every.parse_args([])), **vars(options)})
    specs, keys = await models_by_role(service, alone)
    return specs["main"], keys.get(specs["main"].name)


async def models_by_role(
    service: Service, options: argparse.Namespace, saved: Mapping[str, ModelSpec] | None = None
) -> tuple[dict[str, ModelSpec], dict[str, str]]:
    """Return a map from role to model, and the keys by model name; hosted models are probed for
    what they can do.

    `saved` are models of a profile, for the roles that no option names. The bundled judges judge
    unless others are given.
    Raises InvalidInputError when an option cannot be understood.
    """
    saved = saved or {}
    unnamed = (options.profile, options.model, options.base_url) == (_BUNDLED, "", None)
    main = saved.get("main") if unnamed else None
    specs = dict(saved)
    specs["main"] = main or _spec(options.profile, options.model, options.base_url)
    urls = by_role(options.role_url, "--role-url")
    given = by_role(options.role, "--role")
    if options.proxy:
        given["proxy"] = f"local:{options.proxy}"
    given |= _judges(options.judge, given)
    for role, value in given.items():
        profile, _, model = value.partition(":")
        if profile not in PROVIDERS:
            raise failure("command.no_profile", profile=profile, known=[*PROVIDERS])
        specs[role] = _spec(profile, model, urls.get(role))
    specs = _with_readings(specs, options)
    keys = keys_of(options, specs)
    for role, spec in specs.items():
        provider = provider_of(spec.kind)
        if provider.pin is not None:
            specs[role] = await service.pinned(spec)
        if provider.hosted:
            report = await probe(await service.model(spec, keys.get(spec.name)))
            specs[role] = spec.with_capabilities(report.capabilities)
            if report.unknown:
                left = ", ".join(report.unknown)
                print(f"{spec.name}: not known, taken as usual: {left}", file=sys.stderr)
    if not (given.keys() | saved.keys()) & set(JUDGES):
        specs |= {role: spec for role, spec in default_models().items() if role in JUDGES}
    return specs, keys


def role_models(roles: Sequence[str], addresses: Sequence[str]) -> dict[str, ModelSpec]:
    """Return a map from role to model, of `ROLE=KIND[:MODEL]` and `ROLE=URL`, "main" too; nothing
    is asked.

    Raises InvalidInputError when an assignment cannot be understood.
    """
    urls = by_role(addresses, "--role-url", ROLES)
    found: dict[str, ModelSpec] = {}
    for role, value in by_role(roles, "--role", ROLES).items():
        kind, _, model = value.partition(":")
        found[role] = _spec(kind, model, urls.get(role))
    if unused := [role for role in urls if role not in found]:
        raise failure("command.unused_role_url", role=unused[0])
    return found


def keys_of(options: argparse.Namespace, models: Mapping[str, ModelSpec]) -> dict[str, str]:
    """Return the keys by model name, from the variables that the options name, else the
    providers' own.

    Raises InvalidInputError where two services have a model of the same name.
    """
    variables = {"main": options.key_env, **by_role(options.role_key_env, "--role-key-env")}
    refuse_shared_names(models.values())
    keys: dict[str, str] = {}
    for role, spec in models.items():
        provider, key = provider_of(spec.kind), named_key(variables.get(role))
        if variables.get(role) is None and spec.base_url is None:
            # The provider's own variable is read for its own address only.
            key = os.environ.get(provider.key_variable or "")
        if key:
            keys[spec.name] = key
    return keys


def _judges(named: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return a map from role to provider and model, for the models of --judge; raises
    InvalidInputError.
    """
    free = [role for role in JUDGES if role not in given]
    if len(named) > len(free):
        raise failure("command.many_judges", given=len(named), free=len(free), roles=[*JUDGES])
    bundled = {spec.model for spec in PROVIDERS["judge"].bundled}
    kinds = ("judge" if model in bundled else "hub_judge" for model in named)
    return {role: f"{kind}:{model}" for role, kind, model in zip(free, kinds, named, strict=False)}


def _with_readings(
    specs: Mapping[str, ModelSpec], options: argparse.Namespace
) -> dict[str, ModelSpec]:
    """Return the models with what the options say of how judges are read; raises
    InvalidInputError.
    """
    found = dict(specs)
    said = (
        ("judge_format", "--judge-format", options.judge_format, parse_format),
        ("judge_labels", "--judge-labels", options.judge_labels, parse_labels),
        ("languages", "--judge-languages", options.judge_languages, _languages),
    )
    for field, option, assigned, read in said:
        for role, value in by_role(assigned, option).items():
            if role not in found or found[role].kind != "hub_judge":
                raise failure("command.no_hub_judge", option=option, role=role)
            found[role] = found[role].model_copy(update={field: read(value)})
    return found


def _languages(text: str) -> tuple[Language, ...]:
    words = [word.strip() for word in text.split(",")]
    if not set(words) <= set(get_args(Language)):
        raise failure("command.judge_languages", text=text)
    return tuple(cast("list[Language]", sorted(set(words))))


def named_key(variable: str | None) -> str | None:
    """Return the key in an environment variable that an option names; None where none was named.

    Raises InvalidInputError where the variable holds nothing.
    """
    if variable is None:
        return None
    if not (key := os.environ.get(variable)):
        raise failure("command.no_key_in", variable=variable)
    return key


def _spec(profile: str, model: str, base_url: str | None) -> ModelSpec:
    provider = provider_of(profile)
    bundled = {spec.model: spec for spec in provider.bundled}
    if model in bundled:
        return bundled[model]
    if not model:
        raise failure("command.needs_model", profile=profile)
    if provider.only_bundled:
        raise failure(
            "command.not_bundled",
            profile=profile,
            model=model,
            known=[name or phrase("detail.no_name") for name in bundled],
        )
    name, revision = model, None
    if provider.pin is not None:
        model, revision = split_revision(model)
        name = judge_name(model)
    return ModelSpec(kind=profile, name=name, model=model, base_url=base_url, revision=revision)


def by_role(
    assignments: Sequence[str], option: str, roles: Sequence[str] = _OTHER_ROLES
) -> dict[str, str]:
    """Return the values of `assignments`, each written ROLE=VALUE, as given to `option`.

    Raises InvalidInputError for one without a value, or whose role is not among `roles`.
    """
    found: dict[str, str] = {}
    for assignment in assignments:
        role, _, value = assignment.partition("=")
        if role not in roles or not value:
            raise failure("command.no_role", option=option, assignment=assignment, known=[*roles])
        found[role] = value
    return found
