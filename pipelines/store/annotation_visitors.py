"""Verdicts of a public page's visitors: proposed by them, accepted or refused by the lead.

A proposal is an event, not a label. Accepting it stores a label of the same visitor, so that code
that reads labels need not know proposals. Each change is one transaction, in which the row of the
session is locked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from pipelines.errors import failure
from pipelines.store.annotation_events import Action, append, repeated
from pipelines.store.annotation_records import EventKind, NewItem, StoredEvent
from pipelines.store.annotation_tables import (
    AnnotationEventRow,
    AnnotationItemRow,
    AnnotationSessionRow,
)
from pipelines.store.annotations import Clock, locked, participating, utc_now
from pipelines.store.database import Database

MOST_WAITING = 1000
"""Verdicts of one session that wait to be looked at."""

State = Literal["waiting", "accepted", "refused", "replaced"]
"""The state of a proposal; a later one of the same visitor on the same item replaces it."""


class Proposal(NamedTuple):
    """A verdict that a visitor proposed, and its state."""

    event: StoredEvent
    state: State


def proposals(events: Sequence[StoredEvent]) -> list[Proposal]:
    """Return every verdict that visitors proposed, in order, each with its state."""
    left = {one.seq: one for one in events if one.kind == "proposed"}
    said: dict[int, State] = {}
    for one in events:
        # What a visitor proposes decides nothing, whatever the request is called.
        decided = None if one.kind == "proposed" else _DECIDED.fullmatch(one.client)
        about = left.get(int(decided[2])) if decided else None
        if decided and about is not None and _whose(about) == _whose(one):
            said[about.seq] = _STATES[decided[1]]
    found: dict[int, Proposal] = {}
    later: dict[State, set[tuple[int, int]]] = {"waiting": set(), "accepted": set()}
    for seq, one in reversed(left.items()):
        state = said.get(seq, "waiting")
        if state in later:
            # One that waits is replaced by any later one, an accepted one by a later accepted one.
            whose = _whose(one)
            replaced = whose in later[state] or (state == "waiting" and whose in later["accepted"])
            later[state].add(whose)
            state = "replaced" if replaced else state
        if state == "refused":
            later["waiting"].add(_whose(one))
        found[seq] = Proposal(one, state)
    return list(reversed(found.values()))


_STATES: dict[str, State] = {"accept": "accepted", "refuse": "refused"}
_DECIDED = re.compile(r"(accept|refuse):(\d{1,18}):\d{1,18}")
"""The name of the request by which a lead decides about a proposal: its number, and which turn."""


class AnnotationVisitors:
    """Visitors' verdicts in the database of a RunStore. Every method blocks."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def propose(self, session_id: str, visitor: str, item: NewItem, action: Action) -> StoredEvent:
        """Store a proposal of the visitor of this name; a repeated request is stored once.

        The item and the visitor are added where the session has none of them yet. Raises
        InvalidInputError where the session is closed, TooOftenError where too many wait.
        """
        with self._database.write() as session:
            row = locked(session, session_id)
            if row.closed is not None:
                raise failure("annotation.closed")
            number = participating(session, row.id, visitor, "visitor", self._clock()).number
            place = self._item(session, row, item)
            known = repeated(session, session_id, number, place, action)
            if known is not None:
                return known
            waiting = [one for one in proposals(_events(session, row)) if one.state == "waiting"]
            if len(waiting) >= MOST_WAITING:
                raise failure("annotation.crowded", most=MOST_WAITING)
            # The page shows what the models said beside the answer.
            return append(session, row, number, place, action, self._clock(), True)

    def decide(self, session_id: str, seq: int, *, accept: bool) -> Proposal:
        """Accept a proposal, or refuse it; to refuse an accepted one takes its label back.

        A repeated decision changes nothing. Raises NotFoundError where there is no such proposal,
        and for one that a later one has replaced.
        """
        wanted: State = "accepted" if accept else "refused"
        with self._database.write() as session:
            row = locked(session, session_id)
            events = _events(session, row)
            found = next((one for one in proposals(events) if one.event.seq == seq), None)
            if found is None or found.state == "replaced":
                raise failure("annotation.no_verdict", number=seq)
            if found.state == wanted:
                return found
            event = found.event
            own = [one for one in events if _whose(one) == _whose(event)]
            kind: EventKind
            if accept:
                kind, value = "changed" if _label_stands(own) else "given", event.value
            else:
                kind = "undone" if found.state == "accepted" else "refused"
                value = {"proposed": seq}
            word = "accept" if accept else "refuse"
            action = Action(f"{word}:{seq}:{len(own)}", kind, value, run=event.run)
            append(session, row, event.annotator, event.item, action, self._clock(), True)
            return found._replace(state=wanted)

    def _item(self, session: Session, row: AnnotationSessionRow, item: NewItem) -> int:
        table = AnnotationItemRow
        known = session.scalar(
            select(table.number).where(table.session == row.id, table.key == item.key)
        )
        if known is not None:
            return known
        counted = select(func.count()).where(table.session == row.id)
        number = session.scalar(counted) or 0
        session.execute(
            insert(table), [{"session": row.id, "number": number, "labels": 0} | item._asdict()]
        )
        return number


def _label_stands(events: Sequence[StoredEvent]) -> bool:
    """Return whether the last that was done of giving a label and taking it back was giving it."""
    done = [one.kind for one in events if one.kind in ("given", "changed", "redone", "undone")]
    return bool(done) and done[-1] != "undone"


def _whose(event: StoredEvent) -> tuple[int, int]:
    return event.item, event.annotator


def _events(session: Session, row: AnnotationSessionRow) -> list[StoredEvent]:
    table = AnnotationEventRow
    query = select(table).where(table.session == row.id).order_by(table.seq)
    return [
        StoredEvent(**{name: getattr(one, name) for name in StoredEvent.model_fields})
        for one in session.scalars(query)
    ]
