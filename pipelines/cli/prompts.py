"""`prompts`: show the prompts of methods, and check and compare texts that replace them."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, get_args

from pipelines.cli.profiles import add_profile_option, chosen_profile
from pipelines.cli.shared import said
from pipelines.cli.wording import add_prompts_option, chosen_wording, read_wording
from pipelines.engine.prompts import files_of, users_of
from pipelines.engine.service import Service
from pipelines.error_words import language_of_terminal, phrase_in
from pipelines.errors import InvalidInputError, failure
from pipelines.methods.registry import METHODS
from pipelines.printable import printable, printable_json
from pipelines.prompts import (
    Wording,
    checked_wording,
    load_prompts,
    own_prompts,
    prompt_files,
    prompt_problems,
    worded,
)
from pipelines.types import Language


async def _list(service: Service, options: argparse.Namespace) -> int:
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


async def _show(service: Service, options: argparse.Namespace) -> int:
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
    """Print what a profile's or a file's texts change, as a unified diff; 1 where something
    differs.
    """
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
    group = commands.add_parser(
        "prompts", help="show the prompts of methods, and check texts of your own"
    )
    parts = group.add_subparsers(required=True)
    listed = parts.add_parser("list", help="list every prompt, with its placeholders")
    listed.set_defaults(command=_list)
    listed.add_argument(
        "--method", choices=list(METHODS), help="list only the prompts of one method"
    )
    listed.add_argument("--json", action="store_true", help="print a JSON line per prompt")
    shown = parts.add_parser("show", help="print the text of a prompt")
    shown.set_defaults(command=_show)
    shown.add_argument(
        "prompt", metavar="FILE/NAME", help="name of the prompt, for example ever/verify"
    )
    shown.add_argument("--language", choices=get_args(Language), default="en")
    checked = parts.add_parser("check", help="check whether texts of your own can be used")
    checked.set_defaults(command=_check)
    checked.add_argument("file", type=Path, metavar="FILE")
    compared = parts.add_parser("diff", help="compare texts of your own with the shipped ones")
    compared.set_defaults(command=_diff)
    add_prompts_option(compared)
    for part in (listed, shown, compared):
        add_profile_option(part)
