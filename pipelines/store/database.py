"""One database: opened by its URL, its transactions, and its errors."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any
from urllib.parse import quote

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session, sessionmaker

from pipelines.errors import StorageError, StorageReadOnlyError, VeriscopeError, failure

# What went wrong with a database, as an error that says what to do about it.

_CAUSES: dict[int | str, str] = {
    # Primary result codes of SQLite.
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_IOERR: "disk",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "not_ours",
    # SQLSTATE of PostgreSQL: disk_full, read_only_sql_transaction, insufficient_privilege,
    # lock_not_available, deadlock_detected, too_many_connections, data_corrupted, index_corrupted.
    "53100": "full",
    "25006": "read_only",
    "42501": "read_only",
    "55P03": "busy",
    "40P01": "busy",
    "53300": "busy",
    "XX001": "damaged",
    "XX002": "damaged",
}
_WHOLE_CAUSES: dict[int, str] = {sqlite3.SQLITE_IOERR_SHMSIZE: "full"}
"""Codes of SQLite that say more than their primary one: its shared index finds no room."""

_TOO_LARGE = "22003"
"""SQLSTATE of PostgreSQL: numeric_value_out_of_range."""

_SERVER_IS_AWAY = ("08", "28", "3D", "57P")
"""How the SQLSTATE of a server begins that cannot be reached, or accepts nobody."""

_FILE_CAUSES: dict[int | None, str] = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.EIO: "disk",
}


def storage_error(error: Exception) -> VeriscopeError:
    """Return the StorageError for one of the database driver or the file system, without its
    own words.

    Those may hold the address of the database, and with it a password.
    """
    if isinstance(error, PoolTimeoutError | TimeoutError):
        return failure("storage.busy")
    if isinstance(error, OSError):
        return failure(f"storage.{_FILE_CAUSES.get(error.errno, 'unusable')}")
    cause = getattr(error, "orig", None)
    if isinstance(cause, sqlite3.Error):
        # The lowest byte of a SQLite code is the primary one; the others detail it.
        code = _code(cause)
        found = _WHOLE_CAUSES.get(code) or _CAUSES.get(code & 0xFF, "unusable")
        return failure(f"storage.{found}")
    state = getattr(cause, "sqlstate", None)
    if state == _TOO_LARGE:
        return failure("value.number_too_large")
    if state is None or state.startswith(_SERVER_IS_AWAY):
        # A connection that was lost, or never made, has no state of its own.
        return failure("storage.unreachable")
    return failure(f"storage.{_CAUSES.get(state, 'unusable')}")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0)


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn errors of driver and files into StorageErrors, except broken constraints."""
    try:
        yield
    except IntegrityError:
        raise
    except OverflowError as error:
        # SQLite's driver takes no number of more than 64 bits.
        raise failure("value.number_too_large") from error
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        raise storage_error(error) from error


# Where the database is, and connections to it: SQLite to read and write, or only to read.

DEFAULT_URL = "sqlite:///.veriscope/veriscope.db"
"""A file in a folder of its own, under the current folder."""

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process to finish writing the same SQLite file."""

WRITING = "veriscope_writing"
"""Execution option of a connection whose transaction will write."""

_VARIABLE = "VERISCOPE_DATABASE_URL"

POOL = "VERISCOPE_DATABASE_POOL"
"""The environment variable with the number of connections that a process keeps to a server."""

_POOL_SIZE = 10
_MOST_CONNECTIONS = 500
_NAME = "veriscope.db"

# Seconds and milliseconds. Without them a server that vanished is noticed after many minutes.
_PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def database_url(data: Path, named: str | None = None) -> URL:
    """Return the database of an installation: `named`, else VERISCOPE_DATABASE_URL, else a file
    in `data`.

    Printed, the URL shows no password. Raises InvalidInputError for one that cannot be read.
    """
    if given := named or os.environ.get(_VARIABLE):
        return parse_url(given)
    return file_url(data)


def file_url(data: Path) -> URL:
    """Return the database in the folder `data`."""
    return URL.create("sqlite", database=str(data / _NAME))


def parse_url(url: str | URL) -> URL:
    """Return a supported `url` in parts; InvalidInputError does not repeat it."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The parser's own words may repeat a part of the address.
        raise failure("storage.no_address") from None
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql", "postgres"):
        raise failure("storage.other_kind", kind=backend)
    name = parsed.database or ""
    # A database in memory belongs to one connection, and threads use several.
    if backend == "sqlite" and (name in ("", ":memory:") or name.startswith("file:")):
        raise failure("storage.no_file")
    return parsed


def sqlite_path(url: URL) -> Path | None:
    """Return the file that a SQLite URL names, None for other databases."""
    if url.get_backend_name() != "sqlite" or url.database is None:
        return None
    return Path(url.database).expanduser().absolute()


def open_engine(url: str | URL) -> Engine:
    """Return an engine for `url`, ready to use from any thread; creates a missing SQLite file.

    Raises InvalidInputError for a URL that names no supported database, StorageError if the file
    cannot be created. Neither repeats the URL, which may hold a password.
    """
    parsed = parse_url(url)
    path = sqlite_path(parsed)
    return _open_postgresql(parsed) if path is None else _open_sqlite(path)


def open_to_read(path: Path) -> Engine:
    """Return an engine for a SQLite file that cannot be written, or whose folder cannot.

    What a killed process had committed but not yet moved into the file is read as well.
    """
    log = Path(f"{path}-wal")
    copied = None
    if file_size(log) and not _opens(path):
        # The log can only be read by those who may write beside it.
        copied = TemporaryDirectory(prefix="veriscope-")
        target = Path(copied.name) / path.name
        shutil.copyfile(path, target)
        shutil.copyfile(log, f"{target}-wal")
        path = target

    def connect() -> sqlite3.Connection:
        if copied is not None:
            return sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
        # Without a log nobody writes, so that nothing has to be locked.
        return _connect(path, "mode=ro" if file_size(log) else "immutable=1")

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    event.listen(engine, "connect", _prepare_reading)
    event.listen(engine, "begin", _begin_sqlite)
    if copied is not None:
        event.listen(engine, "engine_disposed", lambda _: copied.cleanup())
    return engine


def file_size(path: Path) -> int:
    """Return the bytes in a file, 0 where there is none."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _opens(path: Path) -> bool:
    try:
        connection = _connect(path, "mode=ro")
    except sqlite3.Error:
        return False
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return True


def _connect(path: Path, how: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path))}?{how}"
    return sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)


def _open_sqlite(path: Path) -> Engine:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its companion files the permissions of this one.
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise storage_error(error) from error
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
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


def _prepare_reading(connection: Any, record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only = ON")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then wants to write fails at once when another process
    # wrote in between; one that asks for the write lock at its beginning waits for its turn.
    writing = connection.get_execution_options().get(WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def pool_size(environment: Mapping[str, str]) -> int:
    """Return how many connections to a server are kept. Raises InvalidInputError."""
    said = environment.get(POOL, "").strip() or f"{_POOL_SIZE}"
    if not said.isdecimal() or not 1 <= int(said) <= _MOST_CONNECTIONS:
        raise failure("environment.pool", variable=POOL, said=said[:20], most=_MOST_CONNECTIONS)
    return int(said)


def _open_postgresql(url: URL) -> Engine:
    patience = {name: value for name, value in _PATIENCE.items() if name not in url.query}
    size = pool_size(os.environ)
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            # Beside these, as many again while many ask at once.
            pool_size=size,
            max_overflow=size,
            hide_parameters=True,
            connect_args=patience,
        )
    except ModuleNotFoundError as error:
        raise failure("storage.no_driver") from error


# Who is writing to a database: locks that are gone the moment their process is.
#
# Every store object has a random name and, while it is open, holds a lock under that name which the
# operating system or the database drops when the process ends, however it ends. So the question "is
# the writer of this run alive?" has an exact answer, without clocks or heartbeats.


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


Check = Callable[[Engine], None]
"""What is done to an engine before it is used; raises if it must not be used."""


class Database:
    """Transactions on the database at `url`, from any thread.

    `upgrade` brings the schema up to date (see `pipelines.store.migrations`), `check` raises where
    it is not. A SQLite file that cannot be written, or whose disk is full, is opened to read alone,
    and every attempt to write tries to open it anew. Raises InvalidInputError for an unusable URL
    and StorageError when the database cannot be used, here and in every transaction.
    """

    def __init__(self, url: str | URL, upgrade: Check, check: Check) -> None:
        self._url = parse_url(url)
        self._path = sqlite_path(self._url)
        self._upgrade = upgrade
        self._refusal: VeriscopeError | None = None
        # SQLite has one writer at a time: a queue inside the process is fairer and quicker than
        # its polling, which remains for other processes.
        self._one_writer = Lock() if self._path is not None else None
        self._reopening = Lock()
        try:
            self._engine, self.presence = self._open_to_write()
        except StorageError as error:
            if self._path is None or not file_size(self._path):
                raise
            self._engine, self.presence = self._open_to_read(self._path, check, error)

    @property
    def refusal(self) -> VeriscopeError | None:
        """Why nothing can be written, where that is known."""
        return self._refusal

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Give a transaction that only reads."""
        with storage_errors(), sessionmaker(self._engine).begin() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Give a transaction that commits when the block ends, or undoes all on an error."""
        self.require_writing()
        if self._one_writer is None:
            with self._write() as session:
                yield session
            return
        with self._one_writer, self._write() as session:
            yield session

    @contextmanager
    def _write(self) -> Iterator[Session]:
        engine = self._engine.execution_options(**{WRITING: True})
        with storage_errors(), sessionmaker(engine).begin() as session:
            yield session

    def require_writing(self) -> None:
        """Raise the StorageError that says why nothing can be written, if that is still so."""
        with self._reopening:
            if self._refusal is None:
                return
            try:
                engine, presence = self._open_to_write()
            except VeriscopeError:
                raise self._refusal from None
            # Those who still read finish on their own connections.
            self._engine, self.presence, self._refusal = engine, presence, None

    def renew_presence(self) -> None:
        """Make sure that other processes see this one as alive."""
        with storage_errors():
            self.presence.renew()

    def close(self) -> None:
        """Close every connection. Runs still open count as abandoned from here on."""
        self.presence.close()
        self._engine.dispose()

    def _open_to_write(self) -> tuple[Engine, Presence]:
        engine = open_engine(self._url)
        try:
            with storage_errors():
                self._upgrade(engine)
                if self._path is None:
                    return engine, AdvisoryPresence(engine)
                return engine, FilePresence(self._path)
        except BaseException:
            engine.dispose()
            raise

    def _open_to_read(
        self, path: Path, check: Check, error: StorageError
    ) -> tuple[Engine, Presence]:
        """Return the file as it is; raises `error`, which forbids to write it, if that fails."""
        engine = None
        try:
            engine = open_to_read(path)
            with storage_errors():
                check(engine)
        except (StorageError, OSError):
            if engine is not None:
                engine.dispose()
            raise error from None
        # What a folder without the right to write lacks shows as a file that cannot be opened.
        locked = not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
        kind = isinstance(error, StorageReadOnlyError)
        self._refusal = failure("storage.read_only") if locked and not kind else error
        return engine, ReaderPresence(path)
