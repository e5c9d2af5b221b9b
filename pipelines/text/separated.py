"""What separates the cells of a text, for all that reads tables."""

from __future__ import annotations

import csv
import re
from collections import Counter

from pipelines.text.sentences import csv_source

_SEPARATORS = ",;\t|"
_DIRECTIVE = re.compile(r'"?sep=(?P<separator>[^\r\n"])"?[ \t]*(?:\n|$)', re.I)
_LOOKED_AT = 30
"""Rows by which a separator is told."""


def separated(text: str) -> tuple[str, str, bool]:
    """Return the text of a table, what separates its cells, and whether it names that itself.

    A first line "sep=;", which Excel reads, names the separator and is left out; else it is what
    divides most of the first rows into the same number of cells, of two or more.
    """
    named = _DIRECTIVE.match(text)
    if named:
        return text[named.end() :], named["separator"], True

    def alike(separator: str) -> tuple[int, int]:
        widths = Counter[int]()
        reader = csv.reader(csv_source(text), delimiter=separator)
        try:
            for row, _ in zip(reader, range(_LOOKED_AT), strict=False):
                widths[len(row)] += 1
        except csv.Error:
            pass
        return max(((count, width) for width, count in widths.items() if width > 1), default=(0, 0))

    return text, max(_SEPARATORS, key=alike), False
