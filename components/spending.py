"""What a run has used, beside its limits and its estimate. Pure functions."""

from __future__ import annotations

from components.estimate import about
from components.markup import Child, Html, tag
from components.messages import Catalogue, duration, integer, two_digits
from pipelines.engine.budget import Account, Excess, expected_of
from pipelines.run.ledger import LimitName, RunLimits


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
