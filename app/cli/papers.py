"""The papers' tables and figures on the command line: each is one command."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import Container, Sequence
from itertools import pairwise
from typing import Any

from app.cli.evaluate import add_evaluate_command, add_evaluations_commands
from app.cli.forms import add_command, add_worded
from app.cli.shared import OWNER, say
from app.cli.study import add_study_command
from pipelines.base import printable
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.recipes import Recipe, options_of, recipes
from pipelines.evaluation.results.papers import Paper, PaperColumn, PaperTable, paper, with_unit
from pipelines.evaluation.results.scores import CORPUS_BLEU
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.detection import QUALITIES, RANKINGS

_OPTIONS_OF_FACTS = ("--profile", "--model", "--base-url", "--key-env")
"""Options of `evaluate` that the scorer of facts takes too: the same model scores."""


async def papers(service: Service, options: argparse.Namespace) -> int:
    """List the recipes, or carry one out: evaluation, facts, studies, and the table."""
    known = recipes()
    if not options.recipe:
        sys.stdout.write(printable("".join(map(_listed, known.values()))))
        return 0
    if options.recipe not in known:
        raise failure("papers.unknown", name=options.recipe, known=[*known])
    recipe = known[options.recipe]
    more = list(options.more)
    asked = ["evaluate", *options_of(recipe, options.data_set), "--name", recipe.name, *more]
    if options.limit:
        asked += ["--limit", str(options.limit)]
    if options.yes:
        asked.append("--yes")
    say(f"python -m pipelines {shlex.join(asked)}")
    status = await _carried_out(service, asked)
    newest = await asyncio.to_thread(service.store.evaluations.list, OWNER)
    evaluation = next((one for one in newest if one.name == recipe.name), None)
    if evaluation is None or evaluation.done < evaluation.tasks:
        return status or 1
    # Answers that ended in an error are counted in the table, and hold back nothing.
    steps: list[list[str]] = []
    if recipe.facts:
        steps.append(["evaluations", "facts", evaluation.id, *recipe.facts, *_of_facts(more)])
    steps += [
        ["study", *shlex.split(asked), "--evaluation", evaluation.id] for asked in recipe.studies
    ]
    _, found = await asyncio.to_thread(
        read_results, service.store.evaluations, evaluation.id, OWNER
    )
    held = {*found.metric_names(), CORPUS_BLEU, *RANKINGS, *QUALITIES}
    steps.append(["evaluations", "show", evaluation.id, *_shown(recipe, held)])
    for step in steps:
        say(f"\npython -m pipelines {shlex.join(step)}")
        try:
            status = max(status, await _carried_out(service, step))
        except VeriscopeError as error:
            # What these answers cannot tell, as with a stand-in, holds back nothing else.
            say(str(error))
    sys.stdout.write(printable(_printed(recipe)))
    return status


def _shown(recipe: Recipe, held: Container[str]) -> list[str]:
    """Return the options of the table, with the metrics that these items have."""
    options = list(recipe.show)
    if "--metrics" in options:
        place = options.index("--metrics") + 1
        options[place] = ",".join(
            name for name in options[place].split(",") if name in held or recipe.facts
        )
    return options


def _of_facts(more: Sequence[str]) -> list[str]:
    found: list[str] = []
    for option, value in pairwise(more):
        if option in _OPTIONS_OF_FACTS:
            found += [option, value]
    return found


async def _carried_out(service: Service, arguments: Sequence[str]) -> int:
    """Carry out another command with these arguments; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m pipelines")
    commands = parser.add_subparsers(required=True)
    for add in (add_evaluate_command, add_evaluations_commands, add_study_command):
        add(commands)
    options = parser.parse_args(list(arguments))
    return await options.command(service, options)


def _listed(recipe: Recipe) -> str:
    return (
        f"{recipe.name}: {recipe.of}\n"
        f"    data: {recipe.data} (bundled stand-in: {recipe.stand_in})\n"
        f"    needs: {recipe.needs}\n"
    )


def _printed(recipe: Recipe) -> str:
    """Return the paper's own figures, with their model and data, to stand below ours."""
    source = paper(recipe.paper)
    known = {table.key: table for table in source.tables}
    return "".join(_figures(source, known[key]) for key in recipe.tables)


def _figures(source: Paper, table: PaperTable) -> str:
    where = " ".join(filter(None, [source.title, source.date]))
    lines = [f"\nThe paper prints ({where}; model: {table.model.en}; data: {table.data.en}):"]
    for row in table.rows:
        values = (
            f"{_named(column)} {with_unit(value, column.unit)}"
            for column in table.columns
            if (value := row.values.get(column.key)) is not None
        )
        lines.append(f"  {row.name.en}: {', '.join(values)}")
    return "\n".join(lines) + "\n"


def _named(column: PaperColumn) -> str:
    """Return the paper's name of a column, with the name of the same metric here."""
    here = f" (here {column.metric})" if column.metric else ""
    return f"{column.name.en}{here}"


def add_papers_command(commands: Any) -> None:
    """Add the command `papers`."""
    parser = add_command(commands, "cli.command.papers", papers)
    add_worded(parser, "cli.recipe", "recipe", nargs="?", default="")
    add_worded(parser, "cli.paper.data", "--data-set", metavar="DATA")
    add_worded(parser, "cli.limit", "--limit", type=int, metavar="N")
    add_worded(parser, "cli.yes.paper", "--yes", action="store_true")
    add_worded(
        parser,
        "cli.with",
        "--with",
        dest="more",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="OPTION",
    )
