"""How much each owner's runs take, and what is deleted where that is too much."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import String, cast, delete, func, select
from sqlalchemy.orm import Session

from pipelines.store.database import Database
from pipelines.store.tables import EventRow, RunRow

SHARED = "shared"
"""The owner of what was shared: nobody, so that nobody can change it, and everybody may read it."""

_TOGETHER = 20
"""Runs that are deleted in one transaction, between which others can write."""


def copy_id(run_id: str) -> str:
    """Return the id of the copy that everybody may read."""
    return sha256(f"{SHARED}:{run_id}".encode()).hexdigest()[: len(run_id)]


class StoredRun(NamedTuple):
    """A run with the size of its events; `copied` is that of its copy, 0 if it has none."""

    id: str
    created: datetime
    over: bool
    size: int
    copied: int


class StoredBytes:
    """What runs take in a database. Every method blocks, and may be called in any thread.

    A copy for everybody counts to the owner of the run that was copied, for as long as that run is
    stored. Sizes are the characters of the recorded events: what the database adds is left out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, owner: str) -> list[StoredRun]:
        """Return the runs of `owner`, the oldest first."""
        query = (
            select(RunRow.id, RunRow.created, RunRow.status, RunRow.size)
            .where(RunRow.owner == owner)
            .order_by(RunRow.created, RunRow.id)
        )
        with self._database.read() as session:
            runs = session.execute(query).all()
            copies = [copy_id(run.id) for run in runs]
            shared = select(RunRow.id, RunRow.size).where(RunRow.id.in_(copies))
            copied = {row.id: row.size for row in session.execute(shared)}
        return [
            StoredRun(run.id, run.created, run.status != "running", run.size, copied.get(copy, 0))
            for run, copy in zip(runs, copies, strict=True)
        ]

    def keep_within(self, owner: str, most: int) -> int:
        """Delete the oldest runs of `owner` until they take at most `most` bytes; return how many.

        Runs that go on or were shared stay, for a link that was given to others goes on working,
        and so does the newest, which is the one that is looked at.
        """
        if owner == SHARED:
            return 0
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
        """Delete the oldest runs of all owners until all take at most `most` bytes; return
        how many.

        Runs that go on stay. Shared ones are deleted after all others.
        """
        gone = 0
        while (found := self._oldest(most)) and (deleted := self._delete(found)):
            gone += deleted
        return gone

    def _oldest(self, most: int) -> list[str]:
        """Return the first runs to delete, some of them at most; none where nothing has to be."""
        query = (
            select(RunRow.id, RunRow.size)
            .where(RunRow.status != "running")
            .order_by(RunRow.owner == SHARED, RunRow.created, RunRow.id)
            .limit(_TOGETHER)
        )
        with self._database.read() as session:
            # Not the database's own size, which what is deleted may leave as it is.
            excess = (session.scalar(select(func.sum(RunRow.size))) or 0) - most
            found: list[str] = []
            for run_id, size in session.execute(query):
                if excess <= 0:
                    break
                found.append(run_id)
                excess -= size
        return found

    def _delete(self, runs: list[str]) -> int:
        """Delete runs, unless that was done meanwhile; return how many."""
        if not runs:
            return 0
        statement = delete(RunRow).where(RunRow.id.in_(runs)).returning(RunRow.id)
        with self._database.write() as session:
            return len(session.execute(statement).all())


def size_of(session: Session, run_id: str, first: int) -> int:
    """Return the characters of a run's events from number `first` on, as they are stored."""
    size = func.sum(func.length(cast(EventRow.body, String)))
    query = select(size).where(EventRow.run_id == run_id, EventRow.seq >= first)
    return session.scalar(query) or 0
