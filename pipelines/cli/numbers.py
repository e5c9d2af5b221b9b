"""Numbers as argparse takes them from the command line; what is none is refused with the reason."""

from __future__ import annotations

from argparse import ArgumentTypeError
from math import inf


def whole(text: str, least: int = 0, most: int | None = None) -> int:
    """A whole number from `least` to `most`."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        end = "" if most is None else f" to {most}"
        raise ArgumentTypeError(f"{text!r} is no whole number from {least}{end}")
    return number


def count(text: str) -> int:
    """A whole number from 1."""
    return whole(text, 1)


def amount(text: str, most: float = inf) -> float:
    """A finite number from 0 to `most`."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most or number == inf:
        end = "" if most == inf else f" to {most:g}"
        raise ArgumentTypeError(f"{text!r} is no number from 0{end}")
    return number
