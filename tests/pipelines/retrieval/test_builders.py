"""Several builders of one index, and readers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.retrieval import builds
from pipelines.retrieval.index import build_index, library_retriever, open_index
from pipelines.retrieval.library import current_index
from tests.pipelines.retrieval.examples import WordEmbedder, animals, build_beside_others


class HeldEmbedder(WordEmbedder):
    """Embeds only once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = Event()
        self.release = Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.reached.set()
        assert self.release.wait(60)
        return super().embed(texts)


class BrokenEmbedder(WordEmbedder):
    """Fails after it has begun."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise RuntimeError("out of memory")


def test_processes_that_build_at_once_take_turns(tmp_path: Path):
    context = get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=build_beside_others, args=(tmp_path, barrier, results))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    reports = sorted((results.get(timeout=120) for _ in workers), key=lambda report: report[1])
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    (passages, reused, embedded), second = reports
    assert (passages, reused, len(embedded)) == (3, 0, 2)
    assert second == (3, 3, [])
    assert len(list(tmp_path.glob("build-*/"))) == 1


def test_a_second_builder_waits_and_finds_the_work_done(tmp_path: Path):
    first, second = HeldEmbedder(), WordEmbedder()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(build_index, animals(), tmp_path, first)
        assert first.reached.wait(60)
        waiting = pool.submit(build_index, animals(), tmp_path, second)
        first.release.set()
        assert slow.result(60).reused == 0
        assert waiting.result(60).reused == 3
    assert second.embedded == []


async def test_readers_keep_the_index_they_have(tmp_path: Path):
    cat, whale, panda = animals()
    old = build_index([cat, whale, panda], tmp_path, WordEmbedder())
    held = HeldEmbedder()
    with ThreadPoolExecutor(1) as pool:
        changed = cat.model_copy(update={"text": "Cats purr."})
        building = pool.submit(build_index, [changed], tmp_path, held)
        assert held.reached.wait(60)
        # Half way through, the old index is still what everybody sees.
        assert len(open_index(tmp_path).passages) == 3
        held.release.set()
        building.result(60)
    assert len(open_index(tmp_path).passages) == 1
    [found] = await library_retriever(old, "hybrid").search("Where do whales live?", 1)
    assert found.id == "whale#0"


def test_a_build_that_fails_leaves_the_index_as_it_was(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="out of memory"):
        build_index(animals()[:1], tmp_path, BrokenEmbedder(), rebuild=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert len(open_index(tmp_path, WordEmbedder()).passages) == 3


def test_an_index_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build_index(animals(), tmp_path, None)
    read_manifest = builds.read_manifest
    builds_seen: list[Path] = []

    def replaced(build: Path) -> builds.Manifest:
        builds_seen.append(build)
        if len(builds_seen) == 1:
            build_index(animals()[:1], tmp_path, None)
        return read_manifest(build)

    monkeypatch.setattr(builds, "read_manifest", replaced)
    index = current_index(tmp_path)
    assert index is not None
    assert len(index.passages) == 1
    assert not builds_seen[0].exists()


def test_remains_of_a_crash_are_cleared_away(tmp_path: Path):
    (tmp_path / "build-0.partial").mkdir()
    (tmp_path / "build-1").mkdir()
    build_index(animals(), tmp_path, None)
    assert len(list(tmp_path.glob("build-*/"))) == 1
