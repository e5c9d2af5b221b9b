"""What people's labels are, folded from the events of a session: nothing else is consulted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from pipelines.annotation.types import MAX_COMMENT, Label, label_adapter
from pipelines.store.annotation_records import StoredEvent
from pipelines.types import Frozen

Which = Literal["last", "blind"]
"""Of labels that were changed: the last one, or the last before what models said was shown."""

GIVING = ("given", "changed", "redone")
"""The kinds of events that carry a label."""


class GivenLabel(NamedTuple):
    """A label that stands, and how it came about; `seconds` is the active time of all tries."""

    item: int
    annotator: int
    label: Label
    at: datetime
    guidelines: int
    overlap: int
    seconds: float | None
    fast: bool
    revealed: bool
    run: str
    changes: int

    def read(self, key: str) -> ReadLabel:
        """Return the same as a label from elsewhere, of the item with this key."""
        return ReadLabel(
            key, self.label, self.at, self.seconds, self.guidelines, self.fast, self.revealed
        )


class ReadLabel(NamedTuple):
    """A label that was read from elsewhere, of the item with this key.

    `at` is when it was given, `seconds` the active time and `guidelines` the version by which it
    was given, None where the source does not tell. `fast` and `revealed` are as in `GivenLabel`.
    """

    key: str
    label: Label
    at: datetime | None = None
    seconds: float | None = None
    guidelines: int | None = None
    fast: bool = False
    revealed: bool = False


class Skip(NamedTuple):
    """An item that somebody skipped, and why."""

    item: int
    annotator: int
    reason: str


class Comment(NamedTuple):
    """What somebody wrote about an item. It is no label and never counts as disagreement."""

    item: int
    annotator: int
    text: str
    at: datetime


def standing_labels(
    events: Iterable[StoredEvent],
    which: Which = "last",
    annotators: Collection[int] | None = None,
) -> list[GivenLabel]:
    """Return the labels that stand, by item and person.

    Of people in `annotators` only, where given. What adjudicators decided is not among them.
    """
    found: dict[tuple[int, int], GivenLabel] = {}
    spent: dict[tuple[int, int], float] = {}
    for event in events:
        key = event.item, event.annotator
        if annotators is not None and event.annotator not in annotators:
            continue
        if event.kind in GIVING:
            if event.seconds is not None:
                spent[key] = spent.get(key, 0.0) + event.seconds
            if which == "blind" and event.revealed:
                continue
            earlier = found.get(key)
            found[key] = GivenLabel(
                item=event.item,
                annotator=event.annotator,
                label=label_adapter.validate_python(event.value),
                at=event.at,
                guidelines=event.guidelines,
                overlap=event.overlap,
                seconds=spent.get(key),
                fast=event.fast,
                revealed=event.revealed,
                run=event.run,
                changes=earlier.changes + 1 if earlier else 0,
            )
        elif event.kind == "undone" and not (which == "blind" and event.revealed):
            found.pop(key, None)
    return [found[key] for key in sorted(found)]


def last_undone(events: Sequence[StoredEvent], item: int, annotator: int) -> StoredEvent | None:
    """Return the event of the label that somebody took back last, where nothing followed that."""
    given: StoredEvent | None = None
    undone = False
    for event in events:
        if (event.item, event.annotator) != (item, annotator):
            continue
        if event.kind in GIVING:
            given, undone = event, False
        elif event.kind == "undone":
            undone = True
        elif event.kind == "skipped":
            given, undone = None, False
    return given if undone else None


class Adjudication(Frozen):
    """What an adjudicator decided of an item.

    `confidence` is in [0, 1]. `gap`: the guidelines do not say what to do here. `merged` is how
    spans were merged, or whose label was taken ("annotator:3"), "" where it is the adjudicator's.
    """

    label: Label
    note: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    gap: bool = False
    merged: str = ""


def decisions(events: Iterable[StoredEvent]) -> dict[int, Adjudication]:
    """Return the last decision on each item that has one."""
    return {
        event.item: Adjudication.model_validate(event.value)
        for event in events
        if event.kind == "adjudicated"
    }


def skips(events: Iterable[StoredEvent]) -> list[Skip]:
    """Return what was skipped, in order."""
    return [
        Skip(event.item, event.annotator, str(event.value.get("reason", "")))
        for event in events
        if event.kind == "skipped"
    ]


def comments(events: Iterable[StoredEvent]) -> list[Comment]:
    """Return what was written about items, in order."""
    return [
        Comment(event.item, event.annotator, str(event.value.get("text", "")), event.at)
        for event in events
        if event.kind == "comment"
    ]
