"""Profiles on the command line: models, settings and prompts under a name."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.cli.calibrated import calibration_words
from pipelines.cli.exports import read_export, write_export
from pipelines.cli.models import by_role, role_models
from pipelines.cli.prices import priced_models
from pipelines.cli.shared import OWNER, read_settings
from pipelines.cli.wording import chosen_wording
from pipelines.engine.profiles import (
    Lack,
    checked_profile,
    idle_calibrations,
    lacks,
    profile_text,
    read_profile,
    setting_rows,
)
from pipelines.engine.service import Service
from pipelines.engine.templates import TEMPLATES, made, template
from pipelines.errors import failure
from pipelines.methods.registry import METHODS
from pipelines.models.providers import ModelSpec, provider_of
from pipelines.printable import printable, printable_json
from pipelines.prompts import own_prompts
from pipelines.run.spec import ROLES
from pipelines.store.profiles import Profile

_SEVERAL: dict[str, Any] = {"action": "append", "default": []}


async def chosen_profile(service: Service, options: argparse.Namespace) -> Profile | None:
    """Return what `--settings-profile` names, None without it. Raises NotFoundError,
    InvalidInputError.
    """
    if not options.settings_profile:
        return None
    store = service.store.profiles
    return checked_profile(await asyncio.to_thread(store.get, OWNER, options.settings_profile))


def add_profile_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--settings-profile`; `--profile` names the kind of the main model."""
    parser.add_argument(
        "--settings-profile",
        metavar="NAME",
        help="use the models, settings and prompts saved under this name; --set,"
        " --prompts and the options of models go before them",
    )


async def _list(service: Service, options: argparse.Namespace) -> int:
    for one in await asyncio.to_thread(service.store.profiles.list, OWNER):
        if options.json:
            print(printable_json(one.model_dump_json()))
        else:
            methods = ",".join(one.settings) or "-"
            print(printable(f"{one.name}  {methods}  {one.description}".rstrip()))
    return 0


async def _show(service: Service, options: argparse.Namespace) -> int:
    one = await asyncio.to_thread(service.store.profiles.get, OWNER, options.name)
    print(printable(described(one)), end="")
    return 0


async def _templates(_service: Service, options: argparse.Namespace) -> int:
    for one in TEMPLATES.values():
        if options.json:
            row = Profile(name=one.title, models=one.with_judges).model_dump(mode="json")
            print(printable_json(json.dumps({"template": one.name, **row}, ensure_ascii=False)))
            continue
        print(printable(f"{one.name}  {one.title}"))
        for line in _models(one.models):
            print(printable(line))
    return 0


async def _make(service: Service, options: argparse.Namespace) -> int:
    profile = made(
        template(options.template),
        options.name,
        addresses=by_role(options.address, "--address", ROLES),
        models=by_role(options.model, "--model", ROLES),
        description=options.description,
    )
    await _keep(service, profile, replace=options.replace)
    print(printable(described(profile)), end="")
    return 0


async def _save(service: Service, options: argparse.Namespace) -> int:
    profile = _changed(Profile(name=options.name, description=options.description), options)
    if not (profile.settings or profile.models or profile.prompts):
        raise failure("profiles.nothing_given")
    await _keep(service, profile, replace=options.replace)
    return 0


async def _edit(service: Service, options: argparse.Namespace) -> int:
    store = service.store.profiles
    before = await asyncio.to_thread(store.get, OWNER, options.name)
    update: dict[str, Any] = {}
    if options.rename is not None:
        update["name"] = options.rename
    if options.description is not None:
        update["description"] = options.description
    if options.default_prompts:
        update["prompts"] = {}
    after = checked_profile(_changed(before.model_copy(update=update), options))
    await asyncio.to_thread(store.edit, OWNER, options.name, after)
    print(printable(described(after)), end="")
    return 0


def _changed(profile: Profile, options: argparse.Namespace) -> Profile:
    """Return `profile` with the models, settings and prompts of the options. Raises
    InvalidInputError.
    """
    given = read_settings(METHODS, options.set, "METHOD.SETTING=VALUE", "drad.theta_1=0.5")
    settings = {
        name: found
        for name in METHODS
        if (found := {**profile.settings.get(name, {}), **given.get(name, {})})
    }
    models = {**profile.models, **role_models(options.role, options.role_url)}
    if options.prices:
        halves = {"price_in": None, "price_out": None, "currency": None}
        models = priced_models(models, argparse.Namespace(prices=options.prices, **halves))
    return profile.model_copy(
        update={
            "settings": settings,
            "models": models,
            "prompts": chosen_wording(options, profile.prompts),
        }
    )


async def _export(service: Service, options: argparse.Namespace) -> int:
    one = await asyncio.to_thread(service.store.profiles.get, OWNER, options.name)
    write_export(profile_text(one), options.to)
    return 0


async def _import(service: Service, options: argparse.Namespace) -> int:
    text = read_export(options.file, "profiles export")
    profile = read_profile(text)
    await _keep(service, profile, replace=options.replace)
    print(printable(profile.name))
    return 0


async def _delete(service: Service, options: argparse.Namespace) -> int:
    await asyncio.to_thread(service.store.profiles.delete, OWNER, options.name)
    return 0


async def _keep(service: Service, profile: Profile, *, replace: bool) -> None:
    checked = checked_profile(profile)
    await asyncio.to_thread(service.store.profiles.save, OWNER, checked, replace=replace)


def described(profile: Profile) -> str:
    """Return a profile in lines: settings, prompts, models with prices and needs,
    calibrations, source.
    """
    lines = [profile.name]
    if profile.description:
        lines.append(f"  {profile.description}")
    lines += [
        f"  {method}.{name} = {value}" + ("" if usual is None else f"  (default {usual})")
        for method, name, value, usual in setting_rows(profile)
    ]
    lines += [f"  prompt {file}/{key} ({code})" for file, code, key in own_prompts(profile.prompts)]
    lines += _models(profile.models)
    idle = idle_calibrations(profile)
    for one in profile.calibrations:
        said = f"  calibration of {calibration_words(one)}"
        lines.append(said + ("; not for these settings and prompts" if one in idle else ""))
    if profile.origin:
        known = profile.origin.model_dump(exclude_defaults=True)
        lines.append("  from " + ", ".join(f"{name} {value}" for name, value in known.items()))
    return "\n".join(lines) + "\n"


def _models(models: Mapping[str, ModelSpec]) -> list[str]:
    """Return the models by role, each with its price, and what they need."""
    lines: list[str] = []
    for role, model in models.items():
        parts = dict.fromkeys((model.name, model.model, model.base_url))
        line = f"  {role}: {' '.join(filter(None, parts))}"
        if price := model.price:
            line += f"  {price.read:g} / {price.written:g} {price.currency} a million tokens"
        lines.append(line)
    has_key = {
        role: bool(os.environ.get(provider_of(model.kind).key_variable or ""))
        for role, model in models.items()
    }
    return lines + [f"  {one.role} needs {_needs(one)}" for one in lacks(models, has_key)]


def _needs(one: Lack) -> str:
    if one.what == "address":
        return f"an address: --address {one.role}=URL"
    variable = provider_of(one.model.kind).key_variable
    return f"a key: set {variable}, or give --key-env or --role-key-env"


def add_profile_commands(commands: Any) -> None:
    """Add the command `profiles`."""
    group = commands.add_parser("profiles", help="keep models, settings and prompts under a name")
    parts = group.add_subparsers(required=True)
    listed = parts.add_parser("list", help="list all profiles, by name")
    listed.set_defaults(command=_list)
    templates = parts.add_parser(
        "templates", help="list the built-in templates, and what they still need"
    )
    templates.set_defaults(command=_templates)
    for part in (listed, templates):
        part.add_argument("--json", action="store_true", help="print a JSON line per profile")
    for name, command, text in (
        ("show", _show, "print a profile"),
        ("export", _export, "write a profile as JSON"),
        ("delete", _delete, "delete a profile; runs that used it stay"),
        ("save", _save, "save models, settings and prompts under a name"),
        ("edit", _edit, "change a profile"),
    ):
        part = parts.add_parser(name, help=text)
        part.set_defaults(command=command)
        part.add_argument("name")
        if name == "export":
            part.add_argument(
                "--to",
                type=Path,
                metavar="FILE",
                help="write to this file (default: standard output)",
            )
        if name in ("save", "edit"):
            _add_content(part)
        if name == "save":
            part.add_argument(
                "--description", default="", help="description: what the profile is for"
            )
            _add_replace(part)
        if name == "edit":
            part.add_argument("--description", help="description: what the profile is for")
            part.add_argument("--rename", metavar="NAME", help="give the profile another name")
            part.add_argument(
                "--default-prompts",
                action="store_true",
                help="remove the profile's own texts of prompts",
            )
    maker = parts.add_parser("make", help="make a profile of a template")
    maker.set_defaults(command=_make)
    maker.add_argument("template", choices=list(TEMPLATES))
    maker.add_argument(
        "--name", default="", help="name of the profile (default: the template's title)"
    )
    maker.add_argument("--address", metavar="ROLE=URL", help="address of a model", **_SEVERAL)
    maker.add_argument(
        "--model", metavar="ROLE=ID", help="use another model than the template's", **_SEVERAL
    )
    maker.add_argument("--description", default="", help="description: what the profile is for")
    _add_replace(maker)
    imported = parts.add_parser("import", help="save a profile from its file")
    imported.set_defaults(command=_import)
    imported.add_argument("file", type=Path)
    _add_replace(imported)


def _add_content(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="METHOD.SETTING=VALUE",
        help="change a setting of a method; repeat for several",
        **_SEVERAL,
    )
    parser.add_argument(
        "--role",
        metavar="ROLE=KIND[:MODEL]",
        help="give a role a model, for example main=openai:gpt-4o-mini",
        **_SEVERAL,
    )
    parser.add_argument(
        "--role-url", metavar="ROLE=URL", help="address of the model in this role", **_SEVERAL
    )
    parser.add_argument("--prices", metavar="FILE", help="prices of models by name, as JSON")
    parser.add_argument(
        "--prompts",
        type=Path,
        metavar="FILE",
        help="use these texts in place of shipped prompts (a TOML file)",
    )


def _add_replace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replace", action="store_true", help="replace a profile of the same name")
