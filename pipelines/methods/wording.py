"""Words and phrases by which texts are read, as data: `assets/wording/<name>.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any

from pipelines.paths import ASSETS

_PART = re.compile(r"\$\{(\w+)\}")


class Wording:
    """The entries of one file: words between white space, regular expressions, tables."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    def words(self, key: str) -> frozenset[str]:
        """Return the words of an entry."""
        return frozenset(self.entries[key].split())

    def pattern(self, key: str) -> re.Pattern[str]:
        """Return the regular expression of an entry, in any case; a list holds its alternatives.

        `${name}` in it stands for the entry of that name.
        """
        return re.compile(self._expression(key), re.I)

    def _expression(self, key: str) -> str:
        entry = self.entries[key]
        whole = entry if isinstance(entry, str) else f"(?:{'|'.join(entry)})"
        return _PART.sub(lambda part: self._expression(part[1]), whole)


@cache
def load_wording(name: str) -> Wording:
    """Return the wording `name`, read once."""
    source = (ASSETS / "wording" / f"{name}.toml").read_text(encoding="utf-8")
    return Wording(tomllib.loads(source))
