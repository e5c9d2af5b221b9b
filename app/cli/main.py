"""The command line: ask a question, look at recorded runs, prepare a library.

`python -m pipelines COMMAND --help` explains each. Results go to standard output, remarks to
standard error. The exit status is 0 when it worked, 1 when a run failed, 2 for unusable input, and
3 when a run was finished with errors: a method failed, or ended early, as at a limit. When the last
event or the result is printed, the run is stored; so is every run whose id was printed. A replay
that cannot be stored says so on standard error before it begins.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from app.cli.annotate import add_annotation_commands
from app.cli.ask import add_ask_options, ask, follow
from app.cli.check import add_check_command
from app.cli.evaluate import add_evaluate_command, add_evaluations_commands
from app.cli.forms import add_command, add_group, add_worded
from app.cli.leaving import Unawaited
from app.cli.library import add_library_commands, download, show_catalogue
from app.cli.papers import add_papers_command
from app.cli.profiles import add_profile_commands, add_prompt_commands
from app.cli.run_options import add_index_options, index_in_qdrant
from app.cli.runs import (
    add_filter_options,
    add_run_commands,
    delete_runs,
    export_run,
    import_runs,
    list_runs,
    show_run,
)
from app.cli.shared import OWNER, folder_named
from app.cli.study import add_study_command
from pipelines.aio import make_data_folder
from pipelines.base import data_folder, guard_log, printable
from pipelines.engine.service import Service
from pipelines.error_words import language_of_terminal, phrase, phrase_in
from pipelines.errors import exit_status
from pipelines.models.catalogue import EMBEDDER_FILE
from pipelines.store import database_url

# What Python makes of bytes that are no UTF-8.
_NO_TEXT = re.compile("[\ud800-\udfff]")
Command = Callable[[Service, argparse.Namespace], Awaitable[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(database_first(sys.argv[1:] if arguments is None else arguments))
    _refuse_bytes(parser, options)
    guard_log()
    return exit_status(lambda: asyncio.run(_with_service(options)))


def database_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command with `--database` in front, wherever it stands.

    No command has an option of that name: it means the same before and behind the command.
    """
    rest, found = list(arguments), list[str]()
    end = rest.index("--") if "--" in rest else len(rest)
    for at in range(end - 1, -1, -1):
        if rest[at] == "--database" and at + 1 < end:
            found = [*rest[at : at + 2], *found]
            del rest[at : at + 2]
            end -= 2
        elif rest[at].startswith("--database="):
            found = [rest[at], *found]
            del rest[at]
            end -= 1
    return [*found, *rest]


def _refuse_bytes(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a mistake of use where a text is no text; paths may be any bytes."""
    for name, given in vars(options).items():
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, str) and not one.isascii() and _NO_TEXT.search(one):
                wrong = phrase("option.no_text", option=name, text=ascii(one)[:80])
                parser.error(phrase_in(wrong, language_of_terminal()))


async def _with_service(options: argparse.Namespace) -> int:
    asyncio.get_running_loop().set_default_executor(Unawaited())
    make_data_folder(options.data, str(options.data))
    service = Service(options.data, database=database_url(options.data, options.database))
    async with aclosing(service):
        return await options.command(service, options)


async def _replay(service: Service, options: argparse.Namespace) -> int:
    run_id = await service.replay(options.run, owner=OWNER)
    why = service.why_not_stored(run_id, owner=OWNER)
    if why is not None:
        print(f"The replay is not stored. {printable(str(why))}", file=sys.stderr)
    return await follow(service, run_id, as_json=options.json)


async def _index(service: Service, options: argparse.Namespace) -> int:
    began = time.monotonic()
    if options.qdrant:
        return await index_in_qdrant(service, options)
    index = await service.libraries.index(
        options.library,
        rebuild=options.rebuild,
        progress=lambda done, total: print(f"\r{done}/{total} passages", end="", file=sys.stderr),
    )
    print(file=sys.stderr)
    print(
        f"{len(index.manifest.documents)} documents, {len(index.passages)} passages, "
        f"{index.reused} reused, {time.monotonic() - began:.1f} s"
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines", description=__doc__)
    add_worded(parser, "cli.folder", "--data", type=folder_named, default=data_folder())
    add_worded(parser, "cli.database", "--database", metavar="URL")
    commands = parser.add_subparsers(required=True)

    def add(key: str, command: Command, prints: str = "") -> argparse.ArgumentParser:
        """Add a command; `prints` is the key of what it can print as JSON."""
        added = add_command(commands, key, command)
        if prints:
            add_worded(added, prints, "--json", action="store_true")
        return added

    every_event = "cli.json.event"
    asking = add("cli.command.ask", ask, every_event)
    add_ask_options(asking)
    add_check_command(commands)

    replay = add("cli.command.replay", _replay, every_event)
    show = add("cli.command.show", show_run)
    export = add("cli.command.export", export_run)
    for command in (replay, show, export, add("cli.command.delete", delete_runs)):
        command.add_argument("run")
    add_worded(export, "cli.to", "--to", type=Path, metavar="FILE")

    listing = add("cli.command.list", list_runs, "cli.json.run")
    add_filter_options(listing)

    add("cli.command.import", import_runs).add_argument("file", type=Path)

    add_run_commands(commands)
    add_evaluate_command(commands)
    add_evaluations_commands(commands)
    add_annotation_commands(commands)
    add_study_command(commands)
    add_papers_command(commands)
    add_profile_commands(commands)
    add_prompt_commands(commands)
    add_library_commands(commands)

    models = add_group(commands, "cli.command.models")
    listed = add_command(models, "cli.command.models.catalogue", show_catalogue)
    add_worded(listed, "cli.json.model", "--json", action="store_true")
    fetched = add_command(models, "cli.command.models.download", download)
    add_worded(fetched, "cli.model.name", "name", facts={"file": EMBEDDER_FILE})

    index = add("cli.command.index", _index)
    index.add_argument("library", nargs="?", default="sample")
    add_worded(index, "cli.rebuild", "--rebuild", action="store_true")
    add_index_options(index)
    return parser
