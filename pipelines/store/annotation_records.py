"""What an annotation session holds, as it is read from the database: items, people, events.

`pipelines.store.annotations` stores and reads it. The kinds of people and of events are the words
that stand in the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pipelines.types import Frozen

MAX_NAME = 200
"""Characters of the name of a session or of a person."""

AnnotatorKind = Literal["person", "lead", "imported"]
State = Literal["open", "labelled", "skipped", "lost"]
EventKind = Literal[
    "given",
    "changed",
    "undone",
    "redone",
    "skipped",
    "comment",
    "revealed",
    "adjudicated",
]
"""What somebody did: gave a label, changed it, took it back, restored what was taken back, skipped
the item with a reason, commented on it, was shown what the models said, or decided as adjudicator.
"""


class StoredSession(Frozen):
    """A session as it is listed; `spec` is what it was asked to be, `items` counts them."""

    id: str
    owner: str
    name: str
    created: datetime
    closed: datetime | None
    seed: str
    overlap: int
    guidelines: int
    spec: dict[str, Any]
    items: int


class Guidelines(Frozen):
    """A version (from 1) of the guidelines of a session, in Markdown."""

    version: int
    text: str
    created: datetime


class Annotator(Frozen):
    """Somebody whose labels a session holds; numbers count from 0."""

    number: int
    name: str
    kind: AnnotatorKind
    joined: datetime


class NewItem(NamedTuple):
    """An item to add to a session; see `AnnotationItemRow` for the fields."""

    key: str
    task: str
    body: dict[str, Any]
    hidden: dict[str, Any]
    gold: dict[str, Any] | None = None
    probability: float | None = None


class StoredItem(Frozen):
    """An item with everything that the session's lead may see; `labels` as in its row."""

    number: int
    key: str
    task: str
    labels: int
    probability: float | None
    gold: dict[str, Any] | None
    body: dict[str, Any]
    hidden: dict[str, Any]


class StoredEvent(Frozen):
    """Something that somebody did to an item; see `AnnotationEventRow` for the fields."""

    seq: int
    item: int
    annotator: int
    client: str
    kind: EventKind
    at: datetime
    guidelines: int
    overlap: int
    seconds: float | None
    fast: bool
    revealed: bool
    run: str
    value: dict[str, Any]


class StoredClaim(Frozen):
    """That an item was given to somebody; `expires` is when the lease ends."""

    item: int
    annotator: int
    slot: int | None
    state: State
    expires: datetime
    revealed: bool


class WholeSession(NamedTuple):
    """Everything that a session holds at one moment, but for its links; each part in its order."""

    session: StoredSession
    guidelines: Sequence[Guidelines]
    annotators: Sequence[Annotator]
    items: Sequence[StoredItem]
    claims: Sequence[StoredClaim]
    events: Sequence[StoredEvent]
