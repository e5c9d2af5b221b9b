"""Tells runs that are still being written from runs whose process died.

Every store object has a random name and, while it is open, holds a lock under that name which the
operating system or the database drops the moment the process is gone. So the question "is the
writer of this run alive?" has an exact answer, without clocks or heartbeats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session


class Presence(ABC):
    """The lock of one open store object; `writer` is its name."""

    def __init__(self) -> None:
        self.writer = token_hex(16)

    @abstractmethod
    def renew(self) -> None:
        """Take the lock, again if it was lost."""

    @abstractmethod
    def is_alive(self, writer: str, session: Session) -> bool:
        """Whether the store object of that name is open, in whatever process."""

    @abstractmethod
    def close(self) -> None:
        """Give the lock back."""


class FilePresence(Presence):
    """For SQLite: a locked file beside the database."""

    def __init__(self, database: Path) -> None:
        super().__init__()
        self._database = database
        self._lock = self._lock_of(self.writer)
        self._lock.acquire(timeout=10)
        self._remove_abandoned()

    def renew(self) -> None:
        """Nothing to do: a file lock is not lost while the process lives."""

    def is_alive(self, writer: str, session: Session) -> bool:
        return self._is_held(writer)

    def close(self) -> None:
        self._drop(self._lock)

    def _is_held(self, writer: str) -> bool:
        if not self._path_of(writer).exists():
            return False
        lock = self._lock_of(writer)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        self._drop(lock)
        return False

    def _remove_abandoned(self) -> None:
        """Delete the lock files that dead processes left."""
        prefix = self._path_of("").name
        for path in list(self._database.parent.iterdir()):
            if path.name.startswith(prefix):
                self._is_held(path.name.removeprefix(prefix))

    def _path_of(self, writer: str) -> Path:
        return self._database.with_name(f"{self._database.name}-writer-{writer}")

    def _lock_of(self, writer: str) -> FileLock:
        # Opened and closed by different threads, hence not bound to one.
        return FileLock(self._path_of(writer), mode=0o600, thread_local=False)

    def _drop(self, lock: FileLock) -> None:
        lock.release()
        with suppress(OSError):  # another process may have removed it, or be looking at it
            Path(lock.lock_file).unlink()


class AdvisoryPresence(Presence):
    """For PostgreSQL: an advisory lock held by a connection of its own.

    A connection pooler in front of the server must keep sessions together.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._connection: Connection | None = None
        self._guard = Lock()
        self.renew()

    def renew(self) -> None:
        with self._guard:
            if self._connection is not None:
                try:
                    self._connection.execute(select(1))
                    return
                except DBAPIError:
                    self._connection.close()
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(select(func.pg_advisory_lock(_key_of(self.writer))))
            self._connection = connection

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


def open_presence(engine: Engine, path: Path | None) -> Presence:
    """The presence fit for `engine`; `path` is the SQLite file, None for PostgreSQL."""
    return AdvisoryPresence(engine) if path is None else FilePresence(path)


def _key_of(writer: str) -> int:
    """A signed 64-bit number, as PostgreSQL names advisory locks."""
    return int(writer[:16], 16) - 2**63
