"""What models cost, as it is told on the command line: for the main model, or in a file for all.

Example of a file, for a million tokens that are read and written::

    {"qwen-max": {"read": 2.4, "written": 9.6, "currency": "CNY"}}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from components.forms import PRICE
from pipelines.cli.forms import add_option
from pipelines.error_words import first_problem, phrase
from pipelines.errors import failure
from pipelines.models.providers import ModelSpec, Price

_FORM = '{"NAME": {"read": 2.4, "written": 9.6, "currency": "CNY"}}'
_PRICES = TypeAdapter(dict[str, Price])


def add_price_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `priced_models` reads."""
    add_option(parser, PRICE["read"], "--price-in")
    add_option(parser, PRICE["written"], "--price-out")
    add_option(parser, PRICE["currency"])
    parser.add_argument(
        "--prices", metavar="FILE", help=f"prices of models by name, as JSON: {_FORM}"
    )


def priced_models(
    models: Mapping[str, ModelSpec], options: argparse.Namespace
) -> dict[str, ModelSpec]:
    """Return `models` by role, with the prices that the options give.

    Raises InvalidInputError for a file that cannot be used, for a name in it that no model has,
    and where only one half of a price is given.
    """
    prices = _from_file(Path(options.prices)) if options.prices else {}
    names = {spec.name for spec in models.values()}
    if unknown := [name for name in prices if name not in names]:
        raise failure(
            "prices.unknown_model", file=options.prices, name=unknown[0], known=sorted(names)
        )
    halves = (options.price_in, options.price_out)
    if None in halves and (halves != (None, None) or options.currency):
        raise failure("prices.half")
    if None not in halves:
        main = models["main"].name
        read, written = halves
        prices[main] = Price(read=read, written=written, currency=options.currency or "USD")
    return {
        role: spec.model_copy(update={"price": prices[spec.name]}) if spec.name in prices else spec
        for role, spec in models.items()
    }


def refuse_prices(options: argparse.Namespace) -> None:
    """Raise InvalidInputError where prices are given for an evaluation that has begun."""
    given = (options.price_in, options.price_out, options.currency, options.prices)
    if any(one is not None for one in given):
        raise failure("prices.too_late")


def _from_file(path: Path) -> dict[str, Price]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise failure("prices.unreadable", file=path) from error
    try:
        return _PRICES.validate_python(json.loads(text))
    except json.JSONDecodeError as error:
        raise failure("prices.no_json", file=path, line=error.lineno, form=_FORM) from error
    except ValidationError as error:
        place, problem = first_problem(error)
        raise failure(
            "prices.none",
            file=path,
            place=place or phrase("detail.whole"),
            problem=problem,
            form=_FORM,
        ) from error
