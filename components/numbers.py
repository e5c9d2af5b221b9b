"""How numbers are worded: two significant digits, and never a comparison that looks untrue."""

from __future__ import annotations

from components.messages import Catalogue

__all__ = ["comparison", "duration", "integer", "nats", "probability", "two_digits"]

_MOST_DIGITS = 6


def two_digits(value: float, digits: int = 2) -> str:
    """`value` to `digits` significant digits without an exponent: 0.42, 1.3, 87, 412."""
    if value == 0:
        return "0"
    if abs(value) >= 10**digits - 0.5:
        return f"{value:.0f}"
    text = f"{value:#.{digits}g}"
    if "e" in text:
        text = f"{value:.{digits + 8}f}".rstrip("0")
    return text.rstrip(".")


def probability(value: float | None) -> str:
    """A probability; one that would round to 0 or 1 without being it says so."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return "<0.001"
    if 0.995 <= value < 1:
        return ">0.99"
    return "1.0" if value >= 1 else two_digits(value)


def nats(value: float | None) -> str:
    """An entropy in nats, without the unit; anything below 0.01 is told apart from 0."""
    if value is None:
        return "–"
    return "<0.01" if 0 < value < 0.01 else two_digits(value)


def comparison(value: float, threshold: float) -> tuple[str, str, str]:
    """(value, sign, threshold), rounded alike and far enough that the sign is seen to be true.

    The sign is one of "<", "=" and ">". 0.598 against 0.6 gives ("0.598", "<", "0.600").
    """
    sign = "<" if value < threshold else ">" if value > threshold else "="
    for decimals in range(2, _MOST_DIGITS + 1):
        left, right = f"{value:.{decimals}f}", f"{threshold:.{decimals}f}"
        if (left != right) == (sign != "="):
            return left, sign, right
    return f"{value:.{_MOST_DIGITS}f}", sign, f"{threshold:.{_MOST_DIGITS}f}"


def integer(value: int) -> str:
    """A count with its thousands set apart."""
    return f"{value:,}"


def duration(seconds: float, t: Catalogue) -> str:
    """A length of time: 0.42 s, 4.1 s, 42 s, 3 min 7 s."""
    if seconds < 59.5:
        value = f"{seconds:.2f}" if seconds < 0.995 else f"{seconds:.1f}"
        return t("unit.seconds", value=value if seconds < 9.95 else f"{seconds:.0f}")
    minutes, rest = divmod(round(seconds), 60)
    return t("unit.minutes", minutes=minutes, seconds=rest)
