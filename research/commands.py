"""Commands of research: what each needs, how it is run, and settings as options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar, get_type_hints

from pipelines.errors import exit_status

_Settings = TypeVar("_Settings", bound=NamedTuple)


class Command(NamedTuple):
    """A command: the text of its help, its options, and what it does.

    `run` returns None, or the status to exit with: 0, or 3 where the same command has to go on.
    """

    text: str | None
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


def run_command(
    name: str,
    command: Command | Mapping[str, Command],
    arguments: Sequence[str] | None = None,
    text: str | None = None,
) -> int:
    """Run `python -m research.NAME`, which is a command or several with a `text`.

    Returns 0 or what the command says, 1 when it failed, 2 for unusable input.
    """
    kind = argparse.RawDescriptionHelpFormatter
    whole = command.text if isinstance(command, Command) else text
    parser = argparse.ArgumentParser(
        prog=f"python -m research.{name}", description=whole, formatter_class=kind
    )
    if isinstance(command, Command):
        command.options(parser)
        parser.set_defaults(run=command.run)
    else:
        chosen = parser.add_subparsers(required=True, metavar="COMMAND")
        for title, one in command.items():
            line = (one.text or "").partition("\n")[0]
            below = chosen.add_parser(title, help=line, description=one.text, formatter_class=kind)
            one.options(below)
            below.set_defaults(run=one.run)
    options = parser.parse_args(arguments)
    return exit_status(lambda: options.run(options))


def positive(text: str) -> int:
    """Return a whole number above 0; ValueError for anything else."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def add_settings(parser: argparse.ArgumentParser, name: str, default: NamedTuple) -> None:
    """Add an option `--NAME-FIELD` for each field of `default`, which holds without it."""
    group = parser.add_argument_group(name, type(default).__doc__)
    for field, kind in get_type_hints(type(default)).items():
        group.add_argument(
            f"--{name}-{field.replace('_', '-')}",
            dest=f"{name}_{field}",
            type=_boolean if kind is bool else kind,
            default=getattr(default, field),
            metavar=kind.__name__,
        )


def settings(options: argparse.Namespace, name: str, default: _Settings) -> _Settings:
    """Return the settings that the options of `add_settings` hold."""
    return default._replace(
        **{field: getattr(options, f"{name}_{field}") for field in default._fields}
    )


def _boolean(said: str) -> bool:
    if said not in ("yes", "no"):
        raise argparse.ArgumentTypeError("say yes or no")
    return said == "yes"
