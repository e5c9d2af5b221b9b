"""Annotation sessions in the database: what they hold, who takes part, and what was labelled.

What is read of them is in `pipelines.store.annotations`, giving out items and storing labels
in `pipelines.store.labelling`, secret links in `pipelines.store.annotations`.
"""

from __future__ import annotations

import builtins
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import ceil
from secrets import token_hex, token_urlsafe
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import Field
from sqlalchemy import case, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from pipelines.base import Frozen, mixes_scripts, skeleton
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store.database import Database
from pipelines.store.tables import (
    CONTROL,
    UNTOUCHED,
    AnnotationEventRow,
    AnnotationItemRow,
    AnnotationSessionRow,
    AnnotatorRow,
    ClaimRow,
    FailedLinkRow,
    GuidelinesRow,
    LinkRow,
    item_order,
)

# The progress of annotation sessions, counted by the database: for lists, and to notice changes.
#
# No item and no event is read, so that the cost does not depend on the length of the texts.


class TaskStanding(Frozen):
    """The progress of the items of one task. `items` does not include the `gold` control items.

    `given` counts labels up to the overlap of each item; `finished` counts the items that have as
    many labels as the overlap.
    """

    items: int = 0
    gold: int = 0
    given: int = 0
    finished: int = 0


class SessionStanding(Frozen):
    """How far a session is. `people` counts those who joined; the rest is as in its row.

    `tasks` has the tasks of which there are items. Two standings of a session are equal where
    nothing was done in it, and nothing changed, between them.
    """

    id: str
    events: int
    overlap: int
    guidelines: int
    closed: datetime | None
    spec: dict[str, Any]
    people: int = 0
    links: int = 0
    tasks: dict[str, TaskStanding] = Field(default_factory=dict)

    @property
    def items(self) -> int:
        """Items without control items."""
        return sum(one.items for one in self.tasks.values())

    @property
    def gold(self) -> int:
        """Control items."""
        return sum(one.gold for one in self.tasks.values())

    @property
    def given(self) -> int:
        """Labels that were wanted and given."""
        return sum(one.given for one in self.tasks.values())

    @property
    def wanted(self) -> int:
        """Labels that are wanted in all."""
        return self.items * self.overlap

    @property
    def share(self) -> float:
        """How much is done, in [0, 1]."""
        return self.given / self.wanted if self.wanted else 0.0


def standings(session: Session, *conditions: Any) -> dict[str, SessionStanding]:
    """Return the sessions that fulfil `conditions` on their rows, by their ids."""
    row, item, person, link = AnnotationSessionRow, AnnotationItemRow, AnnotatorRow, LinkRow
    ordinary = item.gold.is_(None)
    wanted = case((item.labels < row.overlap, item.labels), else_=row.overlap)
    tasks: dict[str, dict[str, TaskStanding]] = {}
    for found in session.execute(
        select(
            item.session,
            item.task,
            func.count().filter(ordinary).label("items"),
            func.count().filter(item.gold.is_not(None)).label("gold"),
            func.coalesce(func.sum(wanted).filter(ordinary), 0).label("given"),
            func.count().filter(ordinary, item.labels >= row.overlap).label("finished"),
        )
        .join(row, row.id == item.session)
        .where(*conditions)
        .group_by(item.session, item.task)
        .order_by(item.task)
    ):
        standing = TaskStanding(
            items=found.items, gold=found.gold, given=int(found.given), finished=found.finished
        )
        tasks.setdefault(found.session, {})[found.task] = standing
    people = _counts(session, person.session, person.kind == "person", *conditions)
    links = _counts(session, link.session, link.role != "lead", *conditions)
    names = ("id", "events", "overlap", "guidelines", "closed", "spec")
    query = select(*(getattr(row, name) for name in names)).where(*conditions)
    return {
        found.id: SessionStanding(
            **found._mapping,
            people=people.get(found.id, 0),
            links=links.get(found.id, 0),
            tasks=tasks.get(found.id, {}),
        )
        for found in session.execute(query)
    }


def _counts(session: Session, of: Any, which: Any, *conditions: Any) -> dict[str, int]:
    """Return how many rows there are that name each session in the column `of`."""
    row = AnnotationSessionRow
    query = select(of, func.count()).join(row, row.id == of).where(which, *conditions).group_by(of)
    return {found[0]: found[1] for found in session.execute(query)}


# What an annotation session holds, as it is read from the database: items, people, events.
#
# `pipelines.store.annotations` stores and reads it. The kinds of people and of events are the words
# that stand in the database.

MAX_NAME = 200
"""Characters of the name of a session or of a person."""

AnnotatorKind = Literal["person", "lead", "imported"]
State = Literal["open", "labelled", "skipped", "lost"]
EventKind = Literal[
    "given", "changed", "undone", "redone", "skipped", "comment", "revealed", "adjudicated"
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
        """Return all of a session in one transaction, so of one moment; raises NotFoundError."""
        with self._database.read() as session:
            # SQLite reads one state anyhow; elsewhere changes wait, as they do for each other.
            locked(session, session_id)
            return WholeSession(
                _listed(session, AnnotationSessionRow.id == session_id)[0],
                _parts(session, session_id, Guidelines),
                _parts(session, session_id, Annotator),
                _parts(session, session_id, StoredItem),
                _parts(session, session_id, StoredClaim),
                _parts(session, session_id, StoredEvent),
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
            session.flush()
            set_priorities(session, session_id)

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
            return _parts(session, session_id, Guidelines)

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
                    | item_order(item.key, item.body, item.gold)
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
            row.priority = UNTOUCHED if gold is None else CONTROL

    def items(self, session_id: str) -> builtins.list[StoredItem]:
        """Return all items in order, with what only the lead may see."""
        with self._database.read() as session:
            return _parts(session, session_id, StoredItem)

    def item(self, session_id: str, number: int) -> StoredItem:
        """Return one item, with what only the lead may see. Raises NotFoundError."""
        with self._database.read() as session:
            found = _parts(session, session_id, StoredItem, AnnotationItemRow.number == number)
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
                _refuse_likeness(session, session_id, name)
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
            return _parts(session, session_id, Annotator)

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
            return _parts(session, session_id, StoredEvent, *conditions)

    def claims(self, session_id: str, annotator: int | None = None) -> builtins.list[StoredClaim]:
        """Return what was given to whom, by item and person."""
        conditions = [] if annotator is None else [ClaimRow.annotator == annotator]
        with self._database.read() as session:
            return _parts(session, session_id, StoredClaim, *conditions)

    def restore(self, owner: str, whole: WholeSession) -> str:
        """Store a whole session that was exported, under a new id, which is returned.

        Raises InvalidInputError where two of its parts are one in this database.
        """
        made = token_hex(16)
        fields = whole.session.model_dump(exclude={"id", "owner", "items"})
        row = {**fields, "id": made, "owner": owner, "events": len(whole.events)}
        taken = {"taken": self._clock()}
        with _named_once(), self._database.write() as session:
            session.execute(insert(AnnotationSessionRow), [row])
            for table, values, more in (
                (GuidelinesRow, whole.guidelines, {}),
                (AnnotatorRow, whole.annotators, {}),
                (AnnotationItemRow, whole.items, {}),
                (ClaimRow, whole.claims, taken),
                (AnnotationEventRow, whole.events, {}),
            ):
                rows = [{"session": made, **more, **value.model_dump()} for value in values]
                if table is AnnotationItemRow:
                    for one in rows:
                        one.update(item_order(one["key"], one["body"], one["gold"]))
                for start in range(0, len(rows), _AT_ONCE):
                    session.execute(insert(table), rows[start : start + _AT_ONCE])
            set_priorities(session, made)
        return made


@contextmanager
def _named_once() -> Iterator[None]:
    """Say that names which differ only in characters that no database keeps are one."""
    try:
        yield
    except IntegrityError:
        raise failure("annotation.bad_file", problem=phrase("import.same_parts"), line=1) from None


def locked(
    session: Session, session_id: str, how: Literal["alone", "writing", "claiming"] = "alone"
) -> AnnotationSessionRow:
    """Return the row of a session, locked until the transaction ends.

    Changes of the session are made "alone". Those who are "writing" what was done take turns with
    each other; those who are "claiming" an item wait for nobody but changes, and for the item.
    Raises NotFoundError.
    """
    lock: dict[str, bool] = {"key_share": how != "alone", "read": how == "claiming"}
    row = session.get(AnnotationSessionRow, session_id, with_for_update=lock)
    if row is None:
        raise failure("annotation.no_session")
    return row


def set_priorities(session: Session, session_id: str) -> None:
    """Store which items come first, from what was claimed and labelled, for all of a session."""
    item, claim, row = AnnotationItemRow, ClaimRow, AnnotationSessionRow
    held = (
        select(func.count())
        .where(claim.session == item.session, claim.item == item.number)
        .where(claim.slot.is_not(None), claim.state == "open")
        .scalar_subquery()
    )
    overlap = select(row.overlap).where(row.id == session_id).scalar_subquery()
    priority = case(
        (item.gold.is_not(None), CONTROL),
        (item.labels + held >= overlap, None),
        (item.labels + held == 0, UNTOUCHED),
        else_=item.labels,
    )
    # Where the row is locked "alone", nobody is claiming.
    session.execute(update(item).where(item.session == session_id).values(priority=priority))


def enrolled(
    session: Session,
    session_id: str,
    name: str,
    kind: AnnotatorKind,
    joined: datetime,
    most: int | None = None,
) -> Annotator:
    """Return a new annotator, the session locked; InvalidInputError beyond `most` persons."""
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
    """Do as `AnnotationStore.participant`, in a transaction with the session's row locked."""
    found = _parts(session, session_id, Annotator, AnnotatorRow.name == name)
    if not found:
        return enrolled(session, session_id, name, kind, now)
    if found[0].kind != kind:
        raise failure("annotation.name_taken")
    return found[0]


def _usable(name: str) -> str:
    """Return `name` without space around it. Raises InvalidInputError for an empty or too
    long one, and one that mixes scripts that look alike.
    """
    name = name.strip()
    if not skeleton(name) or len(name) > MAX_NAME:
        raise failure("annotation.bad_name", most=MAX_NAME)
    if mixes_scripts(name):
        raise failure("annotation.mixed_name")
    return name


def _refuse_likeness(session: Session, session_id: str, name: str) -> None:
    """Raise InvalidInputError where somebody takes part whose name looks the same."""
    row = AnnotatorRow
    names = session.scalars(select(row.name).where(row.session == session_id))
    if skeleton(name) in map(skeleton, names):
        raise failure("annotation.name_taken")


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


def _parts(
    session: Session, session_id: str, kind: type[_Kind], *conditions: Any
) -> builtins.list[_Kind]:
    """Return what a session holds of `kind`, in its order."""
    table, *order = _TABLES[kind]
    columns = [getattr(table, name) for name in kind.model_fields]
    query = select(*columns).where(table.session == session_id, *conditions).order_by(*order)
    return [kind(**one._mapping) for one in session.execute(query)]


_TABLES: dict[type[Frozen], Sequence[Any]] = {
    Guidelines: (GuidelinesRow, GuidelinesRow.version),
    Annotator: (AnnotatorRow, AnnotatorRow.number),
    StoredItem: (AnnotationItemRow, AnnotationItemRow.number),
    StoredClaim: (ClaimRow, ClaimRow.item, ClaimRow.annotator),
    StoredEvent: (AnnotationEventRow, AnnotationEventRow.seq),
}
"""The parts of a session: the table of each, and by what it is ordered."""


# Secret links to annotation sessions: made, checked, withdrawn, and protected against guessing.
#
# A link is `<id>.<secret>`. The id finds its row; of the secret, 256 random bits, only the SHA-256
# is stored. It needs no slow hash: nobody can try so many secrets.

Role = Literal["lead", "join", "annotator"]
"""What a link allows: to lead the session, to join it, or to label as one person."""

WINDOW = 600.0
"""Seconds in which wrong links are counted."""

MOST_WRONG = 20
"""Wrong links from one address, in all or for one link, within the window."""

_TOKEN = re.compile(r"([0-9a-f]{16})\.([A-Za-z0-9_-]{43})")


class Link(Frozen):
    """A link as the lead sees it; its secret cannot be shown again."""

    id: str
    session: str
    role: Role
    annotator: int | None
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None


class AnnotationLinks:
    """Secret links in the database of a RunStore. Every method blocks; any thread may call it."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        session_id: str,
        role: Role,
        *,
        annotator: int | None = None,
        seconds: float | None = None,
    ) -> str:
        """Make a link that expires after `seconds` (None: never); return it, told this once."""
        name, secret = token_hex(8), token_urlsafe(32)
        now = self._clock()
        expires = None if seconds is None else now + timedelta(seconds=seconds)
        link = Link(
            id=name,
            session=session_id,
            role=role,
            annotator=annotator,
            created=now,
            expires=expires,
        )
        with self._database.write() as session:
            _add_link(session, link, secret)
        return f"{name}.{secret}"

    def check(self, token: str, address: str) -> Link:
        """Return what a link allows, for somebody at the network address `address`.

        Raises NotFoundError for one that is wrong, withdrawn or expired, without saying which, and
        TooOftenError where too many wrong ones for the same link came from the address, and for a
        wrong one also where too many came from it in all.
        """
        found = _TOKEN.fullmatch(token.strip())
        name, secret = found.groups() if found else ("", "")
        # Behind a proxy, one address may stand for many people: wrong links of one of them do not
        # shut out those who have another link.
        subjects = [_digest(f"address:{address}"), _digest(f"link:{name} address:{address}")]
        now = self._clock()
        with self._database.read() as session:
            row = session.get(LinkRow, name) if name else None
            # Compared in the same time, whether there is such a link or not.
            right = hmac.compare_digest(_digest(secret), row.digest if row else _digest(name))
            valid = right and row is not None and _is_valid(row, now)
            link = Link.model_validate(row, from_attributes=True) if row and valid else None
            count = _wrong(session, subjects, now)
        if link is not None and count[1] < MOST_WRONG:
            return link
        if max(count) >= MOST_WRONG:
            raise failure("annotation.guessing", minutes=ceil(WINDOW / 60))
        if row is not None and right:
            # Who has the secret of a link that is no longer valid has not guessed.
            raise failure("annotation.no_link")
        with self._database.write() as session:
            old = now - timedelta(seconds=WINDOW)
            session.execute(delete(FailedLinkRow).where(FailedLinkRow.at < old))
            rows = [{"id": token_hex(16), "subject": one, "at": now} for one in subjects]
            session.execute(insert(FailedLinkRow), rows)
        raise failure("annotation.no_link")

    def of_login(self, session_id: str, identity: str) -> int | None:
        """Return the annotator of a session who logs in as `identity`, None for one who never did.

        Raises NotFoundError where the link that stands for it was withdrawn.
        """
        with self._database.read() as session:
            return _of_login(session, _login_id(session_id, identity))

    def join_login(self, session_id: str, identity: str, name: str, most: int) -> int:
        """Make `identity` an annotator called `name`, or `name` with a number where that is taken.

        Returns its number; somebody who logs in from two devices is one annotator. It is stored as
        a link whose secret nobody has, so that the lead can withdraw it like any other link. Raises
        InvalidInputError if `most` persons take part already.
        """
        mark = _login_id(session_id, identity)
        with self._database.write() as session:
            locked(session, session_id)
            known = _of_login(session, mark)
            if known is not None:
                return known
            now, row = self._clock(), AnnotatorRow
            listed = session.scalars(select(row.name).where(row.session == session_id))
            taken = set(map(skeleton, listed))
            names = (name, *(f"{name} {number}" for number in range(2, len(taken) + 3)))
            free = next(one for one in names if skeleton(one) not in taken)
            joined = enrolled(session, session_id, free, "person", now, most)
            number = joined.number
            link = Link(
                id=mark, session=session_id, role="annotator", annotator=number, created=now
            )
            _add_link(session, link, token_urlsafe(32))
            return joined.number

    def list(self, session_id: str) -> list[Link]:
        """Return the links of a session, oldest first."""
        query = select(LinkRow).where(LinkRow.session == session_id)
        with self._database.read() as session:
            found = session.scalars(query.order_by(LinkRow.created, LinkRow.id))
            return [Link.model_validate(row, from_attributes=True) for row in found]

    def revoke(self, session_id: str, link: str) -> None:
        """Withdraw a link for good. Raises NotFoundError."""
        row = LinkRow
        statement = (
            update(row)
            .where(row.session == session_id, row.id == link)
            .values(revoked=func.coalesce(row.revoked, self._clock()))
            .returning(row.id)
        )
        with self._database.write() as session:
            if session.execute(statement).one_or_none() is None:
                raise failure("annotation.no_link")


def _add_link(session: Session, link: Link, secret: str) -> None:
    session.execute(insert(LinkRow), [{**link.model_dump(), "digest": _digest(secret)}])


def _of_login(session: Session, mark: str) -> int | None:
    row = session.get(LinkRow, mark)
    if row is not None and row.revoked is not None:
        raise failure("annotation.no_link")
    return None if row is None else row.annotator


def _login_id(session_id: str, identity: str) -> str:
    """Return the id of what stands for a login: one way, and another in each session."""
    return _digest(f"login:{session_id}:{identity}")[:32]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _is_valid(row: LinkRow, now: datetime) -> bool:
    return row.revoked is None and (row.expires is None or now < row.expires)


def _wrong(session: Session, subjects: Sequence[str], now: datetime) -> list[int]:
    """Return how often each of `subjects` was wrong lately."""
    row = FailedLinkRow
    since = now - timedelta(seconds=WINDOW)
    query = (
        select(row.subject, func.count())
        .where(row.subject.in_(subjects), row.at >= since)
        .group_by(row.subject)
    )
    counted = {found[0]: found[1] for found in session.execute(query)}
    return [counted.get(one, 0) for one in subjects]
