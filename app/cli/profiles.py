"""Profiles on the command line: models, settings and prompts under a name."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any, get_args

from app.cli.forms import add_command, add_group, add_worded
from app.cli.run_options import (
    add_prompts_option,
    by_role,
    chosen_wording,
    priced_models,
    read_wording,
    role_models,
)
from app.cli.runs import calibration_words
from app.cli.shared import OWNER, read_export, read_settings, said, write_export
from pipelines.base import Language, printable, printable_json
from pipelines.engine.profiles import (
    TEMPLATES,
    Lack,
    checked_profile,
    files_of,
    idle_calibrations,
    lacks,
    made,
    profile_text,
    read_profile,
    setting_rows,
    template,
    users_of,
)
from pipelines.engine.service import Service
from pipelines.error_words import language_of_terminal, phrase_in
from pipelines.errors import InvalidInputError, failure
from pipelines.methods.registry import METHODS
from pipelines.models.providers import ModelSpec, provider_of
from pipelines.prompts import (
    Wording,
    checked_wording,
    load_prompts,
    own_prompts,
    prompt_files,
    prompt_problems,
    worded,
)
from pipelines.run.events import ROLES
from pipelines.store.profiles import Profile

_SEVERAL: dict[str, Any] = {"action": "append", "default": []}


async def chosen_profile(service: Service, options: argparse.Namespace) -> Profile | None:
    """Return what `--settings-profile` names, if any; raises NotFoundError, InvalidInputError."""
    if not options.settings_profile:
        return None
    store = service.store.profiles
    return checked_profile(await asyncio.to_thread(store.get, OWNER, options.settings_profile))


def add_profile_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--settings-profile`; `--profile` names the kind of the main model."""
    add_worded(parser, "cli.settings_profile", "--settings-profile", metavar="NAME")


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
    """Return `profile` with the options' models, settings, prompts; raises InvalidInputError."""
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
    """Return a profile in lines: settings, prompts, models and prices, calibrations, source."""
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
    parts = add_group(commands, "cli.command.profiles")
    listed = add_command(parts, "cli.command.profiles.list", _list)
    templates = add_command(parts, "cli.command.profiles.templates", _templates)
    for part in (listed, templates):
        add_worded(part, "cli.json.profile", "--json", action="store_true")
    for name, command in (
        ("show", _show),
        ("export", _export),
        ("delete", _delete),
        ("save", _save),
        ("edit", _edit),
    ):
        part = add_command(parts, f"cli.command.profiles.{name}", command)
        part.add_argument("name")
        if name == "export":
            add_worded(part, "cli.to", "--to", type=Path, metavar="FILE")
        if name in ("save", "edit"):
            _add_content(part)
        if name == "save":
            add_worded(part, "cli.description", "--description", default="")
            _add_replace(part)
        if name == "edit":
            add_worded(part, "cli.description", "--description")
            add_worded(part, "cli.rename", "--rename", metavar="NAME")
            add_worded(part, "cli.default_prompts", "--default-prompts", action="store_true")
    maker = add_command(parts, "cli.command.profiles.make", _make)
    maker.add_argument("template", choices=list(TEMPLATES))
    add_worded(maker, "cli.profile.name", "--name", default="")
    add_worded(maker, "cli.profile.address", "--address", metavar="ROLE=URL", **_SEVERAL)
    add_worded(maker, "cli.profile.model", "--model", metavar="ROLE=ID", **_SEVERAL)
    add_worded(maker, "cli.description", "--description", default="")
    _add_replace(maker)
    imported = add_command(parts, "cli.command.profiles.import", _import)
    imported.add_argument("file", type=Path)
    _add_replace(imported)


def _add_content(parser: argparse.ArgumentParser) -> None:
    add_worded(parser, "cli.set.method", "--set", metavar="METHOD.SETTING=VALUE", **_SEVERAL)
    add_worded(parser, "cli.profile.role", "--role", metavar="ROLE=KIND[:MODEL]", **_SEVERAL)
    add_worded(parser, "cli.role_url", "--role-url", metavar="ROLE=URL", **_SEVERAL)
    add_worded(parser, "cli.profile.prices", "--prices", metavar="FILE")
    add_worded(parser, "cli.profile.prompts", "--prompts", type=Path, metavar="FILE")


def _add_replace(parser: argparse.ArgumentParser) -> None:
    add_worded(parser, "cli.replace", "--replace", action="store_true")


# `prompts`: show the prompts of methods, and check and compare texts that replace them.


async def _list_prompts(service: Service, options: argparse.Namespace) -> int:
    profile = await chosen_profile(service, options)
    own = set(own_prompts(profile.prompts)) if profile else set()
    wanted = [one.name for one in files_of(options.method)] if options.method else prompt_files()
    for file in wanted:
        prompts = load_prompts(file)
        for key in prompts.keys("en"):
            mine = [code for code in get_args(Language) if (file, code, key) in own]
            row = {
                "prompt": f"{file}/{key}",
                "methods": users_of(file),
                "placeholders": prompts.placeholders("en", key),
                "own": mine,
            }
            if options.json:
                print(printable_json(_json(row)))
                continue
            names = " ".join(f"${name}" for name in prompts.placeholders("en", key))
            mark = f"  own: {', '.join(mine)}" if mine else ""
            print(printable(f"{file}/{key:22} {names}{mark}".rstrip()))
    return 0


async def _show_prompt(service: Service, options: argparse.Namespace) -> int:
    profile = await chosen_profile(service, options)
    file, key = _named(options.prompt)
    with worded(profile.prompts if profile else {}):
        print(printable(load_prompts(file).text(options.language, key).strip()))
    return 0


async def _check(_service: Service, options: argparse.Namespace) -> int:
    """Print every problem of a file, each with its place; 2 where there is one."""
    wording = await asyncio.to_thread(read_wording, options.file)
    problems = list(_problems(wording))
    for problem in problems:
        print(printable(problem))
    if problems:
        return 2
    differing = own_prompts(checked_wording(wording))
    print(f"{len(own_prompts(wording))} texts, {len(differing)} differ from the default.")
    return 0


def _problems(wording: Wording) -> Iterator[str]:
    for (file, language, key), text in own_prompts(wording).items():
        prompts = load_prompts(file) if file in prompt_files() else None
        if prompts is None or key not in prompts.keys(language):
            try:
                checked_wording({file: {language: {key: text}}})
            except InvalidInputError as error:
                yield said(error.info())
            continue
        place = f"{file}/{key} ({language})"
        for one in prompt_problems(text.strip(), prompts.placeholders(language, key)):
            yield f"{place}: {phrase_in(one.phrase, language_of_terminal())}"


async def _diff(service: Service, options: argparse.Namespace) -> int:
    """Print what a profile's or file's texts change, as a unified diff; 1 where they differ."""
    profile = await chosen_profile(service, options)
    if options.prompts is None and profile is None:
        raise failure("prompts.nothing_to_compare")
    wording = chosen_wording(options, profile.prompts if profile else {})
    for (file, language, key), text in own_prompts(wording).items():
        place = f"{file}/{key} ({language})"
        lines = unified_diff(
            load_prompts(file).default(language, key).splitlines(),
            text.splitlines(),
            f"default  {place}",
            f"yours    {place}",
            lineterm="",
        )
        for line in lines:
            print(printable(line))
    return 1 if wording else 0


def _named(prompt: str) -> tuple[str, str]:
    """Return file and key of "ever/verify"; raises InvalidInputError."""
    file, _, key = prompt.partition("/")
    if file not in prompt_files():
        raise failure("prompts.no_file", file=repr(file), known=[*prompt_files()])
    known = load_prompts(file).keys("en")
    if key not in known:
        raise failure("prompts.no_prompt", file=file, key=repr(key), known=[*known])
    return file, key


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def add_prompt_commands(commands: Any) -> None:
    """Add the command `prompts`."""
    parts = add_group(commands, "cli.command.prompts")
    listed = add_command(parts, "cli.command.prompts.list", _list_prompts)
    add_worded(listed, "cli.prompts.method", "--method", choices=list(METHODS))
    add_worded(listed, "cli.json.prompt", "--json", action="store_true")
    shown = add_command(parts, "cli.command.prompts.show", _show_prompt)
    add_worded(shown, "cli.prompts.name", "prompt", metavar="FILE/NAME")
    shown.add_argument("--language", choices=get_args(Language), default="en")
    checked = add_command(parts, "cli.command.prompts.check", _check)
    checked.add_argument("file", type=Path, metavar="FILE")
    compared = add_command(parts, "cli.command.prompts.diff", _diff)
    add_prompts_option(compared)
    for part in (listed, shown, compared):
        add_profile_option(part)
