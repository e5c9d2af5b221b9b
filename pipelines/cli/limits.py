"""The limits of an evaluation on the command line: given at its beginning, changed on the way."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from components.forms import BUDGET
from pipelines.cli.forms import add_option, number, terminal_words
from pipelines.evaluation.limits import LIMITS, checked_limits, currencies_of
from pipelines.evaluation.plan import Budget, EvaluationSpec

_NONE = "none"
"""Takes a limit away."""


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `read_limits` reads."""
    t = terminal_words()
    for name, field in BUDGET.fields.items():
        told = t("evaluate.most.kept", option=field.option(t))
        add_option(parser, field, f"--max-{name}", type=_limit(partial(number, field)), help=told)


def read_limits(options: argparse.Namespace, spec: EvaluationSpec) -> Budget:
    """Return the limits of `spec` with those that the options change.

    Raises InvalidInputError for a limit that cannot be kept.
    """
    given = {name: getattr(options, f"max_{name}") for name in LIMITS}
    changed = {
        name: None if value == _NONE else value
        for name, value in given.items()
        if value is not None
    }
    return checked_limits(spec, Budget.model_validate({**spec.limits.model_dump(), **changed}))


def limit_words(limits: Budget, spec: EvaluationSpec) -> str:
    """Return a text such as "100 calls, 5 USD"; "" without any."""
    units = {name: name for name in LIMITS} | {"money": " ".join(currencies_of(spec))}
    amounts = ((name, getattr(limits, name)) for name in LIMITS)
    return ", ".join(f"{most:,.10g} {units[name]}" for name, most in amounts if most is not None)


def _limit(read: Callable[[str], float]) -> Callable[[str], float | str]:
    """Return a limit as `read` reads it, or "none"."""

    def limit(text: str) -> float | str:
        return _NONE if text == _NONE else read(text)

    return limit
