"""Collections from the first file to a search of them; stopped, changed, deleted."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.engine.indexing import IndexingJob, IndexingProgress, document_folder
from pipelines.engine.library import Collections, document_name
from pipelines.errors import InvalidInputError, NotFoundError, VeriscopeError, failure
from pipelines.retrieval import worker
from pipelines.retrieval.embedders import Embedders, EmbedderSpec
from pipelines.run.events import EvidenceSpec
from pipelines.store import RunStore
from pipelines.store.collections import CollectionStore
from tests.pipelines.retrieval.examples import WordEmbedder
from tests.pipelines.retrieval.reading.made import PAGE, encrypted_pdf, pdf
from tests.scripted.wire import Handler, says, serve

ME = "a" * 48
OTHER = "b" * 48


class HeldEmbedder(WordEmbedder):
    """Embeds `free` batches, then waits until it is let go; remembers every text."""

    def __init__(self, free: int = 10**6) -> None:
        super().__init__("held", ("en",))
        self.free = free
        self.waiting, self.go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> Any:
        if self.free <= 0:
            self.waiting.set()
            assert self.go.wait(60)
        self.free -= 1
        return super().embed(texts)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(f"sqlite:///{tmp_path}/veriscope.db")) as store:
        yield store


@pytest.fixture
def embedder() -> HeldEmbedder:
    return HeldEmbedder()


@pytest.fixture
def collections(store: RunStore, tmp_path: Path, embedder: HeldEmbedder) -> Iterator[Collections]:
    opened = Collections(store.collections, tmp_path / "files", Embedders(lambda: embedder))
    yield opened
    embedder.go.set()
    opened.close()


def indexed(collections: Collections, collection: str, owner: str = ME) -> IndexingJob:
    job = collections.index(owner, collection)
    job.wait(120)
    assert not job.going_on
    return job


async def titles(collections: Collections, collection: str, query: str) -> dict[str, list[str]]:
    found = await collections.search(ME, collection, query, 5)
    return {mode: [one.title for one in result.passages] for mode, result in found.items()}


def content(folder: Path) -> bytes:
    """Everything that is kept there."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_files_are_read_indexed_and_found(collections: Collections, embedder: HeldEmbedder):
    mine = collections.create(ME, "Sea")
    assert collections.is_current(ME, mine)
    collections.add(ME, mine, "whales.pdf", pdf(["Whales swim in the sea.", "They breathe air."]))
    collections.add(ME, mine, "tides.html", PAGE.encode())
    collections.add(ME, mine, "熊猫.txt", "大熊猫生活在四川的竹林里，主要吃竹子。".encode())
    collections.add(ME, mine, "locked.pdf", encrypted_pdf("secret"))
    assert not collections.is_current(ME, mine)
    with pytest.raises(InvalidInputError, match="none of its documents is indexed"):
        collections.evidence(ME, mine, "bm25")
    assert indexed(collections, mine).state == "done"
    # One that cannot be used spoils nothing.
    assert [(one.state, one.reason) for one in collections.store.documents(ME, mine)] == [
        ("ready", ""),
        ("ready", ""),
        ("ready", ""),
        ("refused", "encrypted"),
    ]
    assert collections.is_current(ME, mine)
    # Its embedder reads English alone.
    assert len(embedder.embedded) == 2
    found = await titles(collections, mine, "whales that swim")
    assert {mode: one[0] for mode, one in found.items()} == dict.fromkeys(found, "whales")
    found = await collections.search(ME, mine, "竹林里的大熊猫", 5)
    assert [one.title for one in found["bm25"].passages] == ["熊猫"]
    assert found["dense"].error is not None
    assert [one.title for one in found["hybrid"].passages] == ["熊猫"]
    (passage,) = (await collections.search(ME, mine, "swim", 1))["bm25"].passages
    assert passage.source == "whales.pdf, p. 1"


async def test_only_what_is_new_is_read_and_embedded(
    collections: Collections, embedder: HeldEmbedder
):
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    indexed(collections, mine)
    embedder.embedded.clear()
    assert collections.add(ME, mine, "a.txt", b"Whales swim.").id is None
    collections.add(ME, mine, "b.txt", b"Cats sleep.")
    indexed(collections, mine)
    assert embedder.embedded == ["b\nCats sleep."]
    # Another file of the same name replaces it.
    collections.add(ME, mine, "a.txt", b"Whales breathe air.")
    # What was deleted is found no more, even before it is indexed again.
    assert collections.build(mine) is None
    indexed(collections, mine)
    assert (await titles(collections, mine, "swim"))["bm25"] == []
    assert (await titles(collections, mine, "breathe"))["bm25"] == ["a"]
    collections.add(ME, mine, "c.txt", b"Dogs bark.")
    cats = next(one for one in collections.store.documents(ME, mine) if one.name == "b.txt")
    collections.remove(ME, mine, cats.id)
    indexed(collections, mine)
    assert (await titles(collections, mine, "cats sleep"))["bm25"] == []
    with pytest.raises(NotFoundError):
        collections.document(ME, mine, cats.id)


def test_a_stopped_indexing_goes_on_where_it_ended(
    collections: Collections, embedder: HeldEmbedder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pipelines.engine.indexing._BATCH", 2)
    embedder.free = 2
    mine = collections.create(ME, "Rows")
    rows = "\n".join(f'{{"text": "Animal number {at} is seen."}}' for at in range(9))
    collections.add(ME, mine, "rows.jsonl", rows.encode())
    job = collections.index(ME, mine)
    assert collections.index(ME, mine) is job
    assert embedder.waiting.wait(120)
    assert (job.progress.stage, job.progress.done, job.progress.total) == ("embed", 4, 9)
    job.stop()
    embedder.go.set()
    job.wait(60)
    progress = collections.progress(ME, mine)
    assert progress is not None
    assert progress.stage == job.state == "stopped"
    assert not collections.is_current(ME, mine)
    before = len(embedder.embedded)
    assert before == 6
    assert indexed(collections, mine).state == "done"
    assert len(embedder.embedded) == 9
    assert collections.is_current(ME, mine)


def test_what_a_killed_process_left_is_used(
    collections: Collections, embedder: HeldEmbedder, tmp_path: Path
):
    mine = collections.create(ME, "Rows")
    rows = "\n".join(f'{{"text": "Animal number {at} is seen."}}' for at in range(9))
    collections.add(ME, mine, "rows.jsonl", rows.encode())
    indexed(collections, mine)
    (document,) = collections.store.documents(ME, mine)
    place = tmp_path / "files" / mine
    (vectors,) = document_folder(place, document.id).glob("vectors-*")
    whole = np.fromfile(vectors, np.float32).reshape(9, -1)
    # It was killed within the sixth vector, before there was an index.
    with vectors.open("r+b") as file:
        file.truncate(whole[:5].nbytes + 7)
    (place / "index" / "current").unlink()
    embedder.embedded.clear()
    indexed(collections, mine)
    assert len(embedder.embedded) == 4
    assert np.fromfile(vectors, np.float32).reshape(9, -1).tolist() == whole.tolist()
    assert collections.is_current(ME, mine)


async def test_another_embedder_embeds_all_again(collections: Collections):
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    indexed(collections, mine)
    collections.change(ME, mine, embedder=EmbedderSpec(kind="words"))
    # Until then it is searched by words.
    assert not collections.is_current(ME, mine)
    found = await collections.search(ME, mine, "whales", 5)
    assert found["dense"].error is not None
    assert len(found["hybrid"].passages) == 1
    indexed(collections, mine)
    assert collections.is_current(ME, mine)
    assert (await titles(collections, mine, "whales"))["dense"] == ["a"]
    collections.change(ME, mine, embedder=EmbedderSpec(kind="none"))
    indexed(collections, mine)
    assert (await collections.search(ME, mine, "whales", 5))["dense"].error is not None
    assert (await titles(collections, mine, "whales"))["hybrid"] == ["a"]


async def test_a_service_embeds_chinese_and_its_key_is_kept_nowhere(
    collections: Collections, tmp_path: Path
):
    def embeds(handler: Handler) -> None:
        texts = handler.wire.seen[-1].body["input"]
        found = WordEmbedder("service", ("en", "zh")).embed(texts)
        rows = [{"index": at, "embedding": row.tolist()} for at, row in enumerate(found)]
        says({"data": rows})(handler)

    with serve() as wire:
        wire.answers(embeds)
        spec = EmbedderSpec(kind="openai", model="multilingual", base_url=wire.url)
        mine = collections.create(ME, "Pandas", spec)
        collections.add(ME, mine, "熊猫.txt", "大熊猫生活在四川的竹林里，主要吃竹子。".encode())
        collections.add(ME, mine, "whales.txt", b"Whales swim in the sea.")
        job = collections.index(ME, mine, "never-to-be-stored-3307")
        job.wait(120)
        assert job.state == "done", job.error
        query = "大熊猫吃竹子吗"
        found = await collections.search(ME, mine, query, 2, "never-to-be-stored-3307")
        sent = [{k.lower(): v for k, v in seen.headers.items()} for seen in wire.seen]
    assert {mode: one.passages[0].title for mode, one in found.items()} == dict.fromkeys(
        ("bm25", "dense", "hybrid"), "熊猫"
    )
    assert [one.error for one in found.values()] == [None] * 3
    assert {one["authorization"] for one in sent} == {"Bearer never-to-be-stored-3307"}
    kept = content(tmp_path)
    assert "熊猫.txt".encode() in kept
    assert b"never-to-be-stored-3307" not in kept


def test_an_embedder_that_fails_keeps_what_is_there(
    collections: Collections, embedder: HeldEmbedder
):
    class Broken(HeldEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            raise RuntimeError("secret path")

    broken = Broken()
    collections.embedders = Embedders(lambda: broken)
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    job = indexed(collections, mine)
    progress = collections.progress(ME, mine)
    assert progress is not None
    assert (progress.stage, progress.error) == ("failed", job.error)
    assert progress.error is not None
    assert progress.error.message == "The documents could not be indexed (RuntimeError)."
    assert [one.state for one in collections.store.documents(ME, mine)] == ["ready"]
    collections.embedders = Embedders(lambda: embedder)
    assert indexed(collections, mine).state == "done"


def test_a_document_deleted_while_it_is_indexed_is_not_found(
    collections: Collections, embedder: HeldEmbedder
):
    embedder.free = 0
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    collections.add(ME, mine, "b.txt", b"Cats sleep.")
    job = collections.index(ME, mine)
    assert embedder.waiting.wait(120)
    first = collections.store.documents(ME, mine)[0]
    collections.remove(ME, mine, first.id)
    embedder.free = 10
    embedder.go.set()
    job.wait(60)
    assert job.state == "done"
    assert collections.is_current(ME, mine)
    assert collections.store.get(ME, mine).documents == 1


def test_files_are_added_together(collections: Collections, tmp_path: Path):
    mine = collections.create(ME, "Sea")

    def broken() -> bytes:
        raise failure("library.no_document")

    files = [("a.txt", lambda: b"Whales swim."), ("lost.txt", broken), ("b.txt", lambda: b"Cats.")]
    with pytest.raises(NotFoundError):
        collections.add_all(ME, mine, files)
    # Those before it are there.
    assert [one.name for one in collections.store.documents(ME, mine)] == ["a.txt"]
    added = collections.add_all(ME, mine, [files[0], files[2]])
    assert [one.id is None for one in added] == [True, False]
    assert len(list((tmp_path / "files").rglob("original"))) == 2


def test_two_who_add_the_same_files_at_once_do_not_undo_each_other(
    collections: Collections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    first = [one.id for one in collections.store.documents(ME, mine)]
    # The other one looked before the first had listed anything.
    monkeypatch.setattr(CollectionStore, "digests", lambda *given: {})
    assert collections.add(ME, mine, "a.txt", b"Whales swim.").id is None
    assert [one.id for one in collections.store.documents(ME, mine)] == first
    assert len(list((tmp_path / "files").rglob("original"))) == 1


def test_a_second_indexer_waits_and_says_so(
    collections: Collections, store: RunStore, tmp_path: Path, embedder: HeldEmbedder
):
    embedder.free = 0
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    first = collections.index(ME, mine)
    assert embedder.waiting.wait(60)
    other = Collections(store.collections, tmp_path / "files", Embedders(lambda: WordEmbedder()))
    said: list[str] = []
    with closing(other), pytest.MonkeyPatch.context() as patch:
        tell = IndexingJob.tell
        waits = threading.Event()

        def told(job: IndexingJob, progress: IndexingProgress) -> None:
            said.append(progress.stage)
            if progress.stage == "elsewhere":
                waits.set()
            tell(job, progress)

        patch.setattr("pipelines.jobs.Job.tell", told)
        second = other.index(ME, mine)
        assert waits.wait(60)
        embedder.go.set()
        assert first.wait(60)
        assert second.wait(60)
    assert (first.state, second.state, said.count("elsewhere") > 0) == ("done", "done", True)


def test_everything_is_its_owners(collections: Collections):
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    indexed(collections, mine)
    evidence = collections.evidence(ME, mine, "bm25")
    document = collections.store.documents(ME, mine)[0].id
    for act in (
        lambda: collections.add(OTHER, mine, "b.txt", b"x"),
        lambda: collections.add_addresses(OTHER, mine, "https://example.org"),
        lambda: collections.document(OTHER, mine, document),
        lambda: collections.remove(OTHER, mine, document),
        lambda: collections.index(OTHER, mine),
        lambda: collections.stop(OTHER, mine),
        lambda: collections.progress(OTHER, mine),
        lambda: collections.open(OTHER, mine, "bm25"),
        lambda: collections.pinned(evidence, OTHER),
        lambda: collections.delete(OTHER, mine),
    ):
        with pytest.raises(NotFoundError):
            act()
    assert [one.id for one in collections.searchable(ME)] == [mine]
    assert collections.searchable(OTHER) == []


async def test_a_run_names_what_the_collection_held(collections: Collections):
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    indexed(collections, mine)
    evidence = collections.evidence(ME, mine, "bm25")
    assert (evidence.name, evidence.collection) == ("Sea", mine)
    assert len(evidence.edition) == 16
    assert collections.pinned(evidence, ME) == evidence
    assert collections.pinned(evidence.model_copy(update={"edition": ""}), ME) == evidence
    assert collections.pinned(EvidenceSpec(), ME) == EvidenceSpec()
    search = collections.retriever(evidence, ME)
    assert search.name == "Sea"
    assert [one.title for one in await search.search("whales", 3)] == ["a"]
    assert search.name == "BM25"
    assert collections.reads(evidence, ME, "en")
    assert not collections.reads(evidence, ME, "zh")
    collections.add(ME, mine, "b.txt", b"Cats sleep.")
    indexed(collections, mine)
    with pytest.raises(InvalidInputError, match="have changed since"):
        collections.pinned(evidence, ME)


def test_a_deletion_that_was_begun_is_ended(collections: Collections, tmp_path: Path):
    mine, other = collections.create(ME, "Sea"), collections.create(ME, "Land")
    foreign = tmp_path / "files" / "0123"
    foreign.mkdir(parents=True)
    for collection in (mine, other):
        collections.add(ME, collection, "a.txt", b"Whales swim.")
        (tmp_path / "files" / collection / "deleting").touch()
    collections.store.delete(ME, mine)
    collections.sweep()
    # What another database may list stays.
    assert {path.name for path in (tmp_path / "files").iterdir()} == {other, "0123"}
    collections.delete(ME, other)
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"0123"}


def test_too_large_a_file_is_not_stored(
    collections: Collections, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("pipelines.engine.library.MAX_FILE", 2**20)
    mine = collections.create(ME, "Sea")
    with pytest.raises(InvalidInputError, match="takes more than 1 MB"):
        collections.add(ME, mine, "a.txt", b"x" * (2**20 + 1))
    monkeypatch.setattr("pipelines.store.collections.MAX_DOCUMENTS", 0)
    with pytest.raises(InvalidInputError, match="0 documents"):
        collections.add(ME, mine, "a.txt", b"x")
    assert list((tmp_path / "files").rglob("original")) == []


def test_a_disk_that_is_nearly_full(collections: Collections, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pipelines.engine.library._RESERVE", 2**70)
    mine = collections.create(ME, "Sea")
    with pytest.raises(VeriscopeError, match="the disk is nearly full"):
        collections.add(ME, mine, "a.txt", b"x")
    assert collections.store.documents(ME, mine) == []


def test_a_lost_file_says_so(collections: Collections, tmp_path: Path):
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    for path in (tmp_path / "files").rglob("original"):
        path.unlink()
    assert indexed(collections, mine).state == "done"
    assert [one.reason for one in collections.store.documents(ME, mine)] == ["lost"]


def test_too_many_passages(collections: Collections, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pipelines.engine.indexing.MAX_PASSAGES", 1)
    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.csv", b"text\nOne.\nTwo.\n")
    error = indexed(collections, mine).error
    assert error is not None
    assert "cut into 2 passages; a collection can have 1" in error.message


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\docs\\a.pdf", "C:/docs/a.pdf"),
        ("/", "file"),
        ("a\x00\u202eb.txt", "a\ufffd\ufffdb.txt"),
        ("x" * 400, "x" * 300),
    ],
)
def test_names_lead_nowhere(given: str, kept: str):
    assert document_name(given) == kept


def test_the_index_is_built_beside_the_application(collections: Collections):
    """What reads foreign files is another process, which has ended when the indexing has."""
    started: list[int] = []
    running = worker.PreparationWorker._running

    def noted(self: worker.PreparationWorker) -> Any:
        process = running(self)
        started.append(process.pid)
        return process

    mine = collections.create(ME, "Sea")
    collections.add(ME, mine, "a.txt", b"Whales swim.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker.PreparationWorker, "_running", noted)
        indexed(collections, mine)
    assert len(set(started)) == 2
    for pid in started:
        assert not Path(f"/proc/{pid}").exists()
