"""Profiles on the command line: settings of methods under a name."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

from pipelines.cli.exports import read_export, write_export
from pipelines.cli.settings import read_settings
from pipelines.engine.profiles import checked_profile, profile_text, read_profile
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError
from pipelines.methods.registry import METHODS
from pipelines.printable import printable, printable_json
from pipelines.store.profiles import Profile

OWNER = "command-line"


async def chosen_profile(service: Service, options: argparse.Namespace) -> Profile | None:
    """What `--settings-profile` names, None without it. Raises NotFoundError, InvalidInputError."""
    if not options.settings_profile:
        return None
    store = service.store.profiles
    return checked_profile(await asyncio.to_thread(store.get, OWNER, options.settings_profile))


def add_profile_option(parser: argparse.ArgumentParser) -> None:
    """`--settings-profile`; `--profile` names the kind of the main model."""
    parser.add_argument(
        "--settings-profile",
        metavar="NAME",
        help="settings of methods, and models, that were saved under this name; --set and the"
        " options of models go before them",
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


async def _save(service: Service, options: argparse.Namespace) -> int:
    settings = read_settings(METHODS, options.set, "Write METHOD.SETTING=VALUE.")
    held = {name: values for name, values in settings.items() if values}
    if not held:
        raise InvalidInputError(
            "A profile without settings says nothing.", remedy="Give --set METHOD.SETTING=VALUE."
        )
    profile = Profile(name=options.name, description=options.description, settings=held)
    await _keep(service, profile, replace=options.replace)
    return 0


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
    """A profile in lines: its settings, models and where it comes from."""
    lines = [profile.name]
    if profile.description:
        lines.append(f"  {profile.description}")
    lines += [
        f"  {method}.{name} = {value}"
        for method, values in profile.settings.items()
        for name, value in values.items()
    ]
    lines += [f"  {role}: {model.name}" for role, model in profile.models.items()]
    if profile.origin:
        known = profile.origin.model_dump(exclude_defaults=True)
        lines.append("  from " + ", ".join(f"{name} {value}" for name, value in known.items()))
    return "\n".join(lines) + "\n"


def add_profile_commands(commands: Any) -> None:
    """`profiles`."""
    group = commands.add_parser("profiles", help="settings of methods under a name")
    parts = group.add_subparsers(required=True)
    listed = parts.add_parser("list", help="all, by name")
    listed.set_defaults(command=_list)
    listed.add_argument("--json", action="store_true", help="print a JSON line per profile")
    for name, command, text in (
        ("show", _show, "one profile"),
        ("export", _export, "a profile as JSON"),
        ("delete", _delete, "delete one; runs that used it stay"),
        ("save", _save, "save settings under a name"),
    ):
        part = parts.add_parser(name, help=text)
        part.set_defaults(command=command)
        part.add_argument("name")
        if name == "export":
            part.add_argument("--to", type=Path, metavar="FILE", help="default: standard output")
        if name == "save":
            what = {"metavar": "METHOD.SETTING=VALUE", "help": "a setting"}
            part.add_argument("--set", action="append", default=[], **what)
            part.add_argument("--description", default="", help="what it is for")
            _add_replace(part)
    imported = parts.add_parser("import", help="save a profile from its file")
    imported.set_defaults(command=_import)
    imported.add_argument("file", type=Path)
    _add_replace(imported)


def _add_replace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replace", action="store_true", help="in place of one of the same name")
