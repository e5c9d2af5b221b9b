"""The index of a library: kept, brought up to date, mended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.errors import CapabilityError, InvalidInputError, NotFoundError, VeriscopeError
from pipelines.retrieval import index as index_module
from pipelines.retrieval import manifest
from pipelines.retrieval.bm25 import BM25Retriever
from pipelines.retrieval.dense import DenseRetriever
from pipelines.retrieval.embedders import EmbeddedEmbedder
from pipelines.retrieval.hybrid import HybridRetriever
from pipelines.retrieval.index import build_index, index_library, library_retriever, open_index
from pipelines.retrieval.library import LibraryIndex
from tests.pipelines.retrieval.examples import WordEmbedder, animals, document


def build_of(target: Path) -> Path:
    [build] = target.glob("build-*/")
    return build


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
    opened = open_index(tmp_path / "new" / "folder", WordEmbedder())
    assert ids(opened) == ids(built)
    for mode in ("bm25", "dense", "hybrid"):
        query = "Where do whales live?"
        found = await library_retriever(opened, mode).search(query, 2)
        assert found == await library_retriever(built, mode).search(query, 2)
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
    assert steps == [(0, 70), (32, 70), (64, 70), (70, 70)]


def remove_pointer(target: Path) -> None:
    (target / "current").unlink()


def point_nowhere(target: Path) -> None:
    (target / "current").write_text("build-gone")


def garble_pointer(target: Path) -> None:
    (target / "current").write_bytes(b"\xff\xfe\x00")


def garble_manifest(target: Path) -> None:
    (build_of(target) / "manifest.json").write_text("{")


def remove_vectors(target: Path) -> None:
    (build_of(target) / "vectors.faiss").unlink()


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
        garble("vectors.faiss"),
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
    with pytest.raises(NotFoundError, match="no usable index"):
        open_index(tmp_path)
    index = build_index(animals(), tmp_path, WordEmbedder())
    assert index.reused == 0
    assert ids(index) == ["cat#0", "whale#0", "xiongmao#0"]
    assert index.bm25.scores("竹子").argmax() == 2
    assert len(list(tmp_path.glob("build-*/"))) == 1


def test_an_index_by_older_rules_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build_index(animals(), tmp_path, None)
    monkeypatch.setattr(manifest, "CUTTING_RULES", manifest.CUTTING_RULES + 1)
    with pytest.raises(NotFoundError):
        open_index(tmp_path)
    assert build_index(animals(), tmp_path, None).reused == 0


def test_opening_what_does_not_fit(tmp_path: Path):
    with pytest.raises(NotFoundError):
        open_index(tmp_path)
    build_index(animals(), tmp_path, WordEmbedder())
    assert open_index(tmp_path).embedder is None
    with pytest.raises(NotFoundError, match="Index the library first"):
        open_index(tmp_path, WordEmbedder("other"))


def test_a_folder_is_indexed_with_a_report(tmp_path: Path):
    library = tmp_path / "library"
    (library / "en").mkdir(parents=True)
    (library / "en" / "cat.md").write_text("Cats sleep.")
    (library / "en" / "dog.txt").write_text("Dogs bark.")
    report = index_library(library, tmp_path / "index", embedder=WordEmbedder())
    assert (report.documents, report.passages, report.reused) == (2, 2, 0)
    assert report.seconds >= 0
    (library / "en" / "dog.txt").write_text("Dogs bark at cats.")
    embedder = WordEmbedder()
    report = index_library(library, tmp_path / "index", embedder=embedder)
    assert (report.documents, report.reused) == (2, 1)
    assert embedder.embedded == ["dog\nDogs bark at cats."]
    report = index_library(library, tmp_path / "index", rebuild=True, embedder=embedder)
    assert report.reused == 0


def test_indexing_without_an_embedder_takes_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "cat.md").write_text("Cats sleep.")
    monkeypatch.setattr(index_module, "default_embedder", lambda: WordEmbedder("default"))
    index_library(tmp_path / "library", tmp_path / "index")
    assert open_index(tmp_path / "index").manifest.embedder == "default"


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
    assert isinstance(library_retriever(index, "bm25"), BM25Retriever)
    assert isinstance(library_retriever(index, "dense"), DenseRetriever)
    assert isinstance(library_retriever(index, "hybrid"), HybridRetriever)


def test_dense_retrieval_needs_vectors_and_their_embedder(tmp_path: Path):
    wordless = build_index(animals(), tmp_path / "a", None)
    chinese = build_index(animals()[2:], tmp_path / "b", WordEmbedder())
    build_index(animals(), tmp_path / "c", WordEmbedder())
    for index in (wordless, chinese, open_index(tmp_path / "c")):
        assert library_retriever(index, "hybrid").name == "BM25"
        with pytest.raises(CapabilityError, match="no vectors"):
            library_retriever(index, "dense")


async def test_the_embedded_model_finds_by_meaning(tmp_path: Path, embedder: EmbeddedEmbedder):
    index = build_index(animals(), tmp_path, embedder)
    query = "creatures of the ocean"
    assert await library_retriever(index, "bm25").search(query, 1) == []
    for mode in ("dense", "hybrid"):
        [found] = await library_retriever(index, mode).search(query, 1)
        assert found.id == "whale#0"
