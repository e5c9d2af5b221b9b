"""The estimate and the limits of a run, on the command line."""

from __future__ import annotations

import argparse
from dataclasses import replace

from pydantic import ValidationError

from components.forms import RUN_LIMITS
from pipelines.cli.forms import add_option
from pipelines.cli.prices import priced_models
from pipelines.engine.asking import RunRequest
from pipelines.engine.budget import Account, RunBudget, expected_of
from pipelines.errors import failure
from pipelines.methods.registry import used_roles
from pipelines.models.providers import Currency
from pipelines.run.defaults import by_language
from pipelines.run.ledger import LIMIT_NAMES, RunLimits


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `limited` and `begun` read."""
    for name in LIMIT_NAMES:
        add_option(parser, RUN_LIMITS[name], f"--max-{name}")
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="start even if the estimate passes a limit; the run stops at the limit",
    )


def limited(request: RunRequest, options: argparse.Namespace) -> RunRequest:
    """Return what is asked for with the prices of its models and the limits that the options give.

    Raises InvalidInputError for a price or a limit that cannot be used.
    """
    models = by_language(request.models, request.spoken)
    priced = priced_models(used_roles((one.name for one in request.methods), models), options)
    currencies: list[Currency] = sorted(
        {one.price.currency for one in priced.values() if one.price}
    )
    given = {name: getattr(options, f"max_{name}") for name in LIMIT_NAMES}
    try:
        limits = RunLimits(**given, currency=currencies[0] if currencies else "USD")
    except ValidationError:
        raise failure("command.no_seconds") from None
    return replace(request, models={**models, **priced}, limits=limits)


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
