"""What a run will take, before it is started: calls, tokens, seconds and money.

What a method takes on one question is a mean: over the questions of a shipped measurement, or over
earlier runs of the visitor. What it takes to check a given text grows with its sentences and facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import Field

from pipelines.engine.effort_table import (
    Amount,
    Effort,
    EffortTable,
    MeasuredChecks,
    MeasuredEffort,
    Pace,
    Source,
    effort_table,
)
from pipelines.engine.text_size import TextSize, size_of
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.models.base import SimilarityRequest
from pipelines.models.providers import PROVIDERS, Currency, only_judges
from pipelines.run.cache import is_random, request_key
from pipelines.run.defaults import is_default
from pipelines.run.events import ModelCalled
from pipelines.run.ledger import tokens_of
from pipelines.run.spec import JUDGES, ModelSpec, RunSpec
from pipelines.run.view import MethodView, RunView
from pipelines.types import Frozen

_SLOWER = 2.2
"""How many times as long as the bundled model, which was measured, the small model of both
languages takes for the same texts: 460 and 203 tokens read, 107 and 51 written a second, on two
cores."""

PATIENCE = 60.0
"""Seconds that a first run may take: so long people watch before they have chosen anything, where
the first answer is there after a few."""

Efforts = Mapping[str, Effort]
"""What a method asks of the model of each role."""


class RunUsage(Frozen):
    """What a run took that is over.

    `methods` is what each method would have taken with nothing cached, `made` what was really asked
    of language models, `judge_calls` of judges that do not write, `verdicts` how often either was
    asked as a judge, and `seconds` how long that took, from the first call to the end.
    `size` is that of the text that it checked, None where it answered a question.
    """

    main: ModelSpec
    methods: dict[str, dict[str, Effort]]
    made: Effort
    seconds: Amount
    judge_calls: Amount = 0.0
    verdicts: Amount = 0.0
    size: TextSize | None = None


class Basis(Frozen):
    """What an estimate rests on.

    `measured` is the shipped part that is used for methods without an entry in `own`, which are
    means over `runs` earlier runs. `pace` None where nothing is known about time; `scale` is what
    its seconds are multiplied by. `sentences` are those of the text to be checked, None for a
    question; `of` are those that were measured.
    """

    source: Source
    measured: MeasuredEffort
    own: dict[str, dict[str, Effort]] = Field(default_factory=dict)
    runs: int = 0
    pace: Pace | None = None
    scale: float = 1.0
    sentences: int | None = None
    of: int = 0


class Money(Frozen):
    """An amount in a currency."""

    amount: Amount
    currency: Currency


class RunEstimate(Frozen):
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


def basis_for(
    main: ModelSpec, past: Sequence[RunUsage] = (), *, size: TextSize | None = None
) -> Basis:
    """Return what is known about runs of the model `main`, `past` being earlier runs of it.

    `size` is that of the text that is to be checked, None for a question; earlier runs of the other
    kind are left out. Time is known of the embedded model, and of a model with earlier
    runs: the ratio of their real to their estimated seconds scales the shipped pace. For the
    embedded model, the shipped measurement counts as one more run, so that one short run does not
    decide.
    """
    table = effort_table()
    embedded, usual_model = is_default(main), same_model(main, ModelSpec())
    source: Source = "default" if embedded else "walkthroughs"
    alike = [one for one in past if (one.size is None) == (size is None)]
    if size is None:
        measured, pace, of = getattr(table, source), table.pace, 0
        if embedded and not usual_model and table.chinese and table.chinese_pace:
            measured, pace = table.chinese, table.chinese_pace
        own = mean_efforts([one.methods for one in alike])
    else:
        measured, pace, of = measured_checks(table, source, size)
        own = _own_checks(alike, size, lambda one: measured_checks(table, source, one)[0])
    expected = [pace.seconds(one.made, one.verdicts) for one in alike if _took_time(one)]
    real = [one.seconds for one in alike if _took_time(one)]
    if embedded:
        usual = sum((_all_of(roles) for roles in measured.methods.values()), Effort())
        expected.append(pace.seconds(usual, _judged(measured.methods.values())))
        # Where the Chinese default was not measured, the English one stands in.
        slower = not usual_model and (size is not None or table.chinese is None)
        real.append(expected[-1] * (_SLOWER if slower else 1.0))
    known = sum(expected) > 0
    return Basis(
        source=source,
        measured=measured,
        own=own,
        runs=len(alike),
        pace=pace if known else None,
        scale=sum(real) / sum(expected) if known else 1.0,
        sentences=None if size is None else size.sentences,
        of=of,
    )


def _own_checks(
    past: Sequence[RunUsage], size: TextSize, shipped: Callable[[TextSize], MeasuredEffort]
) -> dict[str, dict[str, Effort]]:
    """Return what each method will take for a text of this size, by the texts in `past`.

    Some of it is taken once for a text, some for every sentence or fact: it grows from those texts
    to this one as the `shipped` measurement does. What is in no measurement grows with the
    sentences where the method goes through them, and not where it reads the text as a whole.
    """
    found: dict[str, dict[str, Effort]] = {}
    for name, roles in sum_efforts([one.methods for one in past]).items():
        sizes = [one.size or TextSize(1, 1) for one in past if name in one.methods]
        by_sentence = size.sentences / sum(one.sentences for one in sizes)
        usual = by_sentence if METHODS[name].checks == "text" else 1 / len(sizes)
        before = sum_efforts([shipped(one).methods for one in sizes]).get(name, {})
        now = shipped(size).methods.get(name, {})
        found[name] = {
            role: _grown(took, before.get(role), now.get(role), usual)
            for role, took in roles.items()
        }
    return found


def _grown(took: Effort, before: Effort | None, now: Effort | None, usual: float) -> Effort:
    """Return `took` times what `now` is of `before`, and times `usual` what is not in these."""

    def grown(field: str) -> float:
        was = getattr(before, field) if before is not None and now is not None else 0.0
        return getattr(took, field) * (getattr(now, field) / was if was else usual)

    return Effort(**{field: grown(field) for field in Effort.model_fields})


def measured_checks(
    table: EffortTable, source: Source, size: TextSize
) -> tuple[MeasuredEffort, Pace, int]:
    """Return what was measured for a text of this size, the pace of checks, and the sentences that
    were measured. What illustrations do not show was measured with the default models.
    """
    default = table.checks.get(
        "default", MeasuredChecks(model="", texts=0, sentences=0, methods={})
    )
    chosen = table.checks.get(source, default)
    measured = chosen.of(size)
    shipped = default.of(size)
    update = {
        "methods": {**shipped.methods, **measured.methods},
        "shares": {**shipped.shares, **measured.shares},
        "alone": {
            name: efforts
            for name, efforts in shipped.alone.items()
            if name not in measured.methods or measured is shipped
        }
        | measured.alone,
    }
    return measured.model_copy(update=update), default.pace or table.pace, chosen.sentences


def same_model(one: ModelSpec, other: ModelSpec) -> bool:
    """Return whether both configure the same model, whatever is assumed about its abilities."""
    return one.without_capabilities() == other.without_capabilities()


def estimate(methods: Iterable[str], models: Mapping[str, ModelSpec], basis: Basis) -> RunEstimate:
    """Return what one run of `methods` takes with `models`, role to model."""
    # A given text is there already: no baseline has to write it.
    names = list(methods) if basis.sentences is not None else _with_bases(methods)
    asked: dict[str, Effort] = defaultdict(Effort)
    for name in names:
        for role, effort in _effort_of(name, basis, names).items():
            asked[_answering(role, models)] += effort
    asked.pop("", None)
    priced = all(_tokens_known(name, models, basis) for name in names)
    judged = {role for role in asked if only_judges(models[role])}
    total = sum((asked[role] for role in asked if role not in judged), Effort())
    judge_calls = sum(asked[role].calls for role in judged)
    verdicts = sum(asked[role].calls for role in asked if role in JUDGES)
    seconds = None if basis.pace is None else basis.pace.seconds(total, verdicts) * basis.scale
    return RunEstimate(
        calls=total.calls,
        judge_calls=judge_calls,
        read=total.read,
        written=total.written,
        seconds=seconds,
        price=_price(asked, models) if priced else None,
        basis=basis,
        unmeasured=tuple(name for name in names if not _is_measured(name, basis)),
        few=tuple(n for n in names if n not in basis.own and n in basis.measured.fewer),
    )


def first_methods(models: Mapping[str, ModelSpec], basis: Basis) -> list[str]:
    """Return what is ticked until somebody chooses: the standard methods, if a run of them
    ends within `PATIENCE`; else as many as fit, those with the least `Method.effort` first, at
    least one.
    """

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


def past_of(view: RunView) -> RunUsage:
    """Return what a finished run took. The run has to have a header."""
    assert view.header is not None
    models = view.header.spec.models
    calls = [call for method in view.methods.values() for call in method.calls]
    counted = [c for c in calls if _counts(c) and not c.cached and c.role in models]
    made = [call for call in counted if not only_judges(models[call.role])]
    started = min((call.started for call in calls), default=0.0)
    return RunUsage(
        main=models["main"].without_capabilities(),
        methods=efforts_of(view),
        made=sum((_effort(call) for call in made), Effort()),
        seconds=max(0.0, view.time - started),
        judge_calls=len(counted) - len(made),
        verdicts=sum(call.role in JUDGES for call in counted),
        size=size_in(view.header.spec),
    )


def size_in(spec: RunSpec) -> TextSize | None:
    """Return the size of the text that a run checks; None for a run that answers a question."""
    return None if spec.answer is None else size_of(spec.answer.text)


def efforts_of(view: RunView, *, by_characters: bool = False) -> dict[str, dict[str, Effort]]:
    """Return what each method of a run takes where nothing is cached; the same request counts once.

    A baseline that was not run, but whose answer a method started from, has what that draft took;
    a text that was given took none.
    Methods that did not answer, or ended early, are left out. `by_characters` estimates all tokens
    from characters.
    """
    seen: set[tuple[str, str]] = set()
    found: dict[str, dict[str, Effort]] = {}
    given = view.header is not None and view.header.spec.answer is not None
    # In the order of the table, whose first are the baselines; a method may have left the table.
    for name in (name for name in METHODS if name in view.methods):
        method, base = view.methods[name], None if given else METHODS[name].starts_from
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
            if key in seen and not is_random(asked):
                continue
            seen.add(key)
            roles = found.setdefault(base if base and draft and call.span == draft else name, {})
            effort = _effort(call, by_characters=by_characters)
            roles[call.role] = roles.get(call.role, Effort()) + effort
    return found


def mean_efforts(runs: Sequence[Mapping[str, Efforts]]) -> dict[str, dict[str, Effort]]:
    """Return the mean of what each method took, over the runs that have it."""
    return {
        name: _scaled(roles, 1 / sum(name in run for run in runs))
        for name, roles in sum_efforts(runs).items()
    }


def sum_efforts(runs: Sequence[Mapping[str, Efforts]]) -> dict[str, dict[str, Effort]]:
    """Return the sum of what each method took, over the runs that have it."""
    sums: dict[str, dict[str, Effort]] = {}
    for name in METHODS:
        of = [run[name] for run in runs if name in run]
        if of:
            roles = dict.fromkeys(role for one in of for role in one)
            sums[name] = {
                role: sum((one.get(role, Effort()) for one in of), Effort()) for role in roles
            }
    return sums


def _scaled(roles: Efforts, factor: float) -> dict[str, Effort]:
    return {role: effort * factor for role, effort in roles.items()}


def _with_bases(methods: Iterable[str]) -> list[str]:
    """Return `methods` and the baselines whose answers they start from: somebody has to
    write these.
    """
    names = list(methods)
    return list(dict.fromkeys([*names, *filter(None, (METHODS[n].starts_from for n in names))]))


def _is_measured(name: str, basis: Basis) -> bool:
    return name in basis.own or name in basis.measured.methods


def _effort_of(name: str, basis: Basis, beside: Sequence[str] = ()) -> Efforts:
    """Return what is known of a method that is asked `beside` others; of one that was never
    measured, its number of calls, each of them as the others' are.
    """
    measured = basis.measured
    if name in measured.alone and not set(measured.shares.get(name, ())) & set(beside):
        # Its calls are shared with methods that are not asked now.
        return measured.alone[name]
    for known in (basis.own, measured.methods):
        if name in known:
            return known[name]
    total = sum((_all_of(roles) for roles in basis.measured.methods.values()), Effort())
    # What goes through a given text does so sentence by sentence.
    times = basis.sentences if basis.sentences and METHODS[name].checks == "text" else 1
    calls = METHODS[name].effort * times
    return {"main": total * (calls / total.calls)} if total.calls else {}


def _took_time(past: RunUsage) -> bool:
    """Return whether the run tells something about the pace: something was written, or judged."""
    return bool(past.made.written or (past.size is not None and past.judge_calls))


def _judged(methods: Iterable[Efforts]) -> float:
    """Return calls of judges."""
    return sum(one.calls for roles in methods for role, one in roles.items() if role in JUDGES)


def _all_of(roles: Efforts) -> Effort:
    """Return what language models are asked; judges are not among them."""
    return sum((effort for role, effort in roles.items() if role not in JUDGES), Effort())


def _answering(role: str, models: Mapping[str, ModelSpec]) -> str:
    """Return the role that answers for `role`: without a verifier the main model is asked again,
    without a judge nobody.
    """
    if role in models:
        return role
    return "main" if role == "verifier" else ""


def _tokens_known(name: str, models: Mapping[str, ModelSpec], basis: Basis) -> bool:
    """Return whether it is known what the method asks of each hosted model beside the main one."""
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


def _first_draft(method: MethodView) -> str | None:
    """Return the span of the step that wrote the method's original."""
    return next((step.span for step in method.steps if step.name == "draft"), None)


def _effort(call: ModelCalled, *, by_characters: bool = False) -> Effort:
    """Return the effort of one call."""
    if isinstance(call.request, SimilarityRequest):
        return Effort()
    read, written = tokens_of(call.request, call.generations, by_characters=by_characters)
    return Effort(calls=1, read=read, written=written)
