"""Exported runs in which a single field was changed, as by hand, by chance or by malice."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pipelines.run.events import Trace
from pipelines.store.exchange import export_lines

Path = tuple[str | int, ...]

LONG_WORD = "w" * 20_000
MANY = 2_000
MANY_TOKENS = 10_000


class Mutation(NamedTuple):
    """A change of the field at `path` of the event on line `line` (from 0, the header)."""

    line: int
    path: Path
    change: str
    value: Any

    def __str__(self) -> str:
        where = ".".join(map(str, self.path))
        return f"line {self.line + 1}, {where}: {self.change}"

    def applied(self, lines: Sequence[str]) -> list[str]:
        """The file with this change."""
        event = json.loads(lines[self.line])
        changed = copy.deepcopy(event)
        place: Any = changed
        for part in self.path[:-1]:
            place = place[part]
        last = self.path[-1]
        if self.change == "deleted":
            del place[last]
        else:
            place[last] = self.value
        return [*lines[: self.line], json.dumps(changed) + "\n", *lines[self.line + 1 :]]


def mutations(trace: Trace, seen: set[Any] | None = None) -> Iterator[Mutation]:
    """Changes of every field of every kind of event, each kind of place once.

    `seen` holds the places that were changed in other runs.
    """
    seen = set() if seen is None else seen
    for number, line in enumerate(export_lines(trace)):
        event = json.loads(line)
        kind = event.get("kind", "header"), event.get("name"), event.get("what")
        for path, value in _places(event):
            shape = (*kind, _shape(event, path), type(value).__name__)
            if shape not in seen:
                seen.add(shape)
                for change, other in _changes(value):
                    yield Mutation(number, path, change, other)
                if path[-1] == "tokens" and value:
                    yield Mutation(number, path, "very many", [value[0]] * MANY_TOKENS)


def _shape(event: Any, path: Path) -> tuple[Any, ...]:
    """The place without the numbers of list items, but with the kind of what it is in."""
    shape: list[Any] = []
    place = event
    for part in path:
        if isinstance(place, dict) and "kind" in place:
            shape.append(place["kind"])
        shape.append("*" if isinstance(part, int) else part)
        place = place[part]
    return tuple(shape)


def _places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        # The first and the last item of a list stand for the others.
        items = {0: value[0], len(value) - 1: value[-1]}.items() if value else ()
    for name, item in items:
        yield (*path, name), item
        yield from _places(item, (*path, name))


def _changes(value: Any) -> Iterator[tuple[str, Any]]:
    yield "deleted", None
    others = {"null": None, "text": "zzz", "number": 7, "true": True, "list": [], "object": {}}
    for name, other in others.items():
        if other != value or type(other) is not type(value):
            yield name, other
    match value:
        case bool():
            yield "turned", not value
        case int() | float():
            for other in (0, -1, 2.5, 10**9, 10**30, 1e308, -1e308):
                yield f"{other:g}", other
            for other in ("NaN", "inf", "-inf"):
                yield other, other
            yield "next", value + 1
        case str():
            yield "empty", ""
            yield "long word", LONG_WORD
            yield "many lines", "line\n" * 2000
            yield "other", f"{value}x"
            yield "cut", value[: len(value) // 2]
            yield "Chinese", "不是这个。"
            yield "half a pair", "a\ud800b"
            yield "control", "\x00\x1b]0;x\x07"
            if value.replace(".", "", 1).isdigit():
                yield "-1", "-1"
        case list():
            yield "twice", value + value
            if value:
                yield "reversed", value[::-1]
                yield "many", [value[0]] * min(MANY, 400_000 // len(json.dumps(value[0])))
        case dict():
            yield "one more", {**value, "zzz": 1}
            if value:
                name, one = next(iter(value.items()))
                yield "renamed", {**{k: v for k, v in value.items() if k != name}, "zzz": one}
        case _:
            yield "nothing", value
            yield "-1", -1
            yield "NaN", "NaN"
            yield "1e308", 1e308
