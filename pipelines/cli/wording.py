"""Texts in place of shipped prompts, as the command line reads them from a file.

A file with such texts has the form of the files in `assets/prompts`, with each language under the
name of its prompt file::

    [ever.en]
    verify = '''
    ... $passages ... $question ...
    '''
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipelines.engine.profiles import read_profile
from pipelines.error_words import first_problem
from pipelines.errors import failure
from pipelines.prompts import Wording, checked_wording, own_prompts, with_text
from pipelines.store.tables import refuse_keys_in_prompts

_WORDING = TypeAdapter(dict[str, dict[str, dict[str, str]]])
_MOST = 1_000_000
"""Characters of a file."""


def add_prompts_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--prompts`."""
    parser.add_argument(
        "--prompts",
        type=Path,
        metavar="FILE",
        help="use these texts in place of shipped prompts: a TOML file ([ever.en]"
        " verify = ...) or a profile's file; they go before those of"
        " --settings-profile (see `prompts check`)",
    )


def chosen_wording(
    options: argparse.Namespace, saved: Wording
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the texts of `--prompts` over those of a profile. Raises InvalidInputError."""
    found = with_text(saved, "", "", "", None)
    given = checked_wording(read_wording(options.prompts)) if options.prompts else {}
    for place, text in own_prompts(given).items():
        found = with_text(found, *place, text)
    return found


def read_wording(path: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the texts in a file, TOML or a profile's JSON, not checked as prompts yet.

    Raises InvalidInputError for a file that cannot be read or is written otherwise, with the place.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise failure("prompts.no_text_file", file=path, problem=type(error).__name__) from None
    if len(text) > _MOST:
        raise failure("prompts.large_file", file=path, most=f"{_MOST:,}")
    if text.lstrip().startswith("{"):
        return read_profile(text).prompts
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise failure("prompts.no_toml", file=path, problem=error) from None
    try:
        found = _WORDING.validate_python(body)
    except ValidationError as error:
        where, problem = first_problem(error)
        raise failure("prompts.bad_field", file=path, where=where, problem=problem) from None
    refuse_keys_in_prompts(found)
    return found
