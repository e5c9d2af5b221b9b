"""Evaluations on the command line: begin, continue, list, show, compare, delete."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, get_args

from pipelines.cli.evidence import add_evidence_options, qdrant_key
from pipelines.cli.judge import add_judge_command, judge
from pipelines.cli.library import chosen_evidence
from pipelines.cli.limits import add_limit_options, limit_words, read_limits
from pipelines.cli.models import add_model_options, keys_of, models_by_role, named_key
from pipelines.cli.numbers import amount, count, whole
from pipelines.cli.prices import add_price_options, priced_models, refuse_prices
from pipelines.cli.profiles import add_profile_option, chosen_profile
from pipelines.cli.settings import read_settings
from pipelines.cli.wording import add_prompts_option, chosen_wording
from pipelines.engine.executor import wording_of
from pipelines.engine.profiles import recorded_name
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError
from pipelines.evaluation.answering import Answering
from pipelines.evaluation.beginning import (
    PROBED,
    answers_at_once,
    create_evaluation,
    probe_size,
    stored_forecast,
    usable_items,
)
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.evaluation.forecast import Forecast, Range
from pipelines.evaluation.items import Item, Offer
from pipelines.evaluation.limits import change_limits
from pipelines.evaluation.plan import (
    MAX_REPEATS,
    EvaluationSpec,
    System,
    code_version,
    system_names,
)
from pipelines.evaluation.ray_cluster import RayCluster
from pipelines.evaluation.results.compare import Comparison, comparison, joined
from pipelines.evaluation.results.export import (
    estimate_words,
    evalstats_csv,
    scores_csv,
    scores_jsonl,
    table_csv,
    table_latex,
    table_markdown,
)
from pipelines.evaluation.results.export_comparison import (
    comparison_csv,
    comparison_jsonl,
    comparison_latex,
    comparison_markdown,
)
from pipelines.evaluation.results.remarks import FEW_MARK, has_few_groups
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.results.terminal import evaluation_text
from pipelines.evaluation.runner import Progress, Runner
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.resampling import Estimate
from pipelines.methods.registry import METHODS
from pipelines.printable import printable
from pipelines.prompts import Wording
from pipelines.run.spec import EvidenceSpec, MethodSpec
from pipelines.store.evaluations import StoredEvaluation
from pipelines.store.profiles import Profile

OWNER = "command-line"

_FORMATS: dict[str, Callable[[Evaluation], str]] = {
    "text": evaluation_text,
    "markdown": lambda found: table_markdown(results_table(found)),
    "csv": lambda found: table_csv(results_table(found)),
    "latex": lambda found: table_latex(results_table(found)),
    "scores-csv": scores_csv,
    "scores-jsonl": scores_jsonl,
    "evalstats": evalstats_csv,
}

_COMPARED: dict[str, Callable[[Comparison], str]] = {
    "markdown": comparison_markdown,
    "latex": comparison_latex,
    "csv": comparison_csv,
    "jsonl": comparison_jsonl,
}

_ENDS = {
    "done": "Everything is answered.",
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
        evaluation, keys = await _created(service, options)
    store = service.store.evaluations
    stored = await asyncio.to_thread(store.get, evaluation, OWNER)
    spec = EvaluationSpec.model_validate(stored.spec)
    _say(f"Evaluation {evaluation}: {stored.done} of {stored.tasks} answers are there.")
    if spec.code != code_version():
        _say("The code has changed since this evaluation began: what is answered now may differ.")
    if options.resume:
        refuse_prices(options)
        for system in spec.systems:
            keys |= keys_of(options, system.models)
            if key := qdrant_key(options, system.evidence):
                keys["search:qdrant"] = key
            if key := named_key(options.embedder_key_env):
                keys["search:library"] = key
        limits = read_limits(options, spec)
        await asyncio.to_thread(change_limits, store, evaluation, OWNER, limits)
        if said := limit_words(limits, spec):
            _say(f"Limits: {said}.")
    if not options.ray:
        return await _carried_out(service, options, stored, spec, keys, None)
    cluster = await RayCluster.connect(
        options.ray,
        service.store,
        owner=OWNER,
        keys=keys,
        workers=options.ray_workers,
        gpus=options.ray_gpus,
    )
    async with aclosing(cluster):
        _say(f"Workers of the cluster: {cluster.workers}.")
        return await _carried_out(service, options, stored, spec, keys, cluster)


async def _carried_out(
    service: Service,
    options: argparse.Namespace,
    stored: StoredEvaluation,
    spec: EvaluationSpec,
    keys: dict[str, str],
    answering: Answering | None,
) -> int:
    """Answer the first items, and the rest if that is agreed to; prints the table."""
    store, evaluation = service.store.evaluations, stored.id
    at_once = options.at_once or answers_at_once(spec) * (answering.workers if answering else 1)

    worked = 0.0

    async def work(most: int | None = None) -> Progress:
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
        last = Progress(stored.tasks, stored.done)
        try:
            async with aclosing(runner.run(most)) as steps:
                async for last in steps:
                    _show(last)
        except asyncio.CancelledError:
            _say(f"\nTo go on: python -m pipelines evaluate --resume {evaluation}")
            raise
        print(file=sys.stderr)
        worked += last.seconds
        return last

    status = 0
    probe = probe_size(spec, stored.tasks)
    if stored.done < probe:
        _say(f"The first {PROBED} items come first, for a forecast.")
        progress = await work(probe - stored.done)
        if progress.reason not in (None, "done"):
            status = _ended(progress, evaluation)
    if not status:
        found = await asyncio.to_thread(stored_forecast, store, evaluation, OWNER, at_once=at_once)
        _say(_told(found))
        if found.answers and not _agreed(options):
            _say(f"To go on: python -m pipelines evaluate --resume {evaluation} --yes")
            return 0
        status = _ended(await work(), evaluation) if found.answers else 0
    _, results = await asyncio.to_thread(read_results, store, evaluation, OWNER)
    if results.scores:
        print(printable(await asyncio.to_thread(_FORMATS["text"], results)), end="")
    return status


async def show_evaluations(service: Service, options: argparse.Namespace) -> int:
    """The evaluations, newest first."""
    for one in await asyncio.to_thread(service.store.evaluations.list, OWNER):
        done = f"{one.done} of {one.tasks}"
        print(printable(f"{one.id}  {one.created:%Y-%m-%d %H:%M}  {done:>16}  {one.name}"))
    return 0


async def show_table(service: Service, options: argparse.Namespace) -> int:
    """The results of an evaluation in one of several forms."""
    store = service.store.evaluations
    _, found = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    if not found.scores:
        raise InvalidInputError(
            "Nothing of this evaluation is answered yet.",
            remedy=f"Go on with: python -m pipelines evaluate --resume {options.evaluation}",
        )
    metrics = _names(options.metrics)
    if metrics and options.format != "text":
        raise InvalidInputError(
            "--metrics chooses columns of the format text.",
            remedy="Leave it out: the other formats hold every metric.",
        )
    if metrics:
        text = await asyncio.to_thread(evaluation_text, found, metrics)
    else:
        text = await asyncio.to_thread(_FORMATS[options.format], found)
    if options.format == "text":
        text = printable(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0


async def compare(service: Service, options: argparse.Namespace) -> int:
    """Systems of one or two evaluations item by item, those on which they differ first."""
    store = service.store.evaluations
    _, found = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    if options.reference:
        other = await asyncio.to_thread(read_results, store, options.reference, OWNER)
        both = {"new": found, "reference": other[1]}
        found = joined(both, "any" if options.same_ids else "same")
    elif options.same_ids:
        raise InvalidInputError(
            "--same-ids is about two evaluations.", remedy="Give --reference, or leave it out."
        )
    systems = _names(options.systems) or list(found.systems)
    done = await asyncio.to_thread(comparison, found, systems, options.metric)
    if options.format != "text":
        sys.stdout.write(_COMPARED[options.format](done))
        return 0
    print(f"{done.metric.name} on {done.n} items, {done.left_out} left out")
    for name, estimate in zip(done.systems, done.estimates, strict=True):
        print(printable(f"  {name}: {_interval(estimate)}"))
    for pair in done.pairs:
        difference = _interval(pair.difference)
        tested = "" if pair.p is None else f", p = {pair.p:.3g} ({pair.test})"
        if pair.adjusted is not None and len(done.pairs) > 1:
            tested += f", Holm {pair.adjusted:.3g}"
        print(printable(f"  {pair.first} - {pair.second}: {difference}{tested}"))
    for item in done.items[: options.items]:
        print(printable(f"\n{item.item}: {item.summary.text}"))
        for answer in item.answers:
            said = " ".join(answer.answer.split())
            print(printable(f"  {answer.system} {answer.value:g} [{answer.run}]: {said}"))
    return 0


def _names(listed: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in listed.split(",") if name.strip()]


async def delete_evaluation(service: Service, options: argparse.Namespace) -> int:
    """Delete an evaluation; its runs stay."""
    await asyncio.to_thread(service.store.evaluations.delete, options.evaluation, OWNER)
    return 0


async def _judge(service: Service, options: argparse.Namespace) -> int:
    return await judge(service, options, OWNER)


def add_evaluation_commands(commands: Any) -> None:
    """`evaluate` and `evaluations`."""
    run = commands.add_parser("evaluate", help="methods on a data set, with intervals and costs")
    run.set_defaults(command=evaluate)
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--data",
        dest="data_set",
        metavar="FILE",
        help="a file, hub:OWNER/NAME, or sample:en, sample:zh, statements:en",
    )
    what.add_argument("--resume", metavar="ID", help="continue an evaluation")
    run.add_argument("--kind", help="what the file is, where that is not recognised")
    run.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="PART=COLUMN",
        help="which column holds question, answers, text ...; repeat for several",
    )
    run.add_argument("--part", choices=["all", "even", "odd"], default="all")
    run.add_argument("--limit", type=count, metavar="N", help="so many items, drawn with --seed")
    run.add_argument("--methods", default="direct,rag", help="names with commas between them")
    run.add_argument(
        "--set", action="append", default=[], metavar="SYSTEM.SETTING=VALUE", help="a setting"
    )
    run.add_argument("--name", default="", help="what the evaluation is called")
    run.add_argument(
        "--texts", action="store_true", help="check the texts of the items; nothing is written"
    )
    run.add_argument(
        "--passages", action="store_true", help="the items' own passages are the evidence"
    )
    run.add_argument("--repeats", type=partial(whole, least=1, most=MAX_REPEATS), default=1)
    run.add_argument("--seed", type=whole, default=0)
    run.add_argument(
        "--reproducible", action="store_true", help="one call at a time, for identical answers"
    )
    run.add_argument(
        "--at-once",
        type=count,
        metavar="N",
        help="answers at a time; default: 8 by a model server, else 2, times the workers",
    )
    run.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="answer on the Ray cluster at this address; 'auto': the one of this machine,"
        " 'local': one on this machine alone",
    )
    run.add_argument("--ray-workers", type=count, metavar="N", help="default: one for each machine")
    run.add_argument(
        "--ray-gpus", type=amount, default=0.0, metavar="N", help="graphics cards of each worker"
    )
    add_limit_options(run)
    run.add_argument("--yes", action="store_true", help="go on after the forecast, unasked")
    add_profile_option(run)
    add_prompts_option(run)
    add_model_options(run)
    add_evidence_options(run)
    add_price_options(run)

    group = commands.add_parser("evaluations", help="evaluations and their results")
    parts = group.add_subparsers(required=True)
    parts.add_parser("list", help="all, newest first").set_defaults(command=show_evaluations)
    table = parts.add_parser("show", help="the table of one")
    table.set_defaults(command=show_table)
    table.add_argument(
        "--format", choices=list(_FORMATS), default="text", help="default: %(default)s"
    )
    table.add_argument(
        "--metrics", default="", metavar="A,B", help="columns of the format text; default: a choice"
    )
    compared = parts.add_parser("compare", help="systems item by item")
    compared.set_defaults(command=compare)
    compared.add_argument("--systems", default="", help="names with commas; default: all")
    compared.add_argument("--metric", default="accuracy")
    compared.add_argument(
        "--format",
        choices=["text", *_COMPARED],
        default="text",
        help="markdown and latex hold the pairs, csv and jsonl every item; default: %(default)s",
    )
    compared.add_argument("--items", type=whole, default=10, help="so many items are printed")
    compared.add_argument(
        "--reference",
        default="",
        metavar="OTHER_ID",
        help="an evaluation to compare with: its systems are called 'reference: NAME',"
        " those of the other 'new: NAME'",
    )
    compared.add_argument(
        "--same-ids",
        action="store_true",
        help="items of equal ids are equal, also where the data sets differ",
    )
    add_judge_command(parts, _judge)
    deleted = parts.add_parser("delete", help="delete one; its runs stay")
    deleted.set_defaults(command=delete_evaluation)
    for command in (table, compared, deleted):
        command.add_argument("evaluation")


async def _created(service: Service, options: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Store a new evaluation; its id, and the keys of its models."""
    mapping = column_mapping(options.map)
    data = await asyncio.to_thread(
        open_data_set,
        options.data_set,
        kind=options.kind,
        mapping=mapping,
        part=options.part,
        limit=options.limit,
        seed=options.seed,
    )
    profile = await chosen_profile(service, options)
    wording = chosen_wording(options, profile.prompts if profile else {})
    models, keys = await models_by_role(service, options, profile.models if profile else {})
    models = priced_models(models, options)
    methods = _names(options.methods)
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise InvalidInputError(
            f"There is no method {unknown[0]!r}.", remedy=f"Choose from: {', '.join(METHODS)}."
        )
    evidence = None
    if not options.passages:
        evidence = await chosen_evidence(service, options, keys)
        if options.ray and evidence.collection is not None:
            raise InvalidInputError(
                "The workers of a Ray cluster have no collections.",
                remedy="Evaluate without --ray, or upload the passages to a Qdrant server.",
            )
    systems = _systems(system_names(methods), options.set, models, evidence, profile, wording)
    spec = EvaluationSpec(
        data=data.name,
        data_hash=data.hash,
        source=data.source,
        licence=data.licence,
        code=code_version(),
        checks="texts" if options.texts else "questions",
        systems=systems,
        seed=options.seed,
        repeats=options.repeats,
        profile=recorded_name(profile, [system.method for system in systems], wording),
        reproducible=options.reproducible,
    )
    spec = spec.model_copy(update={"limits": read_limits(options, spec)})
    counts = Counter(offer for item in data.items for offer in item.offers)
    offered = (f"{offer.replace('_', ' ')} {counts[offer]}" for offer in get_args(Offer))
    held = [words for words in offered if not words.endswith(" 0")]
    _say(f"{data.name}: {len(data.items)} items, which offer: {', '.join(held)}.")
    items = usable_items(data.items, texts=options.texts)
    if left := len(data.items) - len(items):
        _say(f"{left} items have no {'text' if options.texts else 'question'} and are left out.")
    if options.passages:
        items = _with_passages(items)
    evaluation = await asyncio.to_thread(
        create_evaluation, service.store.evaluations, OWNER, spec, items, options.name
    )
    return evaluation, keys


def _with_passages(items: Sequence[Item]) -> list[Item]:
    """The items that have evidence of their own. Raises InvalidInputError for none."""
    found = [item for item in items if item.passages]
    if not found:
        raise InvalidInputError(
            "No item of this data set holds passages.",
            remedy="Leave --passages out: the sample library is searched then.",
        )
    if left := len(items) - len(found):
        _say(f"{left} items hold no passages and are left out.")
    return found


def _systems(
    names: Any,
    assignments: Sequence[str],
    models: dict[str, Any],
    evidence: EvidenceSpec | None,
    profile: Profile | None,
    wording: Wording,
) -> tuple[System, ...]:
    settings = read_settings(
        names, assignments, "Write SYSTEM.SETTING=VALUE, for example 'drad 2.theta_1=0.5'."
    )
    held = profile.settings if profile else {}
    return tuple(
        System(
            name=name,
            method=MethodSpec(name=method, settings={**held.get(method, {}), **settings[name]}),
            models=models,
            evidence=evidence,
            prompts=wording_of([method], wording),
        )
        for name, method in names.items()
    )


def column_mapping(assignments: Sequence[str]) -> ColumnMapping | None:
    """What `--map` says; None without it. Raises InvalidInputError for no part of an item."""
    parts: dict[str, Any] = {}
    for assignment in assignments:
        part, _, column = assignment.partition("=")
        if part not in ColumnMapping.model_fields or not column:
            known = ", ".join(ColumnMapping.model_fields)
            raise InvalidInputError(
                f"--map {assignment!r} names no part of an item.",
                remedy=f"Write PART=COLUMN, where PART is one of: {known}.",
            )
        several = ColumnMapping.model_fields[part].annotation is not str and part != "separator"
        parts[part] = tuple(column.split(",")) if several else column
    return ColumnMapping(**parts) if parts else None


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


def _interval(found: Estimate) -> str:
    few = f" (only {found.groups} groups: likely too narrow)" if has_few_groups(found) else ""
    return estimate_words(found, missing="not known").removesuffix(FEW_MARK) + few


def _agreed(options: argparse.Namespace) -> bool:
    """Whether to go on after the forecast."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        return False
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


def _ended(progress: Progress, evaluation: str) -> int:
    if progress.reason is None:
        _say(f"{progress.failed} answers failed and can be tried again: {progress.last_error}")
        return 1
    said = {
        "error": progress.last_error,
        "limit": progress.limit,
        "option": f"--max-{progress.limit}",
        "answered": progress.answered,
        "total": progress.total,
        "evaluation": evaluation,
    }
    _say(_ENDS[progress.reason].format(**said))
    return 0 if progress.reason == "done" else 1


def _show(progress: Progress) -> None:
    """On one line of a terminal; elsewhere, such as in a log, on a line for every hundredth."""
    left = "" if progress.left is None else f", {progress.left / 60:.1f} minutes left"
    line = f"{progress.answered} of {progress.total} answered{left}"
    if sys.stderr.isatty():
        print(f"\r{line:<50}", end="", file=sys.stderr, flush=True)
    elif progress.answered % max(1, progress.total // 100) == 0:
        print(line, file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)
