"""What annotators are given and what they say, stored in one transaction each; visitors too."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from sqlalchemy import Text, and_, cast, func, or_, select
from sqlalchemy.orm import Session

from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store.annotations import Clock, EventKind, StoredEvent, locked, utc_now
from pipelines.store.database import Database
from pipelines.store.tables import (
    AnnotationEventRow,
    AnnotationItemRow,
    AnnotationSessionRow,
    ClaimRow,
)

# Events of annotation sessions: what is asked to be stored, once however often it is asked.
#
# These functions belong to a transaction in which the row of the session is locked.


class Action(NamedTuple):
    """What somebody does to an item.

    `client` is the page's own name of the request, by which a repeated one is recognised. `seconds`
    is the active time on the item, `fast` that it was too short to have been read. `guidelines` is
    the version by which a label was given, None for the present one. Of a label from elsewhere,
    `at` is when it was given, None for now, and `revealed` that it was given there after models'
    verdicts had been shown.
    """

    client: str
    kind: EventKind
    value: dict[str, Any]
    seconds: float | None = None
    fast: bool = False
    run: str = ""
    at: datetime | None = None
    guidelines: int | None = None
    revealed: bool = False


def repeated(
    session: Session, session_id: str, annotator: int, item: int, action: Action
) -> StoredEvent | None:
    """Return the event that was stored for the same request before, if it was."""
    row = AnnotationEventRow
    query = select(row).where(
        row.session == session_id, row.annotator == annotator, row.client == action.client
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        return None
    if (found.item, found.kind, found.value) != (item, action.kind, action.value):
        raise failure("annotation.reused_client")
    return _event(found)


def append(
    session: Session,
    row: AnnotationSessionRow,
    annotator: int,
    item: int,
    action: Action,
    now: datetime,
    revealed: bool,
) -> StoredEvent:
    """Store an event as the next of the session; `revealed`: they were shown models' verdicts."""
    told = action._asdict()
    at: datetime | None = told.pop("at")
    version: int | None = told.pop("guidelines")
    shown: bool = told.pop("revealed")
    event = AnnotationEventRow(
        session=row.id,
        seq=row.events,
        item=item,
        annotator=annotator,
        at=now if at is None else min(at, now),
        guidelines=row.guidelines if version is None else min(version, row.guidelines),
        overlap=row.overlap,
        revealed=revealed or shown,
        **told,
    )
    session.add(event)
    row.events += 1
    session.flush()
    return _event(event)


def _event(row: AnnotationEventRow) -> StoredEvent:
    return StoredEvent(**{name: getattr(row, name) for name in StoredEvent.model_fields})


class Given(Frozen):
    """An item that was given to somebody, without what models said of it.

    `value` is what they had said before and took back, if they did. `expires` ends the lease, which
    the page renews.
    """

    status: Literal["given"] = "given"
    item: int
    task: str
    body: dict[str, Any]
    expires: datetime
    revealed: bool = False


class NothingToDo(Frozen):
    """That there is no item for somebody: now ("wait", until `until` at the latest), or any more.

    "wait": other people are labelling everything that is left; if one of them leaves, the lease
    of that item ends and it can be given to somebody else.
    """

    status: Literal["wait", "done"]
    until: datetime | None = None
    others: int = 0


_COMPARED = 500
"""Characters of a text by which items are sought that may have the same; SQLite bounds them."""

_NEEDS: dict[str, tuple[str, ...]] = {
    "given": ("open", "lost"),
    "changed": ("labelled",),
    "undone": ("labelled",),
    "redone": ("open", "lost"),
    "skipped": ("open", "lost"),
    "revealed": ("labelled",),
}
"""The states of a claim in which something can be done; what is not here can be done in all."""


class AnnotationWork:
    """The work of annotators in the database of a RunStore. Every method blocks.

    `lease` is in seconds: so long an item stays somebody's own without a sign of them.
    """

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def claim(
        self,
        session_id: str,
        annotator: int,
        *,
        lease: float,
        gold_every: int = 0,
        shown: bool = False,
    ) -> Given | NothingToDo:
        """Return the item that `annotator` should label next: the one that was left, else a
        new one.

        Items of one text follow each other. Otherwise items that somebody has begun come before
        others, those with the fewest labels first, then in an order of each person's own. One of
        `gold_every` items is a control item (0: none). `shown`: what models said is shown with the
        item. Raises InvalidInputError where the session is closed.
        """
        with self._database.write() as session:
            row = locked(session, session_id)
            _require_open(row)
            turn = _Turn(session, row, annotator, self._clock(), lease, shown=shown)
            return turn.left() or turn.gold(gold_every) or turn.next() or turn.nothing()

    def renew(self, session_id: str, annotator: int, item: int, *, lease: float) -> datetime:
        """Prolong an open item's lease; return its end. InvalidInputError where it was lost."""
        with self._database.write() as session:
            row = locked(session, session_id)
            turn = _Turn(session, row, annotator, self._clock(), lease)
            claim = turn.claim_of(item)
            if claim.state in ("open", "lost"):
                turn.hold(claim)
            return claim.expires

    def act(
        self,
        session_id: str,
        annotator: int,
        item: int,
        action: Action,
        *,
        lease: float,
        offered: bool = False,
    ) -> StoredEvent:
        """Store what somebody did; a repeated request gives what was stored the first time.

        `offered`: the spans of detectors are shown with an item before it is labelled. Raises
        InvalidInputError where the item was not given to them or was lost, where it is in another
        state, or where the session is closed.
        """
        with self._database.write() as session:
            row = locked(session, session_id)
            if (known := repeated(session, session_id, annotator, item, action)) is not None:
                return known
            _require_open(row)
            turn = _Turn(session, row, annotator, self._clock(), lease)
            claim = turn.claim_of(item)
            _require_state(claim, action.kind)
            _apply(turn, claim, action.kind)
            seen = turn.saw_verdicts(claim, offered=offered)
            return append(session, row, annotator, item, action, turn.now, seen)

    def left(self, session_id: str, annotator: int, *, gold_every: int = 0) -> int:
        """Return how many items there are for `annotator`, the open one and control items
        among them.

        It is as if nobody else went on: others may label some of them first.
        """
        with self._database.read() as session:
            row = session.get_one(AnnotationSessionRow, session_id)
            return _Turn(session, row, annotator, self._clock(), 0).count_left(gold_every)

    def adjudicate(self, session_id: str, annotator: int, item: int, action: Action) -> StoredEvent:
        """Store the decision of an adjudicator, also when the session is closed."""
        with self._database.write() as session:
            row = locked(session, session_id)
            if (known := repeated(session, session_id, annotator, item, action)) is not None:
                return known
            if session.get(AnnotationItemRow, (session_id, item)) is None:
                raise failure("annotation.no_item")
            return append(session, row, annotator, item, action, self._clock(), True)

    def import_labels(
        self, session_id: str, annotator: int, labels: list[tuple[int, Action]]
    ) -> int:
        """Store labels from elsewhere as those of `annotator`, without a lease; return how many
        are new.

        They do not count towards the overlap, so that people label the items as well.
        """
        with self._database.write() as session:
            row = locked(session, session_id)
            stored = 0
            for item, action in labels:
                if repeated(session, session_id, annotator, item, action) is None:
                    append(session, row, annotator, item, action, self._clock(), False)
                    stored += 1
            return stored


class _Turn:
    """What one person may do in one transaction."""

    def __init__(
        self,
        session: Session,
        row: AnnotationSessionRow,
        annotator: int,
        now: datetime,
        lease: float,
        *,
        shown: bool = False,
    ) -> None:
        self.session, self.row, self.annotator, self.now = session, row, annotator, now
        self._shown = shown
        self._ends = now + timedelta(seconds=lease)

    def claim_of(self, item: int) -> ClaimRow:
        claim = self.session.get(ClaimRow, (self.row.id, item, self.annotator))
        if claim is None:
            raise failure("annotation.not_given")
        return claim

    def item(self, number: int) -> AnnotationItemRow:
        return self.session.get_one(AnnotationItemRow, (self.row.id, number))

    def hold(self, claim: ClaimRow) -> None:
        """Make sure that the item is this person's: with a slot, and a lease from now on."""
        if claim.slot is None and self.item(claim.item).gold is None:
            claim.slot = self._free_slot(claim.item)
            if claim.slot is None:
                raise failure("annotation.lost")
        claim.state, claim.expires = "open", self._ends
        self.session.flush()

    def saw_verdicts(self, claim: ClaimRow, *, offered: bool) -> bool:
        """Return whether this person saw what models said of the text of the item.

        Items of one text share it, so that another one of them may have shown it.
        """
        if claim.revealed:
            return True
        texts = _texts(self.item(claim.item).body)
        row, item = ClaimRow, AnnotationItemRow
        shown: list[Any] = [row.revealed]
        if offered:
            shown.append(item.task == "span")
        query = (
            select(item.body, item.hidden, row.revealed)
            .join(row, and_(row.session == item.session, row.item == item.number))
            .where(row.session == self.row.id, row.annotator == self.annotator)
            .where(or_(*shown), or_(item.number == claim.item, *_beginning(texts)))
        )
        return any(
            (revealed or bool(hidden.get("spans"))) and bool(texts & _texts(body) or not texts)
            for body, hidden, revealed in self.session.execute(query)
        )

    def left(self) -> Given | None:
        """Return the item that was given before, not labelled, and not lost meanwhile."""
        row = ClaimRow
        query = (
            select(row)
            .where(row.session == self.row.id, row.annotator == self.annotator)
            .where(row.state == "open")
            .order_by(row.taken, row.item)
        )
        for claim in self.session.scalars(query):
            if claim.slot is None and self.item(claim.item).gold is None:
                slot = self._free_slot(claim.item)
                if slot is None:
                    claim.state = "lost"
                    continue
                claim.slot = slot
            claim.expires = self._ends
            return self._given(claim)
        return None

    def gold(self, every: int) -> Given | None:
        """Return a control item, where one is due and there is one left."""
        if every <= 0:
            return None
        done, seen, unseen = self._controls()
        if not unseen or not self._is_due(every, done, len(seen)):
            return None
        return self._take(min(unseen, key=self._rank))

    def count_left(self, every: int) -> int:
        """Return how many items this person would label by themselves, control items among them.

        These count, because a number that stood still after one would tell which it was.
        """
        item, claim = AnnotationItemRow, ClaimRow
        needed = item.labels < self.row.overlap
        query = (
            select(func.count())
            .select_from(claim)
            .join(item, and_(item.session == claim.session, item.number == claim.item))
            .where(claim.session == self.row.id, claim.annotator == self.annotator)
            .where(claim.state == "open")
            .where(or_(claim.slot.is_not(None), item.gold.is_not(None), needed))
        )
        left = self.session.scalar(query) or 0
        free = select(func.count()).where(item.session == self.row.id, item.gold.is_(None), needed)
        ordinary = self.session.scalar(free.where(item.number.not_in(self._own()))) or 0
        done, seen, unseen = self._controls()
        met, controls = len(seen), len(unseen) if every > 0 else 0
        while True:
            if controls and self._is_due(every, done, met):
                met, controls = met + 1, controls - 1
            elif ordinary:
                ordinary -= 1
            else:
                return left
            done, left = done + 1, left + 1

    def _controls(self) -> tuple[int, set[int], set[int]]:
        """Return how many items this person was given, and control items given and not."""
        item, claim = AnnotationItemRow, ClaimRow
        given = select(claim.item).where(
            claim.session == self.row.id, claim.annotator == self.annotator
        )
        own = set(self.session.scalars(given))
        controls = select(item.number).where(item.session == self.row.id, item.gold.is_not(None))
        numbers = set(self.session.scalars(controls))
        return len(own), numbers & own, numbers - own

    def _is_due(self, every: int, done: int, seen: int) -> bool:
        # Nobody knows which of `every` items it is: each person's are at places of their own.
        return seen < (done + 1 + self._rank(-1) % every) // every

    def next(self) -> Given | None:
        """Return the ordinary item that comes next, if one needs labels that nobody is giving."""
        found = [(not (labels or live), labels, number) for number, labels, live in self._wanted()]
        if not found:
            return None
        numbers = {one[2] for one in found}
        # Who has read a text is asked everything about it before the next one.
        if (last := self._last()) is not None and (same := self._of_text(last, numbers)):
            return self._take(min(same))
        first = min(one[:2] for one in found)
        chosen = min((one[2] for one in found if one[:2] == first), key=self._rank)
        return self._take(min(self._of_text(chosen, numbers)))

    def _last(self) -> int | None:
        """Return the ordinary item that this person was given last."""
        item, claim = AnnotationItemRow, ClaimRow
        query = (
            select(claim.item)
            .join(item, and_(item.session == claim.session, item.number == claim.item))
            .where(claim.session == self.row.id, claim.annotator == self.annotator)
            .where(item.gold.is_(None))
            .order_by(claim.taken.desc(), claim.item.desc())
            .limit(1)
        )
        return self.session.scalar(query)

    def _of_text(self, number: int, wanted: Collection[int]) -> set[int]:
        """Return those of the `wanted` items that are about a text of the item `number`."""
        item, texts = AnnotationItemRow, _texts(self.item(number).body)
        query = select(item.number, item.body).where(
            item.session == self.row.id, or_(item.number == number, *_beginning(texts))
        )
        return {
            one
            for one, body in self.session.execute(query)
            if one in wanted and (one == number or texts & _texts(body))
        }

    def nothing(self) -> NothingToDo:
        """Return the answer that there is nothing, and when there may be something again."""
        item, claim, own = AnnotationItemRow, ClaimRow, self._own()
        query = (
            select(func.min(claim.expires), func.count())
            .join(item, and_(item.session == claim.session, item.number == claim.item))
            .where(claim.session == self.row.id, claim.slot.is_not(None), claim.state == "open")
            .where(claim.annotator != self.annotator, item.number.not_in(own))
            # An item that has its labels is nobody's to wait for.
            .where(item.labels < self.row.overlap)
        )
        until, others = self.session.execute(query).one()
        return NothingToDo(status="wait" if others else "done", until=until, others=others)

    def _own(self) -> Any:
        """Return the items that this person was given, but for those that were lost."""
        row = ClaimRow
        return select(row.item).where(
            row.session == self.row.id, row.annotator == self.annotator, row.state != "lost"
        )

    def _wanted(self) -> list[tuple[int, int, int]]:
        """Return items that this person can be given: number, labels, and places that are taken."""
        item, claim = AnnotationItemRow, ClaimRow
        live = (
            select(claim.item, func.count().label("live"))
            .where(claim.session == self.row.id, claim.slot.is_not(None))
            .where(claim.state == "open", claim.expires > self.now)
            .group_by(claim.item)
            .subquery()
        )
        taken = func.coalesce(live.c.live, 0)
        query = (
            select(item.number, item.labels, taken)
            .outerjoin(live, live.c.item == item.number)
            .where(item.session == self.row.id, item.gold.is_(None))
            .where(item.labels + taken < self.row.overlap, item.number.not_in(self._own()))
        )
        return [(found[0], found[1], found[2]) for found in self.session.execute(query)]

    def _take(self, number: int) -> Given:
        control = self.item(number).gold is not None
        slot = None if control else self._free_slot(number)
        claim = self.session.get(ClaimRow, (self.row.id, number, self.annotator))
        if claim is None:
            claim = ClaimRow(
                session=self.row.id,
                item=number,
                annotator=self.annotator,
                slot=slot,
                state="open",
                taken=self.now,
                expires=self._ends,
                revealed=self._shown,
            )
            self.session.add(claim)
        else:
            claim.slot, claim.state, claim.expires = slot, "open", self._ends
        self.session.flush()
        return self._given(claim)

    def _free_slot(self, number: int) -> int | None:
        """Return a place of the item that nobody holds; expired leases are taken away."""
        row = ClaimRow
        query = select(row).where(
            row.session == self.row.id, row.item == number, row.slot.is_not(None)
        )
        holders = {claim.slot: claim for claim in self.session.scalars(query)}
        expired = [
            claim
            for claim in holders.values()
            if claim.state == "open"
            and claim.expires <= self.now
            and claim.annotator != self.annotator
        ]
        # After a larger overlap than now, the places above it count as well.
        overlap = self.row.overlap
        if len(holders) - len(expired) >= overlap:
            return None
        expired.sort(key=lambda claim: claim.expires)
        for claim in expired[: max(0, len(holders) - overlap + 1)]:
            del holders[claim.slot]
            claim.slot = None
        self.session.flush()
        return next(slot for slot in range(overlap) if slot not in holders)

    def _given(self, claim: ClaimRow) -> Given:
        item = self.item(claim.item)
        return Given(
            item=claim.item,
            task=item.task,
            body=item.body,
            expires=claim.expires,
            revealed=claim.revealed,
        )

    def _rank(self, number: int) -> int:
        """Return the place of an item in this person's own order: random, and always the same."""
        said = f"{self.row.seed}:{self.annotator}:{number}".encode()
        return int.from_bytes(blake2b(said, digest_size=8).digest(), "big")


def _texts(body: dict[str, Any]) -> set[str]:
    """Return the texts that an item is about: two for a comparison."""
    return {text for name in ("text", "other") if (text := body.get(name))}


def _beginning(texts: set[str]) -> list[Any]:
    """Return conditions by which the database finds items about one of `texts`, by how it begins:
    whether it is the same is to be seen then.
    """
    return [
        cast(AnnotationItemRow.body, Text).contains(json.dumps(text)[:_COMPARED], autoescape=True)
        for text in sorted(texts)
    ]


def _apply(turn: _Turn, claim: ClaimRow, kind: EventKind) -> None:
    """Bring the claim, and the count of labels, to what they are after this was done."""
    item = turn.item(claim.item)
    counted = 0 if item.gold is not None else 1
    if kind in ("given", "redone"):
        turn.hold(claim)
        claim.state = "labelled"
        item.labels += counted
    elif kind == "undone":
        # The place stays theirs, so that they can label it again.
        claim.state = "open"
        item.labels -= counted
        turn.hold(claim)
    elif kind == "skipped":
        claim.state, claim.slot = "skipped", None
    elif kind == "revealed":
        claim.revealed = True


def _require_state(claim: ClaimRow, kind: EventKind) -> None:
    if claim.state in _NEEDS.get(kind, (claim.state,)):
        return
    if claim.state == "skipped":
        raise failure("annotation.not_given")
    if kind == "revealed":
        raise failure("annotation.not_revealed")
    raise failure("annotation.wrong_state", state=phrase(f"state.{claim.state}"))


def _require_open(row: AnnotationSessionRow) -> None:
    if row.closed is not None:
        raise failure("annotation.closed")
