"""What annotators are given and what they say, stored in one transaction each; visitors too."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store.annotations import Clock, EventKind, StoredEvent, locked, utc_now
from pipelines.store.database import Database
from pipelines.store.tables import (
    CONTROL,
    UNTOUCHED,
    AnnotationEventRow,
    AnnotationItemRow,
    AnnotationSessionRow,
    AnnotatorRow,
    ClaimRow,
    text_digests,
)

# Events of annotation sessions: what is asked to be stored, once however often it is asked.
#
# These functions belong to a transaction in which the row of the session is locked for writing.


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
            row = locked(session, session_id, "claiming")
            _require_open(row)
            turn = _Turn(session, row, annotator, self._clock(), lease, shown=shown)
            turn.lock_annotator()
            return turn.left() or turn.gold(gold_every) or turn.next() or turn.nothing()

    def renew(self, session_id: str, annotator: int, item: int, *, lease: float) -> datetime:
        """Prolong an open item's lease; return its end. InvalidInputError where it was lost."""
        with self._database.write() as session:
            row = locked(session, session_id, "claiming")
            turn = _Turn(session, row, annotator, self._clock(), lease)
            turn.lock_annotator()
            claim = turn.claim_of(item)
            if claim.state in ("open", "lost"):
                turn.hold(claim)
                turn.settle(turn.item(item))
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
            row = locked(session, session_id, "writing")
            if (known := repeated(session, session_id, annotator, item, action)) is not None:
                return known
            _require_open(row)
            turn = _Turn(session, row, annotator, self._clock(), lease)
            turn.lock_annotator()
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
    """What one person may do in one transaction.

    Rows are locked in one order, session, person, item, so that nobody waits in a circle.
    """

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
        self._locked: dict[int, AnnotationItemRow] = {}
        self._claims: dict[int, list[ClaimRow]] = {}

    def lock_annotator(self) -> None:
        """Let the requests of one person take turns: two of them get the same item."""
        self.session.get(AnnotatorRow, (self.row.id, self.annotator), with_for_update=True)

    def claim_of(self, item: int) -> ClaimRow:
        """Return the claim of this person on an item, which is locked."""
        key = (self.row.id, item)
        found = self.session.get(AnnotationItemRow, key, with_for_update=True)
        claim = None if found is None else self._own_claim(item)
        if found is None or claim is None:
            raise failure("annotation.not_given")
        self._locked[item] = found
        return claim

    def _own_claim(self, item: int) -> ClaimRow | None:
        claims = self._claims_of(item)
        return next((one for one in claims if one.annotator == self.annotator), None)

    def _claims_of(self, item: int) -> list[ClaimRow]:
        """Return to whom an item was given, which is locked: nobody else changes that."""
        if item not in self._claims:
            row = ClaimRow
            query = select(row).where(row.session == self.row.id, row.item == item)
            query = query.execution_options(populate_existing=True)
            self._claims[item] = list(self.session.scalars(query))
        return self._claims[item]

    def _holders(self, item: int) -> list[ClaimRow]:
        """Return who has a place of an item."""
        return [claim for claim in self._claims_of(item) if claim.slot is not None]

    def item(self, number: int) -> AnnotationItemRow:
        """Return an item, which is locked from now on."""
        if number not in self._locked:
            key = (self.row.id, number)
            found = self.session.get_one(AnnotationItemRow, key, with_for_update=True)
            self._locked[number] = found
        return self._locked[number]

    def hold(self, claim: ClaimRow) -> None:
        """Make sure that the item is this person's: with a slot, and a lease from now on."""
        if claim.slot is None and self.item(claim.item).gold is None:
            claim.slot = self._free_slot(claim.item)
            if claim.slot is None:
                raise failure("annotation.lost")
        claim.state, claim.expires = "open", self._ends

    def settle(self, item: AnnotationItemRow) -> None:
        """Store how soon the item is to be given out, after its labels or its places changed."""
        if item.gold is not None:
            return
        held = sum(claim.state == "open" for claim in self._holders(item.number))
        if item.labels + held >= self.row.overlap:
            item.priority = None
        else:
            item.priority = item.labels if item.labels or held else UNTOUCHED

    def saw_verdicts(self, claim: ClaimRow, *, offered: bool) -> bool:
        """Return whether this person saw what models said of the text of the item.

        Items of one text share it, so that another one of them may have shown it.
        """
        if claim.revealed:
            return True
        row, item = ClaimRow, AnnotationItemRow
        shown: list[Any] = [row.revealed]
        if offered:
            shown.append(item.task == "span")
        query = (
            select(item.hidden, row.revealed)
            .join(row, and_(row.session == item.session, row.item == item.number))
            .where(row.session == self.row.id, row.annotator == self.annotator)
            .where(or_(*shown), _about(self.item(claim.item)))
        )
        return any(
            revealed or bool(hidden.get("spans"))
            for hidden, revealed in self.session.execute(query)
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
        for found in self.session.scalars(query).all():
            claim = self.claim_of(found.item)
            if claim.slot is None and self.item(claim.item).gold is None:
                claim.slot = self._free_slot(claim.item)
                if claim.slot is None:
                    claim.state = "lost"
                    continue
                self.settle(self.item(claim.item))
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
        return self._take(self.item(min(unseen, key=self._rank)))

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
        given = (claim.session == self.row.id, claim.annotator == self.annotator)
        count = self.session.scalar(select(func.count()).select_from(claim).where(*given)) or 0
        query = (
            select(item.number, claim.item)
            .outerjoin(claim, and_(*given, claim.item == item.number))
            .where(item.session == self.row.id, item.priority == CONTROL)
        )
        found = self.session.execute(query).all()
        seen = {number for number, taken in found if taken is not None}
        return count, seen, {number for number, _ in found} - seen

    def _is_due(self, every: int, done: int, seen: int) -> bool:
        # Nobody knows which of `every` items it is: each person's are at places of their own.
        return seen < (done + 1 + self._rank(-1) % every) // every

    def next(self) -> Given | None:
        """Return the ordinary item that comes next, if one needs labels that nobody is giving."""
        self._take_back()
        last = self._last()
        # Who has read a text is asked everything about it before the next one.
        same = None if last is None else self._of_text(last)
        if same is not None and (given := self._take(same)) is not None:
            return given
        start = self._rank(-2 if last is None else last.number) % 2**31
        while (chosen := self._first(start)) is not None:
            self._locked[chosen.number] = chosen
            same = self._of_text(chosen, chosen=True)
            if (given := self._take(chosen if same is None else same)) is not None:
                return given
        return None

    def _first(self, start: int) -> AnnotationItemRow | None:
        """Return the item that comes first, locked, in the order that begins at `start`."""
        item = AnnotationItemRow
        best = self._wanted(select(item.priority)).order_by(item.priority).limit(1)
        while (priority := self.session.scalar(best)) is not None:
            every = self._wanted(select(item)).order_by(item.priority, item.place).limit(1)
            first = every.where(item.priority == priority)
            # What somebody else has locked is passed over; it is waited for where nothing else is.
            ways = (first.where(item.place >= start), True), (first, True), (every, True)
            for part, skip in (*ways, (first, False)):
                if (found := self._lock(part, skip=skip)) is not None:
                    return found
        return None

    def _lock(self, query: Select[Any], *, skip: bool) -> AnnotationItemRow | None:
        # The row is read anew: somebody may have changed it before it was locked.
        query = query.with_for_update(skip_locked=skip, of=AnnotationItemRow)
        return self.session.scalar(query.execution_options(populate_existing=True))

    def _last(self) -> AnnotationItemRow | None:
        """Return the ordinary item that this person was given last."""
        item, claim = AnnotationItemRow, ClaimRow
        query = (
            select(item)
            .join(claim, and_(item.session == claim.session, item.number == claim.item))
            .where(claim.session == self.row.id, claim.annotator == self.annotator)
            .where(item.gold.is_(None))
            .order_by(claim.taken.desc(), claim.item.desc())
            .limit(1)
        )
        return self.session.scalar(query)

    def _of_text(
        self, other: AnnotationItemRow, *, chosen: bool = False
    ) -> AnnotationItemRow | None:
        """Return the first wanted item about a text of another one, locked; or that itself, where
        it is `chosen`.
        """
        item = AnnotationItemRow
        # By the texts alone: with more conditions the database may go through all items.
        same = select(item.number, item.priority).where(_about(other))
        for number, priority in sorted(self.session.execute(same), key=itemgetter(0)):
            if number == other.number and chosen:
                return other
            if number == other.number or priority is None or priority < 0:
                continue
            one = self._wanted(select(item)).where(item.number == number)
            if (found := self._lock(one, skip=True)) is not None:
                return found
        return None

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

    def _wanted(self, query: Select[Any]) -> Select[Any]:
        """Return the part of a query of items that this person can be given."""
        item = AnnotationItemRow
        return query.where(
            item.session == self.row.id, item.priority >= 0, item.number.not_in(self._own())
        )

    def _take_back(self) -> None:
        """Take away the places of others whose lease has expired."""
        row = ClaimRow
        query = (
            select(row)
            .where(row.session == self.row.id, row.state == "open", row.expires <= self.now)
            .where(row.slot.is_not(None), row.annotator != self.annotator)
        )
        item = AnnotationItemRow
        for number in sorted({claim.item for claim in self.session.scalars(query)}):
            one = select(item).where(item.session == self.row.id, item.number == number)
            if (found := self._lock(one, skip=True)) is not None:
                self._locked[number] = found
                self._free_slot(number)
                self.settle(found)

    def _take(self, item: AnnotationItemRow) -> Given | None:
        """Give out an item; None where all its places are taken."""
        self._locked[item.number] = item
        slot = None if item.gold is not None else self._free_slot(item.number)
        if slot is None and item.gold is None:
            item.priority = None
            return None
        claim = self._own_claim(item.number)
        if claim is None:
            claim = ClaimRow(
                session=self.row.id,
                item=item.number,
                annotator=self.annotator,
                slot=slot,
                state="open",
                taken=self.now,
                expires=self._ends,
                revealed=self._shown,
            )
            self.session.add(claim)
            self._claims[item.number].append(claim)
        else:
            claim.slot, claim.state, claim.expires = slot, "open", self._ends
        self.settle(item)
        return self._given(claim)

    def _free_slot(self, number: int) -> int | None:
        """Return a place of the item that nobody holds; places whose lease has expired are
        taken away.
        """
        holders = {claim.slot: claim for claim in self._holders(number)}
        for slot, claim in list(holders.items()):
            if (
                claim.state == "open"
                and claim.expires <= self.now
                and claim.annotator != self.annotator
            ):
                del holders[slot]
                claim.slot = None
                # Before somebody else takes it: the database refuses two.
                self.session.flush()
        # After a larger overlap than now, the places above it count as well.
        if len(holders) >= self.row.overlap:
            return None
        return next(slot for slot in range(self.row.overlap) if slot not in holders)

    def _given(self, claim: ClaimRow) -> Given:
        item = self._locked.get(claim.item) or self.item(claim.item)
        return Given(
            item=claim.item,
            task=item.task,
            body=item.body,
            expires=claim.expires,
            revealed=claim.revealed,
        )

    def _rank(self, number: int) -> int:
        """Return a number of this person and an item: at random, and always the same."""
        said = f"{self.row.seed}:{self.annotator}:{number}".encode()
        return int.from_bytes(blake2b(said, digest_size=8).digest(), "big")


def _about(other: AnnotationItemRow) -> Any:
    """Return the condition by which items about one of the texts of `other` are found."""
    item, texts = AnnotationItemRow, sorted(text_digests(other.body))
    same = (item.first.in_(texts), item.second.in_(texts)) if texts else ()
    # The session in each part: SQLite then looks into an index for each.
    of = item.session == other.session
    return or_(*(and_(of, part) for part in (item.number == other.number, *same)))


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
    turn.settle(item)


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
