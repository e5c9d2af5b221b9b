"""What went wrong with a database, as an error that says what to do about it."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from pipelines.errors import VeriscopeError, failure

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
        return failure(f"storage.{_CAUSES.get(_code(cause) & 0xFF, 'unusable')}")
    state = getattr(cause, "sqlstate", None)
    if state is None or state.startswith(_SERVER_IS_AWAY):
        # A connection that was lost, or never made, has no state of its own.
        return failure("storage.unreachable")
    return failure(f"storage.{_CAUSES.get(state, 'unusable')}")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0)


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn errors of the driver and of files into StorageErrors inside the block, except broken
    constraints.
    """
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        raise storage_error(error) from error
