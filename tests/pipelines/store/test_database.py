"""Opening a database: addresses, permissions, failures, and what ends up in the file."""

from __future__ import annotations

import errno
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from pipelines.errors import InvalidInputError
from pipelines.run.events import ModelSpec
from pipelines.store import DEFAULT_URL, RunStore, StorageError
from pipelines.store import database as storage
from pipelines.store.database import (
    POOL,
    Database,
    open_engine,
    pool_size,
    sqlite_path,
    storage_error,
)
from pipelines.store.migrations import check, upgrade
from tests.pipelines.store import examples
from tests.schema import migrated


@pytest.fixture(autouse=True)
def one_by_one() -> Iterator[None]:
    """Stores go through the migrations, as those of the product."""
    with migrated():
        yield


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no address",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///file:runs?mode=memory&uri=true",
        "mysql://me:hunter2@host/runs",
        "postgresql+psycopg://me:hunter2@host:port/runs",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(url: str):
    with pytest.raises(InvalidInputError, match=r"sqlite:///folder/file\.db") as refused:
        RunStore(url)
    assert "hunter2" not in str(refused.value)


def test_the_file_is_private_and_so_is_the_folder_made_for_it(tmp_path: Path):
    path = tmp_path / "new" / "folder" / "runs.db"
    with closing(RunStore(f"sqlite:///{path}")) as store:
        store.create("r1", "me", examples.started("r1"))
        assert path.parent.stat().st_mode & 0o777 == 0o700
        beside = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        assert {"runs.db", "runs.db-wal", "runs.db-shm"} <= beside.keys()
        assert set(beside.values()) == {0o600}
    assert [file.name for file in path.parent.iterdir()] == ["runs.db"]


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path: Path):
    tmp_path.chmod(0o755)
    RunStore(f"sqlite:///{tmp_path}/runs.db").close()
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_path_where_no_file_can_be_says_so(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Choose a folder") as failed:
        RunStore(f"sqlite:///{tmp_path}/file/runs.db")
    assert str(tmp_path) not in str(failed.value)


def test_a_file_that_is_no_database_says_so(tmp_path: Path):
    (tmp_path / "runs.db").write_text("Dear diary, " * 1000)
    with pytest.raises(StorageError):
        RunStore(f"sqlite:///{tmp_path}/runs.db")
    assert (tmp_path / "runs.db").read_text().startswith("Dear diary")


def test_a_server_that_is_not_there_says_so_without_its_address(tmp_path: Path):
    with pytest.raises(StorageError) as failed:
        RunStore(f"postgresql+psycopg://me:hunter2@/runs?host={tmp_path}")
    assert "hunter2" not in str(failed.value)
    assert failed.value.info().retryable


@pytest.mark.parametrize(
    "scheme", ["postgresql+psycopg", "postgresql", "postgres", "postgresql+psycopg2"]
)
def test_every_spelling_of_postgresql_gets_the_same_driver(scheme: str):
    engine = open_engine(f"{scheme}://me@host/runs")
    assert engine.url.drivername == "postgresql+psycopg"
    assert sqlite_path(engine.url) is None


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInputError, match=r"pip install"):
        open_engine("postgresql://me@host/runs")


def test_the_default_is_below_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert sqlite_path(open_engine(DEFAULT_URL).url) == tmp_path / ".veriscope" / "veriscope.db"
    assert (tmp_path / ".veriscope").stat().st_mode & 0o777 == 0o700


def test_sqlite_is_set_up_for_several_writers(tmp_path: Path):
    database = Database(f"sqlite:///{tmp_path}/runs.db", upgrade, check)
    with closing(database), database.read() as session:
        settings = {
            name: session.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert settings == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 30_000}


def test_an_error_inside_a_transaction_undoes_it(tmp_path: Path):
    database = Database(f"sqlite:///{tmp_path}/runs.db", upgrade, check)
    statement = text("INSERT INTO models VALUES ('me', 'm', '{}', '2024-01-01 00:00:00')")
    with closing(database):

        def write_then_stumble() -> None:
            with database.write() as session:
                session.execute(statement)
                raise RuntimeError("stumbled")

        with pytest.raises(RuntimeError, match="stumbled"):
            write_then_stumble()
        with database.read() as session:
            assert session.execute(text("SELECT count(*) FROM models")).scalar_one() == 0


def test_no_key_ever_reaches_the_file(tmp_path: Path):
    store = RunStore(f"sqlite:///{tmp_path}/runs.db")
    key = "sk-hunter2hunter2hunter2hunter2"
    pasted = [
        ModelSpec(kind="openai", name="m", base_url=f"https://user:{key}@host/v1"),
        ModelSpec(kind="openai", name="m", base_url=f"https://host/v1?api_key={key}"),
        ModelSpec(kind="openai", name=key, base_url="https://host/v1"),
        ModelSpec(kind="openai", name="m", model=key, base_url="https://host/v1"),
    ]
    started = examples.started("r1")
    with closing(store):
        for model in pasted:
            spec = started.spec.model_copy(update={"models": {"main": model}})
            with pytest.raises(InvalidInputError):
                store.models.save("me", model)
            with pytest.raises(InvalidInputError):
                store.create("r1", "me", started.model_copy(update={"spec": spec}))
            header = started.model_copy(update={"spec": spec}).model_dump(mode="json")
            with pytest.raises(InvalidInputError):
                store.import_run(examples.as_lines(header), "me")
        store.create("r1", "me", started)
        written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"r1" in written
    assert key.encode() not in written


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(f"sqlite:///{tmp_path}/runs.db", upgrade, check)) as database:
        yield database


INSERT = "INSERT INTO models VALUES ('me', 'm', :spec, '2024-01-01 00:00:00')"


def test_a_full_disk_says_so(opened: Database):
    def fill() -> None:
        with opened.write() as session:
            session.execute(text("PRAGMA max_page_count = 1"))
            session.execute(text(INSERT), {"spec": "x" * 1_000_000})

    with pytest.raises(StorageError, match=r"is full.*Free some space") as failed:
        fill()
    assert (failed.value.code, failed.value.retryable) == ("storage_full", False)


def test_a_database_that_may_not_be_written_says_so(opened: Database):
    def write() -> None:
        with opened.read() as session:
            session.execute(text("PRAGMA query_only = ON"))
            session.execute(text(INSERT), {"spec": "{}"})

    with pytest.raises(StorageError, match="cannot be written") as failed:
        write()
    assert (failed.value.code, failed.value.retryable) == ("storage_read_only", False)


def test_a_database_that_another_process_locks_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "runs.db"
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.0)
    database = Database(f"sqlite:///{path}", upgrade, check)

    def write() -> None:
        with database.write() as session:
            session.execute(text("SELECT 1"))

    with closing(database), closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"another process.*Try again") as failed:
            write()
        other.execute("ROLLBACK")
        write()
    assert (failed.value.code, failed.value.retryable) == ("storage_busy", True)


class ServerError(Exception):
    """What the driver of PostgreSQL raises."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("password=hunter2")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OperationalError("INSERT", {}, ServerError("53100")), "storage_full"),
        (OperationalError("INSERT", {}, ServerError("25006")), "storage_read_only"),
        (OperationalError("INSERT", {}, ServerError("42501")), "storage_read_only"),
        (OperationalError("INSERT", {}, ServerError("55P03")), "storage_busy"),
        (OperationalError("INSERT", {}, ServerError("08006")), "storage"),
        (OperationalError("SELECT", {}, ServerError(None)), "storage"),
        (PoolTimeoutError("no connection"), "storage_busy"),
        (OSError(errno.ENOSPC, "No space left", "/secret"), "storage_full"),
        (OSError(errno.EROFS, "Read-only file system", "/secret"), "storage_read_only"),
        (PermissionError(errno.EACCES, "Permission denied", "/secret"), "storage_read_only"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/secret"), "storage"),
    ],
)
def test_the_cause_is_told_without_what_the_driver_says(error: Exception, code: str):
    told = storage_error(error)
    assert told.code == code
    assert told.remedy
    assert not any(secret in str(told) for secret in ("hunter2", "/secret"))


@pytest.mark.parametrize(("said", "size"), [(None, 10), ("", 10), (" 25 ", 25), ("500", 500)])
def test_how_many_connections_are_kept_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, said: str | None, size: int
):
    pytest.importorskip("psycopg")
    if said is None:
        monkeypatch.delenv(POOL, raising=False)
    else:
        monkeypatch.setenv(POOL, said)
    # It connects to nobody before it is used.
    engine = open_engine("postgresql://someone@127.0.0.1:1/nothing")
    assert isinstance(engine.pool, QueuePool)
    assert engine.pool.size() == size


@pytest.mark.parametrize("said", ["0", "-1", "501", "many", "1.5"])
def test_a_number_of_connections_that_cannot_be_is_refused(said: str):
    with pytest.raises(InvalidInputError, match=POOL):
        pool_size({POOL: said})
