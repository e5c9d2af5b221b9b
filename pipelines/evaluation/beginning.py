"""Begins an evaluation: which items there is something to do with, and storing all that is asked.

The command line and the workbench begin and forecast evaluations by these functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Literal, TypedDict, get_args

from pipelines.base import Frozen
from pipelines.errors import failure
from pipelines.evaluation.datasets.formats import applies
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.outcomes import Cost, Outcome
from pipelines.evaluation.plan import (
    STANDS_FOR,
    Budget,
    DataSet,
    EvaluationSpec,
    Item,
    Offer,
    checked_spec,
    code_version,
    tasks_of,
)
from pipelines.evaluation.results.scores import CONTROLS
from pipelines.evaluation.statistics.detection import QUALITIES, RANKINGS
from pipelines.methods.registry import METHODS, used_models
from pipelines.models.providers import ModelSpec, provider_of
from pipelines.run.ledger import Ledger, RunLimits, UsageTotals
from pipelines.store import new_run_id
from pipelines.store.evaluations import EvaluationStore

# What the rest of an evaluation will take, from the answers that there are: means with a spread.
#
# A few answers of each system are enough for a first forecast; it becomes narrower as it goes on.

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


PROBED = 3
"""Items that every system answers before the forecast."""

_BY_SERVERS, _HERE = 8, 2
"""Answers that are worked on at a time."""


class Provenance(TypedDict):
    """The fields of an `EvaluationSpec` that say which data and which code its results are of."""

    data: str
    data_hash: str
    source: str
    licence: str
    code: str


def provenance_of(data: DataSet) -> Provenance:
    """Return what an evaluation on `data` that begins now records of the data set and of
    the code.
    """
    return Provenance(
        data=data.name,
        data_hash=data.hash,
        source=data.source,
        licence=data.licence,
        code=code_version(),
    )


def usable_items(items: Sequence[Item], *, texts: bool) -> list[Item]:
    """Return the items that have a question, or with `texts` a text to be checked.

    A text without a question answers the question what there is to say: its beginning stands for
    the question.
    """
    usable = [item for item in items if (item.text if texts else item.question)]
    if not texts:
        return usable
    return [
        item if item.question else item.model_copy(update={"question": item.text[:STANDS_FOR]})
        for item in usable
    ]


def create_evaluation(
    store: EvaluationStore, owner: str, spec: EvaluationSpec, items: Sequence[Item], name: str = ""
) -> str:
    """Store an evaluation of `spec` on `items`; return its id. Nothing is asked yet.

    Without a `name` it is called after its data and its systems. Raises InvalidInputError where
    `checked_spec` does.
    """
    checked_spec(spec, items)
    evaluation = new_run_id()
    store.create(
        evaluation,
        owner,
        name or f"{spec.data}: {', '.join(system.name for system in spec.systems)}",
        spec.model_dump(mode="json"),
        [(item.id, item) for item in items],
        tasks_of(spec, items),
    )
    return evaluation


def answers_at_once(spec: EvaluationSpec) -> int:
    """Return how many answers one process works on at a time, unless that is chosen.

    A model server joins what it is asked at the same time, so that more calls keep it busy; a model
    in this process has its processors busy with two.
    """
    hosted = (provider_of(system.models["main"].kind).hosted for system in spec.systems)
    return _BY_SERVERS if all(hosted) else _HERE


def probe_size(spec: EvaluationSpec, tasks: int) -> int:
    """Return the number of answers of the first items by every system: so many of `tasks` come
    before the forecast.
    """
    return min(tasks, PROBED * len(spec.systems) * spec.repeats)


def stored_forecast(
    store: EvaluationStore, evaluation: str, owner: str, *, at_once: int = 1
) -> Forecast:
    """Return what the rest of a stored evaluation takes, from what it has answered; see `forecast`.

    Raises NotFoundError.
    """
    stored = store.get(evaluation, owner)
    names = [system.name for system in EvaluationSpec.model_validate(stored.spec).systems]
    paid: dict[str, list[Cost]] = {name: [] for name in names}
    after = -1
    while rows := store.outcomes(evaluation, owner, after):
        after = rows[-1][0].number
        for task, _, body in rows:
            paid[names[task.system]].append(Outcome.model_validate(body).paid)
    each = stored.tasks // len(names)
    left = {name: each - len(paid[name]) for name in names}
    return forecast(paid, left, at_once=at_once)


# Which metrics a table of results can have: what the items offer, and what the methods do.

_ON_ANSWERS = ("answer", "list")


def metric_reasons(
    offers: Collection[Offer], checks: Literal["questions", "texts"], methods: Collection[str]
) -> dict[str, str | None]:
    """Return each metric of a table: None where it applies, else the catalogue key of why it
    does not.

    `offers` are those of the items, `methods` the names of the chosen methods. Where sentences of
    given texts are labelled, the sentences are ranked, and no answer is measured.
    """
    sentences = checks == "texts" and "labelled_sentences" in offers
    judged = any(METHODS[name].judges for name in methods)
    reasons: dict[str, str | None] = {}
    for metric in METRICS.values():
        name = metric.name
        if metric.span_match is not None and checks == "questions":
            reasons[name] = "evaluate.metrics.own_texts"
        elif name in (*RANKINGS, *QUALITIES):
            # A method's own first answer is hallucinated where it is wrong.
            needs = metric.needs if checks == "texts" else ("answers",)
            lacks = applies(needs, offers)
            reasons[name] = lacks or (None if judged else "evaluate.metrics.no_judge")
        elif metric.value is not None and metric.kind in _ON_ANSWERS:
            alone = sentences and name not in CONTROLS
            lacks = applies(metric.needs, offers)
            reasons[name] = "evaluate.metrics.sentences" if alone else lacks
    return reasons


# Where an evaluation stops by itself: its limits, what of them is spent, and which can be kept.
#
# The limits are kept with the evaluation, so that they also hold when it is continued later.

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
