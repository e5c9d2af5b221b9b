"""What a run will take, before it is started: calls, tokens, seconds and money.

What a method takes on one question is a mean: over the questions of a shipped measurement, or over
earlier runs of the visitor. What it takes to check a given text grows with its sentences and facts.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import ceil, floor, log10
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from pipelines.base import ASSETS, Frozen
from pipelines.error_words import Phrase, phrase
from pipelines.errors import StorageError, VeriscopeError, failure
from pipelines.methods.registry import METHODS, standard_methods
from pipelines.models.base import SimilarityRequest
from pipelines.models.providers import (
    PROVIDERS,
    Currency,
    ModelSpec,
    Price,
    only_judges,
    provider_of,
    runs_on_card,
)
from pipelines.run.calls import is_random, request_key
from pipelines.run.events import JUDGES, ModelCalled, RunSpec, is_default
from pipelines.run.ledger import ExpectedUsage, Ledger, LimitName, RunLimits, UsageTotals, tokens_of
from pipelines.run.view import MethodView, RunView, fold
from pipelines.store import RunStore
from pipelines.store.runs import FinishedRun
from pipelines.text import split_sentences

# How much of a given text there is to check: what an estimate is worked out from.
#
# Detectors that go through a text take so many calls for every sentence, and those that look up its
# facts so many for every fact. What counts as a fact is known only when a model has listed them, so
# names and numbers stand for them here. They are counted without a recogniser of entities, which
# takes seconds to load: an estimate is shown before anything is loaded.

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*")


class TextSize(NamedTuple):
    """The sentences of a text, at least 1, and its facts, at least one for each sentence."""

    sentences: int
    facts: int


def size_of(text: str) -> TextSize:
    """Return the size of `text`.

    The name that an English sentence begins with is what it speaks about, and no fact. In Chinese
    names cannot be seen without a recogniser: there numbers alone are counted.
    """
    sentences = [span.text for span in split_sentences(text)]
    return TextSize(max(1, len(sentences)), sum(map(_facts, sentences)) or 1)


def _facts(sentence: str) -> int:
    names = [found for found in _NAME.finditer(sentence) if found.start() > 0]
    return max(1, len(names) + len(_NUMBER.findall(sentence)))


# What runs took where that was measured: the shipped table, `assets/effort.json`.
#
# It is written by `python -m research.default_report --effort FILE`, and the part about
# given texts by `python -m research.measure check-effort`.

Amount = Annotated[float, Field(ge=0)]
Source = Literal["default", "walkthroughs"]
"""What was measured: the default models, or the strong ones of the English walkthroughs."""


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


class Pace(Frozen):
    """Seconds of a run on a machine of `cores`: `start`, for each token read and written, and for
    each call of a judge, 0 where those were not measured apart."""

    start: Amount
    read: Amount
    written: Amount
    cores: int
    judged: Amount = 0.0

    def seconds(self, effort: Effort, judge_calls: float = 0.0) -> float:
        """Return how long a run takes whose calls of language models are `effort`."""
        written = self.written * effort.written + self.judged * judge_calls
        return self.start + self.read * effort.read + written


class MeasuredEffort(Frozen):
    """What each method took, by role: means over `questions`, asked of the model called `model`.

    A call that several methods share counts for the one that made it (see `Method.starts_from`).
    `fewer` names the methods that were asked fewer questions, each in a run of its own, and how
    many. For checks, `shares` and `alone` are as in `MeasuredChecks`.
    """

    model: str
    questions: int
    methods: dict[str, dict[str, Effort]]
    fewer: dict[str, int] = Field(default_factory=dict)
    shares: dict[str, tuple[str, ...]] = Field(default_factory=dict, exclude=True)
    alone: dict[str, dict[str, Effort]] = Field(default_factory=dict, exclude=True)


class PerText(Frozen):
    """What a method takes to check a given text: for the `text`, for each `sentence` of it, and for
    each `fact` in it."""

    text: Effort = Effort()
    sentence: Effort = Effort()
    fact: Effort = Effort()

    def of(self, size: TextSize) -> Effort:
        """Return the effort for a text of this size."""
        return self.text + self.sentence * size.sentences + self.fact * size.facts


class MeasuredChecks(Frozen):
    """What each method took by role to check `texts` given texts of `sentences` in all.

    They were asked of the model called `model`, "" for the strong models of illustrations. Calls
    that several methods share count for the first of them; `shares` names for a method the earlier
    ones that it shares calls with, and `alone` what it takes where none of these is asked. `pace`
    None: it is that of questions.
    """

    model: str
    texts: int
    sentences: int
    methods: dict[str, dict[str, PerText]]
    shares: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    alone: dict[str, dict[str, PerText]] = Field(default_factory=dict)
    pace: Pace | None = None

    def of(self, size: TextSize) -> MeasuredEffort:
        """Return the same for a text of this size."""
        methods, alone = (
            {
                name: {role: one.of(size) for role, one in roles.items()}
                for name, roles in part.items()
            }
            for part in (self.methods, self.alone)
        )
        return MeasuredEffort(
            model=self.model, questions=self.texts, methods=methods, shares=self.shares, alone=alone
        )


class EffortTable(Frozen):
    """The shipped measurements: the default models of an English question and of a Chinese one, and
    English walkthroughs (strong models, whose tokens are characters / 4); `pace` and `chinese_pace`
    are those of the default models.

    `checks` are the same for given texts.
    """

    default: MeasuredEffort
    walkthroughs: MeasuredEffort
    pace: Pace
    chinese: MeasuredEffort | None = None
    chinese_pace: Pace | None = None
    checks: dict[Source, MeasuredChecks] = Field(default_factory=dict)


@cache
def effort_table() -> EffortTable:
    """Return the table that ships with the code."""
    return EffortTable.model_validate_json((ASSETS / "effort.json").read_bytes())


_SLOWER = 2.2
"""How many times as long as the bundled model, which was measured, the small model of both
languages takes for the same texts: 460 and 203 tokens read, 107 and 51 written a second, on two
cores."""

_ON_CARD = Pace(start=0.0, read=0.0, written=13.8 / (60 * 64), cores=0)
"""A local model on a graphics card: 60 calls of 497 tokens, 64 written each, 16 at a time took
13.8 s with 7 billion parameters on an H200 (docs/measurements.md). Small models take as long:
starting kernels is what takes the time."""

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
    its seconds are multiplied by; `on_card` says that the pace is that of a local model on a
    graphics card. `sentences` are those of the text to be checked, None for a
    question; `of` are those that were measured.
    """

    source: Source
    measured: MeasuredEffort
    own: dict[str, dict[str, Effort]] = Field(default_factory=dict)
    runs: int = 0
    pace: Pace | None = None
    scale: float = 1.0
    on_card: bool = False
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
    kind are left out. Time is known of the embedded model, roughly of a local one on a graphics
    card, and of a model with earlier runs: the ratio of their real to their estimated seconds
    scales the shipped pace. For the embedded model, the shipped measurement counts as one more run,
    so that one short run does not decide.
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
    on_card = not known and runs_on_card(main)
    return Basis(
        source=source,
        measured=measured,
        own=own,
        runs=len(alike),
        pace=_ON_CARD if on_card else pace if known else None,
        scale=sum(real) / sum(expected) if known else 1.0,
        on_card=on_card,
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
    """Return `methods` and the baselines that write the answers they start from."""
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
    """Return the role that answers for `role`: main without a verifier, nobody without a judge."""
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


# The limits of a run compared with its estimate before it starts, and what the run has used.

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
        expected = None
        if (found := self.expected) is not None:
            calls, tokens = (expected_of(found, name) or 0.0 for name in ("calls", "tokens"))
            expected = ExpectedUsage(calls, tokens)
        return Account(self, Ledger(self.limits, self.prices, self.within, expected))


class Account(NamedTuple):
    """A run's budget and what it has used so far, up to date in any thread and after its end."""

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
    """Return what a run is expected to take of the limit `name`; None where not known."""
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


# What a visitor's earlier runs took: read from the store once, then remembered by their ids.

LATEST = 5
"""So many runs of a model are enough: what it took long ago says less about today."""

_REMEMBERED = 2000
_ROUNDING = 0.001
"""Seconds. A run enters the store with the time at which it begins, an imported one later."""


class EarlierRuns:
    """The latest runs of every visitor, as far as somebody asked. Safe in any thread."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._known: dict[str, RunUsage | None] = {}
        self._lock = threading.Lock()

    def of(self, owner: str, main: ModelSpec, *, checks: bool = False) -> tuple[RunUsage, ...]:
        """Return the owner's latest finished runs with `main` as their main model, newest first.

        Those that answered a question, or those that checked a given text (`checks`).
        Runs that asked no model, because everything was cached, and imported ones,
        which took their time elsewhere, are left out.
        """
        found: list[RunUsage] = []
        for run in self._store.finished(owner):
            if run.checks != checks or not same_model(run.main, main):
                continue
            if (past := self._past(run, owner)) is not None:
                found.append(past)
                if len(found) == LATEST:
                    break
        return tuple(found)

    def _past(self, run: FinishedRun, owner: str) -> RunUsage | None:
        with self._lock:
            if run.id in self._known:
                return self._known[run.id]
        try:
            past = self._read(run, owner)
        except StorageError:
            # It may be read the next time.
            return None
        with self._lock:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[run.id] = past
        return past

    def _read(self, run: FinishedRun, owner: str) -> RunUsage | None:
        try:
            view = fold(self._store.load(run.id, owner).events)
        except StorageError:
            raise
        except VeriscopeError:
            # It was deleted meanwhile, or is of a version that cannot be read.
            return None
        if view.header is None:
            return None
        here = abs(run.created.timestamp() - view.header.created) < _ROUNDING
        past = past_of(view)
        return past if here and (past.made.calls or past.judge_calls) else None
