"""Evaluations that there are, on the command line: listed, shown, compared, judged, deleted."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Any

from pipelines.cli.judge import add_judge_command, judge
from pipelines.cli.shared import OWNER, listed_names, whole
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.evaluation.results.compare import SystemComparison, comparison, joined
from pipelines.evaluation.results.export import (
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
    comparison_notes,
    pair_columns,
)
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.results.terminal import columns_text, evaluation_text
from pipelines.evaluation.scoring import read_results
from pipelines.printable import printable

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
    _, found = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    if not found.scores:
        raise failure("evaluation.no_answers_yet", evaluation=options.evaluation)
    metrics = listed_names(options.metrics)
    if metrics and options.format != "text":
        raise failure("command.metrics_of_text")
    if metrics:
        text = await asyncio.to_thread(evaluation_text, found, metrics)
    else:
        text = await asyncio.to_thread(_FORMATS[options.format], found)
    if options.format == "text":
        text = printable(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0


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


async def delete_evaluation(service: Service, options: argparse.Namespace) -> int:
    """Delete an evaluation; its runs stay."""
    await asyncio.to_thread(service.store.evaluations.delete, options.evaluation, OWNER)
    return 0


async def _judge(service: Service, options: argparse.Namespace) -> int:
    return await judge(service, options, OWNER)


def add_evaluations_commands(commands: Any) -> None:
    """Add the command `evaluations`."""
    group = commands.add_parser("evaluations", help="show, compare and judge evaluations")
    parts = group.add_subparsers(required=True)
    parts.add_parser("list", help="list all evaluations, newest first").set_defaults(
        command=show_evaluations
    )
    table = parts.add_parser("show", help="print the results of an evaluation")
    table.set_defaults(command=show_table)
    table.add_argument(
        "--format",
        choices=list(_FORMATS),
        default="text",
        help="format of the table (default: %(default)s)",
    )
    table.add_argument(
        "--metrics",
        default="",
        metavar="A,B",
        help="columns of the format text (default: the most important)",
    )
    compared = parts.add_parser("compare", help="compare systems item by item")
    compared.set_defaults(command=compare)
    compared.add_argument(
        "--systems", default="", help="names of systems, with commas between them (default: all)"
    )
    compared.add_argument("--metric", default="accuracy")
    compared.add_argument(
        "--format",
        choices=["text", *_COMPARED],
        default="text",
        help="format; markdown and latex hold the pairs, csv and jsonl every item"
        " (default: %(default)s)",
    )
    compared.add_argument(
        "--items",
        type=whole,
        default=10,
        help="print at most this many items (default: %(default)s)",
    )
    compared.add_argument(
        "--reference",
        default="",
        metavar="OTHER_ID",
        help="compare with this evaluation: its systems are called 'reference:"
        " NAME', those of the other 'new: NAME'",
    )
    compared.add_argument(
        "--same-ids",
        action="store_true",
        help="take items of equal ids as equal, even if the data sets differ",
    )
    add_judge_command(parts, _judge)
    deleted = parts.add_parser("delete", help="delete an evaluation; its runs stay")
    deleted.set_defaults(command=delete_evaluation)
    for command in (table, compared, deleted):
        command.add_argument("evaluation")
