"""Secret links to annotation sessions: made, checked, withdrawn, and protected against guessing.

A link is `<id>.<secret>`. The id finds its row; of the secret, 256 random bits, only the SHA-256 is
stored. It needs no slow hash: nobody can try so many secrets.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from math import ceil
from secrets import token_hex, token_urlsafe
from typing import Literal

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from pipelines.errors import failure
from pipelines.store.annotation_tables import AnnotatorRow, FailedLinkRow, LinkRow
from pipelines.store.annotations import Clock, enrolled, locked, utc_now
from pipelines.store.database import Database
from pipelines.types import Frozen

Role = Literal["lead", "join", "annotator"]
"""What a link allows: to lead the session, to join it, or to label as one person."""

WINDOW = 600.0
"""Seconds in which wrong links are counted."""

MOST_WRONG = 20
"""Wrong links from one address, or for one link, within the window."""

_TOKEN = re.compile(r"([0-9a-f]{16})\.([A-Za-z0-9_-]{43})")


class Link(Frozen):
    """A link as the lead sees it; its secret cannot be shown again."""

    id: str
    session: str
    role: Role
    annotator: int | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None


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
        """Make a link that expires after `seconds` (None: never); return the link, told
        this once.
        """
        name, secret = token_hex(8), token_urlsafe(32)
        now = self._clock()
        row = {
            "id": name,
            "session": session_id,
            "role": role,
            "annotator": annotator,
            "digest": _digest(secret),
            "created": now,
            "expires": None if seconds is None else now + timedelta(seconds=seconds),
            "revoked": None,
        }
        with self._database.write() as session:
            session.execute(insert(LinkRow), [row])
        return f"{name}.{secret}"

    def check(self, token: str, address: str) -> Link:
        """Return what a link allows, for somebody at the network address `address`.

        Raises NotFoundError for one that is wrong, withdrawn or expired, without saying which, and
        TooOftenError where too many wrong ones came from the address, or for the same link.
        """
        found = _TOKEN.fullmatch(token.strip())
        name, secret = found.groups() if found else ("", "")
        subjects = [_digest(f"address:{address}")]
        if name:
            subjects.append(_digest(f"link:{name}"))
        now = self._clock()
        with self._database.read() as session:
            row = session.get(LinkRow, name) if name else None
            # Compared in the same time, whether there is such a link or not.
            right = hmac.compare_digest(_digest(secret), row.digest if row else _digest(name))
            valid = right and row is not None and _is_valid(row, now)
            link = Link.model_validate(row, from_attributes=True) if row and valid else None
            count = _wrong(session, subjects, now)
        # Wrong secrets that others try for a link do not shut out those who have the right one.
        if link is not None and count[0] < MOST_WRONG:
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
            taken = set(session.scalars(select(row.name).where(row.session == session_id)))
            names = (name, *(f"{name} {number}" for number in range(2, len(taken) + 3)))
            free = next(one for one in names if one not in taken)
            joined = enrolled(session, session_id, free, "person", now, most)
            link = {
                "id": mark,
                "session": session_id,
                "role": "annotator",
                "annotator": joined.number,
                "digest": _digest(token_urlsafe(32)),
                "created": now,
                "expires": None,
                "revoked": None,
            }
            session.execute(insert(LinkRow), [link])
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
