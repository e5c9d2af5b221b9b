"""The process that reads files: what it cannot read within bounds, and being stopped."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.retrieval.library import Assembly, IndexSource
from pipelines.retrieval.preparing import PreparedDocument
from pipelines.retrieval.reading.parsed import RefusedError
from pipelines.retrieval.worker import PreparationStoppedError, PreparationWorker, WorkerFailedError


@pytest.fixture
def stopping() -> threading.Event:
    return threading.Event()


@pytest.fixture
def worker(stopping: threading.Event) -> Iterator[PreparationWorker]:
    worker = PreparationWorker(stopping.is_set)
    yield worker
    worker.close()


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "original"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_prepared_and_another_refused(worker: PreparationWorker, tmp_path: Path):
    path = file(tmp_path, "Whales swim in the sea.")
    found = worker.prepare(path, "whales.txt", tmp_path / "a", "id", "https://e.org/w")
    assert (found.kind, found.title, found.language) == ("text", "whales", "en")
    assert (found.pages, found.passages, found.characters) == (1, 1, 23)
    (passage,) = [PreparedDocument(tmp_path / "a").passages[0]]
    assert (passage.id, passage.url) == ("id#0", "https://e.org/w")
    with pytest.raises(RefusedError) as refused:
        worker.prepare(file(tmp_path, " "), "blank.txt", tmp_path / "b", "id")
    assert refused.value.reason == "empty"
    # The same process goes on.
    worker.prepare(file(tmp_path, "More."), "more.txt", tmp_path / "c", "id")


def test_what_takes_too_long_is_ended(worker: PreparationWorker, tmp_path: Path):
    path = tmp_path / "endless.txt"
    # A pipe that nobody writes to can be read for ever.
    os.mkfifo(path)
    with pytest.raises(RefusedError) as refused:
        worker.prepare(path, "endless.txt", tmp_path / "a", "id", seconds=0.5)
    assert (refused.value.reason, refused.value.facts) == ("slow", {"seconds": 0})
    assert worker.prepare(file(tmp_path, "More."), "more.txt", tmp_path / "b", "id").passages == 1


def test_a_process_that_ends_says_so(worker: PreparationWorker, tmp_path: Path):
    path = file(tmp_path, "Text.")
    worker.prepare(path, "a.txt", tmp_path / "a", "id")
    assert worker._process is not None
    process = worker._process
    process.kill()
    process.wait()
    # A new one takes its place.
    assert worker.prepare(path, "a.txt", tmp_path / "b", "id").passages == 1


def test_it_can_be_stopped(worker: PreparationWorker, stopping: threading.Event, tmp_path: Path):
    stopping.set()
    with pytest.raises(PreparationStoppedError):
        worker.prepare(file(tmp_path, "Text."), "a.txt", tmp_path / "a", "id")
    assert worker._process is None


def test_damaged_sources_are_not_assembled(worker: PreparationWorker, tmp_path: Path):
    source = IndexSource(id="a", digest="d", folder=tmp_path / "nothing")
    with pytest.raises(WorkerFailedError, match="No such file"):
        worker.assemble(
            Assembly(target=tmp_path / "index", sources=(source,)), lambda done, total: None
        )
