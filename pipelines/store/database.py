"""One database: opened by its URL, its transactions, and its errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from sqlalchemy import Engine
from sqlalchemy.engine import URL
from sqlalchemy.orm import Session, sessionmaker

from pipelines.errors import StorageError, StorageReadOnlyError, VeriscopeError, failure
from pipelines.store.causes import storage_errors
from pipelines.store.opening import (
    WRITING,
    file_size,
    open_engine,
    open_to_read,
    parse_url,
    sqlite_path,
)
from pipelines.store.presence import AdvisoryPresence, FilePresence, Presence, ReaderPresence

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
        """Give a transaction that commits at the end of the block, or undoes all of it on
        an error.
        """
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
        """Return the file as it is; raises `error`, which forbids to write it, where that
        fails too.
        """
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
