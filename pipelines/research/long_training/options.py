"""Settings that are a named tuple, as options of a command."""

from __future__ import annotations

import argparse
from typing import NamedTuple, TypeVar, get_type_hints

_Settings = TypeVar("_Settings", bound=NamedTuple)


def add_options(parser: argparse.ArgumentParser, name: str, default: NamedTuple) -> None:
    """Add an option `--NAME-FIELD` for each field of `default`, which says what holds
    without it.
    """
    group = parser.add_argument_group(name, type(default).__doc__)
    for field, kind in get_type_hints(type(default)).items():
        group.add_argument(
            f"--{name}-{field.replace('_', '-')}",
            dest=f"{name}_{field}",
            type=_boolean if kind is bool else kind,
            default=getattr(default, field),
            metavar=kind.__name__,
        )


def given(options: argparse.Namespace, name: str, default: _Settings) -> _Settings:
    """Return the settings that the options of `add_options` hold."""
    return default._replace(
        **{field: getattr(options, f"{name}_{field}") for field in default._fields}
    )


def _boolean(said: str) -> bool:
    if said not in ("yes", "no"):
        raise argparse.ArgumentTypeError("say yes or no")
    return said == "yes"
