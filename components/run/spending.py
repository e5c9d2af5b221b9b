"""What a run has used, beside its limits and its estimate. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10

from components.base.elements import Column, TableRow, table
from components.base.html import Child, Html, tag, visible
from components.base.words import (
    Catalogue,
    duration,
    integer,
    means_list,
    named,
    probability,
    two_digits,
    what_it_means,
)
from pipelines.engine.estimate import Account, Basis, Excess, Money, RunEstimate, expected_of
from pipelines.models.providers import Price
from pipelines.run.calibrated import CalibratedReading
from pipelines.run.calibrations import Calibration
from pipelines.run.ledger import CHARACTERS_PER_TOKEN, LimitName, RunLimits

# What a run will take, in words: one line, and what it rests on. Pure, for every front end.


def about(value: float) -> int:
    """Return `value` rounded to two digits, at least 0: 18.4 is about 18, 3,419 about 3,400."""
    if value < 1:
        return round(max(value, 0.0))
    step = 10 ** max(0, floor(log10(value)) - 1)
    return round(value / step) * step


def estimate_line(estimate: RunEstimate, t: Catalogue, *, here: bool = True) -> str:
    """Return calls, tokens, time and price in one line of plain text, counted as beside a run.

    So judges' calls are calls, and tokens are those that are written. `here` is whether the reader
    looks at a workbench of their own: it names "this machine", and the page on which a price is
    given.
    """
    return t(
        "estimate.line",
        calls=_counted("estimate.calls", estimate.calls + estimate.judge_calls, t),
        tokens=_counted("estimate.tokens", estimate.written, t),
        time=_time(estimate.seconds, t),
        price=_price(estimate.price, t, here=here),
    )


def estimate_help(estimate: RunEstimate, t: Catalogue) -> str:
    """Return what the estimate rests on, in plain text."""
    basis = estimate.basis
    parts = [
        t(
            "estimate.counts",
            read=integer(about(estimate.read)),
            judges=integer(about(estimate.judge_calls)),
        )
    ]
    if basis.runs:
        parts.append(t(_rests_on("runs", basis), count=basis.runs))
    measured = {
        "questions": basis.measured.questions,
        "model": basis.measured.model,
        "cores": basis.pace.cores if basis.pace else 0,
        "characters": CHARACTERS_PER_TOKEN,
        "sentences": basis.of,
        "here": basis.sentences or 0,
    }
    parts.append(t(_rests_on(basis.source, basis), **measured))
    fewer = {name: basis.measured.fewer[name] for name in estimate.few}
    if fewer:
        names = [named("method", name, t) for name in fewer]
        few = min(fewer.values())
        parts.append(t("estimate.basis.fewer", count=few, methods=t("list.separator").join(names)))
    if estimate.unmeasured:
        names = [named("method", name, t) for name in estimate.unmeasured]
        parts.append(t("estimate.basis.unmeasured", methods=t("list.separator").join(names)))
    if basis.on_card:
        parts.append(t("estimate.basis.card"))
    parts.append(t("estimate.basis.cached"))
    return t("estimate.separator").join(parts)


def _rests_on(what: str, basis: Basis) -> str:
    """Return the key of the text that says so, of a question or of a text to be checked."""
    asked = basis.sentences is None
    return f"estimate.basis.{what}" if asked else f"estimate.basis.check.{what}"


def estimate_note(estimate: RunEstimate | None, t: Catalogue, *, here: bool = True) -> str:
    """Return the line as HTML, what it rests on as its title; None where no method is chosen."""
    if estimate is None:
        return tag("p.vs-note", t("ask.no_method"), key="estimate")
    line = estimate_line(estimate, t, here=here)
    return tag("p.vs-note", line, title=estimate_help(estimate, t), key="estimate")


def price_words(price: Price, t: Catalogue) -> str:
    """Return what a model costs, for its card."""
    return t(
        "models.price.given",
        read=_amount(price.read),
        written=_amount(price.written),
        currency=price.currency,
    )


def _counted(key: str, value: float, t: Catalogue) -> str:
    number = about(value)
    return t(key, count=integer(number))


def _time(seconds: float | None, t: Catalogue) -> str:
    if seconds is None:
        return t("estimate.time.unknown")
    rounded = max(1, about(seconds))
    if rounded < 60:
        return t("estimate.seconds", count=rounded)
    return duration(rounded, t)


def _price(price: tuple[Money, ...] | None, t: Catalogue, *, here: bool) -> str:
    if price is None:
        return t("estimate.price.unknown.here" if here else "estimate.price.unknown")
    if not price:
        return t("estimate.free.here" if here else "estimate.free")
    if not any(money.amount for money in price):
        return t("estimate.free")
    return " + ".join(f"{two_digits(money.amount)} {money.currency}" for money in price)


def _amount(value: float) -> str:
    """Return a price as it was given, without the zeros of a float."""
    return f"{value:g}"


def spending(account: Account, t: Catalogue) -> Html | None:
    """Return a bar of the calls made, and in words calls, tokens, time and money.

    None where nothing was expected and nothing is limited. The bar only grows: more calls than
    were expected leave it full.
    """
    limits, estimate = account.budget.limits, account.budget.expected
    if estimate is None and not limits.names:
        return None
    taken, amounts = account.taken, list[Child]()
    money = sum(taken.money.values())
    so_far: dict[LimitName, float | None] = {
        "calls": float(taken.calls),
        "tokens": taken.tokens,
        # The seconds that passed tick above.
        "seconds": None,
        "money": money,
    }
    for name, value in so_far.items():
        expected = None if estimate is None else expected_of(estimate, name, limits.currency)
        most = getattr(limits, name)
        if most is None and (not expected or name == "seconds"):
            continue
        words = _words(name, value, expected, most, limits, t)
        amounts.append(tag("span.vs-spending-part", words, key=name))
    most_calls = limits.calls or 0
    calls = (estimate.calls + estimate.judge_calls) if estimate is not None else float(most_calls)
    share = min(1.0, taken.calls / calls) if calls > 0 else 0.0
    said = t("spending.bar", percent=integer(round(100 * share)))
    return tag(
        "div.vs-spending",
        tag("progress", max="1", value=f"{share:.3f}", aria_label=said),
        tag("span.vs-spending-words.vs-num", amounts),
        key="spending",
    )


def over_words(over: Excess, t: Catalogue) -> str:
    """Return which limit a run is expected to pass, and by how much."""
    return t(
        f"limit.over.{over.limit}",
        expected=amount_words(over.limit, over.expected, t, over.currency, rounded=True),
        most=amount_words(over.limit, over.most, t, over.currency),
        more=amount_words(over.limit, over.expected - over.most, t, over.currency, rounded=True),
    )


def limits_words(limits: RunLimits, t: Catalogue) -> str:
    """Return a text such as "limit 40 calls, 0.05 USD"; "" without any."""
    words = [
        t(f"limit.short.{name}", most=amount_words(name, getattr(limits, name), t, limits.currency))
        for name in limits.names
    ]
    return t("limit.line", limits=t("list.separator").join(words)) if words else ""


def amount_words(
    name: LimitName, value: float, t: Catalogue, currency: str = "", *, rounded: bool = False
) -> str:
    """Return an amount of what a limit counts: calls and tokens as numbers, time and money
    with a unit.

    `rounded` is for what is only expected.
    """
    if name == "seconds":
        # A limit is shown as it was set.
        exact = t("unit.seconds", value=f"{value:g}")
        return duration(max(1, about(value)), t) if rounded else exact
    if name == "money":
        return f"{two_digits(value) if rounded else f'{value:g}'} {currency}".strip()
    return integer(about(value) if rounded and value >= 1 else round(value))


def _words(
    name: LimitName,
    value: float | None,
    expected: float | None,
    most: float | None,
    limits: RunLimits,
    t: Catalogue,
) -> str:
    """Return a text such as "Calls: 12 of about 41, limit 50"."""
    unit = limits.currency if name == "money" else ""
    taken = None
    if value is not None:
        shown = two_digits(value) if name == "money" else integer(round(value))
        taken = shown if expected is not None or most is not None else None
    parts: list[str] = []
    if expected is not None:
        wanted = amount_words(name, expected, t, unit, rounded=True)
        key = "spending.of" if taken is not None else "spending.about"
        parts.append(t(key, taken=taken, expected=wanted) if taken else t(key, expected=wanted))
    elif taken is not None:
        parts.append(f"{taken} {unit}".strip())
    if most is not None:
        parts.append(t("spending.limit", most=amount_words(name, most, t, unit)))
    return t(f"spending.{name}", amounts=t("spending.separator").join(parts))


# What a score means by people's labels, wherever the score stands; and calibrations in words.


def reading_words(one: CalibratedReading, t: Catalogue) -> str:
    """Return a text such as "By people's labels, an answer with such a score is wrong with
    probability 0.71 (...)."
    """
    calibration = one.calibration
    said = t(
        f"calibrated.{calibration.task}",
        value=probability(one.probability),
        basis=_basis(calibration, t),
    )
    if not one.others:
        return said
    others = t("list.separator").join(
        t(
            "profiles.role_of",
            role=named("role", role, t),
            name=visible(calibration.models[role]),
        )
        for role in one.others
    )
    return f"{said}{t('sentence.separator')}{t('calibrated.others', list=others)}"


def calibrated_notes(found: Sequence[CalibratedReading], t: Catalogue) -> Html | None:
    """Return a line for each reading of a score, and what calibration means; None without any."""
    lines = [
        tag("p.vs-note", reading_words(one, t), data_calibrated=one.calibration.task)
        for one in found
    ]
    if not lines:
        return None
    return tag("div.vs-calibrated", lines, what_it_means("calibrated", t), key="calibrated")


def calibrated_brief(found: Sequence[CalibratedReading], t: Catalogue) -> Html | None:
    """Return the first reading in a few words, for a cell of a table; the whole is its title."""
    if not found:
        return None
    value = probability(found[0].probability)
    said = t("calibrated.brief", value=value)
    title = reading_words(found[0], t)
    return tag("span.vs-num.vs-note", said, title=title, data_calibrated=found[0].calibration.task)


def calibration_words(one: Calibration, t: Catalogue) -> str:
    """Return which score it is of, and what it was fitted to."""
    score = t("profiles.role_of", role=named("method", one.method, t), name=_score(one, t))
    return f"{score} ({_basis(one, t)})"


def calibrations_words(found: Iterable[Calibration], t: Catalogue) -> str:
    """Return all of them in one line."""
    return t("agreement.separator").join(calibration_words(one, t) for one in found)


def calibrations_table(
    found: Sequence[Calibration], idle: Sequence[Calibration], t: Catalogue
) -> Html | None:
    """Return the calibrations of a profile; those in `idle` do not hold for its settings and
    prompts.
    """
    if not found:
        return None
    columns = [
        Column(t("profiles.method")),
        Column(t("changes.score")),
        Column(t("calibration.basis")),
        Column(t("calibration.errors")),
    ]
    rows: list[TableRow] = []
    for one in found:
        task = t(f"annotate.results.task.{one.task}")
        cells: list[Child] = [
            named("method", one.method, t),
            _cell(_score(one, t), t("calibration.labelled", task=task)),
            _cell(_basis(one, t), one.date, t("calibration.idle") if one in idle else ""),
            _errors(one, t),
        ]
        rows.append(TableRow("-".join(one.key), cells))
    title = t("calibration.title")
    return tag(
        "div.vs-stack",
        table(title, columns, rows),
        tag("p.vs-note", t("calibration.help")),
        means_list(["calibrated", "brier", "ece"], t, key="means-calibrations"),
    )


def _basis(one: Calibration, t: Catalogue) -> str:
    return t("calibrated.basis", fit=_fit(one, t), labels=_labels(one, t))


def _labels(one: Calibration, t: Catalogue) -> str:
    if not one.session:
        return t("calibrated.labels", count=one.labels, number=integer(one.labels))
    return t(
        "calibrated.labels.of",
        count=one.labels,
        number=integer(one.labels),
        session=visible(one.session),
    )


def _fit(one: Calibration, t: Catalogue) -> str:
    return t(f"annotate.results.fit.{one.fit.kind}")


def _score(one: Calibration, t: Catalogue) -> str:
    return named("score", one.score, t)


def _cell(first: str, *notes: str) -> Html:
    """Return a cell of several lines; notes that are empty are left out."""
    below = (tag("span.vs-note", note) for note in notes if note)
    return tag("span.vs-estimate-cell", tag("span", first), below)


def _errors(one: Calibration, t: Catalogue) -> Child:
    """Return its errors on labels that it was not fitted to; a dash where they are not known."""
    errors = {"brier": one.brier, "ece": one.calibration_error}
    known = [
        f"{t(f'annotate.results.{name}')} {value:.3f}"
        for name, value in errors.items()
        if value is not None
    ]
    if not known:
        return "–"
    labels = t("calibrated.labels", count=one.tested, number=integer(one.tested))
    return _cell(t("list.separator").join(known), labels)
