"""One open database: its transactions, its schema brought up to date, its presence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from pipelines.store.engine import WRITING, StorageError, open_engine, sqlite_path
from pipelines.store.migrations import upgrade_engine
from pipelines.store.presence import open_presence


class Database:
    """Transactions on the database at `url`, from any thread.

    Opening creates or upgrades the schema. Raises InvalidInputError for an unusable URL and
    StorageError when the database cannot be reached, here and in every transaction.
    """

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self._writing_engine = self._engine.execution_options(**{WRITING: True})
        path = sqlite_path(self._engine)
        # SQLite has one writer at a time: a queue inside the process is fairer and quicker than
        # its polling, which remains for other processes.
        self._turn = Lock() if path is not None else None
        try:
            with _storage_errors():
                upgrade_engine(self._engine)
                self.presence = open_presence(self._engine, path)
        except BaseException:
            self._engine.dispose()
            raise

    @property
    def dialect(self) -> str:
        """The kind of database: "sqlite" or "postgresql"."""
        return self._engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads."""
        with _transaction(self._engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that commits at the end of the block, or undoes all of it on an error."""
        if self._turn is None:
            with _transaction(self._writing_engine) as session:
                yield session
        else:
            with self._turn, _transaction(self._writing_engine) as session:
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
def _transaction(engine: Engine) -> Iterator[Session]:
    with _storage_errors(), Session(engine) as session, session.begin():
        yield session


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeoutError) as error:
        raise StorageError(
            "The database that keeps the runs did not do what it was asked.",
            remedy="Check that it can be reached, is not full and may be written, then try again.",
        ) from error
