"""`ask`, and what every command shares that runs methods: options, request, how it is followed."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from app.cli.forms import add_worded
from app.cli.library import chosen_evidence
from app.cli.profiles import add_profile_option, chosen_profile
from app.cli.run_options import (
    ModelCheck,
    add_budget_options,
    add_evidence_options,
    add_model_options,
    add_price_options,
    add_prompts_option,
    add_web_options,
    budget_words,
    chosen_wording,
    limited,
    models_by_role,
    taken_words,
    web_key,
)
from app.cli.runs import Terminal, describe
from app.cli.shared import OWNER, read_settings
from pipelines.base import printable_json
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.estimate import Account, refuse_excess
from pipelines.engine.service import Service
from pipelines.methods.registry import METHODS
from pipelines.run.events import Event, EvidenceSpec, MethodSpec, event_adapter
from pipelines.run.view import fold


def add_ask_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ask`."""
    parser.add_argument("question")
    add_worded(parser, "cli.method", "--method", action="append", choices=list(METHODS))
    add_run_options(parser, "method")
    add_web_options(parser)


def add_run_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options that `requested` and `begun` read; methods are called `what` here."""
    add_worded(
        parser,
        f"cli.set.{what}",
        "--set",
        action="append",
        default=[],
        metavar=f"{what.upper()}.SETTING=VALUE",
    )
    for add in (
        add_profile_option,
        add_prompts_option,
        add_model_options,
        add_price_options,
        add_budget_options,
        add_evidence_options,
    ):
        add(parser)
    add_worded(parser, "cli.language", "--language", choices=["en", "zh"])
    parser.add_argument("--seed", type=int, default=0)
    add_worded(parser, "cli.reproducible", "--reproducible", action="store_true")


async def requested(
    service: Service,
    options: argparse.Namespace,
    names: Mapping[str, str],
    what: str,
    check: ModelCheck | None = None,
) -> tuple[RunRequest, dict[str, str]]:
    """Return a request, but for what is asked and its evidence, and the keys of its models by name.

    `names` are those of its methods, by what `--set` calls each of them. Settings of a profile
    stand where the options give none. `check` is told what the check of the models took.

    Raises InvalidInputError where an option cannot be understood.
    """
    profile = await chosen_profile(service, options)
    held = profile.settings if profile else {}
    example = "'drad 2.theta_1=0.5'" if what == "system" else "drad.theta_1=0.5"
    given = read_settings(names, options.set, f"{what.upper()}.SETTING=VALUE", example)
    wording = chosen_wording(options, profile.prompts if profile else {})
    models, keys = await models_by_role(service, options, profile.models if profile else {}, check)
    request = RunRequest(
        methods=[
            MethodSpec(name=method, settings={**held.get(method, {}), **given[name]})
            for name, method in names.items()
        ],
        models=models,
        seed=options.seed,
        reproducible=options.reproducible,
        prompts=wording,
        profile=profile,
    )
    return request, keys


async def begun(
    service: Service,
    options: argparse.Namespace,
    request: RunRequest,
    keys: dict[str, str],
    *,
    quiet: bool = False,
    check: ModelCheck | None = None,
) -> tuple[str, Account | None]:
    """Start what is asked for; return the id of the run, and its account.

    What it is expected to use is said on standard error, unless `quiet`. What the `check` of the
    models took counts in its limits. Raises InvalidInputError
    where that passes a limit, unless the options say to start it all the same.
    """
    past = partial(service.earlier.of, OWNER)
    plan = await asyncio.to_thread(plan_run, limited(request, options, check), past)
    if not quiet:
        print(budget_words(plan.budget), file=sys.stderr)
    if not options.anyway:
        refuse_excess(plan.budget)
    run_id = await service.start(plan, owner=OWNER, keys=keys)
    return run_id, service.account(run_id, owner=OWNER)


async def library_or_web(
    service: Service, options: argparse.Namespace, keys: dict[str, str]
) -> EvidenceSpec:
    """Return the evidence that the options name: a search of the web, else a library.

    Keys of services are added to `keys`.
    """
    if not options.web:
        return await chosen_evidence(service, options, keys)
    if key := web_key(options):
        keys[f"search:{options.web}"] = key
    return EvidenceSpec(source=options.web, base_url=options.web_url)


async def ask(service: Service, options: argparse.Namespace) -> int:
    """Ask a question; return the exit status."""
    names = {name: name for name in options.method or ["drad"]}
    check = ModelCheck()
    request, keys = await requested(service, options, names, "method", check)
    evidence = await library_or_web(service, options, keys)
    asked = {"question": options.question, "language": options.language, "evidence": evidence}
    run_id, account = await begun(service, options, replace(request, **asked), keys, check=check)
    return await follow(service, run_id, as_json=options.json, account=account)


async def follow(
    service: Service, run_id: str, *, as_json: bool, account: Account | None = None
) -> int:
    """Show a run as it goes on, and what came of it; return the exit status."""
    terminal = Terminal(sys.stderr, account)
    events: list[Event] = []
    async for event in service.follow(run_id, owner=OWNER):
        events.append(event)
        if as_json:
            print(printable_json(event_adapter.dump_json(event).decode()), flush=True)
        else:
            terminal.show(event)
    view = fold(events)
    if not as_json:
        print(describe(view, colour=sys.stdout.isatty()))
    if account is not None:
        print(taken_words(account), file=sys.stderr)
    if view.status != "finished":
        return 1
    return 3 if any(method.error for method in view.methods.values()) else 0
