"""The estimate and the limits of a run, on the command line."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from pydantic import ValidationError

from components.forms import RUN_LIMITS
from pipelines.cli.forms import add_option
from pipelines.cli.prices import priced_models
from pipelines.cli.shared import OWNER
from pipelines.engine.budget import Account, RunBudget, budget_for, expected_of
from pipelines.engine.estimate import basis_for, estimate, size_in
from pipelines.engine.executor import used_roles
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.models.providers import Currency
from pipelines.run.ledger import LIMIT_NAMES, RunLimits
from pipelines.run.spec import ModelSpec, RunSpec


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `run_budget` reads."""
    for name in LIMIT_NAMES:
        add_option(parser, RUN_LIMITS[name], f"--max-{name}")
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="start even if the estimate passes a limit; the run stops at the limit",
    )


async def run_budget(
    service: Service, spec: RunSpec, models: Mapping[str, ModelSpec], options: argparse.Namespace
) -> RunBudget:
    """Return the budget of a run of `spec`, whose `models` have their prices.

    Raises InvalidInputError for a limit that cannot be kept.
    """
    names = [method.name for method in spec.methods]
    priced = priced_models(used_roles(names, models), options)
    main = priced["main"]
    size = size_in(spec)
    checks = size is not None
    past = await asyncio.to_thread(service.earlier.of, OWNER, main, checks=checks)
    currencies: list[Currency] = sorted(
        {one.price.currency for one in priced.values() if one.price}
    )
    given = {name: getattr(options, f"max_{name}") for name in LIMIT_NAMES}
    try:
        limits = RunLimits(**given, currency=currencies[0] if currencies else "USD")
    except ValidationError:
        raise failure("command.no_seconds") from None
    basis = basis_for(main, past, size=size)
    return budget_for(limits, priced, estimate(names, priced, basis))


def budget_words(budget: RunBudget) -> str:
    """Return a text such as "Expected: about 41 calls, 5,000 tokens, 12 s, 0.01 USD; limit:
    50 calls".
    """
    found, limits = budget.expected, budget.limits
    if found is None:
        return ""
    unknown = {"seconds": "time not known", "money": "price not known"}
    expected = [
        unknown.get(name, "")
        if (value := expected_of(found, name, limits.currency)) is None
        else _said(name, value, limits.currency)
        for name in LIMIT_NAMES
    ]
    said = f"Expected: about {', '.join(expected)}"
    set_ = [
        f"{getattr(limits, name):,.10g} {_unit(name, limits.currency)}" for name in limits.names
    ]
    return f"{said}; limit: {', '.join(set_)}" if set_ else said


def taken_words(account: Account) -> str:
    """Return a text such as "Taken: 12 calls, 3,400 tokens, 0.004 USD"."""
    taken = account.taken
    money = [f"{value:.2g} {unit}" for unit, value in taken.money.items()]
    said = ", ".join([f"{taken.calls:,} calls", f"{taken.tokens:,.0f} tokens", *money])
    reached = account.ledger.reached
    return f"Taken: {said}{f'; stopped at the limit of {reached}' if reached else ''}"


def _said(name: str, value: float, currency: str) -> str:
    if name == "money" and not value:
        return "free"
    number = f"{value:.2g}" if value < 10 else f"{value:,.0f}"
    return f"{number} {_unit(name, currency)}"


def _unit(name: str, currency: str) -> str:
    return {"seconds": "s", "money": currency}.get(name, name)
