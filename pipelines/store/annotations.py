"""Annotation sessions in the database: what they hold, who takes part, and what was labelled.

What is read of them is in `pipelines.store.annotation_records`, giving out items and storing labels
in `pipelines.store.annotation_work`, secret links in `pipelines.store.annotation_links`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, TypeVar

from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store.annotation_lists import SessionStanding, standings
from pipelines.store.annotation_records import (
    MAX_NAME,
    Annotator,
    AnnotatorKind,
    Guidelines,
    NewItem,
    StoredClaim,
    StoredEvent,
    StoredItem,
    StoredSession,
    WholeSession,
)
from pipelines.store.annotation_tables import (
    AnnotationEventRow,
    AnnotationItemRow,
    AnnotationSessionRow,
    AnnotatorRow,
    ClaimRow,
    GuidelinesRow,
)
from pipelines.store.database import Database
from pipelines.types import Frozen

Clock = Callable[[], datetime]
"""Tells the time, in UTC."""

_Kind = TypeVar("_Kind", bound=Frozen)

_AT_ONCE = 500
"""Rows that one statement writes."""


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


class AnnotationStore:
    """Annotation sessions in the database of a RunStore. Every method blocks; any thread may call.

    Methods with an `owner` raise NotFoundError for anyone else's session.
    """

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def create(
        self, owner: str, name: str, spec: dict[str, Any], overlap: int, guidelines: str
    ) -> str:
        """Make an empty session; return its id."""
        if not name.strip() or len(name) > MAX_NAME:
            raise failure("annotation.bad_name", most=MAX_NAME)
        made = token_hex(16)
        with self._database.write() as session:
            session.add(
                AnnotationSessionRow(
                    id=made,
                    owner=owner,
                    name=name,
                    created=self._clock(),
                    closed=None,
                    seed=token_hex(8),
                    overlap=overlap,
                    guidelines=1,
                    events=0,
                    spec=spec,
                )
            )
            session.flush()
            session.add(
                GuidelinesRow(session=made, version=1, text=guidelines, created=self._clock())
            )
        return made

    def get(self, session_id: str, owner: str | None = None) -> StoredSession:
        """Return one session; of `owner`, where one is named. Raises NotFoundError."""
        conditions = [AnnotationSessionRow.id == session_id]
        if owner is not None:
            conditions.append(AnnotationSessionRow.owner == owner)
        with self._database.read() as session:
            found = _listed(session, *conditions)
        if not found:
            raise failure("annotation.no_session")
        return found[0]

    def list(self, owner: str) -> builtins.list[StoredSession]:
        """Return the sessions of `owner`, newest first."""
        with self._database.read() as session:
            return _listed(session, AnnotationSessionRow.owner == owner)

    def standings(self, owner: str) -> dict[str, SessionStanding]:
        """Return how far each session of `owner` is, by its id, without reading what it holds."""
        with self._database.read() as session:
            return standings(session, AnnotationSessionRow.owner == owner)

    def standing(self, session_id: str) -> SessionStanding:
        """Return how far one session is, without reading what it holds. Raises NotFoundError."""
        with self._database.read() as session:
            found = standings(session, AnnotationSessionRow.id == session_id)
        if not found:
            raise failure("annotation.no_session")
        return found[session_id]

    def whole(self, session_id: str) -> WholeSession:
        """Return all of a session in one transaction: nothing is done in it meanwhile.

        Raises NotFoundError.
        """
        with self._database.read() as session:
            # SQLite reads one state anyhow; elsewhere changes wait, as they do for each other.
            locked(session, session_id)
            return WholeSession(
                _listed(session, AnnotationSessionRow.id == session_id)[0],
                _guidelines(session, session_id),
                _annotators(session, session_id),
                _items(session, session_id),
                _claims(session, session_id),
                _events(session, session_id),
            )

    def delete(self, session_id: str, owner: str) -> None:
        """Delete a session with everything in it. Raises NotFoundError."""
        row = AnnotationSessionRow
        statement = delete(row).where(row.id == session_id, row.owner == owner).returning(row.id)
        with self._database.write() as session:
            if session.execute(statement).one_or_none() is None:
                raise failure("annotation.no_session")

    def close(self, session_id: str, *, closed: bool = True) -> None:
        """Close a session, so that no label is taken any more; or open it again."""
        with self._database.write() as session:
            locked(session, session_id).closed = self._clock() if closed else None

    def set_overlap(self, session_id: str, overlap: int) -> None:
        """Change how many people label an item from now on. Labels beyond it stay."""
        with self._database.write() as session:
            locked(session, session_id).overlap = overlap

    def set_spec(self, session_id: str, changes: dict[str, Any]) -> None:
        """Replace these fields of a session's specification. Raises NotFoundError."""
        with self._database.write() as session:
            row = locked(session, session_id)
            row.spec = {**row.spec, **changes}

    def set_guidelines(self, session_id: str, text: str) -> int:
        """Store a new version of the guidelines, unless nothing changed; return its number."""
        with self._database.write() as session:
            row = locked(session, session_id)
            newest = session.get_one(GuidelinesRow, (session_id, row.guidelines))
            if newest.text != text:
                row.guidelines += 1
                version = row.guidelines
                session.add(
                    GuidelinesRow(
                        session=session_id, version=version, text=text, created=self._clock()
                    )
                )
            return row.guidelines

    def guidelines(self, session_id: str) -> builtins.list[Guidelines]:
        """Return every version of the guidelines, oldest first."""
        with self._database.read() as session:
            return _guidelines(session, session_id)

    def add_items(self, session_id: str, items: Iterable[NewItem]) -> int:
        """Add items that are not there yet, by their keys; return how many were new."""
        with self._database.write() as session:
            locked(session, session_id)
            row = AnnotationItemRow
            known = set(session.scalars(select(row.key).where(row.session == session_id)))
            number = len(known)
            rows: builtins.list[dict[str, Any]] = []
            for item in items:
                if item.key in known:
                    continue
                known.add(item.key)
                rows.append(
                    {"session": session_id, "number": number + len(rows), "labels": 0}
                    | item._asdict()
                )
            for start in range(0, len(rows), _AT_ONCE):
                session.execute(insert(row), rows[start : start + _AT_ONCE])
        return len(rows)

    def set_gold(self, session_id: str, item: int, gold: dict[str, Any] | None) -> None:
        """Make an item a control item with this right label, or an ordinary one again.

        Raises InvalidInputError once somebody was given it, because it would count differently.
        """
        with self._database.write() as session:
            locked(session, session_id)
            row = session.get(AnnotationItemRow, (session_id, item))
            if row is None:
                raise failure("annotation.no_item")
            given = select(ClaimRow.annotator).where(
                ClaimRow.session == session_id, ClaimRow.item == item
            )
            if session.execute(given).first() is not None:
                raise failure("annotation.wrong_state", state=phrase("state.given"))
            row.gold = gold

    def items(self, session_id: str) -> builtins.list[StoredItem]:
        """Return all items in order, with what only the lead may see."""
        with self._database.read() as session:
            return _items(session, session_id)

    def item(self, session_id: str, number: int) -> StoredItem:
        """Return one item, with what only the lead may see. Raises NotFoundError."""
        row = AnnotationItemRow
        conditions = row.session == session_id, row.number == number
        with self._database.read() as session:
            found = _read(session, StoredItem, row, (row.number,), *conditions)
        if not found:
            raise failure("annotation.no_item")
        return found[0]

    def add_annotator(
        self, session_id: str, name: str, kind: AnnotatorKind, most: int | None = None
    ) -> Annotator:
        """Let somebody take part under a name that nobody has; at most `most` persons can.

        Raises InvalidInputError if the name is taken or the session is full.
        """
        name = _usable(name)
        try:
            with self._database.write() as session:
                locked(session, session_id)
                return enrolled(session, session_id, name, kind, self._clock(), most)
        except IntegrityError:
            raise failure("annotation.name_taken") from None

    def participant(self, session_id: str, name: str, kind: AnnotatorKind) -> Annotator:
        """Return the one of this kind who has this name, added where nobody has it.

        Raises InvalidInputError where somebody of another kind has it.
        """
        with self._database.write() as session:
            locked(session, session_id)
            return participating(session, session_id, _usable(name), kind, self._clock())

    def annotators(self, session_id: str) -> builtins.list[Annotator]:
        """Return everybody who takes part, in the order of joining."""
        with self._database.read() as session:
            return _annotators(session, session_id)

    def events(
        self, session_id: str, *, annotator: int | None = None, item: int | None = None
    ) -> builtins.list[StoredEvent]:
        """Return what was done, in order; by one person or to one item, where that is asked."""
        row = AnnotationEventRow
        conditions: builtins.list[Any] = []
        if annotator is not None:
            conditions.append(row.annotator == annotator)
        if item is not None:
            conditions.append(row.item == item)
        with self._database.read() as session:
            return _events(session, session_id, *conditions)

    def claims(self, session_id: str, annotator: int | None = None) -> builtins.list[StoredClaim]:
        """Return what was given to whom, by item and person."""
        conditions = [] if annotator is None else [ClaimRow.annotator == annotator]
        with self._database.read() as session:
            return _claims(session, session_id, *conditions)

    def restore(
        self,
        owner: str,
        stored: StoredSession,
        guidelines: Sequence[Guidelines],
        annotators: Sequence[Annotator],
        items: Sequence[StoredItem],
        claims: Sequence[StoredClaim],
        events: Sequence[StoredEvent],
    ) -> str:
        """Store a whole session that was exported, under a new id, which is returned.

        Raises InvalidInputError where two of its parts are one in this database.
        """
        made = token_hex(16)
        fields = stored.model_dump(exclude={"id", "owner", "items"})
        row = {**fields, "id": made, "owner": owner, "events": len(events)}
        taken = {"taken": self._clock()}
        with _named_once(), self._database.write() as session:
            session.execute(insert(AnnotationSessionRow), [row])
            for table, values, more in (
                (GuidelinesRow, guidelines, {}),
                (AnnotatorRow, annotators, {}),
                (AnnotationItemRow, items, {}),
                (ClaimRow, claims, taken),
                (AnnotationEventRow, events, {}),
            ):
                rows = [{"session": made, **more, **value.model_dump()} for value in values]
                for start in range(0, len(rows), _AT_ONCE):
                    session.execute(insert(table), rows[start : start + _AT_ONCE])
        return made


@contextmanager
def _named_once() -> Iterator[None]:
    """Say that names which differ only in characters that no database keeps are one."""
    try:
        yield
    except IntegrityError:
        raise failure("annotation.bad_file", problem=phrase("import.same_parts"), line=1) from None


def locked(session: Session, session_id: str) -> AnnotationSessionRow:
    """Return the row of a session, locked until the transaction ends: changes take turns.

    Raises NotFoundError.
    """
    row = session.get(AnnotationSessionRow, session_id, with_for_update=True)
    if row is None:
        raise failure("annotation.no_session")
    return row


def enrolled(
    session: Session,
    session_id: str,
    name: str,
    kind: AnnotatorKind,
    joined: datetime,
    most: int | None = None,
) -> Annotator:
    """Return a new annotator, in a transaction in which the row of the session is locked.

    Raises InvalidInputError if `most` persons take part already.
    """
    row = AnnotatorRow
    kinds = session.scalars(select(row.kind).where(row.session == session_id)).all()
    if kind == "person" and most is not None and kinds.count("person") >= most:
        raise failure("annotation.full", most=most)
    made = {"number": len(kinds), "name": name, "kind": kind, "joined": joined}
    session.execute(insert(row), [{"session": session_id, **made}])
    return Annotator.model_validate(made)


def participating(
    session: Session, session_id: str, name: str, kind: AnnotatorKind, now: datetime
) -> Annotator:
    """Do as `AnnotationStore.participant` does, in a transaction in which the session's row
    is locked.
    """
    row = AnnotatorRow
    found = _read(
        session, Annotator, row, (row.number,), row.session == session_id, row.name == name
    )
    if not found:
        return enrolled(session, session_id, name, kind, now)
    if found[0].kind != kind:
        raise failure("annotation.name_taken")
    return found[0]


def _usable(name: str) -> str:
    """Return `name` without space around it. Raises InvalidInputError for an empty or too
    long one.
    """
    name = name.strip()
    if not name or len(name) > MAX_NAME:
        raise failure("annotation.bad_name", most=MAX_NAME)
    return name


def _listed(session: Session, *conditions: Any) -> builtins.list[StoredSession]:
    row, item = AnnotationSessionRow, AnnotationItemRow
    counts = select(func.count()).where(item.session == row.id).scalar_subquery()
    names = [name for name in StoredSession.model_fields if name != "items"]
    query = (
        select(*(getattr(row, name) for name in names), counts.label("items"))
        .where(*conditions)
        .order_by(row.created.desc(), row.id)
    )
    return [StoredSession(**found._mapping) for found in session.execute(query)]


def _guidelines(session: Session, session_id: str) -> builtins.list[Guidelines]:
    row = GuidelinesRow
    return _read(session, Guidelines, row, (row.version,), row.session == session_id)


def _annotators(session: Session, session_id: str) -> builtins.list[Annotator]:
    row = AnnotatorRow
    return _read(session, Annotator, row, (row.number,), row.session == session_id)


def _items(session: Session, session_id: str) -> builtins.list[StoredItem]:
    row = AnnotationItemRow
    return _read(session, StoredItem, row, (row.number,), row.session == session_id)


def _claims(session: Session, session_id: str, *more: Any) -> builtins.list[StoredClaim]:
    row = ClaimRow
    order = row.item, row.annotator
    return _read(session, StoredClaim, row, order, row.session == session_id, *more)


def _events(session: Session, session_id: str, *more: Any) -> builtins.list[StoredEvent]:
    row = AnnotationEventRow
    return _read(session, StoredEvent, row, (row.seq,), row.session == session_id, *more)


def _read(
    session: Session, kind: type[_Kind], table: Any, order: Sequence[Any], *conditions: Any
) -> builtins.list[_Kind]:
    columns = [getattr(table, name) for name in kind.model_fields]
    query = select(*columns).where(*conditions).order_by(*order)
    return [kind(**one._mapping) for one in session.execute(query)]
