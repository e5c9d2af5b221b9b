"""Who is writing to a database: locks that are gone the moment their process is.

Every store object has a random name and, while it is open, holds a lock under that name which the
operating system or the database drops when the process ends, however it ends. So the question "is
the writer of this run alive?" has an exact answer, without clocks or heartbeats.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session


class FilePresence:
    """For SQLite: a locked file beside the database. `writer` is the name of the store object."""

    def __init__(self, database: Path) -> None:
        self.writer = token_hex(16)
        self._prefix = f"{database}-writer-"
        self._lock = self._lock_of(self.writer)
        self._lock.acquire(timeout=10)
        # Asking deletes the lock files that dead processes left.
        for path in map(str, list(database.parent.iterdir())):
            if path.startswith(self._prefix):
                self.is_alive(path.removeprefix(self._prefix))

    def renew(self) -> None:
        """Do nothing: a file lock is not lost while the process lives."""

    def is_alive(self, writer: str, session: Session | None = None) -> bool:
        """Return whether the store object of that name is open, in whatever process."""
        if writer == self.writer:
            return True
        lock = self._lock_of(writer)
        if not Path(lock.lock_file).exists():
            return False
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        self._drop(lock)
        return False

    def close(self) -> None:
        """Give the lock back."""
        self._drop(self._lock)

    def _lock_of(self, writer: str) -> FileLock:
        # Opened and closed by different threads, hence not bound to one.
        return FileLock(self._prefix + writer, mode=0o600, thread_local=False)

    def _drop(self, lock: FileLock) -> None:
        # The name goes first: who opens the file in between sees that it has none any more.
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


class ReaderPresence:
    """For SQLite that is only read: it sees who is alive, and nobody sees it."""

    writer = ""

    def __init__(self, database: Path) -> None:
        self._prefix = f"{database}-writer-"

    def renew(self) -> None:
        """Do nothing."""

    def is_alive(self, writer: str, session: Session | None = None) -> bool:
        """Return what `FilePresence` returns, without touching the file."""
        try:
            file = os.open(self._prefix + writer, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
        return False

    def close(self) -> None:
        """Do nothing."""


class AdvisoryPresence:
    """For PostgreSQL: an advisory lock held by a connection of its own, with the methods above.

    A connection pooler in front of the server must keep sessions together.
    """

    def __init__(self, engine: Engine) -> None:
        self.writer = token_hex(16)
        self._engine = engine
        self._connection: Connection | None = None
        self._guard = Lock()
        self.renew()

    def renew(self) -> None:
        """Take the lock, again if it was lost; it is never waited for.

        A server that did not see a connection break keeps its session, and with it the lock, for
        up to two hours. Meanwhile this process counts as alive, and the next call tries again.
        """
        with self._guard:
            if self._connection is not None:
                try:
                    self._connection.execute(select(1))
                    return
                except DBAPIError:
                    self._connection.close()
                    self._connection = None
            connection = self._engine.connect()
            try:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                lock = select(func.pg_try_advisory_lock(_key_of(self.writer)))
                if connection.scalar(lock):
                    self._connection = connection
            finally:
                if self._connection is None:
                    connection.close()

    def is_alive(self, writer: str, session: Session) -> bool:
        if writer == self.writer:
            return True
        taken = session.scalar(select(func.pg_try_advisory_xact_lock(_key_of(writer))))
        return not taken

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                with suppress(DBAPIError):  # the connection may be gone, and the lock with it
                    # Explicitly, for the server notices a closed connection only a moment later.
                    unlock = func.pg_advisory_unlock(_key_of(self.writer))
                    self._connection.execute(select(unlock))
                self._connection.close()
                self._connection = None


Presence = FilePresence | ReaderPresence | AdvisoryPresence


def _key_of(writer: str) -> int:
    """Return a signed 64-bit number, as PostgreSQL names advisory locks."""
    return int(writer[:16], 16) - 2**63
