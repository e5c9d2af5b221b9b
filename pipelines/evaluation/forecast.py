"""What the rest of an evaluation will take, from the answers that there are: means with a spread.

A few answers of each system are enough for a first forecast; it becomes narrower as it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from pipelines.evaluation.outcomes import Cost
from pipelines.types import Frozen

_SPREAD = 2.0
"""Standard errors on either side."""


class Range(Frozen):
    """A forecast with what it may as well be; `low` and `high` None where one answer is known."""

    value: float
    low: float | None = None
    high: float | None = None


class Forecast(Frozen):
    """What is left: answers, calls (those of judges too), tokens read and written, seconds, money.

    `unknown` are the systems of which nothing was answered, which count for nothing. `money` is by
    currency, empty where no model has a price.
    """

    answers: int
    calls: Range
    tokens: Range
    seconds: Range
    money: dict[str, Range]
    unknown: tuple[str, ...] = ()


def forecast(
    paid: Mapping[str, Sequence[Cost]], left: Mapping[str, int], *, at_once: int = 1
) -> Forecast:
    """Return what `left` answers of each system take, when `paid` is what earlier ones took.

    `at_once` answers are worked on at a time, and share the time that each takes.
    """
    currencies = sorted({one for costs in paid.values() for cost in costs for one in cost.money})

    def of(amount: str) -> Range:
        return _sum(
            [
                _times([_amount(cost, amount) for cost in paid[system]], count)
                for system, count in left.items()
                if paid.get(system)
            ]
        )

    seconds = of("seconds")
    return Forecast(
        answers=sum(left.values()),
        calls=of("calls"),
        tokens=of("tokens"),
        seconds=_sum([seconds], 1 / at_once),
        money={currency: of(f"money {currency}") for currency in currencies},
        unknown=tuple(system for system, count in left.items() if count and not paid.get(system)),
    )


def _amount(cost: Cost, amount: str) -> float:
    if amount == "calls":
        return cost.calls + cost.judge_calls
    if amount == "tokens":
        return cost.prompt_tokens + cost.tokens
    if amount == "seconds":
        return cost.seconds
    return cost.money.get(amount.removeprefix("money "), 0.0)


def _times(values: Sequence[float], count: int) -> Range:
    """Return the sum of `count` more values like these."""
    mean = fmean(values)
    if len(values) < 2:
        return Range(value=mean * count)
    error = _SPREAD * stdev(values) / sqrt(len(values)) * count
    return Range(value=mean * count, low=max(0.0, mean * count - error), high=mean * count + error)


def _sum(ranges: Sequence[Range], factor: float = 1.0) -> Range:
    """Return the sum of independent amounts; without ends where one of them has none."""
    value = factor * sum(one.value for one in ranges)
    wide = [one.high - one.value for one in ranges if one.high is not None]
    if len(wide) < len(ranges):
        return Range(value=value)
    error = factor * sqrt(sum(one**2 for one in wide))
    return Range(value=value, low=max(0.0, value - error), high=value + error)
