"""What is evaluated, as it is given on the command line: data, systems, and how often."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from components.forms import MAPPING
from pipelines.cli.ask import requested
from pipelines.cli.library import chosen_evidence
from pipelines.cli.limits import read_limits
from pipelines.cli.prices import priced_models
from pipelines.cli.shared import OWNER, count, listed_names, say, whole
from pipelines.engine.profiles import held_calibrations, recorded_name
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.evaluation.beginning import create_evaluation, provenance_of, usable_items
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.evaluation.items import Item, Offer
from pipelines.evaluation.plan import MAX_REPEATS, EvaluationSpec, System, system_names
from pipelines.methods.registry import METHODS, wording_of


def add_plan_options(run: argparse.ArgumentParser) -> None:
    """Add options for what the items are, and for what is done with them; the data set itself is
    not among these.
    """
    run.add_argument("--kind", help="the kind of the file, where it is not recognised")
    run.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="PART=COLUMN",
        help="which column holds question, answers, text ...; repeat for several",
    )
    run.add_argument("--part", choices=["all", "even", "odd"], default="all")
    run.add_argument(
        "--limit",
        type=count,
        metavar="N",
        help="use this many items, drawn with --seed (default: all)",
    )
    run.add_argument(
        "--methods",
        default="direct,rag",
        help="names of methods, with commas between them (default: %(default)s)",
    )
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SYSTEM.SETTING=VALUE",
        help="change a setting of a method; repeat for several",
    )
    run.add_argument("--name", default="", help="name of the evaluation")
    run.add_argument(
        "--texts",
        action="store_true",
        help="check the texts of the items; methods write no answers",
    )
    run.add_argument(
        "--passages", action="store_true", help="use the items' own passages as the evidence"
    )
    run.add_argument("--repeats", type=partial(whole, least=1, most=MAX_REPEATS), default=1)
    run.add_argument("--seed", type=whole, default=0)
    run.add_argument(
        "--reproducible", action="store_true", help="make one call at a time, for identical answers"
    )


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
    )
    methods = listed_names(options.methods)
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise failure("methods.unknown", name=unknown[0], known=[*METHODS])
    names = system_names(methods)
    asked, keys = await requested(service, options, names, "system")
    models = priced_models(asked.models, options)
    evidence = None
    if not options.passages:
        evidence = await chosen_evidence(service, options, keys)
        if options.ray and evidence.collection is not None:
            raise failure("ray.no_collections")
    systems = tuple(
        System(
            name=name,
            method=method,
            models=models,
            evidence=evidence,
            prompts=wording_of([method.name], asked.prompts),
        )
        for name, method in zip(names, asked.methods, strict=True)
    )
    spec = EvaluationSpec(
        **provenance_of(data),
        checks="texts" if options.texts else "questions",
        systems=systems,
        seed=asked.seed,
        repeats=options.repeats,
        profile=recorded_name(asked.profile, asked.methods, asked.prompts),
        calibrations=held_calibrations(asked.profile),
        reproducible=asked.reproducible,
    )
    spec = spec.model_copy(update={"limits": read_limits(options, spec)})
    counts = Counter(offer for item in data.items for offer in item.offers)
    offered = (f"{offer.replace('_', ' ')} {counts[offer]}" for offer in get_args(Offer))
    held = [words for words in offered if not words.endswith(" 0")]
    say(f"{data.name}: {len(data.items)} items, which offer: {', '.join(held)}.")
    items = usable_items(data.items, texts=options.texts)
    if left := len(data.items) - len(items):
        say(f"{left} items have no {'text' if options.texts else 'question'} and are left out.")
    if options.passages:
        items = _with_passages(items)
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
    return found


def column_mapping(assignments: Sequence[str]) -> ColumnMapping | None:
    """Return what `--map` says; None without it. Raises InvalidInputError for no part of
    an item.
    """
    parts: dict[str, Any] = {}
    for assignment in assignments:
        part, _, column = assignment.partition("=")
        if part not in MAPPING.fields or not column:
            known = ", ".join(MAPPING.fields)
            raise failure("command.map_no_part", assignment=assignment, known=known)
        parts[part] = tuple(column.split(",")) if MAPPING[part].several else column
    return ColumnMapping(**parts) if parts else None
