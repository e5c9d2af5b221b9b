"""Brings a database to the newest schema.

Revisions live in `versions/`, one file each, numbered. A new one is begun with
`python -m pipelines.store.migrations "what changed"` and then read and corrected by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, text

from pipelines.errors import failure
from pipelines.store.database import WRITING

FOLDER = Path(__file__).parent

_BASELINE = "0009"
"""The revision of the first release; see `versions/`."""

_UPGRADE_LOCK_KEY = 0x76657269_73636F70  # any number, as long as it never changes

# Alembic hands its context to env.py through a module, so one upgrade at a time in a process.
_alembic_turn = Lock()


def upgrade(engine: Engine, folder: Path = FOLDER) -> None:
    """Create the schema or bring it up to date. All of it happens, or none; processes take turns.

    Raises StorageError if the database was written by a newer release, or before the first one.
    """
    with _alembic_turn, migrating(engine) as connection:
        _refuse_older(_revision(connection))
        try:
            command.upgrade(alembic_config(connection, folder), "head")
        except CommandError as error:
            raise failure("storage.newer_release") from error


def check(engine: Engine) -> None:
    """Raise StorageError unless the schema is the newest; for a database that is only read."""
    with engine.connect() as connection:
        found = _revision(connection)
        scripts = ScriptDirectory.from_config(alembic_config(connection))
    _refuse_older(found)
    if found != scripts.get_current_head():
        raise failure("storage.other_release")


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_older(found: str | None) -> None:
    """Raise StorageError for a database of a revision before the first release."""
    if found is not None and found < _BASELINE:
        raise failure("storage.before_release")


def alembic_config(connection: Connection, folder: Path = FOLDER) -> Config:
    """Return what an alembic.ini would say, with `connection` for env.py to work on."""
    config = Config()
    for option, value in {
        "script_location": str(folder),
        "file_template": "%(rev)s_%(slug)s",
        "path_separator": "os",
    }.items():
        config.set_main_option(option, value.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def migrating(engine: Engine) -> Iterator[Connection]:
    """Give a connection inside a transaction in which tables may be rebuilt.

    SQLite changes a table by copying and dropping it; with foreign keys enforced, dropping `runs`
    would delete every event. They can be turned off only outside of a transaction.
    """
    with engine.connect().execution_options(**{WRITING: True}) as connection:
        if engine.dialect.name != "sqlite":
            with connection.begin():
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK_KEY}
                )
                yield connection
            return
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                yield connection
        finally:
            driver.execute("PRAGMA foreign_keys = ON")
