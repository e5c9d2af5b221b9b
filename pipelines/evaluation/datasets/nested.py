"""Records that lie under names of their own: {"samples": [...]}, {"ai": {"proxy": {...}}}."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.evaluation.datasets.grids import Row, value_in

_DEEPEST = 4
_WIDEST = 40
"""Places of one depth that are looked at."""

_SHOWN = 20
"""Rows of which the names are looked at."""

_KEPT = ("id", "model", "trace_id", "conversation_id", "session_id")
"""What a record says of all that lies in it."""

_IN_CAPITALS = re.compile(r"[A-Z][A-Za-z0-9]*")


def in_small_letters(value: Any) -> Any:
    """Return a value with the names of its objects as most write them, where a service writes each
    with a capital: {"Messages": [{"Role": ...}]}, "RequestId".
    """
    if isinstance(value, list):
        return [in_small_letters(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    capital = all(isinstance(name, str) and _IN_CAPITALS.fullmatch(name) for name in value)
    return {_small(name) if capital else name: in_small_letters(one) for name, one in value.items()}


def _small(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def lying_inside(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the records that lie in `rows`, the nearest first: under each name the objects, or the
    entries of lists, each with the names and numbers of the row around it.
    """
    level = [list(rows)]
    for _ in range(_DEEPEST):
        level = [one for around in level for one in _one_deeper(around)][:_WIDEST]
        yield from level


def _one_deeper(rows: list[Row]) -> Iterator[list[Row]]:
    if len(rows) == 1 and len(rows[0]) > 1:
        held = list(rows[0].items())
        if all(isinstance(one, Mapping) for _, one in held):
            # Each record under its own id.
            yield [{"id": name, **one} for name, one in held]
    for name in dict.fromkeys(name for row in rows[:_SHOWN] for name in row):
        inner: list[Row] = []
        for row in rows:
            known = {key: row[key] for key in _KEPT if isinstance(row.get(key), str | int)}
            value = _opened(row.get(name))
            listed = value if isinstance(value, list) else [value]
            inner += [{**known, **one} for one in listed if isinstance(one, Mapping)]
        if inner:
            yield inner


def _opened(value: Any) -> Any:
    """Return what JSON in a cell holds; anything else as it is."""
    found = value_in(value) if isinstance(value, str) else None
    return value if found is None else found
