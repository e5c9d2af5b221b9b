"""A process that fills and indexes a collection is killed (-9): nothing that was stored is lost."""

from __future__ import annotations

import asyncio
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from pipelines.engine.library import Collections
from pipelines.retrieval.embedders import Embedders
from pipelines.store import RunStore
from tests.kills.collecting import DOCUMENTS, OWNER, ROWS, collect, content
from tests.kills.killing import Killer, lines

KILLS = 12


def stored(folder: Path) -> dict[str, str]:
    """Digest by name of what is listed, each of which has its file."""
    with closing(RunStore(f"sqlite:///{folder}/veriscope.db")) as store:
        found: dict[str, str] = {}
        for collection in store.collections.of(OWNER):
            for one in store.collections.documents(OWNER, collection.id):
                place = folder / "collections" / collection.id / "documents" / one.id
                assert sha256((place / "original").read_bytes()).hexdigest() == one.digest
                found[one.name] = one.digest
        return found


@pytest.mark.verify
def test_a_collection_survives_kills(tmp_path: Path):
    printed, whole, killed = (tmp_path / name for name in ("printed", "whole", "killed"))
    for folder in (printed, whole, killed):
        folder.mkdir()
    killer = Killer(printed, Random(8))
    longest = killer.lasting(collect, whole)
    told: set[int] = set()
    for _ in range(KILLS):
        told |= {
            one["number"] for one in lines(killer.kill(longest, collect, killed)) if "stored" in one
        }
        there = stored(killed)
        for number in told:
            assert there[f"{number}.csv"] == sha256(content(number)).hexdigest()
    collection = lines(killer.finish(collect, killed))[-1]["done"]
    assert len(stored(killed)) == DOCUMENTS
    with closing(RunStore(f"sqlite:///{killed}/veriscope.db")) as store:
        collections = Collections(store.collections, killed / "collections", Embedders())
        assert collections.is_current(OWNER, collection)
        assert store.collections.get(OWNER, collection).passages == DOCUMENTS * ROWS
        for number in range(DOCUMENTS):
            query = f"animal{number}x{number}"
            found = asyncio.run(collections.search(OWNER, collection, query, 1))
            for mode, result in found.items():
                assert [one.title for one in result.passages] == [query], mode
