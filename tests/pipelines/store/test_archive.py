"""Several runs in one zip file, and what such a file may not do."""

from __future__ import annotations

import io
import zipfile

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.store import RunStore, archive
from pipelines.store.archive import export_archive, import_archive, is_archive
from tests.pipelines.store import examples


def store_run(store: RunStore, run: str, question: str, owner: str = "me") -> None:
    store.create(run, owner, examples.started(run, question))
    store.append(run, [*examples.steps(run), examples.finished(run, 10)])


def zipped(**files: bytes | str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(f"{name}.jsonl", content)
    return written.getvalue()


def test_runs_are_carried_together_and_are_the_same(store: RunStore):
    for run, question in (("a", "First?"), ("b", "第二？")):
        store_run(store, run, question)
    data = export_archive(store, ["b", "a", "b"], "me")
    assert is_archive(data)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.namelist() == ["veriscope-b.jsonl", "veriscope-a.jsonl"]
    assert export_archive(store, ["b", "a"], "me") == data
    brought = import_archive(store, data, "you")
    assert brought.refused == ()
    # The first one of the file was the newest, and is the newest again.
    assert [run.question for run in store.list("you")] == ["第二？", "First?"]
    for brought_run, run in zip(brought.runs, ("a", "b"), strict=True):
        again = "".join(store.export(brought_run, "you"))
        # Only the id of the run is new.
        before = "".join(store.export(run, "me")).replace(f'"run": "{run}"', '"run": ""')
        assert again.replace(f'"run": "{brought_run}"', '"run": ""') == before


def test_somebody_elses_run_is_not_exported(store: RunStore):
    store_run(store, "a", "?", owner="you")
    with pytest.raises(NotFoundError):
        export_archive(store, ["a"], "me")


def test_a_file_has_room_for_so_many(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "MOST_RUNS", 1)
    with pytest.raises(InvalidInputError, match="2 runs are too many"):
        export_archive(store, ["a", "b"], "me")
    with pytest.raises(InvalidInputError, match="more than 1 runs"):
        import_archive(store, zipped(a="", b=""), "me")


def test_one_that_is_wrong_does_not_keep_the_others_out(store: RunStore):
    store_run(store, "a", "?")
    good = "".join(store.export("a", "me"))
    data = zipped(good=good, broken=good.replace("run_started", "run_begun"), bytes=b"\xff\xfe\x00")
    brought = import_archive(store, data, "you")
    assert len(brought.runs) == 1
    said = {name: str(error) for name, error in brought.refused}
    assert set(said) == {"broken.jsonl", "bytes.jsonl"}
    assert "Line 2" in said["broken.jsonl"]
    assert "no text in UTF-8" in said["bytes.jsonl"]


def test_what_unpacks_to_too_much_is_not_unpacked(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 10_000)
    brought = import_archive(store, zipped(bomb=b" " * 1_000_000), "me")
    ((name, error),) = brought.refused
    assert name == "bomb.jsonl"
    assert "too large when it is unpacked" in str(error)
    assert brought.runs == ()


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"PK\x05\x06 nothing", b"", b"text"])
def test_what_is_no_zip_file_says_so(store: RunStore, data: bytes):
    with pytest.raises(InvalidInputError, match="zip file cannot be used"):
        import_archive(store, data, "me")


def test_a_zip_file_without_runs_says_so(store: RunStore):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        file.writestr("readme.txt", "hello")
    with pytest.raises(InvalidInputError, match=r"holds no \.jsonl file"):
        import_archive(store, written.getvalue(), "me")


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_damaged_file_inside_says_so(store: RunStore, method: int):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as file:
        file.writestr("a.jsonl", "the content")
        entry = file.infolist()[0]
    data = bytearray(written.getvalue())
    # Behind the header of 30 bytes and the name, and what LZMA says of itself.
    begins = entry.header_offset + 30 + len(entry.filename) + 9
    for at in range(begins, begins + entry.compress_size - 9):
        data[at] ^= 0xFF
    ((_, error),) = import_archive(store, bytes(data), "me").refused
    assert "it is damaged" in str(error)
