"""One database: opened by its URL, its transactions, its errors, and who is writing to it.

Every store object has a random name and, while it is open, holds a lock under that name which the
operating system or the database drops the moment the process is gone. So the question "is the
writer of this run alive?" has an exact answer, without clocks or heartbeats.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from pipelines.errors import VeriscopeError, failure

DEFAULT_URL = "sqlite:///.veriscope/veriscope.db"
"""A file in a folder of its own, under the current folder."""

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process to finish writing the same SQLite file."""

WRITING = "veriscope_writing"
"""Execution option of a connection whose transaction will write."""


_CAUSES: dict[int | str, str] = {
    # Primary result codes of SQLite.
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    # SQLSTATE of PostgreSQL: disk_full, read_only_sql_transaction, insufficient_privilege,
    # lock_not_available, deadlock_detected, too_many_connections.
    "53100": "full",
    "25006": "read_only",
    "42501": "read_only",
    "55P03": "busy",
    "40P01": "busy",
    "53300": "busy",
}
_FILE_CAUSES: dict[int | None, str] = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
}


def storage_error(error: Exception) -> VeriscopeError:
    """The StorageError for one of the database driver or the file system, without its own words.

    Those may hold the address of the database, and with it a password.
    """
    if isinstance(error, PoolTimeoutError | TimeoutError):
        kind = "busy"
    elif isinstance(error, OSError):
        kind = _FILE_CAUSES.get(error.errno, "unusable")
    else:
        cause = getattr(error, "orig", None)
        # The lowest byte of a SQLite code is the primary one; the others detail it.
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF or getattr(cause, "sqlstate", None)
        kind = _CAUSES.get(code or "", "unusable")
    return failure(f"storage.{kind}")


class Database:
    """Transactions on the database at `url`, from any thread.

    `upgrade` brings the schema up to date (see `pipelines.store.migrations`). Raises
    InvalidInputError for an unusable URL and StorageError when the database cannot be reached, here
    and in every transaction.
    """

    def __init__(self, url: str, upgrade: Callable[[Engine], None]) -> None:
        self._engine = open_engine(url)
        self._reading = sessionmaker(self._engine)
        self._writing = sessionmaker(self._engine.execution_options(**{WRITING: True}))
        path = sqlite_path(self._engine)
        # SQLite has one writer at a time: a queue inside the process is fairer and quicker than
        # its polling, which remains for other processes.
        self._write_lock = nullcontext() if path is None else Lock()
        try:
            with _storage_errors():
                upgrade(self._engine)
                self.presence = (
                    AdvisoryPresence(self._engine) if path is None else FilePresence(path)
                )
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads."""
        with _storage_errors(), self._reading.begin() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that commits at the end of the block, or undoes all of it on an error."""
        with self._write_lock, _storage_errors(), self._writing.begin() as session:
            yield session

    def renew_presence(self) -> None:
        """Make sure that other processes see this one as alive."""
        with _storage_errors():
            self.presence.renew()

    def close(self) -> None:
        """Close every connection. Runs still open count as abandoned from here on."""
        self.presence.close()
        self._engine.dispose()


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        raise storage_error(error) from error


def open_engine(url: str) -> Engine:
    """An engine for `url`, ready to use from any thread; creates a missing SQLite file.

    Raises InvalidInputError for a URL that names no supported database, StorageError if the file
    cannot be created. Neither repeats the URL, which may hold a password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The parser's own words may repeat a part of the address.
        raise failure("storage.no_address") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _open_sqlite(parsed)
    if backend in ("postgresql", "postgres"):
        return _open_postgresql(parsed)
    raise failure("storage.other_kind", kind=backend)


def sqlite_path(engine: Engine) -> Path | None:
    """The file behind a SQLite engine, None for other databases."""
    if engine.dialect.name != "sqlite" or engine.url.database is None:
        return None
    return Path(engine.url.database)


def _open_sqlite(url: URL) -> Engine:
    name = url.database or ""
    # A database in memory belongs to one connection, and threads use several.
    if name in ("", ":memory:") or name.startswith("file:"):
        raise failure("storage.no_file")
    path = Path(name).expanduser().absolute()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its companion files the permissions of this one.
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise storage_error(error) from error
    engine = create_engine(
        url.set(drivername="sqlite", database=str(path)),
        connect_args={"timeout": BUSY_SECONDS},
        hide_parameters=True,
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, record: object) -> None:
    # The driver would begin transactions late and never for schema changes; _begin_sqlite does.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then wants to write fails at once when another process
    # wrote in between; one that asks for the write lock at its beginning waits for its turn.
    writing = connection.get_execution_options().get(WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _open_postgresql(url: URL) -> Engine:
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, hide_parameters=True
        )
    except ModuleNotFoundError as error:
        raise failure("storage.no_driver") from error


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
        """Nothing to do: a file lock is not lost while the process lives."""

    def is_alive(self, writer: str, session: Session | None = None) -> bool:
        """Whether the store object of that name is open, in whatever process."""
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
        lock.release()
        with suppress(OSError):  # another process may have removed it, or be looking at it
            Path(lock.lock_file).unlink()


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
        """Take the lock, again if it was lost."""
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


def _key_of(writer: str) -> int:
    """A signed 64-bit number, as PostgreSQL names advisory locks."""
    return int(writer[:16], 16) - 2**63
