"""An evaluation on the command line: begun or continued, forecast, watched to its end."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing
from typing import Any

from pipelines.cli.evaluation_plan import add_plan_options, created_evaluation
from pipelines.cli.evidence import add_evidence_options, qdrant_key
from pipelines.cli.limits import add_limit_options, limit_words, read_limits
from pipelines.cli.models import add_model_options, keys_of, named_key
from pipelines.cli.prices import add_price_options, refuse_prices
from pipelines.cli.profiles import add_profile_option
from pipelines.cli.shared import OWNER, amount, count, happened, say
from pipelines.cli.wording import add_prompts_option
from pipelines.engine.service import Service
from pipelines.evaluation.answering import AnsweringBackend
from pipelines.evaluation.beginning import (
    PROBED,
    answers_at_once,
    probe_size,
    stored_forecast,
)
from pipelines.evaluation.forecast import Forecast, Range
from pipelines.evaluation.limits import change_limits
from pipelines.evaluation.plan import EvaluationSpec, code_version
from pipelines.evaluation.ray_cluster import RayCluster
from pipelines.evaluation.results.terminal import evaluation_text
from pipelines.evaluation.runner import EvaluationProgress, Runner
from pipelines.evaluation.scoring import read_results
from pipelines.printable import printable
from pipelines.store.evaluations import StoredEvaluation

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
        limits = read_limits(options, spec)
        await asyncio.to_thread(change_limits, store, evaluation, OWNER, limits)
        if said := limit_words(limits, spec):
            say(f"Limits: {said}.")
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
        say(f"Workers of the cluster: {cluster.workers}.")
        return await _carried_out(service, options, stored, spec, keys, cluster)


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
    if results.scores:
        print(printable(await asyncio.to_thread(evaluation_text, results)), end="")
    return status


def add_evaluate_command(commands: Any) -> None:
    """Add the command `evaluate`."""
    run = commands.add_parser(
        "evaluate", help="run methods on a data set; report intervals and costs"
    )
    run.set_defaults(command=evaluate)
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--data",
        dest="data_set",
        metavar="FILE",
        help="the data set: a file, hub:OWNER/NAME, or sample:en, sample:zh, statements:en",
    )
    what.add_argument("--resume", metavar="ID", help="continue the evaluation with this id")
    add_plan_options(run)
    run.add_argument(
        "--at-once",
        type=count,
        metavar="N",
        help="work on this many answers at a time (default: 8 with a model server,"
        " else 2, times the workers)",
    )
    run.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="run on the Ray cluster at this address; 'auto' is the cluster of"
        " this machine, 'local' starts one on this machine alone",
    )
    run.add_argument(
        "--ray-workers",
        type=count,
        metavar="N",
        help="start this many workers (default: one for each machine)",
    )
    run.add_argument(
        "--ray-gpus",
        type=amount,
        default=0.0,
        metavar="N",
        help="give each worker this many graphics cards (default: %(default)g)",
    )
    add_limit_options(run)
    run.add_argument("--yes", action="store_true", help="go on after the forecast without asking")
    add_profile_option(run)
    add_prompts_option(run)
    add_model_options(run)
    add_evidence_options(run)
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
    say(_ENDS[progress.reason].format(**said))
    return 0 if progress.reason == "done" else 1


def _show(progress: EvaluationProgress) -> None:
    """Show it on one line of a terminal; elsewhere, such as in a log, on a line for every
    hundredth.
    """
    left = "" if progress.left is None else f", {progress.left / 60:.1f} minutes left"
    line = f"{progress.answered} of {progress.total} answered{left}"
    if sys.stderr.isatty():
        print(f"\r{line:<50}", end="", file=sys.stderr, flush=True)
    elif progress.answered % max(1, progress.total // 100) == 0:
        print(line, file=sys.stderr, flush=True)
