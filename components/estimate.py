"""What a run will take, in words: one line, and what it rests on. Pure, for every front end."""

from __future__ import annotations

from math import floor, log10

from components.markup import tag
from components.messages import Catalogue, duration, integer, named, two_digits
from pipelines.engine.estimate import Basis, Money, RunEstimate
from pipelines.models.providers import Price
from pipelines.run.ledger import CHARACTERS_PER_TOKEN


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
