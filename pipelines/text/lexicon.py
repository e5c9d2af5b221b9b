"""Word lists the entity rules look names up in."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

__all__ = ["words"]

_FOLDER = Path(__file__).parent / "lexicons"


@cache
def _load(file: str) -> dict[str, str]:
    return tomllib.loads((_FOLDER / f"{file}.toml").read_text(encoding="utf-8"))


@cache
def words(file: str, *lists: str) -> frozenset[str]:
    """The entries of one or more lists of `lexicons/<file>.toml`; a missing list is a KeyError."""
    tables = _load(file)
    entries = (entry.strip() for name in lists for entry in tables[name].split(","))
    return frozenset(" ".join(entry.split()) for entry in entries if entry)
