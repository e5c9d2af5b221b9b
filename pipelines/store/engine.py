"""Opens a database by its URL: SQLite in a private file, or PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from pipelines.errors import InvalidInputError, VeriscopeError

DEFAULT_URL = "sqlite:///.veriscope/veriscope.db"
"""A file in a folder of its own, under the current folder."""

BUSY_SECONDS = 30.0
"""How long a transaction waits for another process to finish writing the same SQLite file."""

WRITING = "veriscope_writing"
"""Execution option of a connection whose transaction will write."""


class StorageError(VeriscopeError):
    """The database cannot be reached, read or written."""

    code = "storage"
    retryable = True


def open_engine(url: str) -> Engine:
    """An engine for `url`, ready to use from any thread; creates a missing SQLite file.

    Raises InvalidInputError for a URL that names no supported database, StorageError if the file
    cannot be created. Neither repeats the URL, which may hold a password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The parser's own words may repeat a part of the address.
        raise _invalid_url("The address of the database cannot be read.") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _open_sqlite(parsed)
    if backend in ("postgresql", "postgres"):
        return _open_postgresql(parsed)
    raise _invalid_url(f"Runs cannot be stored in a database of the kind {backend!r}.")


def sqlite_path(engine: Engine) -> Path | None:
    """The file behind a SQLite engine, None for other databases."""
    if engine.dialect.name != "sqlite" or engine.url.database is None:
        return None
    return Path(engine.url.database)


def _open_sqlite(url: URL) -> Engine:
    name = url.database or ""
    # A database in memory belongs to one connection, and threads use several.
    if name in ("", ":memory:") or name.startswith("file:"):
        raise _invalid_url("Runs are stored in a file, and this address names none.")
    path = Path(name).expanduser().absolute()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its companion files the permissions of this one.
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The file that keeps the runs cannot be written ({error.strerror}).",
            remedy="Choose a folder that this account may write to.",
        ) from error
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
        raise InvalidInputError(
            "PostgreSQL needs a driver that is not installed.",
            remedy='Install it: pip install "psycopg[binary]>=3.3,<4".',
        ) from error


def _invalid_url(message: str) -> InvalidInputError:
    return InvalidInputError(
        message,
        remedy="Write it as sqlite:///folder/file.db or postgresql+psycopg://user@host/database.",
    )
