"""`check`: a text, or a file of texts, under every detector that can work on it."""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from app.cli.ask import add_run_options, begun, requested
from app.cli.forms import add_command, add_worded, terminal_words
from app.cli.library import chosen_evidence
from app.cli.run_options import ModelCheck, taken_words
from app.cli.runs import Terminal, reading_lines
from app.cli.shared import OWNER, said, say
from components.evaluate.reading import reading_line
from pipelines.base import Language, UnsupportedSpan, printable, printable_json
from pipelines.engine.asking import RunRequest
from pipelines.engine.check_rows import check_record, check_rows, row_columns
from pipelines.engine.checking import (
    STANDARD,
    CheckedText,
    TextToCheck,
    checked_text,
    detectors,
    language_of,
    models_for,
    title_of,
    unmet_needs,
)
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.datasets.files import read_text
from pipelines.evaluation.datasets.opening import NamedText, TextFile, texts_of
from pipelines.evaluation.results.export import harmless
from pipelines.methods.base import Need
from pipelines.methods.together.verdict import TogetherFound
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.run.events import Score
from pipelines.run.view import RunView, reduce

_REASONS: Mapping[str, str] = {
    "question": "needs the question",
    "evidence": "needs evidence",
    "scores": "needs log-probabilities of given text",
    "logprobs": "needs log-probabilities",
    "proxy": "needs a proxy model",
    "model": "needs a model that writes",
    "languages": "needs a model that speaks both languages",
    "speaks": "needs a model that speaks the language of the text",
    "writes": "only writes",
}


def add_check_command(commands: Any) -> None:
    """Add `check` to the commands."""
    parser = add_command(commands, "cli.command.check", _check)
    parser.description = terminal_words()("cli.command.check.about")
    add_worded(parser, "cli.check.text", "text", nargs="?")
    add_worded(parser, "cli.check.file", "--file", type=Path)
    add_worded(parser, "cli.check.question", "--question", default="")
    add_worded(
        parser,
        "cli.check.source",
        "--source",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
    )
    add_worded(
        parser, "cli.check.detector", "--detector", action="append", choices=list(detectors())
    )
    add_worded(parser, "cli.check.output", "--output", choices=("text", "jsonl", "csv"))
    add_worded(parser, "cli.to", "--to", type=Path, metavar="FILE")
    add_run_options(parser, "detector")


async def _check(service: Service, options: argparse.Namespace) -> int:
    found = await asyncio.to_thread(_entries, options)
    entries = found.texts
    if found.reading is not None:
        say(reading_line(found.reading, terminal_words()))
    names = options.detector or list(detectors())
    check: ModelCheck | None = ModelCheck()
    every = {one: one for one in names}
    request, keys = await requested(service, options, every, "detector", check)
    if found.without_sources:
        if options.file is not None:
            say(
                f"{found.without_sources} of {len(entries)} texts bring no sources: their evidence"
                " is searched for, in the sample library unless --evidence or --collection names"
                " another one."
            )
        request = replace(request, evidence=await chosen_evidence(service, options, keys))
    names = options.detector or [name for name in names if name in STANDARD]
    calibrated = [one.method for one in request.profile.calibrations] if request.profile else []
    form = options.output or ("jsonl" if options.file else "text")
    failed = imperfect = 0
    with ExitStack() as stack:
        out: TextIO = sys.stdout
        if options.to is not None:
            out = stack.enter_context(_opened(options.to))
        writer = _ResultWriter(out, form, names, calibrated)
        for number, entry in enumerate(entries, start=1):
            if len(entries) > 1:
                told = printable(f"{number}/{len(entries)} {entry.id}")
                print(told, file=sys.stderr, flush=True)
            try:
                asked = _asked(entry.given, request, names)
                view, found = await _one(service, options, entry, asked, keys, check)
                # It was made once.
                check = None
            except VeriscopeError as error:
                if len(entries) == 1:
                    raise
                failed += 1
                writer.failed(entry, error)
                continue
            writer.found(entry, view, found)
            over = view.status == "finished"
            failed += not over
            imperfect += over and any(one.error for one in found.detectors)
    if failed == len(entries):
        return 1
    return 3 if failed or imperfect else 0


def _asked(given: TextToCheck, request: RunRequest, names: Sequence[str]) -> RunRequest:
    """Return the check of a text by the detectors that can; says of the others what they need."""
    models = models_for(given, request.models)
    needs = unmet_needs(
        {role: known_capabilities(spec) or Capabilities() for role, spec in models.items()},
        asked=given.asked,
        has_evidence=True,
        language=language_of(given),
        settings={one.name: one.settings for one in request.methods},
    )
    for name in names:
        if (need := needs[name]) is not None:
            print(printable(f"{name}: {_reason(need)}"), file=sys.stderr)
    able = [one for one in request.methods if one.name in names and needs[one.name] is None]
    return replace(request, text=given, methods=able)


async def _one(
    service: Service,
    options: argparse.Namespace,
    entry: NamedText,
    asked: RunRequest,
    keys: dict[str, str],
    check: ModelCheck | None,
) -> tuple[RunView, CheckedText]:
    """Check one text to the end.

    Raises VeriscopeError for a text that cannot be checked, or not within the limits.
    """
    run_id, account = await begun(
        service, options, asked, keys, quiet=bool(options.file), check=check
    )
    if not entry.given.asked:
        # A text that looks like a key cannot be a name.
        with suppress(VeriscopeError):
            labels = service.store.labels
            await asyncio.to_thread(labels.rename, run_id, OWNER, title_of(entry.given))
    terminal, view = Terminal(sys.stderr, account), RunView()
    async for event in service.follow(run_id, owner=OWNER):
        view = reduce(view, event)
        if not options.file:
            terminal.show(event)
    if account is not None and (not options.file or account.ledger.reached):
        print(taken_words(account), file=sys.stderr)
    found = checked_text(view)
    assert found is not None
    return view, found


def _entries(options: argparse.Namespace) -> TextFile:
    """Return what is to be checked. Raises InvalidInputError."""
    if (options.text is None) == (options.file is None):
        raise failure("command.text_or_file")
    sources = tuple(read_text(path) for path in options.source)
    if options.file is not None:
        if options.question:
            raise failure("command.question_of_one")
        return texts_of(options.file, sources=sources, language=options.language)
    text = _standard_input() if options.text == "-" else options.text
    given = TextToCheck(
        text=text, question=options.question, sources=sources, language=options.language
    )
    return TextFile([NamedText("1", given)])


def _standard_input() -> str:
    """Return the text on standard input. Raises InvalidInputError where it is not in UTF-8."""
    try:
        text = sys.stdin.read()
        # Where Python was told to read any bytes, this is where those that are no text show.
        text.encode()
    except UnicodeError:
        raise failure("command.input_no_utf8") from None
    return text


def _opened(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise failure("command.unwritable", file=path.name, problem=type(error).__name__) from None


def _reason(need: Need) -> str:
    return _REASONS[need.reason]


class _ResultWriter:
    """Writes each text's results as soon as they are there."""

    def __init__(
        self, out: TextIO, form: str, names: list[str], calibrated: Collection[str]
    ) -> None:
        self._out = out
        self._form = form
        self._names = names
        self._table = csv.DictWriter(
            # A text that cites has a detector more, whose columns those of the one verdict are.
            out,
            row_columns(names, calibrated),
            lineterminator="\n",
            extrasaction="ignore",
        )
        if form == "csv":
            self._table.writeheader()

    def found(self, entry: NamedText, view: RunView, found: CheckedText) -> None:
        """Write one text that was checked."""
        if self._form == "jsonl":
            record = {"id": entry.id, "run": view.run, "status": view.status}
            self._line(record | check_record(found))
        elif self._form == "csv":
            self._table.writerows(
                {name: harmless(printable(value)) for name, value in row.items()}
                for row in check_rows(found, entry.id, view.run)
            )
        else:
            print(describe_check(view, found), file=self._out)
        self._out.flush()

    def failed(self, entry: NamedText, error: VeriscopeError) -> None:
        """Write that a text could not be checked."""
        told = said(error.info())
        print(printable(f"{entry.id}: {told}"), file=sys.stderr)
        if self._form == "jsonl":
            self._line({"id": entry.id, "status": "refused", "error": told})
        elif self._form == "csv":
            cells = {"id": printable(entry.id), "error": printable(told)}
            self._table.writerow({name: harmless(cell) for name, cell in cells.items()})
        self._out.flush()

    def _line(self, record: Mapping[str, Any]) -> None:
        print(printable_json(json.dumps(record, ensure_ascii=False)), file=self._out)


def describe_check(view: RunView, found: CheckedText) -> str:
    """Return a check as printable text: a line a detector, every sentence with all verdicts."""
    lines = [f"run {view.run}, {view.status}, {view.time:.1f} s", ""]
    if found.together is not None:
        lines += [*_together_lines(found.together, found.language), ""]
    width = max((len(one.method) for one in found.detectors), default=0)
    for one in found.detectors:
        verdict = one.verdict or one.state
        weak = ", weak: not counted" if one.weak else ""
        lines.append(printable(f"{one.method:{width}}  {verdict}{_scored(one.score)}{weak}"))
        lines += [printable(f"{'':{width}}  {line}") for line in reading_lines(one.calibrated)]
        if one.error is not None:
            lines.append(printable(f"{'':{width}}  {said(one.error)}"))
    for name, why in found.unavailable.items():
        lines.append(f"{name:{width}}  not asked: {_REASONS[why]}")
    for sentence in found.sentences:
        lines += ["", printable(f"{sentence.number + 1}. {sentence.text}")]
        if len(found.sentences) > 1:
            lines += [f"   {line}" for line in _together_lines(sentence.together, found.language)]
        if sentence.judging:
            lines.append(f"   {sentence.doubting} of {sentence.judging} detectors doubt it")
        for name, cell in sentence.found.items():
            verdict = cell.verdict or "nothing to measure"
            lines.append(printable(f"   {name:{width}}  {verdict}{_scored(cell.score)}"))
            if cell.unsupported:
                marked = _words(found.text, cell.unsupported)
                lines.append(printable(f"   {'':{width}}  not found supported: {marked}"))
            read = reading_lines(cell.calibrated)
            lines += [printable(f"   {'':{width}}  {line}") for line in read]
    lines += _citation_lines(found)
    for one in found.detectors:
        if one.corrected is not None:
            lines += ["", printable(f"{one.method} corrects: {one.corrected}")]
    return "\n".join(lines)


def _together_lines(found: TogetherFound, language: Language) -> list[str]:
    """Return the one verdict, why, and the sentence of the evidence that it rests on."""
    probability = "" if found.probability is None else f" {found.probability:.2f}"
    lines = [f"together: {found.verdict}{probability}. {found.line(language)}"]
    if found.evidence:
        lines.append(f'  evidence: "{found.evidence}" ({found.title or found.passage})')
    if found.judges:
        measured = found.measured
        told = (
            "" if measured is None else f"; right for {measured.accuracy:.0%} of other statements"
        )
        lines.append(f"  judges: {', '.join(found.judges)}{told}")
    return [printable(line) for line in lines]


_STATES: Mapping[str | None, str] = {
    "supported": "supported",
    "not_by_source": "not by this source",
    "source_missing": "source missing",
    "unchecked": "not judged",
    None: "not judged",
}


def _citation_lines(found: CheckedText) -> list[str]:
    """Return a line for each citation: sentence, mark, and whether its source supports that."""
    if not found.citations:
        return []
    lines = ["", "citations:"]
    for one in found.citations:
        number = None if one.score is None else one.score.value
        told = _STATES[one.state] + ("" if number is None else f" {number:.2f}")
        told += ", together with the others" if one.jointly else ""
        told += f", but by source {one.elsewhere}" if one.elsewhere else ""
        title = f' (source {one.source}: "{one.title}")' if one.source else ""
        lines.append(printable(f"  {one.sentence + 1}. {one.mark}  {told}{title}"))
    return lines


def _words(text: str, found: Sequence[UnsupportedSpan]) -> str:
    """Return the words that a judge doubts, each with its doubt."""
    return ", ".join(f'"{text[one.start : one.end]}" {one.doubt:.2f}' for one in found)


def _scored(score: Score | None) -> str:
    if score is None or score.value is None:
        return ""
    limit = "" if score.threshold is None else f", doubtful {score.bad} {score.threshold:.2f}"
    high = "" if score.high is None else f"{score.high:g}"
    return f"  {score.name} {score.value:.2f} [{score.low:g}-{high}{limit}]"
