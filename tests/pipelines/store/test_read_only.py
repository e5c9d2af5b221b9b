"""Databases that can be read and not written: what still works, and what is said."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.errors import StorageDamagedError, StorageError, StorageReadOnlyError
from pipelines.store import RunStore, file_url
from tests.pipelines.store import examples
from tests.pipelines.store.read_only import read_only


@pytest.fixture
def written(open_folder: Path) -> Path:
    """A folder with a finished run, and one whose process is gone."""
    with closing(RunStore(file_url(open_folder))) as store:
        store.create("whole", "me", examples.started("whole"))
        store.append("whole", examples.complete("whole")[1:])
        store.create("cut", "me", examples.started("cut"))
        store.append("cut", examples.steps("cut"))
    return open_folder


@pytest.fixture
def reading(written: Path) -> Iterator[RunStore]:
    with read_only(written), closing(RunStore(file_url(written))) as store:
        yield store


def test_runs_are_listed_shown_and_exported(written: Path, reading: RunStore):
    statuses = {run.id: (run.status, run.reason) for run in reading.list("me")}
    assert statuses == {"whole": ("finished", None), "cut": ("cancelled", "interrupted")}
    assert reading.load("whole", "me").events == tuple(examples.complete("whole"))
    assert len(list(reading.export("whole", "me"))) == 1 + len(examples.complete("whole"))
    assert [one.id for one in reading.finished("me")] == ["whole"]
    assert [path.name for path in written.iterdir()] == ["veriscope.db"]


def test_a_run_that_was_cut_off_is_read_with_an_end(reading: RunStore):
    *kept, end = reading.load("cut", "me").events
    assert kept == [examples.started("cut"), *examples.steps("cut")]
    assert (end.kind, end.seq) == ("run_cancelled", len(kept))


def test_nothing_can_be_stored_and_that_is_said(reading: RunStore):
    assert isinstance(reading.refusal, StorageReadOnlyError)
    for write in (
        lambda: reading.create("new", "me", examples.started("new")),
        lambda: reading.append("cut", [examples.finished("cut", 10)]),
        lambda: reading.delete("whole", "me"),
        reading.recover,
    ):
        with pytest.raises(StorageReadOnlyError, match=r"none can be stored.*Choose a folder"):
            write()


def test_a_store_writes_again_as_soon_as_it_may(written: Path):
    with read_only(written):
        store = RunStore(file_url(written))
    with closing(store):
        store.create("new", "me", examples.started("new"))
        assert store.refusal is None
        assert store.recover() == 1
        assert {run.id: run.status for run in store.list("me")} == {
            "whole": "finished",
            "cut": "cancelled",
            "new": "running",
        }


def test_a_run_that_another_process_writes_is_seen_to_go_on(written: Path):
    with closing(RunStore(file_url(written))) as writing:
        writing.create("live", "me", examples.started("live"))
        with read_only(written), closing(RunStore(file_url(written))) as reading:
            statuses = {run.id: run.status for run in reading.list("me")}
            assert len(reading.load("live", "me").events) == 1
    assert statuses == {"whole": "finished", "cut": "cancelled", "live": "running"}


@pytest.mark.parametrize("suffixes", [("", "-wal"), ("", "-wal", "-shm")])
def test_what_a_killed_process_left_in_the_log_is_read(
    written: Path, open_folder: Path, suffixes: tuple[str, ...]
):
    copy = open_folder / "copy"
    copy.mkdir()
    with closing(RunStore(file_url(written))) as store:
        store.create("late", "me", examples.started("late"))
        # As a process leaves them that is killed now.
        for suffix in suffixes:
            shutil.copyfile(written / f"veriscope.db{suffix}", copy / f"veriscope.db{suffix}")
    with read_only(copy), closing(RunStore(file_url(copy))) as reading:
        assert {run.id for run in reading.list("me")} == {"whole", "cut", "late"}


def test_a_file_that_is_no_database_is_refused_with_what_to_do(open_folder: Path):
    (open_folder / "veriscope.db").write_text("Dear diary, " * 1000)
    with pytest.raises(StorageDamagedError, match=r"is not a database.*move this file away"):
        RunStore(file_url(open_folder))


def test_a_damaged_database_says_what_can_be_done(written: Path):
    file = written / "veriscope.db"
    content = bytearray(file.read_bytes())
    content[4096 : len(content)] = bytes(len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(StorageDamagedError, match=r"damaged.*\.recover"):
        RunStore(file_url(written)).list("me")


def test_a_folder_without_a_database_cannot_get_one(open_folder: Path):
    with read_only(open_folder), pytest.raises(StorageReadOnlyError):
        RunStore(file_url(open_folder))


def test_an_older_schema_is_not_read_halfway(open_folder: Path):
    (open_folder / "veriscope.db").touch()
    with read_only(open_folder), pytest.raises(StorageError):
        RunStore(file_url(open_folder))
