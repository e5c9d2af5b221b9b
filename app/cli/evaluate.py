"""An evaluation on the command line: begun or continued, forecast, watched to its end."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, get_args

from app.cli.ask import library_or_web, requested
from app.cli.forms import add_command, add_group, add_option, add_worded, terminal_words
from app.cli.judge import add_facts_command, add_judge_command
from app.cli.profiles import add_profile_option
from app.cli.run_options import (
    add_evidence_options,
    add_limit_options,
    add_model_options,
    add_price_options,
    add_prompts_option,
    add_tag_option,
    add_web_options,
    keys_of,
    limit_words,
    named_key,
    priced_models,
    qdrant_key,
    read_limits,
    refuse_prices,
    system_models,
    web_key,
)
from app.cli.shared import (
    OWNER,
    amount,
    count,
    happened,
    listed_names,
    say,
    whole,
    write_archive,
    write_export,
)
from components.evaluate.reading import reading_line
from components.forms import ANSWERS, MAPPING
from pipelines.base import Language, printable
from pipelines.engine.profiles import held_calibrations, recorded_name
from pipelines.engine.service import Service
from pipelines.errors import StorageError, VeriscopeError, failure
from pipelines.evaluation.beginning import (
    PROBED,
    Forecast,
    Range,
    answers_at_once,
    change_limits,
    create_evaluation,
    probe_size,
    provenance_of,
    stored_forecast,
    unable_without_question,
    usable_items,
)
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.evaluation.forms import formless, with_form
from pipelines.evaluation.plan import (
    MAX_REPEATS,
    EvaluationSpec,
    Item,
    Offer,
    System,
    code_version,
    system_names,
)
from pipelines.evaluation.ray import RayCluster
from pipelines.evaluation.results.combining import combined, triggered
from pipelines.evaluation.results.compare import SystemComparison, comparison, joined
from pipelines.evaluation.results.export import (
    columns_text,
    comparison_csv,
    comparison_jsonl,
    comparison_latex,
    comparison_markdown,
    comparison_notes,
    evaluation_text,
    histograms_text,
    pair_columns,
    scores_csv,
    scores_jsonl,
    table_csv,
    table_latex,
    table_markdown,
)
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table, unmeasured
from pipelines.evaluation.results.workbook import evaluation_workbook
from pipelines.evaluation.runner import AnsweringBackend, EvaluationProgress, Runner
from pipelines.evaluation.scoring import read_results
from pipelines.methods.registry import METHODS, wording_of
from pipelines.methods.slm.scores import history_of
from pipelines.run.events import MAX_TEXT
from pipelines.store.evaluations import StoredEvaluation

# What is evaluated, as it is given on the command line: data, systems, and how often.


def add_plan_options(run: argparse.ArgumentParser) -> None:
    """Add options for the items and for what is done with them, but not for the data set."""
    add_worded(run, "cli.kind", "--kind")
    add_worded(run, "cli.map", "--map", action="append", default=[], metavar="PART=COLUMN")
    add_worded(run, "cli.leave_out_bad", "--leave-out-bad", action="store_true")
    run.add_argument("--part", choices=["all", "even", "odd"], default="all")
    add_worded(run, "cli.limit.drawn", "--limit", type=count, metavar="N")
    add_worded(run, "cli.methods", "--methods", default="direct,rag")
    add_worded(
        run, "cli.set.method", "--set", action="append", default=[], metavar="SYSTEM.SETTING=VALUE"
    )
    add_worded(
        run,
        "cli.system_role",
        "--system-role",
        action="append",
        default=[],
        metavar="SYSTEM.ROLE=PROFILE:MODEL",
    )
    add_worded(
        run,
        "cli.system_role_url",
        "--system-role-url",
        action="append",
        default=[],
        metavar="SYSTEM.ROLE=URL",
    )
    add_worded(
        run,
        "cli.system_key_env",
        "--system-key-env",
        action="append",
        default=[],
        metavar="SYSTEM.ROLE=NAME",
    )
    add_option(run, ANSWERS["form"])
    add_worded(run, "cli.evaluation.name", "--name", default="")
    add_worded(run, "cli.texts", "--texts", action="store_true")
    add_worded(run, "cli.passages.own", "--passages", action="store_true")
    run.add_argument("--repeats", type=partial(whole, least=1, most=MAX_REPEATS), default=1)
    run.add_argument("--seed", type=whole, default=0)
    add_worded(run, "cli.reproducible.answers", "--reproducible", action="store_true")


async def created_evaluation(
    service: Service, options: argparse.Namespace
) -> tuple[str, dict[str, str]]:
    """Store a new evaluation; return its id, and the keys of its models."""
    mapping = column_mapping(options.map)
    data = await asyncio.to_thread(
        open_data_set,
        options.data_set,
        kind=options.kind,
        mapping=mapping,
        part=options.part,
        limit=options.limit,
        seed=options.seed,
        leave_out=options.leave_out_bad,
    )
    if data.reading is not None:
        say(reading_line(data.reading, terminal_words()))
    methods = listed_names(options.methods)
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise failure("methods.unknown", name=unknown[0], known=[*METHODS])
    names = system_names(methods)
    asked, keys = await requested(service, options, names, "system")
    models = priced_models(asked.models, options)
    own = await system_models(service, names, options, keys)
    wording = with_form(options.form, asked.prompts)
    if kept := formless(options.form, names):
        say(f"These systems have no prompt for the form and keep their own: {', '.join(kept)}.")
    evidence = None
    if not options.passages:
        evidence = await library_or_web(service, options, keys)
        if options.ray and evidence.collection is not None:
            raise failure("ray.no_collections")
    systems = tuple(
        System(
            name=name,
            method=method,
            models=models | own[name],
            evidence=evidence,
            prompts=wording_of([method.name], wording),
        )
        for name, method in zip(names, asked.methods, strict=True)
    )
    spec = EvaluationSpec(
        **provenance_of(data),
        checks="texts" if options.texts else "questions",
        form=options.form,
        systems=systems,
        seed=asked.seed,
        repeats=options.repeats,
        profile=recorded_name(asked.profile, asked.methods, wording),
        calibrations=held_calibrations(asked.profile),
        reproducible=asked.reproducible,
    )
    spec = spec.model_copy(update={"limits": read_limits(options, spec)})
    counts = Counter(offer for item in data.items for offer in item.offers)
    offered = (f"{offer.replace('_', ' ')} {counts[offer]}" for offer in get_args(Offer))
    held = [words for words in offered if not words.endswith(" 0")]
    say(f"{data.name}: {len(data.items)} items, which offer: {', '.join(held)}.")
    items = usable_items(data.items, texts=options.texts)
    unable = unable_without_question(items, methods) if options.texts else []
    if unable:
        asked = sum(not item.question for item in items)
        say(
            f"{asked} texts have no question, without which these methods give no score:"
            f" {', '.join(unable)}."
        )
    if left := len(data.items) - len(items):
        say(f"{left} items have no {'text' if options.texts else 'question'} and are left out.")
    own = sum(bool(item.passages) for item in items)
    if options.passages:
        items = _with_passages(items)
    elif own:
        say(
            f"{own} items bring passages of their own. They are not used: the evidence is what"
            " --evidence names, the sample library unless it is given. --passages uses them."
        )
    evaluation = await asyncio.to_thread(
        create_evaluation, service.store.evaluations, OWNER, spec, items, options.name
    )
    return evaluation, keys


def _with_passages(items: Sequence[Item]) -> list[Item]:
    """Return the items that have evidence of their own. Raises InvalidInputError for none."""
    found = [item for item in items if item.passages]
    if not found:
        raise failure("data.no_passages")
    if left := len(items) - len(found):
        say(f"{left} items hold no passages and are left out.")
    if long := sum(len(item.evidence) > MAX_TEXT for item in found):
        say(f"{long} items hold over {MAX_TEXT:,} characters of passages; the rest is not read.")
    return found


def column_mapping(assignments: Sequence[str]) -> ColumnMapping | None:
    """Return what `--map` says, None without it; raises InvalidInputError for unknown parts."""
    parts: dict[str, Any] = {}
    for assignment in assignments:
        part, _, column = assignment.partition("=")
        if part not in MAPPING.fields or not column:
            known = ", ".join(MAPPING.fields)
            raise failure("command.map_no_part", assignment=assignment, known=known)
        if (choices := MAPPING[part].choices) and column not in choices:
            known = ", ".join(f"{part}={one}" for one in choices if one)
            raise failure("command.map_no_part", assignment=assignment, known=known)
        parts[part] = tuple(column.split(",")) if MAPPING[part].several else column
    return ColumnMapping(**parts) if parts else None


_ENDS = {
    "budget": "The limit of {limit} is reached. {answered} of {total} answers are kept."
    " To go on, raise it: python -m pipelines evaluate --resume {evaluation} {option} AMOUNT",
    "stopped": "It was stopped.",
    "failing": "Too many answers failed one after the other: {error}",
}


async def evaluate(service: Service, options: argparse.Namespace) -> int:
    """Begin an evaluation, or continue one; prints its table at the end."""
    keys: dict[str, str] = {}
    if options.resume:
        evaluation = options.resume
    else:
        evaluation, keys = await created_evaluation(service, options)
    store = service.store.evaluations
    stored = await asyncio.to_thread(store.get, evaluation, OWNER)
    spec = EvaluationSpec.model_validate(stored.spec)
    say(f"Evaluation {evaluation}: {stored.done} of {stored.tasks} answers are there.")
    if spec.code != code_version():
        say("The code has changed since this evaluation began: what is answered now may differ.")
    if options.resume:
        refuse_prices(options)
        for system in spec.systems:
            keys |= keys_of(options, system.models)
            if key := qdrant_key(options, system.evidence):
                keys["search:qdrant"] = key
            if key := named_key(options.embedder_key_env):
                keys["search:library"] = key
            if system.evidence and (key := web_key(options)):
                keys[f"search:{system.evidence.source}"] = key
        limits = read_limits(options, spec)
        await asyncio.to_thread(change_limits, store, evaluation, OWNER, limits)
        if said := limit_words(limits, spec):
            say(f"Limits: {said}.")
    if not options.ray:
        return await _carried_out(service, options, stored, spec, keys, None)
    try:
        cluster = await RayCluster.connect(
            options.ray,
            service.store,
            owner=OWNER,
            keys=keys,
            workers=options.ray_workers,
            gpus=options.ray_gpus,
            spec=spec,
        )
    except VeriscopeError:
        if not options.resume:
            # Nothing was asked: what was only begun is not left behind.
            await asyncio.to_thread(store.delete, evaluation, OWNER)
        raise
    async with aclosing(cluster):
        say(f"Workers of the cluster: {cluster.workers}.")
        return await _carried_out(service, options, stored, spec, keys, cluster)


def resuming(options: argparse.Namespace, evaluation: str) -> str:
    """Return the command that goes on with an evaluation, without a password."""
    named = " --database URL" if options.database else ""
    cluster = f" --ray {options.ray}" if options.ray else ""
    return f"python -m pipelines{named} evaluate --resume {evaluation}{cluster}"


async def _carried_out(
    service: Service,
    options: argparse.Namespace,
    stored: StoredEvaluation,
    spec: EvaluationSpec,
    keys: dict[str, str],
    answering: AnsweringBackend | None,
) -> int:
    """Answer the first items, and the rest if that is agreed to; prints the table."""
    store, evaluation = service.store.evaluations, stored.id
    at_once = options.at_once or answers_at_once(spec) * (answering.workers if answering else 1)

    worked = 0.0

    async def work(most: int | None = None) -> EvaluationProgress:
        nonlocal worked
        runner = Runner(
            service,
            evaluation,
            owner=OWNER,
            keys=keys,
            at_once=at_once,
            answering=answering,
            worked=worked,
        )
        last = EvaluationProgress(stored.tasks, stored.done)
        try:
            async with aclosing(runner.run(most)) as steps:
                async for last in steps:
                    _show(last)
        except asyncio.CancelledError:
            say(f"\nTo go on: python -m pipelines evaluate --resume {evaluation}")
            raise
        except StorageError:
            # What was answered before is there, as soon as the database is again.
            say(f"\nTo go on, once the database is back: {resuming(options, evaluation)}")
            raise
        print(file=sys.stderr)
        worked += last.seconds
        return last

    status = 0
    probe = probe_size(spec, stored.tasks)
    if stored.done < probe:
        say(f"The first {PROBED} items come first, for a forecast.")
        progress = await work(probe - stored.done)
        if progress.reason not in (None, "done"):
            status = _ended(progress, evaluation)
    if not status:
        found = await asyncio.to_thread(stored_forecast, store, evaluation, OWNER, at_once=at_once)
        say(_told(found))
        if found.answers and not _agreed(options):
            say(f"To go on: python -m pipelines evaluate --resume {evaluation} --yes")
            return 0
        status = _ended(await work(), evaluation) if found.answers else 0
    _, results = await asyncio.to_thread(read_results, store, evaluation, OWNER)
    broken = int(results.scores.failed.sum())
    if broken and not status:
        say(f"{broken} of {len(results.scores)} answers ended in an error; the table counts them.")
        status = 3
    if results.scores:
        missing = await asyncio.to_thread(unmeasured, results)
        if missing:
            told = ", ".join(f"{name} {count}" for name, count in missing.items())
            say(f"Items without a score: {told}.")
        elif not status:
            say("Everything is answered.")
        print(printable(await asyncio.to_thread(evaluation_text, results)), end="")
    return status


def add_evaluate_command(commands: Any) -> None:
    """Add the command `evaluate`."""
    run = add_command(commands, "cli.command.evaluate", evaluate)
    what = run.add_mutually_exclusive_group(required=True)
    add_worded(what, "cli.data", "--data", dest="data_set", metavar="FILE")
    add_worded(what, "cli.resume", "--resume", metavar="ID")
    add_plan_options(run)
    add_worded(run, "cli.at_once", "--at-once", type=count, metavar="N")
    add_worded(run, "cli.ray", "--ray", metavar="ADDRESS")
    add_worded(run, "cli.ray_workers", "--ray-workers", type=count, metavar="N")
    add_worded(run, "cli.ray_gpus", "--ray-gpus", type=amount, default=0.0, metavar="N")
    add_limit_options(run)
    add_worded(run, "cli.yes.forecast", "--yes", action="store_true")
    add_profile_option(run)
    add_prompts_option(run)
    add_model_options(run)
    add_evidence_options(run)
    add_web_options(run)
    add_price_options(run)


def _told(found: Forecast) -> str:
    money = ", ".join(f"{_range(amount)} {one}" for one, amount in found.money.items())
    return (
        f"Left: {found.answers} answers, {_range(found.calls)} calls, {_range(found.tokens)}"
        f" tokens, {_range(found.seconds)} seconds, {money or 'no price known'}."
    )


def _range(found: Range) -> str:
    digits = 2 if found.value < 10 else 0
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.value:,.{digits}f}"
    return f"{found.value:,.{digits}f} ({found.low:,.{digits}f} to {found.high:,.{digits}f})"


def _agreed(options: argparse.Namespace) -> bool:
    """Return whether to go on after the forecast."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        return False
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


def _ended(progress: EvaluationProgress, evaluation: str) -> int:
    if progress.reason is None:
        why = happened(progress.last_error)
        say(f"{progress.failed} answers failed and can be tried again: {why}")
        return 1
    said = {
        "error": happened(progress.last_error),
        "limit": progress.limit,
        "option": f"--max-{progress.limit}",
        "answered": progress.answered,
        "total": progress.total,
        "evaluation": evaluation,
    }
    if progress.reason != "done":
        say(_ENDS[progress.reason].format(**said))
    return 0 if progress.reason == "done" else 1


def _show(progress: EvaluationProgress) -> None:
    """Show it on one line of a terminal; in a log, on a line for every hundredth."""
    left = "" if progress.left is None else f", {progress.left / 60:.1f} minutes left"
    line = f"{progress.answered} of {progress.total} answered{left}"
    if sys.stderr.isatty():
        print(f"\r{line:<50}", end="", file=sys.stderr, flush=True)
    elif progress.answered % max(1, progress.total // 100) == 0:
        print(line, file=sys.stderr, flush=True)


# Evaluations that there are, on the command line: listed, shown, compared, judged, deleted.

_EXCEL = "xlsx"
"""The form that is no text."""

_FORMATS: dict[str, Callable[[Evaluation], str]] = {
    "text": evaluation_text,
    "markdown": lambda found: table_markdown(results_table(found)),
    "csv": lambda found: table_csv(results_table(found)),
    "latex": lambda found: table_latex(results_table(found)),
    "scores-csv": scores_csv,
    "scores-jsonl": scores_jsonl,
}

_COMPARED: dict[str, Callable[[SystemComparison], str]] = {
    "markdown": comparison_markdown,
    "latex": comparison_latex,
    "csv": comparison_csv,
    "jsonl": comparison_jsonl,
}


async def show_evaluations(service: Service, options: argparse.Namespace) -> int:
    """Print the evaluations, newest first."""
    for one in await asyncio.to_thread(service.store.evaluations.list, OWNER):
        done = f"{one.done} of {one.tasks}"
        print(printable(f"{one.id}  {one.created:%Y-%m-%d %H:%M}  {done:>16}  {one.name}"))
    return 0


async def show_table(service: Service, options: argparse.Namespace) -> int:
    """Print the results of an evaluation in one of several forms."""
    store = service.store.evaluations
    stored, found = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    if not found.scores:
        raise failure("evaluation.no_answers_yet", evaluation=options.evaluation)
    found = selected(found, options.tag)
    found = _with_made(found, options)
    if options.format == _EXCEL:
        if options.to is None:
            raise failure("command.needs_to", format=_EXCEL)
        reading = EvaluationSpec.model_validate(stored.spec).reading
        write_archive(await asyncio.to_thread(evaluation_workbook, found, reading), options.to)
        return 0
    metrics = listed_names(options.metrics)
    if (metrics or options.histograms) and options.format != "text":
        raise failure("command.metrics_of_text")
    if metrics:
        text = await asyncio.to_thread(evaluation_text, found, metrics)
    else:
        text = await asyncio.to_thread(_FORMATS[options.format], found)
    if options.histograms:
        text += await asyncio.to_thread(histograms_text, found)
    if options.format == "text":
        text = printable(text)
    write_export(text if text.endswith("\n") else text + "\n", options.to, json=False)
    return 0


def _with_made(found: Evaluation, options: argparse.Namespace) -> Evaluation:
    """Return an evaluation with the systems that the options make of its own."""
    for assignment in options.combine:
        name, _, systems = assignment.partition("=")
        if not systems:
            raise failure("command.no_combination", assignment=assignment)
        found = combined(found, name.strip(), listed_names(systems))
    for assignment in options.trigger:
        match = re.fullmatch(r"(.+?)=(.+?)>(-?[\d.]+)(%?):(.+)", assignment)
        try:
            name, detector, cut, percent, repair = match.groups() if match else ("",) * 5
            systems = name.strip(), detector.strip(), repair.strip()
            scale = 100 if percent else 1
            found = triggered(found, *systems, float(cut) / scale, share=bool(percent))
        except ValueError:
            raise failure("command.no_trigger", assignment=assignment) from None
    return found


def selected(found: Evaluation, tags: Sequence[str]) -> Evaluation:
    """Return the part on items with all of `tags`; raises InvalidInputError if there are none."""
    part = found.selected(tags=tuple(tags))
    if not part.items:
        known = sorted({tag for item in found.items.values() for tag in item.tags})
        raise failure("evaluation.no_such_tag", tags=list(tags), known=known)
    return part


async def compare(service: Service, options: argparse.Namespace) -> int:
    """Print systems of one or two evaluations item by item, those on which they differ first."""
    store = service.store.evaluations
    _, found = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    if options.reference:
        other = await asyncio.to_thread(read_results, store, options.reference, OWNER)
        both = {"new": found, "reference": other[1]}
        found = joined(both, "any" if options.same_ids else "same")
    elif options.same_ids:
        raise failure("command.same_ids")
    systems = listed_names(options.systems) or list(found.systems)
    done = await asyncio.to_thread(comparison, found, systems, options.metric)
    if options.format != "text":
        sys.stdout.write(_COMPARED[options.format](done))
        return 0
    text = columns_text(pair_columns(done), done.pairs, comparison_notes(done, 2))
    print(printable(text), end="")
    for item in done.items[: options.items]:
        print(printable(f"\n{item.item}: {item.summary.text}"))
        for answer in item.answers:
            said = " ".join(answer.answer.split())
            print(printable(f"  {answer.system} {answer.value:g} [{answer.run}]: {said}"))
    return 0


async def show_scales(service: Service, options: argparse.Namespace) -> int:
    """Print mean and deviation of every judge's sentence scores in an evaluation, by language, as
    the setting `history` of the SLM check takes them.
    """
    store = service.store.evaluations
    _, found = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    of_slm = {name for name, one in found.systems.items() if one.method == "slm"}
    found = selected(found, options.tag)
    runs = dict.fromkeys(one.run for one in found.scores if one.method in of_slm and one.run)
    traces = [await service.load(run, owner=OWNER) for run in runs]
    scales = {code: history_of(traces, code) for code in get_args(Language)}
    if not any(scales.values()):
        raise failure("evaluation.no_scales", evaluation=options.evaluation)
    for code, judges in scales.items():
        for name, scale in judges.items():
            print(printable(f"{code}  {name}: mu {scale.mu:.4f}, sigma {scale.sigma:.4f},"
                            f" {scale.n} sentences"))  # fmt: skip
        if judges:
            whole = {
                name: {"mu": round(one.mu, 6), "sigma": round(one.sigma, 6), "n": one.n}
                for name, one in judges.items()
            }
            chosen = f"slm.history={json.dumps(whole, ensure_ascii=False)}"
            print(printable(f"    --set {shlex.quote(chosen)}"))
    return 0


async def delete_evaluation(service: Service, options: argparse.Namespace) -> int:
    """Delete an evaluation; its runs stay."""
    await asyncio.to_thread(service.store.evaluations.delete, options.evaluation, OWNER)
    return 0


def add_evaluations_commands(commands: Any) -> None:
    """Add the command `evaluations`."""
    parts = add_group(commands, "cli.command.evaluations")
    add_command(parts, "cli.command.evaluations.list", show_evaluations)
    table = add_command(parts, "cli.command.evaluations.show", show_table)
    add_worded(table, "cli.format.table", "--format", choices=[*_FORMATS, _EXCEL], default="text")
    add_worded(table, "cli.to", "--to", type=Path, metavar="FILE")
    add_worded(table, "cli.metrics", "--metrics", default="", metavar="A,B")
    add_worded(table, "cli.histograms", "--histograms", action="store_true")
    add_tag_option(table)
    add_worded(table, "cli.combine", "--combine", action="append", default=[], metavar="NAME=A,B")
    add_worded(
        table,
        "cli.trigger",
        "--trigger",
        action="append",
        default=[],
        metavar="NAME=DETECTOR>CUT:REPAIR",
    )
    scales = add_command(parts, "cli.command.evaluations.scales", show_scales)
    add_tag_option(scales)
    compared = add_command(parts, "cli.command.evaluations.compare", compare)
    add_worded(compared, "cli.systems", "--systems", default="")
    compared.add_argument("--metric", default="accuracy")
    add_worded(
        compared, "cli.format.pairs", "--format", choices=["text", *_COMPARED], default="text"
    )
    add_worded(compared, "cli.items", "--items", type=whole, default=10)
    add_worded(compared, "cli.reference", "--reference", default="", metavar="OTHER_ID")
    add_worded(compared, "cli.same_ids", "--same-ids", action="store_true")
    add_judge_command(parts)
    add_facts_command(parts)
    deleted = add_command(parts, "cli.command.evaluations.delete", delete_evaluation)
    for command in (table, scales, compared, deleted):
        command.add_argument("evaluation")
