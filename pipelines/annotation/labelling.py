"""Labelling in an annotation session as one person.

A worker sees the session, its guidelines and their own labels: no other person's, and nothing that
models said before their own label is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from pipelines.annotation.types import (
    MAX_CLIENT,
    MAX_COMMENT,
    Hidden,
    ItemBody,
    Label,
    SessionSpec,
    label_adapter,
    parse_label,
    require_text,
)
from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store import RunStore
from pipelines.store.annotations import EventKind, StoredEvent, StoredSession
from pipelines.store.labelling import Action, Given, NothingToDo
from pipelines.store.tables import portable, to_json

# What people's labels are, folded from the events of a session: nothing else is consulted.

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
    events: Iterable[StoredEvent], which: Which = "last", annotators: Collection[int] | None = None
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


class AssignedItem(Frozen):
    """An item as an annotator gets it.

    The place in `body` does not name the method and the step that judged it. `swapped`: the
    corrected text of a comparison is shown first, at random for each person.
    `hidden` is what models said, None where it is not shown. `redo` is the label that they took
    back, which can be restored.
    """

    item: int
    body: ItemBody
    expires: datetime
    swapped: bool = False
    hidden: Hidden | None = None
    redo: Label | None = None


class OwnProgress(Frozen):
    """How far one person has come. `left` counts the items that there are for this person, the
    open one and control items among them; others may label some of them first."""

    labelled: int
    skipped: int
    left: int
    seconds: float


class Worker:
    """Labels items as one person. Methods block.

    `client` is the id of a request of the page: a request that is sent again, because a connection
    was lost, is stored once and acknowledged again.
    """

    def __init__(self, store: RunStore, session_id: str, annotator: int) -> None:
        self._store = store
        self._session_id = session_id
        self.annotator = annotator

    @property
    def session_name(self) -> str:
        """What the session is called."""
        return self._session.name

    @property
    def name(self) -> str:
        """What this person is called."""
        people = self._store.annotations.annotators(self._session_id)
        return next(one.name for one in people if one.number == self.annotator)

    @property
    def session_id(self) -> str:
        """The session's own id, which is no secret link."""
        return self._session_id

    @property
    def started(self) -> bool:
        """Whether this person was given an item."""
        return bool(self._store.annotations.claims(self._session_id, self.annotator))

    @property
    def closed(self) -> bool:
        """Whether the session takes no labels any more."""
        return self._session.closed is not None

    @property
    def spec(self) -> SessionSpec:
        """How the session works."""
        return SessionSpec.model_validate(self._session.spec)

    @property
    def guidelines(self) -> str:
        """The guidelines as they are now, in Markdown."""
        return self._store.annotations.guidelines(self._session_id)[-1].text

    @property
    def guidelines_version(self) -> int:
        """Which version these guidelines are, from 1."""
        return self._session.guidelines

    def own(self, item: int) -> AssignedItem:
        """Return an item that this person was given, without a lease; raises InvalidInputError."""
        claims = self._store.annotations.claims(self._session_id, self.annotator)
        claim = next((one for one in claims if one.item == item), None)
        if claim is None:
            raise failure("annotation.not_given")
        stored = self._store.annotations.item(self._session_id, item)
        given = Given(
            item=item,
            task=stored.task,
            body=stored.body,
            expires=claim.expires,
            revealed=claim.revealed,
        )
        return self._task(given, self.spec)

    def next(self) -> AssignedItem | NothingToDo:
        """Return the item to label: the one that was left, else a new one. Renews the lease."""
        spec = self.spec
        found = self._store.annotation_work.claim(
            self._session_id,
            self.annotator,
            lease=spec.lease,
            gold_every=_gold_every(spec),
            shown=spec.show == "before",
        )
        return self._task(found, spec) if isinstance(found, Given) else found

    def renew(self, item: int) -> datetime:
        """Renew the lease of the open item; returns when it ends now."""
        work = self._store.annotation_work
        return work.renew(self._session_id, self.annotator, item, lease=self.spec.lease)

    def label(
        self,
        item: int,
        value: object,
        *,
        client: str,
        seconds: float | None = None,
        guidelines: int | None = None,
    ) -> StoredEvent:
        """Store a label; once this returns, it is saved. `seconds` is the active time.

        `guidelines` is the version that this person has read, None for the present one: it may
        have changed since they were given the item.
        """
        return self._give("given", item, value, client, seconds, guidelines)

    def change(
        self,
        item: int,
        value: object,
        *,
        client: str,
        seconds: float | None = None,
        guidelines: int | None = None,
    ) -> StoredEvent:
        """Store another label in place of the one given before, which is kept as well."""
        return self._give("changed", item, value, client, seconds, guidelines)

    def undo(self, item: int, *, client: str) -> StoredEvent:
        """Take a label back; the item is open again."""
        return self._act("undone", item, {}, client)

    def redo(self, item: int, *, client: str) -> StoredEvent:
        """Restore the label that was taken back last, with the version by which it was given."""
        events = self._store.annotations.events(
            self._session_id, annotator=self.annotator, item=item
        )
        if known := next((one for one in events if one.client == client), None):
            return self._act("redone", item, known.value, client)
        taken = last_undone(events, item, self.annotator)
        if taken is None:
            raise failure("annotation.wrong_state", state=phrase("state.not_taken_back"))
        kept: dict[str, Any] = {"fast": taken.fast, "guidelines": taken.guidelines}
        return self._act("redone", item, taken.value, client, run=taken.run, **kept)

    def skip(self, item: int, reason: str, *, client: str) -> StoredEvent:
        """Leave an item to others, for a reason."""
        require_text(reason, MAX_COMMENT)
        return self._act("skipped", item, {"reason": reason}, client)

    def comment(self, item: int, text: str, *, client: str) -> StoredEvent:
        """Store a comment on an item. It is not a label."""
        require_text(text, MAX_COMMENT)
        return self._act("comment", item, {"text": text}, client)

    def reveal(self, item: int, *, client: str) -> Hidden:
        """Return what models said of an item that this person has labelled. That it was shown
        is stored.

        Raises InvalidInputError before the label is stored, or where the session never shows it.
        """
        if self.spec.show == "never":
            raise failure("annotation.forbidden")
        self._act("revealed", item, {}, client)
        stored = self._store.annotations.item(self._session_id, item)
        return Hidden.model_validate(stored.hidden)

    def can_reveal(self, item: int) -> bool:
        """Return whether `reveal` can show something of an item that this person has labelled."""
        if self.spec.show != "after":
            return False
        hidden = Hidden.model_validate(self._store.annotations.item(self._session_id, item).hidden)
        return bool(hidden.verdicts) or hidden.judge is not None

    def labels(self) -> list[GivenLabel]:
        """Return this person's own labels, by item."""
        events = self._store.annotations.events(self._session_id, annotator=self.annotator)
        return standing_labels(events)

    def progress(self) -> OwnProgress:
        """Return how far this person has come."""
        claims = self._store.annotations.claims(self._session_id, self.annotator)
        labels, controls = self.labels(), _gold_every(self.spec)
        left = self._store.annotation_work.left
        return OwnProgress(
            labelled=len(labels),
            skipped=sum(claim.state == "skipped" for claim in claims),
            left=left(self._session_id, self.annotator, gold_every=controls),
            seconds=sum(one.seconds or 0.0 for one in labels),
        )

    def overruled(self) -> list[tuple[int, Label, Label, str]]:
        """Return items that an adjudicator decided otherwise: item, own label, decision, note.

        Only in a session that is closed: before that, it would reveal the labels of others.
        """
        if self._session.closed is None:
            raise failure("annotation.forbidden")
        found = decisions(self._store.annotations.events(self._session_id))
        return [
            (own.item, own.label, found[own.item].label, found[own.item].note)
            for own in self.labels()
            if own.item in found and found[own.item].label != own.label
        ]

    @property
    def _session(self) -> StoredSession:
        return self._store.annotations.get(self._session_id)

    def _task(self, given: Given, spec: SessionSpec) -> AssignedItem:
        hidden = None
        if spec.show == "before" or given.revealed or spec.offer_spans:
            stored = self._store.annotations.item(self._session_id, given.item)
            hidden = Hidden.model_validate(stored.hidden)
            if spec.show != "before" and not given.revealed:
                hidden = Hidden(spans=hidden.spans)
        events = self._store.annotations.events(
            self._session_id, annotator=self.annotator, item=given.item
        )
        taken = last_undone(events, given.item, self.annotator)
        body = ItemBody.model_validate(given.body)
        # Which method judged it tells what is in question.
        place = body.place.model_copy(update={"method": "", "span": ""})
        body = body.model_copy(update={"place": place})
        return AssignedItem(
            item=given.item,
            body=body,
            expires=given.expires,
            swapped=body.task == "comparison" and self._swapped(given.item),
            hidden=hidden,
            redo=None if taken is None else label_adapter.validate_python(taken.value),
        )

    def _swapped(self, item: int) -> bool:
        said = f"{self._session.seed}:{self.annotator}:{item}:order".encode()
        return bool(blake2b(said, digest_size=1).digest()[0] & 1)

    def _give(
        self,
        kind: EventKind,
        item: int,
        value: object,
        client: str,
        seconds: float | None,
        guidelines: int | None,
    ) -> StoredEvent:
        stored = self._store.annotations.item(self._session_id, item)
        body = ItemBody.model_validate(stored.body)
        label = parse_label(value, body)
        return self._act(
            kind, item, to_json(label), client, seconds, body.place.run, guidelines=guidelines
        )

    def _act(
        self,
        kind: EventKind,
        item: int,
        value: dict[str, Any],
        client: str,
        seconds: float | None = None,
        run: str = "",
        *,
        fast: bool = False,
        guidelines: int | None = None,
    ) -> StoredEvent:
        if not client or len(client) > MAX_CLIENT:
            raise failure("annotation.bad_value", problem=phrase("label.no_request_name"))
        spec = self.spec
        # A page may tell anything; a negative time, or one that is no number, is none.
        seconds = seconds if seconds is not None and 0 <= seconds < 86_400 else None
        action = Action(
            client=client,
            kind=kind,
            value=portable(value),
            seconds=seconds,
            fast=fast or (seconds is not None and seconds < spec.too_fast),
            run=run,
            guidelines=guidelines if guidelines is not None and guidelines > 0 else None,
        )
        work = self._store.annotation_work
        return work.act(
            self._session_id,
            self.annotator,
            item,
            action,
            lease=spec.lease,
            offered=spec.offer_spans,
        )


def _gold_every(spec: SessionSpec) -> int:
    """Return how many items there are to one control item; 0: none."""
    return 0 if spec.without_gold else spec.gold_every
