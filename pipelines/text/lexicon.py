"""Word lists and regular expressions of the rules of this room, kept in `lexicons/*.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.text.languages import HAN

_FOLDER = Path(__file__).parent / "lexicons"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@cache
def _load(file: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{file}.toml").read_text(encoding="utf-8"))


def _entries(text: str) -> Iterable[str]:
    return filter(None, (" ".join(entry.split()) for entry in text.split(",")))


@cache
def words(file: str, *lists: str) -> frozenset[str]:
    """Return the entries of one or more lists of `lexicons/<file>.toml`; a missing list is a
    KeyError.
    """
    return frozenset(entry for name in lists for entry in _entries(_load(file)[name]))


def table(file: str, name: str) -> dict[str, Any]:
    """Return a table of `lexicons/<file>.toml`, in its order."""
    return _load(file)[name]


def labelled(file: str, name: str) -> list[tuple[frozenset[str], Any]]:
    """Return lists of `lexicons/<file>.toml` with the label that the table `name` gives them."""
    return [(words(file, entries), label) for entries, label in table(file, name).items()]


class Expressions:
    """Regular expressions of `lexicons/<file>.toml`, put together from named parts.

    `{name}` in an expression stands for an earlier part, for a group of the alternatives of a list
    under `[words]`, or for the Chinese characters inside a class (`{han}`). Line breaks and the
    white space beside them count for nothing. `patterns` are those of `[patterns]` with their
    labels, each kept from matching where the text before it says so (`not_inside`).
    """

    def __init__(self, file: str) -> None:
        source = _load(file)
        self._parts = {"han": HAN}
        for name, entries in source.get("words", {}).items():
            longest_first = sorted(_entries(entries), key=len, reverse=True)
            self._parts[name] = f"(?:{'|'.join(map(re.escape, longest_first))})"
        for name, expression in source["parts"].items():
            self._parts[name] = self._filled(expression)
        found = source.get("patterns", {"not_inside": "", "in_order": ()})
        self.patterns = [
            (label, re.compile(self._filled(f"{found['not_inside']}(?:{expression})")))
            for label, expression in found["in_order"]
        ]

    def __getitem__(self, name: str) -> re.Pattern[str]:
        """Return the part of that name, compiled."""
        return re.compile(self._parts[name])

    def _filled(self, expression: str) -> str:
        on_one_line = re.sub(r"\s*\n\s*", "", expression)
        return _PLACEHOLDER.sub(lambda found: self._parts[found[1]], on_one_line)
