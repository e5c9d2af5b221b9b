"""The answers of an evaluation judged by a model, on the command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from app.cli.forms import add_command, add_option, add_worded
from app.cli.library import chosen_evidence
from app.cli.run_options import (
    add_evidence_options,
    add_main_model_options,
    add_model_options,
    main_model,
    models_by_role,
)
from app.cli.shared import OWNER, amount, count, happened, say, whole
from components.forms import BUDGET
from pipelines.base import printable
from pipelines.engine.service import Service
from pipelines.errors import ErrorInfo, failure
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.evaluation.judging.asking import ask_judge
from pipelines.evaluation.judging.calibration import (
    JudgeCalibration,
    KnownAnswer,
    calibrated,
    calibrated_elsewhere,
    known_answers,
    rate_columns,
    rate_rows,
    read_labels,
)
from pipelines.evaluation.judging.facts import FactRunner, FactsBy, FactSpec
from pipelines.evaluation.judging.prompts import read_source, shipped_source
from pipelines.evaluation.judging.reading import graded_answers
from pipelines.evaluation.judging.runner import (
    PATIENCE,
    JudgeRunner,
    JudgingProgress,
    Reason,
    is_spent,
)
from pipelines.evaluation.judging.spec import MAX_TEMPERATURE, Judgement, JudgeSpec
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.evaluation.results.export import columns_text, estimate_words, evaluation_text
from pipelines.evaluation.scoring import read_results
from pipelines.store.tables import to_json

_ENDS = {
    "done": "Everything is judged.",
    "budget": "The budget is spent: the same command with a higher limit goes on.",
    "failing": "Too many calls failed one after the other: {error}",
    None: "Some calls failed, and the same command tries them again: {error}",
}


async def judge(service: Service, options: argparse.Namespace) -> int:
    """Have what is not judged yet judged, hold it against labels, and print the table."""
    labels = read_labels(options.labels) if options.labels else None
    source = read_source(options.prompt) if options.prompt else shipped_source()
    against, known = await _known(options) if options.against else ("", [])
    model, key = await main_model(service, options)
    spec = JudgeSpec(
        model=model,
        prompt=source,
        prompt_name=options.prompt.name if options.prompt else "answer_judge",
        seed=options.seed,
        temperature=options.temperature,
    )
    evaluations, judgements = service.store.evaluations, service.store.judgements
    stored = await asyncio.to_thread(evaluations.get, options.evaluation, OWNER)
    systems = [one.name for one in EvaluationSpec.model_validate(stored.spec).systems]
    if options.max_money is not None and model.price is None:
        raise failure("judging.unpriced")
    budget = Budget(**{name: getattr(options, f"max_{name}") for name in BUDGET.fields})
    runner = JudgeRunner(
        service,
        options.evaluation,
        spec,
        owner=OWNER,
        key=key,
        budget=budget,
        at_once=options.at_once,
    )
    began = time.monotonic()
    last = await _watched(runner)
    say(_spent(last))
    if spec.weak:
        say(
            f"{model.name} was measured to judge no better than chance: its figures show how this"
            " works, not how good the answers are."
        )
    graded = await asyncio.to_thread(
        graded_answers, evaluations, options.evaluation, OWNER, spec.fingerprint, systems
    )
    found: JudgeCalibration | None = None
    ended = last.reason
    if labels is not None:
        found = calibrated(graded, labels)
    elif known and last.reason != "failing":
        there = await _judged_known(
            service, spec, key, known, options.evaluation, OWNER, budget, last.spent, began
        )
        ended = there.reason
        if ended != "done":
            say(f"{against}: {len(there.said)} of {len(known)} known answers are judged.")
            say(_ENDS[ended].format(error=happened(there.error)))
        values = {
            system: [one.judgement.value or 0.0 for one in graded if one.system == system
                     and one.judgement.value is not None]
            for system in systems
        }  # fmt: skip
        # Where none was asked for, nothing is known of the judge, and that was said above.
        if there.said:
            found = calibrated_elsewhere(there.said, values, against)
    if found is not None:
        await asyncio.to_thread(
            judgements.calibrate, options.evaluation, OWNER, spec.fingerprint, to_json(found)
        )
        print(printable(calibration_text(found)))
    _, results = await asyncio.to_thread(read_results, evaluations, options.evaluation, OWNER)
    print(printable(await asyncio.to_thread(evaluation_text, results)), end="")
    return 0 if last.reason == ended == "done" else 1


async def _watched(runner: JudgeRunner) -> JudgingProgress:
    """Carry out a judging; say how far it is, and why it ended."""
    last = JudgingProgress(0, 0)
    async with aclosing(runner.run()) as steps:
        async for last in steps:
            print(f"\r{last.judged} of {last.total} judged   ", end="", file=sys.stderr)
    print(file=sys.stderr)
    say(_ENDS[last.reason].format(error=happened(last.last_error)))
    return last


async def score_facts(service: Service, options: argparse.Namespace) -> int:
    """Have the facts of all answers checked by one scorer, and print the table."""
    models, keys = await models_by_role(service, options)
    evidence = await chosen_evidence(service, options, keys)
    spec = FactSpec(by=options.by, models=models, evidence=evidence, seed=options.seed)
    budget = Budget(**{name: getattr(options, f"max_{name}") for name in BUDGET.fields})
    if options.max_money is not None and models["main"].price is None:
        raise failure("judging.unpriced")
    runner = FactRunner(
        service,
        options.evaluation,
        spec,
        owner=OWNER,
        keys=keys,
        budget=budget,
        at_once=options.at_once,
    )
    last = await _watched(runner)
    say(_spent(last))
    store = service.store.evaluations
    _, results = await asyncio.to_thread(read_results, store, options.evaluation, OWNER)
    print(printable(await asyncio.to_thread(evaluation_text, results)), end="")
    return 0 if last.reason == "done" else 1


async def _known(options: argparse.Namespace) -> tuple[str, list[KnownAnswer]]:
    """Return the data set `--against` and its answers of known truth; raises InvalidInputError."""
    data = await asyncio.to_thread(
        open_data_set, options.against, limit=options.against_limit, seed=options.seed
    )
    known = list(known_answers(data.items))
    if not known:
        raise failure("judging.no_truth", data=data.name)
    return data.name, known


class _KnownJudged(NamedTuple):
    """What a judge said of known answers, why that ended, and the last error."""

    said: list[tuple[KnownAnswer, Judgement]]
    reason: Reason | None
    error: ErrorInfo | None


async def _judged_known(
    service: Service,
    spec: JudgeSpec,
    key: str | None,
    known: Sequence[KnownAnswer],
    evaluation: str,
    owner: str,
    budget: Budget,
    spent: Cost,
    began: float,
) -> _KnownJudged:
    """Return what the judge says of known answers; each is asked for once, and counted.

    `began` is when the work of this command did (time.monotonic). What is still open where the
    budget is spent, or too many calls failed in a row, is left out.
    """
    judgements = service.store.judgements
    names = [one.judged.key(spec.fingerprint) for one in known]
    bodies = await asyncio.to_thread(judgements.known, owner, names)
    there = {name: Judgement.model_validate(body) for name, body in bodies.items()}
    wanted = {name: one.judged for one, name in zip(known, names, strict=True) if name not in there}
    reason: Reason | None = "done"
    failing = 0
    error: ErrorInfo | None = None
    if wanted:
        slot = await service.pool.get(spec.model, key)
        for name, answer in wanted.items():
            if is_spent(budget, spent, time.monotonic() - began):
                reason = "budget"
                break
            asked = await ask_judge(spec, slot, answer, owner=owner)
            spent += asked.cost
            kept = None if asked.judgement is None else to_json(asked.judgement)
            await asyncio.to_thread(
                judgements.keep,
                owner,
                name,
                kept,
                evaluation=evaluation,
                judge=spec.fingerprint,
                spent=to_json(asked.cost),
            )
            if asked.judgement is not None:
                there[name], failing = asked.judgement, 0
                continue
            reason, failing = None, failing + 1
            error = asked.error
            if failing >= PATIENCE:
                reason = "failing"
                break
    said = [(one, there[name]) for one, name in zip(known, names, strict=True) if name in there]
    return _KnownJudged(said, reason, error)


def calibration_text(found: JudgeCalibration) -> str:
    """Return the agreement of a judge with people, its confusion matrix, and corrected rates."""
    seen = found.agreement
    lines = [
        f"Against {found.source}: accuracy {estimate_words(seen.accuracy, 2)} of {seen.accuracy.n},"
        f" Cohen's kappa {estimate_words(seen.kappa, 2, 'not defined')},"
        f" {seen.undecided} undecided.",
        "People's grade, and how often the judge gave each:",
    ]
    wide = max(map(len, seen.grades)) + 2
    lines.append(" " * wide + "".join(f"{one:>{wide}}" for one in seen.grades))
    lines += [
        f"{name:<{wide}}" + "".join(f"{count:>{wide}}" for count in row)
        for name, row in zip(seen.grades, seen.confusion, strict=True)
    ]
    rows = rate_rows(found)
    why = [f"{system}: {rate.why}" for system, rate in found.rates.items() if rate.why]
    missing = [system for system, one in found.transferred.items() if one is None]
    why += [f"{system}: by the errors there (Rogan-Gladen) not defined" for system in missing]
    rates = f"\n{columns_text(rate_columns(found), rows, why)}" if rows else ""
    return "\n".join(lines) + "\n" + rates


def _spent(progress: JudgingProgress) -> str:
    spent = progress.spent
    money = ", ".join(f"{amount:.4g} {name}" for name, amount in spent.money.items())
    return (
        f"Judging has taken {spent.calls + spent.judge_calls:g} calls,"
        f" {spent.prompt_tokens + spent.tokens:g} tokens{', ' + money if money else ''};"
        f" {progress.undecided} answers are undecided."
    )


def add_judge_command(parts: Any) -> None:
    """Add the command `evaluations judge`."""
    parser = add_command(parts, "cli.command.evaluations.judge", judge)
    parser.add_argument("evaluation")
    add_main_model_options(parser)
    add_worded(parser, "cli.judge.prompt", "--prompt", type=Path, metavar="FILE")
    parser.add_argument("--seed", type=whole, default=0)
    add_worded(
        parser,
        "cli.judge.temperature",
        "--temperature",
        type=partial(amount, most=MAX_TEMPERATURE),
        default=0.0,
        facts={"most": f"{MAX_TEMPERATURE:g}"},
    )
    held_against = parser.add_mutually_exclusive_group()
    add_worded(held_against, "cli.judge.labels", "--labels", type=Path, metavar="FILE")
    add_worded(held_against, "cli.judge.against", "--against", metavar="DATA")
    parser.add_argument("--against-limit", type=count, default=100, metavar="N")
    add_worded(parser, "cli.judge.at_once", "--at-once", type=count, default=4, metavar="N")
    for name, field in BUDGET.fields.items():
        add_option(parser, field, f"--max-{name}")


def add_facts_command(parts: Any) -> None:
    """Add the command `evaluations facts`."""
    parser = add_command(parts, "cli.command.evaluations.facts", score_facts)
    parser.add_argument("evaluation")
    add_worded(parser, "cli.facts.by", "--by", choices=get_args(FactsBy), default="concepts")
    parser.add_argument("--seed", type=whole, default=0)
    add_worded(parser, "cli.facts.at_once", "--at-once", type=count, default=2, metavar="N")
    for name, field in BUDGET.fields.items():
        add_option(parser, field, f"--max-{name}")
    add_model_options(parser)
    add_evidence_options(parser)
