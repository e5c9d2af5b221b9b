"""Where an evaluation stops by itself: its limits, what of them is spent, and which can be kept.

The limits are kept with the evaluation, so that they also hold when it is continued later.
"""

from __future__ import annotations

from typing import Literal, get_args

from pipelines.errors import failure
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.plan import Budget, EvaluationSpec
from pipelines.methods.registry import used_models
from pipelines.models.providers import ModelSpec, provider_of
from pipelines.run.ledger import Ledger, RunLimits, UsageTotals
from pipelines.store.evaluations import EvaluationStore

Limit = Literal["calls", "tokens", "money", "hours"]
LIMITS: tuple[Limit, ...] = get_args(Limit)


def limit_reached(limits: Budget, spent: Cost, hours: float) -> Limit | None:
    """Return the first of the limits that is reached; None where the next answer may be begun.

    `hours` are those since the evaluation was started or continued. Money of several currencies is
    not added up: each currency has the whole limit.
    """
    used: dict[Limit, float] = {
        "calls": spent.calls + spent.judge_calls,
        "tokens": spent.prompt_tokens + spent.tokens,
        "money": max(spent.money.values(), default=0.0),
        "hours": hours,
    }
    for name in LIMITS:
        most = getattr(limits, name)
        if most is not None and used[name] >= most:
            return name
    return None


def ledger_within(limits: Budget, spent: Cost) -> Ledger:
    """Return what has to admit every call of an evaluation that has `spent` so much by now.

    It holds back what the calls under way may take, so that together they pass no limit of calls,
    tokens or money. Hours are looked at before each answer, see `limit_reached`.
    """
    # Where a limit is 0, no answer is begun.
    most = RunLimits(calls=limits.calls or None, tokens=limits.tokens or None, money=limits.money)
    ledger = Ledger(most)
    calls = round(spent.calls + spent.judge_calls)
    ledger.spent = UsageTotals(calls, spent.prompt_tokens, spent.tokens, spent.money)
    return ledger


def limit_of(ledger: Ledger) -> Limit | None:
    """Return the limit for which `ledger` refused a call; None as long as it refused none."""
    return next((name for name in LIMITS if name == ledger.reached), None)


def currencies_of(spec: EvaluationSpec) -> tuple[str, ...]:
    """Return the currencies in which the models of `spec` have prices, sorted."""
    return tuple(sorted({one.price.currency for one in _asked(spec) if one.price}))


def checked_limits(spec: EvaluationSpec, limits: Budget) -> Budget:
    """Return `limits`, once it is sure that they can be kept.

    Raises InvalidInputError for a limit of money where a model behind a network service has no
    price, where no model has one, and where prices are in several currencies.
    """
    if limits.money is None:
        return limits
    currencies = currencies_of(spec)
    if not currencies:
        raise failure("budget.no_prices")
    if len(currencies) > 1:
        raise failure("budget.several_currencies", currencies=" and ".join(currencies))
    for model in _asked(spec):
        if provider_of(model.kind).hosted and model.price is None:
            raise failure("budget.model_unpriced", name=model.name)
    return limits


def change_limits(store: EvaluationStore, evaluation: str, owner: str, limits: Budget) -> None:
    """Keep other limits with an evaluation.

    Raises NotFoundError, and InvalidInputError as `checked_limits` does.
    """
    spec = EvaluationSpec.model_validate(store.get(evaluation, owner).spec)
    checked_limits(spec, limits)
    if limits != spec.limits:
        store.set_limits(evaluation, owner, limits.model_dump(mode="json"))


def spent_so_far(store: EvaluationStore, evaluation: str) -> Cost:
    """Return what all attempts of an evaluation have spent, as far as that was counted."""
    counted = store.attempts(evaluation, counted=True)
    return sum((Cost.model_validate(one.spent) for one in counted), Cost())


def _asked(spec: EvaluationSpec) -> list[ModelSpec]:
    """Return the models that the systems ask, with their prices."""
    return [
        system.models[role]
        for system in spec.systems
        for role in used_models([system.method.name], system.models)
    ]
