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


def laid_out(rows: Sequence[Row]) -> list[Row] | None:
    """Return rows with what lies in objects as columns of their own, named by the way to them
    ("outputs.answer"); None where no cell holds an object.
    """
    found = [dict(_laid_out(row)) for row in rows]
    return (
        found
        if any(one.keys() != row.keys() for one, row in zip(found, rows, strict=True))
        else None
    )


def _laid_out(held: Mapping[str, Any], way: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for name, value in held.items():
        value = _opened(value)
        while isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, Mapping) and value and depth <= _DEEPEST:
            yield from _laid_out(value, f"{way}{name}.", depth + 1)
        else:
            yield f"{way}{name}", value


_NAMES = ("columns", "fields", "cols", "header")
_CELLS = ("rows", "data", "values", "records", "dataRows")


def _grid_in(row: Row) -> list[Row] | None:
    """Return the records of a table that names its columns apart; None for anything else."""
    names = next((row[name] for name in _NAMES if isinstance(row.get(name), list)), None)
    cells = next((row[name] for name in _CELLS if isinstance(row.get(name), list)), None)
    if not names or not cells:
        return None
    called = [
        str(one.get("name") or one.get("id")) if isinstance(one, Mapping) else str(one)
        for one in names
    ]
    if not all(isinstance(one, list) and len(one) == len(called) for one in cells):
        return None
    return [dict(zip(called, one, strict=True)) for one in cells]


def _one_deeper(rows: list[Row]) -> Iterator[list[Row]]:
    if grid := [one for row in rows for one in _grid_in(row) or ()]:
        yield grid
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
            inner += [{**known, **one} for one in map(_record, listed) if one is not None]
        if inner:
            yield inner


def _record(one: Any) -> Mapping[str, Any] | None:
    """Return the record that an entry of a list is: an object, a list of names with their values,
    or a time and JSON; None for anything else.
    """
    if isinstance(one, Mapping):
        return one
    if not isinstance(one, list) or not one:
        return None
    if all(isinstance(each, Mapping) and "value" in each and len(each) == 2 for each in one):
        pairs = ((next(n for n in each if n != "value"), each) for each in one)
        return {str(each[name]).lstrip("@"): each["value"] for name, each in pairs}
    held = [found for each in one if isinstance(found := _opened(each), Mapping)]
    return held[0] if len(held) == 1 else None


def _opened(value: Any) -> Any:
    """Return what JSON in a cell holds; anything else as it is."""
    found = value_in(value) if isinstance(value, str) else None
    return value if found is None else found
