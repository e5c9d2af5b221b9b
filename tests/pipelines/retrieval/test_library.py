"""The index of a library: kept, brought up to date, repaired; readers and builders side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.errors import CapabilityError, InvalidInputError, VeriscopeError
from pipelines.retrieval import library
from pipelines.retrieval.indexes import EnglishEmbedder
from pipelines.retrieval.library import (
    LibraryIndex,
    build_index,
    current_index,
)
from pipelines.retrieval.retriever import LibraryRetriever
from tests.pipelines.retrieval.examples import WordEmbedder, animals, build_beside_others, document


def build_of(target: Path) -> Path:
    [build] = target.glob("build-*/")
    return build


def opened(target: Path) -> LibraryIndex:
    index = current_index(target)
    assert index is not None
    return index


def ids(index: LibraryIndex) -> list[str]:
    return [index.passages[position].id for position in range(len(index.passages))]


def vectors(index: LibraryIndex) -> list[list[float]]:
    assert index.dense is not None
    return index.dense.vectors(0, len(index.passages)).tolist()


def test_only_documents_the_embedder_reads_are_embedded(tmp_path: Path):
    embedder = WordEmbedder()
    index = build_index(animals(), tmp_path, embedder)
    assert ids(index) == ["cat#0", "whale#0", "xiongmao#0"]
    assert embedder.embedded == [
        "Cat\nCats sleep for most of the day. They hunt mice at night.",
        "Whale\nWhales are mammals that live in the sea.",
    ]
    assert [entry.embedded for entry in index.manifest.documents] == [True, True, False]
    assert index.reused == 0


async def test_what_was_built_is_opened(tmp_path: Path):
    built = build_index(animals(), tmp_path / "new" / "folder", WordEmbedder())
    again = build_index(animals(), tmp_path / "new" / "folder", WordEmbedder())
    assert ids(again) == ids(built)
    for mode in ("bm25", "dense", "hybrid"):
        query = "Where do whales live?"
        found = await LibraryRetriever(again, mode).search(query, 2)
        assert found == await LibraryRetriever(built, mode).search(query, 2)
        assert found[0].id == "whale#0"


def test_an_unchanged_library_is_left_alone(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    build = build_of(tmp_path)
    embedder = WordEmbedder()
    index = build_index(animals(), tmp_path, embedder)
    assert (index.reused, embedder.embedded, build_of(tmp_path)) == (3, [], build)


def test_one_changed_document_is_embedded_again(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    cat, whale, panda = animals()
    changed = cat.model_copy(update={"text": "Cats purr."})
    embedder = WordEmbedder()
    index = build_index([changed, whale, panda], tmp_path, embedder)
    assert embedder.embedded == ["Cat\nCats purr."]
    assert index.reused == 2
    assert index.passages[0].text == "Cats purr."
    fresh = build_index([changed, whale, panda], tmp_path / "fresh", WordEmbedder())
    assert vectors(index) == vectors(fresh)
    assert ids(index) == ids(fresh)


def test_added_removed_and_moved_documents(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    cat, _, panda = animals()
    long = document(
        "ant", " ".join(f"Ant number {number} walks on and on." for number in range(40))
    )
    embedder = WordEmbedder()
    wanted = [panda, long, cat]
    index = build_index(wanted, tmp_path, embedder)
    assert index.reused == 2
    assert ids(index)[0] == "xiongmao#0"
    assert ids(index)[-1] == "cat#0"
    assert len(embedder.embedded) == len(index.passages) - 2 > 1
    assert vectors(index) == vectors(build_index(wanted, tmp_path / "fresh", WordEmbedder()))


def test_a_change_of_anything_in_a_document_counts(tmp_path: Path):
    cat = animals()[0]
    build_index([cat], tmp_path, None)
    for change in ({"title": "Tom"}, {"source": "x"}, {"url": "https://x.org"}, {"language": "zh"}):
        assert build_index([cat.model_copy(update=change)], tmp_path, None).reused == 0


def test_rebuild_takes_nothing_over(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    embedder = WordEmbedder()
    assert build_index(animals(), tmp_path, embedder, rebuild=True).reused == 0
    assert len(embedder.embedded) == 2


def test_another_embedder_embeds_everything(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    other = WordEmbedder("other")
    assert build_index(animals(), tmp_path, other).manifest.embedder == "other"
    assert len(other.embedded) == 2
    bilingual = WordEmbedder("other", ("en", "zh"))
    assert all(
        entry.embedded for entry in build_index(animals(), tmp_path, bilingual).manifest.documents
    )
    assert bilingual.embedded == ["大熊猫\n大熊猫生活在中国四川的竹林里，主要吃竹子。"]


def test_without_an_embedder_there_are_no_vectors_until_one_comes(tmp_path: Path):
    assert build_index(animals(), tmp_path, None).dense is None
    embedder = WordEmbedder()
    index = build_index(animals(), tmp_path, embedder)
    assert index.dense is not None
    assert (index.reused, len(embedder.embedded)) == (3, 2)
    # Words alone are served by an index with vectors too.
    assert build_index(animals(), tmp_path, None).dense is not None


def test_progress_counts_the_passages_to_embed(tmp_path: Path):
    steps: list[tuple[int, int]] = []
    many = [document(f"d{number:02}", f"Text {number}.") for number in range(70)]
    build_index(many, tmp_path, WordEmbedder(), lambda done, total: steps.append((done, total)))
    assert steps == [*((at, 70) for at in range(0, 70, 16)), (70, 70)]


def remove_pointer(target: Path) -> None:
    (target / "current").unlink()


def point_nowhere(target: Path) -> None:
    (target / "current").write_text("build-gone")


def garble_pointer(target: Path) -> None:
    (target / "current").write_bytes(b"\xff\xfe\x00")


def garble_manifest(target: Path) -> None:
    (build_of(target) / "manifest.json").write_text("{")


def remove_vectors(target: Path) -> None:
    (build_of(target) / "vectors.npy").unlink()


def truncate_passages(target: Path) -> None:
    path = build_of(target) / "passages.jsonl"
    path.write_bytes(path.read_bytes()[:-5])


def garble(name: str) -> Callable[[Path], None]:
    def damage(target: Path) -> None:
        path = build_of(target) / name
        path.write_bytes(b"\x07" * path.stat().st_size)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        remove_pointer,
        point_nowhere,
        garble_pointer,
        garble_manifest,
        remove_vectors,
        truncate_passages,
        garble("vectors.npy"),
        garble("vectors.positions.npy"),
        garble("passages.offsets.npy"),
        garble("bm25/vocab.index.json"),
        garble("bm25/params.index.json"),
        garble("bm25/data.csc.index.npy"),
    ],
)
def test_a_damaged_index_is_built_anew(tmp_path: Path, damage: Callable[[Path], None]):
    build_index(animals(), tmp_path, WordEmbedder())
    damage(tmp_path)
    assert current_index(tmp_path) is None
    index = build_index(animals(), tmp_path, WordEmbedder())
    assert index.reused == 0
    assert ids(index) == ["cat#0", "whale#0", "xiongmao#0"]
    assert index.bm25.scores("竹子").argmax() == 2
    assert len(list(tmp_path.glob("build-*/"))) == 1


def test_an_index_by_older_rules_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build_index(animals(), tmp_path, None)
    monkeypatch.setattr(library, "CUTTING_RULES", library.CUTTING_RULES + 1)
    assert current_index(tmp_path) is None
    assert build_index(animals(), tmp_path, None).reused == 0


def test_an_index_serves_the_embedder_it_was_made_with(tmp_path: Path):
    assert current_index(tmp_path) is None
    build_index(animals(), tmp_path, WordEmbedder())
    index = opened(tmp_path)
    assert index.embedder is None
    assert index.manifest.serves(WordEmbedder())
    assert index.manifest.serves(None)
    assert not index.manifest.serves(WordEmbedder("other"))


def test_a_folder_is_indexed_and_brought_up_to_date(tmp_path: Path):
    folder = tmp_path / "library"
    (folder / "en").mkdir(parents=True)
    (folder / "en" / "cat.md").write_text("Cats sleep.")
    (folder / "en" / "dog.txt").write_text("Dogs bark.")
    index = build_index(folder, tmp_path / "index", WordEmbedder())
    assert (len(index.manifest.documents), len(index.passages), index.reused) == (2, 2, 0)
    (folder / "en" / "dog.txt").write_text("Dogs bark at cats.")
    embedder = WordEmbedder()
    index = build_index(folder, tmp_path / "index", embedder)
    assert (len(index.manifest.documents), index.reused) == (2, 1)
    assert embedder.embedded == ["dog\nDogs bark at cats."]
    assert build_index(folder, tmp_path / "index", embedder, rebuild=True).reused == 0


@pytest.mark.parametrize("documents", [[], [document("a", "?!", "…")]])
def test_a_library_without_words(tmp_path: Path, documents: list):
    with pytest.raises(InvalidInputError, match="holds no words"):
        build_index(documents, tmp_path, WordEmbedder())
    assert list(tmp_path.glob("build-*")) == []


def test_a_target_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(VeriscopeError, match="could not be written") as caught:
        build_index(animals(), tmp_path / "file" / "index", None)
    assert str(tmp_path) not in str(caught.value)


def test_the_retriever_of_each_mode(tmp_path: Path):
    index = build_index(animals(), tmp_path, WordEmbedder())
    names = {mode: LibraryRetriever(index, mode).name for mode in ("bm25", "dense", "hybrid")}
    assert names == {"bm25": "BM25", "dense": "words", "hybrid": "BM25 + words"}


def test_dense_retrieval_needs_vectors_and_their_embedder(tmp_path: Path):
    wordless = build_index(animals(), tmp_path / "a", None)
    chinese = build_index(animals()[2:], tmp_path / "b", WordEmbedder())
    build_index(animals(), tmp_path / "c", WordEmbedder())
    for index in (wordless, chinese, opened(tmp_path / "c")):
        assert LibraryRetriever(index, "hybrid").name == "BM25"
        with pytest.raises(CapabilityError, match="no vectors"):
            LibraryRetriever(index, "dense")


async def test_the_embedded_model_finds_by_meaning(tmp_path: Path, embedder: EnglishEmbedder):
    index = build_index(animals(), tmp_path, embedder)
    query = "creatures of the ocean"
    assert await LibraryRetriever(index, "bm25").search(query, 1) == []
    for mode in ("dense", "hybrid"):
        [found] = await LibraryRetriever(index, mode).search(query, 1)
        assert found.id == "whale#0"


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
        assert len(opened(tmp_path).passages) == 3
        held.release.set()
        building.result(60)
    assert len(opened(tmp_path).passages) == 1
    [found] = await LibraryRetriever(old, "hybrid").search("Where do whales live?", 1)
    assert found.id == "whale#0"


def test_a_build_that_fails_leaves_the_index_as_it_was(tmp_path: Path):
    build_index(animals(), tmp_path, WordEmbedder())
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="out of memory"):
        build_index(animals()[:1], tmp_path, BrokenEmbedder(), rebuild=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert len(opened(tmp_path).passages) == 3


def test_an_index_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build_index(animals(), tmp_path, None)
    open_build = library._open_build
    builds_seen: list[Path] = []

    def replaced(build: Path) -> LibraryIndex:
        builds_seen.append(build)
        if len(builds_seen) == 1:
            build_index(animals()[:1], tmp_path, None)
        return open_build(build)

    monkeypatch.setattr(library, "_open_build", replaced)
    index = current_index(tmp_path)
    assert index is not None
    assert len(index.passages) == 1
    assert not builds_seen[0].exists()


def test_remains_of_a_crash_are_cleared_away(tmp_path: Path):
    (tmp_path / "build-0.partial").mkdir()
    (tmp_path / "build-1").mkdir()
    build_index(animals(), tmp_path, None)
    assert len(list(tmp_path.glob("build-*/"))) == 1
