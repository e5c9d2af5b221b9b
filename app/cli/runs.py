"""`runs`: recorded runs found, named, compared, exported, reported and deleted."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from app.cli.forms import add_command, add_group, add_option, add_worded
from app.cli.shared import (
    OWNER,
    happened,
    option_error,
    read_bytes,
    said,
    whole,
    write_archive,
    write_export,
)
from components.forms import RUN_FILTER, FormField
from pipelines.base import Token, printable, printable_json
from pipelines.engine.estimate import Account
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.models.providers import ModelSpec
from pipelines.prompts import own_prompts
from pipelines.run.calibrated import CalibratedReading, deciding_readings
from pipelines.run.calibrations import CalibratedTask, Calibration
from pipelines.run.changes import (
    MethodChanges,
    RunChanges,
    RunPair,
    ScorePair,
    changes,
    evidence_words,
    in_order,
    model_words,
)
from pipelines.run.events import (
    Event,
    EvidenceSpec,
    Judged,
    ModelCalled,
    Retrieved,
    Revised,
    RunFailed,
    RunSpec,
    Score,
    SpanEnded,
    SpanStarted,
    Trace,
)
from pipelines.run.view import MethodView, RunView, fold, reduce
from pipelines.store import RunFilter, RunSummary
from pipelines.store.archive import export_archive, import_archive, is_archive

# Calibrations, and what they say of a score, in words for a terminal.

_WRONG: dict[CalibratedTask, str] = {
    "answer": "of answers with such a score are wrong",
    "span": "of texts with such a score have a hallucinated span",
    "sentence": "of sentences with such a score are inaccurate",
    "concept": "of concepts with such a score are false",
}


def reading_lines(found: Iterable[CalibratedReading]) -> list[str]:
    """Return a line for each reading of a score."""
    lines: list[str] = []
    for one in found:
        calibration = one.calibration
        said = f"by labels, {one.probability:.2f} {_WRONG[calibration.task]}"
        others = ", ".join(f"{role} {calibration.models[role]}" for role in one.others)
        told = f"; fitted with other models: {others}" if others else ""
        lines.append(f"{said} ({_basis(calibration)}{told})")
    return lines


def calibration_words(one: Calibration) -> str:
    """Return a calibration's score, what it was fitted to, and how good it is on the rest."""
    said = f"{one.method} {one.score}, task {one.task}: {_basis(one)}"
    errors = {"Brier score": one.brier, "calibration error": one.calibration_error}
    told = [f"{name} {value:.3f}" for name, value in errors.items() if value is not None]
    return f"{said}; {', '.join(told)} on {one.tested} others" if told else said


def _basis(one: Calibration) -> str:
    labels = "1 label" if one.labels == 1 else f"{one.labels} labels"
    of = f" of {one.session!r}" if one.session else ""
    return f"{one.fit.kind}, fitted to {labels}{of}"


# What changed between two runs, in a terminal.

_NONE = "-"


def describe_changes(before: RunView, after: RunView, found: RunChanges) -> str:
    """Return the changes in words; every text in it is `printable`."""
    lines = [_run("first ", before), _run("second", after), ""]
    lines += _conditions(found)
    for method in found.methods:
        lines += ["", *_method(method)]
    return printable("\n".join(lines))


def _run(name: str, view: RunView) -> str:
    assert view.header is not None
    when = datetime.fromtimestamp(view.header.created, UTC)
    return f"{name} {view.run}  {when:%Y-%m-%d %H:%M} UTC  {view.header.spec.question}"


def _conditions(found: RunChanges) -> list[str]:
    lines = [_pair("", pair) for pair in (*found.facts, *found.models)]
    for method in found.methods:
        lines += [_pair(f"{method.name}.", pair) for pair in method.settings]
    lines += [_pair("version of ", pair) for pair in found.versions]
    lines += [_pair("prompt ", pair) for pair in found.prompts]
    for (file, language, key), old, new in found.wording:
        lines.append(f"  prompt {file}/{key} ({language}):")
        lines += [
            f"    - {_indented(old or 'the default')}",
            f"    + {_indented(new or 'the default')}",
        ]
    return ["conditions:", *(lines or ["  all the same"])]


def _pair(prefix: str, pair: RunPair) -> str:
    return f"  {prefix}{pair.name}: {_value(pair.before)} -> {_value(pair.after)}"


def _value(value: Any) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, ModelSpec):
        return model_words(value)
    if isinstance(value, tuple):
        return "; ".join(map(calibration_words, value)) or _NONE
    return evidence_words(value) if isinstance(value, EvidenceSpec) else str(value)


def _method(one: MethodChanges) -> Iterator[str]:
    yield f"{one.name}:" if one.changed else f"{one.name}: the same answer, verdict and scores"
    if one.before is None or one.after is None:
        yield f"  only in the {'second' if one.before is None else 'first'} run"
        return
    if any(one.verdicts):
        old, new = (verdict or _NONE for verdict in one.verdicts)
        yield f"  verdict: {old}" if old == new else f"  verdict: {old} -> {new}"
    yield from (_score(pair) for pair in one.scores)
    before, after = one.answers
    if before == after:
        yield f"  answer: {after if after is not None else _NONE}"
    else:
        yield f"  - {_indented(before)}"
        yield f"  + {_indented(after)}"
    for where, passages in zip(("first", "second"), one.passages, strict=True):
        titles = Counter(passage.title or passage.id for passage in passages)
        for title, count in titles.items():
            times = f" ({count} passages)" if count > 1 else ""
            yield f"  evidence only in the {where} run: {title}{times}"


def _indented(text: str | None) -> str:
    return _NONE if text is None else text.replace("\n", "\n    ")


def _score(pair: ScorePair) -> str:
    sides = f"{_number(pair.before)} -> {_number(pair.after)}"
    moved = "" if pair.difference is None else f" ({pair.difference:+.3f})"
    known = pair.after or pair.before
    limit = known.threshold if known is not None else None
    threshold = "" if limit is None else f", threshold {limit:.3f}"
    return f"  {pair.name}: {sides}{moved}{threshold}"


def _number(score: Score | None) -> str:
    return _NONE if score is None or score.value is None else f"{score.value:.3f}"


# A run in a terminal: one line a step while it happens, the whole run at the end.
#
# The second reader of the event stream beside the screens: it folds the same events with the same
# `reduce`, and knows nothing else.

# Background shades of a 256-colour terminal, from probable (none) to improbable.
_SHADES = (None, 189, 147, 105, 63)

_REASONS: dict[str, str] = {
    "stopped": "stopped",
    "unwatched": "nobody was watching",
    "shutdown": "the program was closed",
    "time_limit": "the time limit was reached",
    "token_limit": "the token limit was reached",
    "interrupted": "interrupted: the program ended before the run did",
}


class Terminal:
    """Writes a line for everything worth knowing while a run goes on.

    With `account`, every call says how many were expected.
    """

    def __init__(self, out: TextIO, account: Account | None = None) -> None:
        self._out = out
        self._account = account
        self._view = RunView()

    def show(self, event: Event) -> None:
        """Take one event in."""
        self._view = reduce(self._view, event)
        line = self._line(event)
        if line:
            name = self._view.spans.get(event.span, "run")
            if isinstance(event, ModelCalled):
                line += self._progress()
            told = printable(f"{event.time:7.2f} s  {name:8} {line}")
            print(told, file=self._out, flush=True)

    def _progress(self) -> str:
        """Return a text such as " (call 12 of about 41)", where that was estimated."""
        expected = self._account.budget.expected if self._account is not None else None
        if self._account is None or expected is None:
            return ""
        about = max(1, round(expected.calls + expected.judge_calls))
        return f" (call {self._account.taken.calls} of about {about})"

    @staticmethod
    def _line(event: Event) -> str | None:
        match event:
            case SpanStarted():
                return event.name if event.name != "method" else "started"
            case ModelCalled(error=error) if error is not None:
                return f"  call to {event.model}, attempt {event.attempt}: {happened(error)}"
            case ModelCalled():
                written = sum(g.usage.completion_tokens for g in event.generations)
                source = "from cache" if event.cached else f"{written} tokens"
                return f"  call to {event.model}: {source}"
            case Retrieved():
                return f"  search {event.query!r}: {len(event.passages)} passages"
            case Judged(verdict="doubtful"):
                flagged = (_scored(score) for score in event.scores if score.flagged)
                return f"  doubtful {event.text!r}: {', '.join(flagged)}"
            case Revised():
                return f"  draft {event.draft}: {event.after}"
            case SpanEnded(error=error) if error is not None:
                return f"  {said(error)}"
            case RunFailed():
                return f"failed: {said(event.error)}"
            case _:
                return None


def describe(view: RunView, *, colour: bool = False) -> str:
    """Return the whole run as text; with `colour`, tokens are shaded by improbability.

    Every text in it is `printable`.
    """
    if view.header is None:
        return "An empty run."
    why = f" ({_REASONS[view.reason]})" if view.reason is not None else ""
    lines = [printable(view.header.spec.question), f"{view.status}{why}, {view.time:.1f} s", ""]
    if own := own_prompts(view.header.spec.prompts):
        named = ", ".join(f"{file}/{key} ({language})" for file, language, key in own)
        lines[2:2] = [printable(f"prompts of your own: {named}")]
    for method in view.methods.values():
        lines += [*_describe_method(method, view.header.spec, colour=colour), ""]
    if view.error is not None:
        lines.append(printable(said(view.error)))
    return "\n".join(lines).rstrip()


def _describe_method(method: MethodView, spec: RunSpec, *, colour: bool) -> list[str]:
    lines = [
        printable(
            f"{method.name}: {len(method.made)} calls, {len(method.searches)} searches, "
            f"{method.tokens} tokens"
        )
    ]
    for draft in method.drafts:
        label = "original" if draft.draft == 0 else f"draft {draft.draft}"
        tokens = draft.generation.tokens
        text = _shaded(draft.after, tokens) if colour and tokens else printable(draft.after)
        lines.append(f"  {label}: {text}")
    # The last verdict on the answer, with the score that decided it.
    for event in [event for event in method.judged if event.what == "answer"][-1:]:
        decided = "".join(f", {_scored(score)}" for score in event.scores[:1])
        lines.append(printable(f"  verdict: {event.verdict}{decided}"))
        read = reading_lines(deciding_readings(spec, method.name, event))
        lines += [printable(f"    {line}") for line in read]
    if method.answer is not None:
        lines.append(f"  answer: {printable(method.answer.text)}")
        if method.answer.flags:
            lines.append(printable(f"  remarks: {', '.join(method.answer.flags)}"))
    if method.error is not None:
        lines.append(printable(f"  failed: {said(method.error)}"))
    return lines


def _scored(score: Score) -> str:
    value = "unknown" if score.value is None else f"{score.value:.2f}"
    limit = "" if score.threshold is None else f" (threshold {score.threshold:.2f})"
    return f"{score.name} {value}{limit}"


def _shaded(text: str, tokens: tuple[Token, ...]) -> str:
    pieces, at = [], 0
    for token in tokens:
        if token.start < at or token.probability is None:
            continue
        shade = _SHADES[min(len(_SHADES) - 1, int((1 - token.probability) * len(_SHADES)))]
        pieces.append(printable(text[at : token.start]))
        piece = printable(text[token.start : token.end])
        pieces.append(piece if shade is None else f"\x1b[48;5;{shade};38;5;16m{piece}\x1b[0m")
        at = token.end
    return "".join([*pieces, printable(text[at:])])


_MOST = 1_000_000
"""Runs that a list may name, or pass over."""


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


def _drawn(trace: Trace, language: Any) -> str:
    # Loaded only when a report is wanted: no other command draws pages.
    from components.base.words import Catalogue
    from components.run.report import report_html

    return report_html(fold(trace.events), Catalogue(language))


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
    add_worded(parser, "cli.runs.limit", "--limit", type=so_many, default=20)
    add_worded(parser, "cli.runs.offset", "--offset", type=so_many, default=0)
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
    parts = add_group(commands, "cli.command.runs")

    def add(key: str, command: Any, runs: str = "") -> argparse.ArgumentParser:
        """Add a command; `runs` is "one" or "several" runs that it is for."""
        added = add_command(parts, key, command)
        if runs:
            added.add_argument("run", metavar="RUN", nargs="+" if runs == "several" else None)
        return added

    listing = add("cli.command.runs.list", list_runs)
    add_worded(listing, "cli.json.run", "--json", action="store_true")
    add_filter_options(listing)
    add("cli.command.runs.show", show_run, "one")
    exported = add("cli.command.runs.export", export_run, "several")
    add_worded(exported, "cli.to", "--to", type=Path, metavar="FILE")
    add("cli.command.runs.import", import_runs).add_argument("file", type=Path)
    deleted = add("cli.command.runs.delete", delete_runs, "several")
    add_worded(deleted, "cli.runs.yes", "--yes", action="store_true")
    add("cli.command.runs.rename", _rename, "one").add_argument("name")
    add("cli.command.runs.note", _note, "one").add_argument("text")
    star = add("cli.command.runs.star", _star, "several")
    add_worded(star, "cli.runs.unstar", "--remove", action="store_true")
    tag = add("cli.command.runs.tag", _tag, "several")
    for name in ("add", "remove"):
        tag.add_argument(f"--{name}", action="append", default=[], metavar="TAG")
    add("cli.command.runs.diff", _diff, "one").add_argument("other", metavar="OTHER")
    report = add("cli.command.runs.report", _report, "one")
    add_worded(report, "cli.to", "--output", "--to", type=Path, metavar="FILE")
    add_worded(report, "cli.report.language", "--language", choices=["en", "zh"], default="en")
