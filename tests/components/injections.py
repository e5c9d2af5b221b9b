"""Strings that try to become more than text, put into every field of a run that holds a text."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.errors import VeriscopeError
from pipelines.run.events import Trace, event_adapter
from pipelines.store.exchange import export_lines, parse_lines

_FILE = Path(__file__).parents[1] / "data" / "injections.json"

Place = tuple[int, tuple[str | int, ...]]
"""The number of a line, and the path of a text in it; a path that ends in "*" is a name."""


@cache
def injections() -> tuple[str, ...]:
    """All of the strings. Each that can run something sets `window.__executed`, or asks the host
    outside.invalid for something."""
    kinds: dict[str, list[str]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(text for texts in kinds.values() for text in texts)


def groups(size: int) -> list[str]:
    """All strings, `size` of them in one text, each group beginning with another one."""
    texts = injections()
    return [" ".join(texts[at : at + size]) for at in range(0, len(texts), size)]


class Injected:
    """A run whose every text can be replaced.

    `places` are those that may hold any text: what is refused there is no way in. Names of methods
    are left as they are, or no page would show the rest; so are the names of fields' values that
    hold the run together, such as spans.
    """

    def __init__(self, trace: Trace) -> None:
        self._events = [json.loads(line) for line in export_lines(trace)]
        accepted: dict[Any, bool] = {}
        self.places: list[Place] = []
        for number, path in _texts(self._events):
            shape = _shape(self._events[number], path)
            if shape not in accepted:
                accepted[shape] = self._accepts((number, path))
            if accepted[shape]:
                self.places.append((number, path))

    def lines(self, text: str, places: Sequence[Place] | None = None) -> list[str]:
        """The file with `text` at every place, or at some."""
        events = copy.deepcopy(self._events)
        for place in self.places if places is None else places:
            _put(events, place, text)
        return [json.dumps(event) + "\n" for event in events]

    def spread(self, shift: int) -> list[str]:
        """The file with another two of the strings at every place, which ones `shift` decides."""
        texts = groups(2)
        events = copy.deepcopy(self._events)
        for number, place in enumerate(self.places):
            _put(events, place, texts[(number + shift) % len(texts)])
        return [json.dumps(event) + "\n" for event in events]

    def _accepts(self, place: Place) -> bool:
        number, path = place
        events = [copy.deepcopy(self._events[number])]
        _put(events, (0, path), "<b> any text")
        try:
            if events[0].get("kind") == "run_started":
                parse_lines(json.dumps(one) for one in (self._events[0], *events))
            else:
                event_adapter.validate_python(events[0])
        except (VeriscopeError, ValidationError):
            return False
        return True


def _texts(events: Sequence[Any]) -> Iterator[Place]:
    for number, event in enumerate(events):
        for path in _places(event):
            held = path[-1] in ("span", "run", "parent", "method", "behind")
            named = path[:2] == ("spec", "methods") and path[-1] == "name"
            if not held and not named:
                yield number, path


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    match value:
        case str():
            yield path
        case dict():
            for name, item in value.items():
                yield from _places(item, (*path, name))
            if value:
                # The first name of an object, where objects are tables.
                yield (*path, next(iter(value)), "*")
        case list():
            for number, item in enumerate(value):
                yield from _places(item, (*path, number))
        case _:
            return


def _shape(event: Any, path: tuple[str | int, ...]) -> tuple[Any, ...]:
    """The place without the numbers of list items, but with the names that stand beside it."""
    shape: list[Any] = [event.get("kind")]
    place: Any = event
    for part in path:
        names = tuple(place) if isinstance(place, dict) else ()
        shape.append((names, "item" if isinstance(part, int) else part))
        place = None if part == "*" else place[part]
    return tuple(shape)


def _put(events: list[Any], place: Place, text: str) -> None:
    number, path = place
    target: Any = events[number]
    renamed = path[-1] == "*"
    last = path[-2] if renamed else path[-1]
    for part in path[: -2 if renamed else -1]:
        target = target[part]
    if renamed:
        target[text] = target.pop(last)
    else:
        target[last] = text
