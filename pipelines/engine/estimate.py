"""What a run will take, before it is started: calls, tokens, seconds and money.

What a method takes on one question is a mean: over the questions of a shipped measurement, or over
earlier runs of the visitor. The shipped table, `assets/effort.json`, is written by
`python -m pipelines.research.default_report --effort FILE`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from pipelines.methods.registry import METHODS, standard_methods
from pipelines.models.base import GenerationRequest, SimilarityRequest
from pipelines.models.providers import PROVIDERS, Currency, only_judges
from pipelines.paths import ASSETS
from pipelines.run.cache import request_key
from pipelines.run.defaults import default_models
from pipelines.run.events import ModelCalled
from pipelines.run.ledger import tokens_of
from pipelines.run.spec import JUDGES, ModelSpec
from pipelines.run.view import MethodView, RunView
from pipelines.types import Frozen

PATIENCE = 30.0
"""Seconds that a first run may take: so long people watch before they have chosen anything."""

Amount = Annotated[float, Field(ge=0)]


class Effort(Frozen):
    """Calls, and the tokens they read and write; means, so they need not be whole numbers."""

    calls: Amount = 0.0
    read: Amount = 0.0
    written: Amount = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            calls=self.calls + other.calls,
            read=self.read + other.read,
            written=self.written + other.written,
        )

    def __mul__(self, factor: float) -> Effort:
        return Effort(
            calls=self.calls * factor, read=self.read * factor, written=self.written * factor
        )


Efforts = Mapping[str, Effort]
"""What a method asks of the model of each role."""


class Pace(Frozen):
    """Seconds of a run: `start`, and for each token read and written; on a machine of `cores`."""

    start: Amount
    read: Amount
    written: Amount
    cores: int

    def seconds(self, effort: Effort) -> float:
        """How long a run takes whose calls are `effort`."""
        return self.start + self.read * effort.read + self.written * effort.written


class Measured(Frozen):
    """What each method took, by role: means over `questions`, asked of the model called `model`.

    A call that several methods share counts for the one that made it (see `Method.starts_from`).
    `fewer` names the methods that were asked fewer questions, each in a run of its own, and how
    many.
    """

    model: str
    questions: int
    methods: dict[str, dict[str, Effort]]
    fewer: dict[str, int] = Field(default_factory=dict)


class EffortTable(Frozen):
    """The shipped measurements: the default models, and English walkthroughs (strong models, whose
    tokens are characters / 4); `pace` is that of the default models."""

    default: Measured
    walkthroughs: Measured
    pace: Pace


@cache
def effort_table() -> EffortTable:
    """The table that ships with the code."""
    return EffortTable.model_validate_json((ASSETS / "effort.json").read_bytes())


class Past(Frozen):
    """What a run took that is over.

    `methods` is what each method would have taken with nothing cached, `made` what was really
    asked, and `seconds` how long that took, from the first call to the end.
    """

    main: ModelSpec
    methods: dict[str, dict[str, Effort]]
    made: Effort
    seconds: Amount


class Basis(Frozen):
    """What an estimate rests on.

    `measured` is the shipped part that is used for methods without an entry in `own`, which are
    means over `runs` earlier runs. `pace` None where nothing is known about time; `scale` is what
    its seconds are multiplied by.
    """

    source: Literal["default", "walkthroughs"]
    measured: Measured
    own: dict[str, dict[str, Effort]] = Field(default_factory=dict)
    runs: int = 0
    pace: Pace | None = None
    scale: float = 1.0


class Money(Frozen):
    """An amount in a currency."""

    amount: Amount
    currency: Currency


class Estimate(Frozen):
    """What a run will take, as far as it is known.

    `calls`, `read` and `written` are those of language models; `judge_calls` ask judges that do not
    write. `seconds` None: not known. `price` None: not known; empty: every model runs on this
    machine. `unmeasured` are the methods that nobody has measured: their number of calls is that of
    the procedure (`Method.effort`), and each call is taken to be like a mean one of the others.
    `few`
    are those that were measured on fewer questions than the others.
    """

    calls: Amount
    judge_calls: Amount
    read: Amount
    written: Amount
    seconds: float | None
    price: tuple[Money, ...] | None
    basis: Basis
    unmeasured: tuple[str, ...] = ()
    few: tuple[str, ...] = ()


def basis_for(main: ModelSpec, past: Sequence[Past] = ()) -> Basis:
    """What is known about runs of the model `main`, `past` being earlier runs of it.

    Time is known of the embedded model, and of a model with earlier runs: the ratio of their real
    to their estimated seconds scales the shipped pace. For the embedded model, the shipped
    measurement counts as one more run, so that one short run does not decide.
    """
    table = effort_table()
    embedded = same_model(main, default_models()["main"])
    measured = table.default if embedded else table.walkthroughs
    expected = [table.pace.seconds(one.made) for one in past if one.made.written]
    real = [one.seconds for one in past if one.made.written]
    if embedded:
        usual = sum((_all_of(roles) for roles in measured.methods.values()), Effort())
        expected.append(table.pace.seconds(usual))
        real.append(expected[-1])
    known = sum(expected) > 0
    return Basis(
        source="default" if embedded else "walkthroughs",
        measured=measured,
        own=mean_efforts([one.methods for one in past]),
        runs=len(past),
        pace=table.pace if known else None,
        scale=sum(real) / sum(expected) if known else 1.0,
    )


def same_model(one: ModelSpec, other: ModelSpec) -> bool:
    """Whether both configure the same model, whatever is assumed about its abilities."""
    return one.without_capabilities() == other.without_capabilities()


def estimate(methods: Iterable[str], models: Mapping[str, ModelSpec], basis: Basis) -> Estimate:
    """What one run of `methods` takes with `models`, role to model."""
    names = _with_bases(methods)
    asked: dict[str, Effort] = defaultdict(Effort)
    for name in names:
        for role, effort in _effort_of(name, basis).items():
            asked[_answering(role, models)] += effort
    asked.pop("", None)
    priced = all(_tokens_known(name, models, basis) for name in names)
    judged = {role for role in asked if only_judges(models[role])}
    total = sum((asked[role] for role in asked if role not in judged), Effort())
    seconds = None if basis.pace is None else basis.pace.seconds(total) * basis.scale
    return Estimate(
        calls=total.calls,
        judge_calls=sum(asked[role].calls for role in judged),
        read=total.read,
        written=total.written,
        seconds=seconds,
        price=_price(asked, models) if priced else None,
        basis=basis,
        unmeasured=tuple(name for name in names if not _is_measured(name, basis)),
        few=tuple(n for n in names if n not in basis.own and n in basis.measured.fewer),
    )


def first_methods(models: Mapping[str, ModelSpec], basis: Basis) -> list[str]:
    """What is ticked until somebody chooses: the standard methods, if a run of them ends within
    `PATIENCE`; else as many as fit, those with the least `Method.effort` first, at least one."""

    def fits(names: Iterable[str]) -> bool:
        seconds = estimate(names, models, basis).seconds
        return seconds is None or seconds <= PATIENCE

    standard = standard_methods()
    if fits(standard):
        return standard
    taken: list[str] = []
    for name in sorted(standard, key=lambda name: METHODS[name].effort):
        if not taken or fits([*taken, name]):
            taken.append(name)
    return [name for name in standard if name in taken]


def past_of(view: RunView) -> Past:
    """What a finished run took. The run has to have a header."""
    assert view.header is not None
    models = view.header.spec.models
    calls = [call for method in view.methods.values() for call in method.calls]
    made = [
        call
        for call in calls
        if _counts(call)
        and not call.cached
        and call.role in models
        and not only_judges(models[call.role])
    ]
    started = min((call.started for call in calls), default=0.0)
    return Past(
        main=models["main"].without_capabilities(),
        methods=efforts_of(view),
        made=sum((_effort(call) for call in made), Effort()),
        seconds=max(0.0, view.time - started),
    )


def efforts_of(view: RunView, *, by_characters: bool = False) -> dict[str, dict[str, Effort]]:
    """What each method of a run takes where nothing is cached; the same request counts once.

    A baseline that was not run, but whose answer a method started from, has what that draft took.
    Methods that did not answer, or ended early, are left out. `by_characters` estimates all tokens
    from characters.
    """
    seen: set[tuple[str, str]] = set()
    found: dict[str, dict[str, Effort]] = {}
    # In the order of the table, whose first are the baselines; a method may have left the table.
    for name in (name for name in METHODS if name in view.methods):
        method, base = view.methods[name], METHODS[name].starts_from
        if method.answer is None or method.error is not None:
            continue
        draft = _first_draft(method) if base and base not in view.methods else None
        # A role that was there and was not asked anything takes nothing, which is known then.
        there = view.header.spec.models if view.header else {}
        found.setdefault(name, {}).update(
            {role: Effort() for role in METHODS[name].roles if role in there}
        )
        for call in filter(_counts, method.calls):
            asked = call.request
            key = (call.model, request_key(asked))
            if key in seen and not _is_random(asked):
                continue
            seen.add(key)
            roles = found.setdefault(base if draft and call.span == draft else name, {})
            effort = _effort(call, by_characters=by_characters)
            roles[call.role] = roles.get(call.role, Effort()) + effort
    return found


def mean_efforts(runs: Sequence[Mapping[str, Efforts]]) -> dict[str, dict[str, Effort]]:
    """The mean of what each method took, over the runs that have it."""
    means: dict[str, dict[str, Effort]] = {}
    for name in METHODS:
        of = [run[name] for run in runs if name in run]
        roles = dict.fromkeys(role for one in of for role in one)
        if of:
            means[name] = {
                role: sum((one.get(role, Effort()) for one in of), Effort()) * (1 / len(of))
                for role in roles
            }
    return means


def _with_bases(methods: Iterable[str]) -> list[str]:
    """`methods` and the baselines whose answers they start from: somebody has to write these."""
    names = list(methods)
    return list(dict.fromkeys([*names, *filter(None, (METHODS[n].starts_from for n in names))]))


def _is_measured(name: str, basis: Basis) -> bool:
    return name in basis.own or name in basis.measured.methods


def _effort_of(name: str, basis: Basis) -> Efforts:
    """What is known of a method; of one that was never measured, its number of calls, each of them
    as the others' are."""
    for known in (basis.own, basis.measured.methods):
        if name in known:
            return known[name]
    total = sum((_all_of(roles) for roles in basis.measured.methods.values()), Effort())
    return {"main": total * (METHODS[name].effort / total.calls)} if total.calls else {}


def _all_of(roles: Efforts) -> Effort:
    """What language models are asked; judges are not among them."""
    return sum((effort for role, effort in roles.items() if role not in JUDGES), Effort())


def _answering(role: str, models: Mapping[str, ModelSpec]) -> str:
    """The role that answers for `role`: without a verifier the main model is asked again, without
    a judge nobody."""
    if role in models:
        return role
    return "main" if role == "verifier" else ""


def _tokens_known(name: str, models: Mapping[str, ModelSpec], basis: Basis) -> bool:
    """Whether it is known what the method asks of each hosted model beside the main one."""
    efforts = _effort_of(name, basis)
    hosted = [role for role in METHODS[name].roles if role in models and _hosted(models[role])]
    return all(role in efforts and _counted(efforts[role]) for role in hosted)


def _counted(effort: Effort) -> bool:
    return effort.read > 0 or not effort.calls


def _hosted(spec: ModelSpec) -> bool:
    return spec.kind in PROVIDERS and PROVIDERS[spec.kind].hosted


def _price(asked: Efforts, models: Mapping[str, ModelSpec]) -> tuple[Money, ...] | None:
    amounts: dict[Currency, float] = {}
    for role, effort in asked.items():
        spec = models[role]
        if not _hosted(spec):
            continue
        if spec.price is None:
            return None
        cost = (effort.read * spec.price.read + effort.written * spec.price.written) / 1e6
        amounts[spec.price.currency] = amounts.get(spec.price.currency, 0.0) + cost
    return tuple(Money(amount=amount, currency=unit) for unit, amount in amounts.items())


def _counts(call: ModelCalled) -> bool:
    return call.error is None and not isinstance(call.request, SimilarityRequest)


def _is_random(request: object) -> bool:
    """Whether the same request is asked again each time: its reply is not kept."""
    return (
        isinstance(request, GenerationRequest)
        and request.temperature > 0
        and request.sample is None
    )


def _first_draft(method: MethodView) -> str | None:
    """The span of the step that wrote the method's original."""
    return next((step.span for step in method.steps if step.name == "draft"), None)


def _effort(call: ModelCalled, *, by_characters: bool = False) -> Effort:
    """One call."""
    if isinstance(call.request, SimilarityRequest):
        return Effort()
    read, written = tokens_of(call.request, call.generations, by_characters=by_characters)
    return Effort(calls=1, read=read, written=written)
