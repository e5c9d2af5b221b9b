"""Where the database is, and connections to it: SQLite to read and write, or only to read."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from pipelines.errors import failure
from pipelines.store.causes import storage_error

DEFAULT_URL = "sqlite:///.veriscope/veriscope.db"
"""A file in a folder of its own, under the current folder."""

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process to finish writing the same SQLite file."""

WRITING = "veriscope_writing"
"""Execution option of a connection whose transaction will write."""

_VARIABLE = "VERISCOPE_DATABASE_URL"
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
    """Return `url` in parts, of a kind that is supported.

    Raises InvalidInputError, whose text does not repeat the URL.
    """
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


def _open_postgresql(url: URL) -> Engine:
    patience = {name: value for name, value in _PATIENCE.items() if name not in url.query}
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args=patience,
        )
    except ModuleNotFoundError as error:
        raise failure("storage.no_driver") from error
