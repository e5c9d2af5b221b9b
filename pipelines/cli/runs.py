"""`runs`: recorded runs found, named, compared, exported, reported and deleted."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from components.forms import RUN_FILTER, FormField
from pipelines.cli.changes import describe_changes
from pipelines.cli.exports import read_bytes, write_archive, write_export
from pipelines.cli.forms import add_option
from pipelines.cli.shared import OWNER, option_error, said, whole
from pipelines.cli.terminal import describe
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.printable import printable, printable_json
from pipelines.run.changes import changes, in_order
from pipelines.run.trace import Trace
from pipelines.run.view import fold
from pipelines.store import RunFilter, RunSummary
from pipelines.store.archive import export_archive, import_archive, is_archive

_MOST = 1_000_000
"""Runs that a list may name, or pass over."""

# The report is drawn by what is above the engine. It is named here, and loaded only when a report
# is wanted: the engine works without it.
_REPORTS = ("components.report", "components.messages")


async def list_runs(service: Service, options: argparse.Namespace) -> int:
    """Print the runs that match the options, newest first."""
    where = chosen_filter(options)
    found = await asyncio.to_thread(
        service.store.list, OWNER, options.limit, where=where, offset=options.offset
    )
    for run in found:
        print(printable_json(run.model_dump_json()) if options.json else printable(line_of(run)))
    return 0


def line_of(run: RunSummary) -> str:
    """Return a run in a line of text."""
    status = "interrupted" if run.reason == "interrupted" else run.status
    star = "* " if run.starred else ""
    tags = f"  [{', '.join(run.tags)}]" if run.tags else ""
    when = f"{run.created:%Y-%m-%d %H:%M}"
    title = " ".join(run.title.split())
    return f"{run.id}  {when}  {status:11}  {','.join(run.methods):16}  {star}{title}{tags}"


async def show_run(service: Service, options: argparse.Namespace) -> int:
    """Print one run in words."""
    trace = await service.load(options.run, owner=OWNER)
    print(describe(fold(trace.events), colour=sys.stdout.isatty()))
    return 0


async def export_run(service: Service, options: argparse.Namespace) -> int:
    """Write a run as JSON lines, or several as a zip file."""
    runs = [options.run] if isinstance(options.run, str) else list(dict.fromkeys(options.run))
    if len(runs) == 1:
        text = await asyncio.to_thread(lambda: "".join(service.store.export(runs[0], OWNER)))
        write_export(text, options.to)
        return 0
    if options.to is None:
        raise failure("command.zip_needed")
    data = await asyncio.to_thread(export_archive, service.store, runs, OWNER)
    write_archive(data, options.to)
    return 0


async def import_runs(service: Service, options: argparse.Namespace) -> int:
    """Store an exported run, or every run of a zip file; prints their ids."""
    data = read_bytes(options.file, "export")
    if not is_archive(data):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise failure("command.unreadable_run", file=options.file) from None
        print(await asyncio.to_thread(service.store.import_run, text, OWNER))
        return 0
    brought = await asyncio.to_thread(import_archive, service.store, data, OWNER)
    for run in brought.runs:
        print(run)
    for name, error in brought.refused:
        print(printable(f"{name}: {said(error.info())}"), file=sys.stderr)
    return 2 if brought.refused else 0


async def delete_runs(service: Service, options: argparse.Namespace) -> int:
    """Delete runs; of several only after asking."""
    runs = [options.run] if isinstance(options.run, str) else list(dict.fromkeys(options.run))
    if len(runs) > 1 and not options.yes:
        _ask_first(len(runs))
    missing = set(runs) - set(await asyncio.to_thread(service.store.owned, runs, OWNER))
    if missing:
        # None is deleted where one of them was mistyped.
        raise failure("storage.no_run")
    await service.delete_many(runs, owner=OWNER)
    return 0


def _ask_first(count: int) -> None:
    if not sys.stdin.isatty():
        raise failure("command.unasked_deletion", count=count)
    print(f"Delete these {count} runs permanently? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise failure("command.nothing_deleted")


async def _rename(service: Service, options: argparse.Namespace) -> int:
    await asyncio.to_thread(service.store.labels.rename, options.run, OWNER, options.name)
    return 0


async def _note(service: Service, options: argparse.Namespace) -> int:
    await asyncio.to_thread(service.store.labels.note, options.run, OWNER, options.text)
    return 0


async def _star(service: Service, options: argparse.Namespace) -> int:
    for run in options.run:
        await asyncio.to_thread(service.store.labels.star, run, OWNER, not options.remove)
    return 0


async def _tag(service: Service, options: argparse.Namespace) -> int:
    if not (options.add or options.remove):
        raise failure("command.no_tag")

    def tag() -> None:
        service.store.labels.tag(options.run, OWNER, add=options.add, remove=options.remove)

    await asyncio.to_thread(tag)
    return 0


async def _diff(service: Service, options: argparse.Namespace) -> int:
    traces = [await service.load(run, owner=OWNER) for run in (options.run, options.other)]
    before, after = in_order(*(fold(trace.events) for trace in traces))
    print(describe_changes(before, after, changes(before, after)))
    return 0


async def _report(service: Service, options: argparse.Namespace) -> int:
    trace = await service.load(options.run, owner=OWNER)
    text = await asyncio.to_thread(_drawn, trace, options.language)
    write_export(text, options.output, json=False)
    return 0


def _drawn(trace: Trace, language: str) -> str:
    report, messages = map(import_module, _REPORTS)
    draw: Callable[..., str] = report.report_html
    return draw(fold(trace.events), messages.Catalogue(language))


def chosen_filter(options: argparse.Namespace) -> RunFilter:
    """Return which runs the options mean."""
    fields = RUN_FILTER.fields.values()
    return RunFilter(**{one.name: getattr(options, _option(one)) for one in fields})


def _option(field: FormField) -> str:
    """Return the name of an option: each of several values is given by one, --tag A --tag B."""
    return field.name.removesuffix("s") if field.several else field.name


def add_filter_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that filter runs; a run must fulfil each option that is given."""
    so_many = partial(whole, most=_MOST)
    parser.add_argument(
        "--limit",
        type=so_many,
        default=20,
        help="list at most this many runs (default: %(default)s)",
    )
    parser.add_argument(
        "--offset", type=so_many, default=0, help="skip this many runs (default: %(default)s)"
    )
    for name, field in RUN_FILTER.fields.items():
        look: dict[str, Any] = {}
        if field.kind is not bool:
            default = [] if field.several else field.default
            look = {"default": default, "type": _TYPES.get(name), "metavar": _UNITS.get(name)}
        if field.several:
            look |= {"action": "append", "choices": field.choices or None}
        add_option(parser, field, f"--{_option(field).replace('_', '-')}", **look)


def _moment(text: str) -> datetime:
    """Return a date or a moment in ISO 8601, in this machine's time zone where it names none."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.astimezone()).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise option_error("option.no_date", text=text) from None


def _end(text: str) -> datetime:
    """Return the moment as `_moment` does; of a date alone the end of the day."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return _moment(text)
    if day == date.max:
        return _moment(text)
    midnight = datetime.combine(day + timedelta(days=1), time.min)
    return midnight.astimezone(UTC)


_TYPES: Mapping[str, Callable[[str], datetime]] = {"since": _moment, "until": _end}
_UNITS = {"methods": "NAME", "models": "NAME", "tags": "TAG", "since": "DATE", "until": "DATE"}


def add_run_commands(commands: Any) -> None:
    """Add the command `runs`."""
    group = commands.add_parser("runs", help="find, name, compare and report recorded runs")
    parts = group.add_subparsers(required=True)

    def add(name: str, command: Any, text: str, runs: str = "") -> argparse.ArgumentParser:
        """Add a command; `runs` is "one" or "several" runs that it is for."""
        added = parts.add_parser(name, help=text)
        added.set_defaults(command=command)
        if runs:
            added.add_argument("run", metavar="RUN", nargs="+" if runs == "several" else None)
        return added

    listing = add("list", list_runs, "list runs, newest first")
    listing.add_argument("--json", action="store_true", help="print a JSON line per run")
    add_filter_options(listing)
    add("show", show_run, "print a run in words", "one")
    exported = add(
        "export", export_run, "write a run as JSON lines, several as a zip file", "several"
    )
    exported.add_argument(
        "--to", type=Path, metavar="FILE", help="write to this file (default: standard output)"
    )
    add("import", import_runs, "store exported runs").add_argument("file", type=Path)
    deleted = add("delete", delete_runs, "delete runs; several after asking", "several")
    deleted.add_argument("--yes", action="store_true", help="delete without asking")
    add("rename", _rename, "give a run a name; an empty one takes it away", "one").add_argument(
        "name"
    )
    add("note", _note, "keep a note on a run, in place of the one before", "one").add_argument(
        "text"
    )
    star = add("star", _star, "give runs a star", "several")
    star.add_argument("--remove", action="store_true", help="remove the star")
    tag = add("tag", _tag, "give runs tags, or take them away", "several")
    for name in ("add", "remove"):
        tag.add_argument(f"--{name}", action="append", default=[], metavar="TAG")
    add("diff", _diff, "print what changed from one run to another", "one").add_argument(
        "other", metavar="OTHER"
    )
    report = add("report", _report, "write a run as one HTML file that opens offline", "one")
    report.add_argument(
        "--output",
        "--to",
        type=Path,
        metavar="FILE",
        help="write to this file (default: standard output)",
    )
    report.add_argument(
        "--language",
        choices=["en", "zh"],
        default="en",
        help="language of the report (default: %(default)s)",
    )
