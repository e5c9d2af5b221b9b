"""How much each owner's runs take, and what is deleted where that is too much."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import String, cast, delete, func, select, text
from sqlalchemy.orm import Session

from pipelines.store.database import Database
from pipelines.store.tables import EventRow, RunRow

SHARED = "shared"
"""The owner of what was shared: nobody, so that nobody can change it, and everybody may read it."""

_TOGETHER = 20
"""Runs that are deleted in one transaction, between which others can write."""


def copy_id(run_id: str) -> str:
    """The id of the copy that everybody may read."""
    return sha256(f"{SHARED}:{run_id}".encode()).hexdigest()[: len(run_id)]


class StoredRun(NamedTuple):
    """A run with the bytes of its events; `copied` are those of its copy, 0 if it has none."""

    id: str
    created: datetime
    over: bool
    size: int
    copied: int


class StoredBytes:
    """What runs take in a database. Every method blocks, and may be called in any thread.

    A copy for everybody counts to the owner of the run that was copied, for as long as that run is
    stored. Sizes are those of the recorded events: what the database adds is left out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, owner: str) -> list[StoredRun]:
        """The runs of `owner`, the oldest first."""
        query = select(RunRow.id, RunRow.created, RunRow.status).where(RunRow.owner == owner)
        with self._database.read() as session:
            runs = session.execute(query.order_by(RunRow.created, RunRow.id)).all()
            copies = {run_id: copy_id(run_id) for run_id, _, _ in runs}
            found = _sizes(session, [*copies, *copies.values()])
        return [
            StoredRun(
                run_id, created, status != "running", found.get(run_id, 0), found.get(copy, 0)
            )
            for (run_id, created, status), copy in zip(runs, copies.values(), strict=True)
        ]

    def keep_within(self, owner: str, most: int) -> int:
        """Delete the oldest runs of `owner` until they take at most `most` bytes; how many.

        Runs that go on or were shared stay, for a link that was given to others goes on working,
        and so does the newest, which is the one that is looked at.
        """
        runs = self.of(owner)
        total = sum(run.size + run.copied for run in runs)
        gone: list[str] = []
        for run in runs[:-1]:
            if total <= most:
                break
            if run.over and not run.copied:
                gone.append(run.id)
                total -= run.size
        self._delete(gone)
        return len(gone)

    def keep_all_within(self, most: int) -> int:
        """Delete the oldest runs of all owners until the database holds `most` bytes; how many.

        Runs that go on stay. Shared ones are deleted after all others.
        """
        gone = 0
        while (found := self._oldest(most)) and self._delete(found):
            gone += len(found)
        return gone

    def _oldest(self, most: int) -> list[str]:
        """Some runs to delete; none where nothing has to be."""
        query = (
            select(RunRow.id)
            .where(RunRow.status != "running")
            .order_by(RunRow.owner == SHARED, RunRow.created, RunRow.id)
            .limit(_TOGETHER)
        )
        with self._database.read() as session:
            return list(session.scalars(query)) if _whole(session) > most else []

    def _delete(self, runs: list[str]) -> int:
        """Delete runs, unless that was done meanwhile; how many."""
        if not runs:
            return 0
        statement = delete(RunRow).where(RunRow.id.in_(runs)).returning(RunRow.id)
        with self._database.write() as session:
            return len(session.execute(statement).all())


def _sizes(session: Session, runs: Iterable[str]) -> dict[str, int]:
    size = func.sum(func.length(cast(EventRow.body, String)))
    query = select(EventRow.run_id, size).where(EventRow.run_id.in_(list(runs)))
    return {row[0]: row[1] for row in session.execute(query.group_by(EventRow.run_id))}


def _whole(session: Session) -> int:
    """Bytes of the database that are in use, found without reading all of it."""
    if session.get_bind().dialect.name == "postgresql":
        return session.scalar(select(func.pg_database_size(func.current_database()))) or 0
    pages, free, size = (
        session.scalar(text(f"PRAGMA {name}")) or 0
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
