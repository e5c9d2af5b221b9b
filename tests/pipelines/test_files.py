"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pipelines.aio import write_bytes, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path):
    write_whole(tmp_path / "run.jsonl", "first\n")
    write_whole(tmp_path / "run.jsonl", "好\n")
    assert (tmp_path / "run.jsonl").read_text(encoding="utf-8") == "好\n"
    assert names(tmp_path) == ["run.jsonl"]


def test_a_file_keeps_its_permissions_and_a_secret_has_its_own(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    path.touch()
    path.chmod(0o640)
    write_whole(path, "text")
    assert path.stat().st_mode & 0o777 == 0o640
    write_whole(tmp_path / "secret", "text", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_process_left_is_used_up(tmp_path: Path):
    (tmp_path / ".run.jsonl.partial").write_text("half of something much longer")
    write_whole(tmp_path / "run.jsonl", "whole")
    assert (tmp_path / "run.jsonl").read_text() == "whole"
    assert names(tmp_path) == ["run.jsonl"]


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_whole(tmp_path / "run.jsonl", "old")

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "run.jsonl", "new")
    assert (tmp_path / "run.jsonl").read_text() == "old"
    assert names(tmp_path) == ["run.jsonl"]


def test_a_link_stays_one(tmp_path: Path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced():
    write_whole(Path("/dev/null"), "text")
    write_bytes(Path("/dev/null"), b"data")
    assert Path("/dev/null").is_char_device()


def test_a_pipe_is_written_to_under_the_name_that_the_system_gives_it():
    out, into = os.pipe()
    write_whole(Path(f"/dev/fd/{into}"), "text")
    write_bytes(Path(f"/dev/fd/{into}"), b" and data")
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        assert pipe.read() == b"text and data"


def test_bytes_are_written_whole(tmp_path: Path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert names(tmp_path) == ["link", "target"]


@pytest.mark.parametrize("path", ["folder", "file/below", "missing/run.jsonl"])
def test_an_impossible_path_is_an_error(tmp_path: Path, path: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"directory"):
        write_whole(tmp_path / path, "text")
    assert names(tmp_path) == ["file", "folder"]


def test_several_that_write_at_once_leave_one_whole_text(tmp_path: Path):
    texts = [f"{number}" * 100_000 for number in range(6)]
    path = tmp_path / "run.jsonl"
    threads = [threading.Thread(target=write_whole, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert names(tmp_path) == ["run.jsonl"]


def test_what_must_not_change_is_written_once(tmp_path: Path):
    path = tmp_path / "secret"
    # As a release that did not write it whole may have left it.
    path.touch()
    texts = [f"{number}" for number in range(6)]
    threads = [
        threading.Thread(target=write_whole, args=(path, text), kwargs={"unless_there": True})
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = path.read_text()
    write_whole(path, "later", unless_there=True)
    assert path.read_text() == first
    assert first in texts
    assert names(tmp_path) == ["secret"]
