"""A hundred thousand passages: indexed in memory that has a bound, and found."""

from __future__ import annotations

import asyncio
import json
import resource
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from pipelines.engine.library import Collections
from pipelines.retrieval.embedders import Embedders
from pipelines.store import RunStore
from tests.pipelines.retrieval.examples import WordEmbedder

ME = "a" * 48
FILES, ROWS, WORDS = 4, 25_000, 80
MEGABYTES = 1500
"""Memory of the process that reads and indexes. Half of it holds what BM25 counts."""

GROWTH = 400
"""What the application's own process may take more, which only makes the vectors."""


class Forgetful(WordEmbedder):
    """Keeps no text."""

    def embed(self, texts):  # type: ignore[no-untyped-def]
        self.embedded = []
        return super().embed(texts)


def megabytes(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def rows(number: int) -> bytes:
    random = Random(number)
    words = [f"word{at}" for at in range(20_000)]
    lines = (
        json.dumps({"title": f"T{number}x{row}", "text": " ".join(random.choices(words, k=WORDS))})
        for row in range(ROWS)
    )
    return "\n".join(lines).encode()


class Indexed(NamedTuple):
    """How many passages, what the two processes took in megabytes, and the first one found."""

    passages: int
    worker: float
    grown: float
    found: str


def index_all(folder: Path) -> Indexed:
    """Make the collection in `folder`, index it and search it."""
    with closing(RunStore(f"sqlite:///{folder}/veriscope.db")) as store:
        embedder = Forgetful()
        collections = Collections(
            store.collections, folder / "files", Embedders(lambda: embedder), seconds=1800
        )
        mine = collections.create(ME, "Many")
        for number in range(FILES):
            collections.add(ME, mine, f"{number}.jsonl", rows(number))
        before = megabytes(resource.RUSAGE_SELF)
        job = collections.index(ME, mine)
        job.wait()
        assert job.state == "done", job.error
        grown = megabytes(resource.RUSAGE_SELF) - before
        worker = megabytes(resource.RUSAGE_CHILDREN)
        passages = store.collections.get(ME, mine).passages
        found = asyncio.run(collections.search(ME, mine, "T2x777", 3))
        return Indexed(passages, worker, grown, found["bm25"].passages[0].title)


@pytest.mark.verify
def test_a_hundred_thousand_passages(tmp_path: Path):
    # In a process of its own: what other tests have started counts among the children of this one.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        indexed = pool.submit(index_all, tmp_path).result()
    print(indexed)
    assert (indexed.passages, indexed.found) == (FILES * ROWS, "T2x777")
    assert indexed.worker < MEGABYTES
    assert indexed.grown < GROWTH
