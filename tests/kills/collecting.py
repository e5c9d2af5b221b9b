"""Adding documents to a collection and indexing it, in a process that is killed."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from pipelines.engine.library import Collections
from pipelines.retrieval.embedders import Embedders, EmbedderSpec
from pipelines.store import RunStore
from tests.kills.work import _print_to

OWNER = "a" * 48
NAME = "Animals"
DOCUMENTS, ROWS = 12, 40


def content(number: int) -> bytes:
    """A table whose rows are all different."""
    rows = (f"animal{number}x{row},It lives at place {row} of {number}." for row in range(ROWS))
    return "\n".join(["title,text", *rows]).encode()


def collect(output: Path, folder: Path) -> None:
    """Add what is missing, telling what is stored, and index until all is done."""
    _print_to(output)
    with closing(RunStore(f"sqlite:///{folder}/veriscope.db")) as store:
        collections = Collections(store.collections, folder / "collections", Embedders())
        known = store.collections.named(OWNER, NAME)
        if known is None:
            collection = collections.create(OWNER, NAME, EmbedderSpec(kind="words"))
        else:
            collection = known.id
        for number in range(DOCUMENTS):
            added = collections.add(OWNER, collection, f"{number}.csv", content(number))
            print(json.dumps({"stored": added.name, "number": number}), flush=True)
        job = collections.index(OWNER, collection)
        job.wait()
        assert job.state == "done", job.error
        print(json.dumps({"done": collection}), flush=True)
