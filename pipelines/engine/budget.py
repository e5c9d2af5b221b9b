"""The limits of a run compared with its estimate before it starts, and what the run has used."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log10
from typing import NamedTuple

from pipelines.engine.estimate import RunEstimate
from pipelines.error_words import Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.models.providers import ModelSpec, Price, provider_of
from pipelines.run.ledger import Ledger, LimitName, RunLimits, UsageTotals

_MARGIN = 1.25
"""How far above the estimate a raised limit lies: a single question may take more than the mean."""


class RunBudget(NamedTuple):
    """The limits of a run, the prices of its models by role, and the estimate of what it will use,
    None where there is no estimate. `within` counts and bounds several runs together."""

    limits: RunLimits = RunLimits()
    prices: Mapping[str, Price] = {}
    expected: RunEstimate | None = None
    within: Ledger | None = None

    def opened(self) -> Account:
        """Return an account of this budget in which nothing is used yet."""
        return Account(self, Ledger(self.limits, self.prices, self.within))


class Account(NamedTuple):
    """The budget of a run, and what the run has used so far.

    It stays up to date, in any thread, and after the end of the run.
    """

    budget: RunBudget
    ledger: Ledger

    @property
    def taken(self) -> UsageTotals:
        """What the calls that have ended took."""
        return self.ledger.spent


class Excess(NamedTuple):
    """A limit that a run is expected to pass: by `expected` - `most`, in its own unit."""

    limit: LimitName
    expected: float
    most: float
    currency: str = ""


def budget_for(
    limits: RunLimits, models: Mapping[str, ModelSpec], expected: RunEstimate | None = None
) -> RunBudget:
    """Return the budget of a run with `models`, by role and with their prices.

    Raises InvalidInputError where a limit of money cannot be kept: a model behind a network
    service has no price, or one in another currency than the limit.
    """
    hosted = {role: one for role, one in models.items() if provider_of(one.kind).hosted}
    for spec in hosted.values() if limits.money is not None else ():
        if spec.price is None:
            raise failure("budget.unpriced", name=spec.name)
        if spec.price.currency != limits.currency:
            facts = {"currency": limits.currency, "other": spec.price.currency}
            raise failure("budget.currencies", name=spec.name, **facts)
    prices = {role: one.price for role, one in hosted.items() if one.price is not None}
    return RunBudget(limits, prices, expected)


def expected_of(estimate: RunEstimate, name: LimitName, currency: str = "USD") -> float | None:
    """Return what a run is expected to take of what the limit `name` counts; None where
    not known.
    """
    if name == "calls":
        return estimate.calls + estimate.judge_calls
    if name == "tokens":
        return estimate.read + estimate.written
    if name == "seconds":
        return estimate.seconds
    if estimate.price is None:
        return None
    return sum(money.amount for money in estimate.price if money.currency == currency)


def excesses(estimate: RunEstimate, limits: RunLimits) -> tuple[Excess, ...]:
    """Return the limits that a run is expected to pass. What is not known passes none."""
    found: list[Excess] = []
    for name in limits.names:
        expected, most = expected_of(estimate, name, limits.currency), getattr(limits, name)
        if expected is not None and expected > most:
            unit = limits.currency if name == "money" else ""
            found.append(Excess(name, expected, most, unit))
    return tuple(found)


def raised(limits: RunLimits, over: tuple[Excess, ...]) -> RunLimits:
    """Return `limits`, with each that would be passed raised so far that it is enough for most
    questions: `_MARGIN` times the estimate, rounded up to two digits.
    """
    return limits.model_copy(update={one.limit: _enough(one) for one in over})


def refuse_excess(budget: RunBudget) -> None:
    """Raise InvalidInputError if the run is expected to pass a limit; it says which and how far."""
    if error := excess_error(budget):
        raise error


def excess_error(budget: RunBudget) -> VeriscopeError | None:
    """Return the error of a run that is expected to pass a limit; None for every other run."""
    over = () if budget.expected is None else excesses(budget.expected, budget.limits)
    return failure("budget.over", excesses=[*map(_said, over)]) if over else None


def _said(one: Excess) -> Phrase:
    expected, most = _number(one.expected), f"{one.most:,.10g}"
    facts = {"currency": one.currency} if one.currency else {}
    return phrase(f"excess.{one.limit}", expected=expected, most=most, **facts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _enough(one: Excess) -> float | int:
    """Return two digits, rounded up: 41.2 calls ask for 52, 0.0123 dollars for 0.016."""
    wanted = one.expected * _MARGIN
    step = 10.0 ** (floor(log10(wanted)) - 1)
    if one.limit in ("calls", "tokens"):
        return ceil(ceil(wanted / max(step, 1.0) - 1e-9) * max(step, 1.0))
    return float(f"{ceil(wanted / step - 1e-9) * step:.12g}")
