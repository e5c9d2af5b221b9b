"""What searches the chosen evidence, and what compares texts: by library, service and language."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.engine.library import Libraries
from pipelines.errors import InvalidInputError, MissingKeyError, NotFoundError
from pipelines.retrieval.web import WebSearch
from pipelines.run.events import EvidenceSource, EvidenceSpec
from tests.pipelines.retrieval.examples import WordEmbedder
from tests.scripted.web_wire import serve
from tests.scripted.wire import Wire, says

FOUND = {
    "organic": [
        {"title": "Vane", "link": "https://coast.example/vane", "snippet": "41 metres tall."}
    ]
}


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as running:
        running.answers(says(FOUND))
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library of two documents, where only one knows of mice."""
    place = tmp_path / "animals"
    place.mkdir()
    (place / "cat.md").write_text("Cats hunt mice at night.")
    (place / "whale.md").write_text("Whales live in the sea.")
    return place


@pytest.fixture
async def libraries(tmp_path: Path, folder: Path) -> AsyncIterator[Libraries]:
    embedder = WordEmbedder("vectors")
    opened = Libraries(tmp_path / "index", {"animals": folder}, lambda: embedder)
    yield opened
    await opened.aclose()


@pytest.fixture
async def wordless(tmp_path: Path, folder: Path) -> Libraries:
    """Libraries where no embedder is installed."""
    return Libraries(tmp_path / "index", {"animals": folder}, lambda: None)


def at(wire: Wire, source: EvidenceSource = "serper") -> EvidenceSpec:
    return EvidenceSpec(source=source, base_url=wire.url)


async def test_a_web_search_is_asked_with_its_key_at_its_address(libraries: Libraries, wire: Wire):
    search = libraries.search_in(at(wire), "a-key-0815")
    (passage,) = await search.search("how tall is Vane", 3)
    assert (search.name, passage.text) == ("Serper", "41 metres tall.")
    (seen,) = wire.seen
    assert seen.headers["x-api-key"] == "a-key-0815"
    assert seen.body["q"] == "how tall is Vane"


async def test_a_search_without_a_key_is_sent_none(libraries: Libraries, wire: Wire):
    wire.answers(says({"batchcomplete": True}))
    search = libraries.search_in(at(wire, "wikipedia"))
    assert await search.search("Vane", 3) == []
    assert wire.seen
    assert "x-api-key" not in wire.seen[0].headers


async def test_runs_with_the_same_key_share_a_search_and_others_do_not(
    libraries: Libraries, wire: Wire
):
    first = libraries.search_in(at(wire), "key-a")
    assert libraries.search_in(at(wire), "key-a") is first
    elsewhere = EvidenceSpec(source="serper")
    others = [
        libraries.search_in(at(wire), "key-b"),
        libraries.search_in(elsewhere, "key-a"),
        libraries.search_in(at(wire, "duckduckgo"), None),
    ]
    assert len({id(one) for one in (first, *others)}) == 4
    # How a library would be searched makes no difference to the web.
    assert libraries.search_in(at(wire).model_copy(update={"mode": "bm25"}), "key-a") is first


async def test_searches_that_were_used_last_are_kept(
    libraries: Libraries, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pipelines.engine.library._MOST_SEARCHES", 2)
    first, second = (libraries.search_in(at(wire), key) for key in ("key-a", "key-b"))
    assert libraries.search_in(at(wire), "key-a") is first
    libraries.search_in(at(wire), "key-c")
    assert libraries.search_in(at(wire), "key-a") is first
    assert [key for *_, key in libraries._web] == ["key-c", "key-a"]
    # Who still has the other keeps it.
    assert await second.search("Vane", 1)
    assert isinstance(second, WebSearch)
    await second.aclose()


async def test_libraries_for_another_loop_allow_no_other_addresses(tmp_path: Path, wire: Wire):
    for libraries in (Libraries(tmp_path, any_address=False), Libraries(tmp_path)):
        other = libraries.for_another_loop()
        if libraries._any_address:
            assert other.search_in(at(wire, "wikipedia"))
            continue
        with pytest.raises(InvalidInputError, match="this address cannot be used"):
            other.search_in(at(wire, "wikipedia"))


async def test_the_qdrant_server_of_the_environment_may_be_searched_by_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VERISCOPE_QDRANT_URL", "http://localhost:6333")
    libraries = Libraries(tmp_path, any_address=False)
    ours, other = (
        EvidenceSpec(source="qdrant", library="c", base_url=f"http://localhost:{port}")
        for port in (6333, 6334)
    )
    assert libraries.search_in(ours)
    with pytest.raises(InvalidInputError, match="this address cannot be used"):
        libraries.search_in(other)
    await libraries.aclose()


async def test_a_search_that_wants_a_key_says_so_at_once(libraries: Libraries):
    with pytest.raises(MissingKeyError, match="Serper"):
        libraries.search_in(EvidenceSpec(source="serper"))


async def test_an_address_that_is_none_is_refused(libraries: Libraries):
    with pytest.raises(InvalidInputError):
        libraries.search_in(EvidenceSpec(source="wikipedia", base_url="not an address"))


async def test_closing_closes_every_search_of_the_web(
    libraries: Libraries, wire: Wire, monkeypatch: pytest.MonkeyPatch
):
    closed: list[object] = []
    close = WebSearch.aclose

    async def seen(self: WebSearch) -> None:
        closed.append(self)
        await close(self)

    monkeypatch.setattr(WebSearch, "aclose", seen)
    searches = [libraries.search_in(at(wire), key) for key in ("key-a", "key-b")]
    await searches[0].search("Vane", 1)
    await libraries.aclose()
    assert {id(one) for one in closed} == {id(one) for one in searches}
    assert libraries.search_in(at(wire), "key-a") is not searches[0]


async def test_closing_ends_what_is_being_indexed(tmp_path: Path):
    begun, closing = threading.Event(), threading.Event()
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(100):
        (folder / f"{number}.md").write_text(f"Cat number {number} hunts mice.")

    class Slow(WordEmbedder):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            begun.set()
            assert closing.wait(60)
            return super().embed(texts)

    embedder = Slow()
    opened = Libraries(tmp_path / "index", {"many": folder}, lambda: embedder)
    opening = opened.open_soon(EvidenceSpec(library="many"))
    assert await asyncio.to_thread(begun.wait, 60)
    ended = asyncio.create_task(opened.aclose())
    await asyncio.sleep(0)
    closing.set()
    await ended
    assert opening.done()
    # The part that was being read, and no other.
    assert 0 < len(embedder.embedded) < 100
    assert not list((tmp_path / "index" / "many").glob("build-*"))


async def test_an_unknown_library_is_said_at_once(libraries: Libraries):
    with pytest.raises(NotFoundError, match="nowhere"):
        libraries.search_in(EvidenceSpec(library="nowhere"))


async def test_a_library_is_opened_by_the_first_search(libraries: Libraries, tmp_path: Path):
    search = libraries.search_in(EvidenceSpec(library="animals", mode="bm25"))
    assert not (tmp_path / "index").exists()
    assert [one.title for one in await search.search("mice", 1)] == ["cat"]
    assert (tmp_path / "index" / "animals").is_dir()


async def test_meaning_is_searched_by_vectors_whatever_was_chosen(libraries: Libraries):
    chosen = EvidenceSpec(library="animals", mode="bm25")
    search = await libraries.dense_search(chosen, "en")
    assert search is not None
    (passage,) = await search.search("hunt mice", 1)
    assert passage.title == "cat"
    # A cosine of unit vectors: BM25 knows no such bound, and gives no score of this name.
    assert set(passage.scores) == {"dense"}


@pytest.mark.parametrize(
    "evidence", [EvidenceSpec(library="animals"), EvidenceSpec(source="wikipedia")]
)
async def test_no_vectors_of_chinese_nor_of_the_web(libraries: Libraries, evidence: EvidenceSpec):
    language = "zh" if evidence.source == "library" else "en"
    assert await libraries.dense_search(evidence, language) is None


async def test_without_an_embedder_nothing_is_searched_by_meaning(wordless: Libraries):
    assert await wordless.dense_search(EvidenceSpec(library="animals"), "en") is None


async def test_texts_are_compared_by_the_embedder_in_its_languages(tmp_path: Path):
    embedder = WordEmbedder("both", ("en", "zh"))
    libraries = Libraries(tmp_path, find_embedder=lambda: embedder)
    for language in ("en", "zh"):
        assert libraries.similarity(language).name == "both"
    assert await libraries.similarity("en").compare(["mice"], ["mice"]) == ((1.0,),)
    assert embedder.embedded == ["mice"]


async def test_chinese_is_compared_by_its_words_where_the_embedder_reads_none(
    libraries: Libraries,
):
    assert libraries.similarity("en").name == "vectors"
    chinese = libraries.similarity("zh")
    assert chinese.name == "words"
    # 巴 黎 巴黎 against 巴 黎 巴黎: the same; against 伦 敦 伦敦: nothing in common.
    assert await chinese.compare(["巴黎"], ["巴黎", "伦敦"]) == ((1.0, 0.0),)


async def test_without_an_embedder_every_language_is_compared_by_its_words(wordless: Libraries):
    for language in ("en", "zh"):
        assert wordless.similarity(language).name == "words"
