"""The Library page without a browser, from a new collection to a question that uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pipelines.engine.library import Libraries
from pipelines.engine.service import Engine
from pipelines.errors import NotFoundError
from pipelines.retrieval.embedders import Embedders, EmbedderSpec
from tests.app.opening import always, page_engine
from tests.app.test_screens import ME, page, told
from tests.pipelines.engine.test_collections import HeldEmbedder
from tests.pipelines.retrieval.reading.made import PAGE, encrypted_pdf, pdf

WHALES = pdf(["Whales swim in the sea.", "They breathe air."], title="On whales")
OTHER = "b" * 48


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    def opened(folder: Path) -> Engine:
        libraries = Libraries(folder / "index", find_embedder=lambda: None)
        return Engine(folder, pool=always("In the sea."), libraries=libraries)

    with page_engine(tmp_path, opened) as engine:
        yield engine


def library(**state: Any) -> AppTest:
    return page("library", **state)


def drawn(test: AppTest) -> AppTest:
    test.run()
    assert not test.exception
    return test


def press(test: AppTest, key: str) -> AppTest:
    test.button(key=key).click()
    return drawn(test)


def created(**state: Any) -> AppTest:
    test = drawn(library(**state))
    test.text_input(key="library.name").set_value("Sea")
    return press(test, "library.create")


def upload(test: AppTest, *files: tuple[str, bytes]) -> AppTest:
    test.file_uploader[0].set_value([(name, data, "") for name, data in files])
    return drawn(test)


def opened(test: AppTest) -> str:
    return test.query_params["collection"]


def settled(engine: Engine, test: AppTest) -> AppTest:
    """The page when what it began has ended."""
    job = engine.service.collections._jobs.get(opened(test))
    assert job is not None
    job.wait(120)
    return drawn(test)


@pytest.mark.parametrize(("lang", "title"), [("en", "Library"), ("zh", "文档库")])
def test_an_empty_page_says_what_it_is_for(engine: Engine, lang: str, title: str):
    test = drawn(library(lang=lang))
    assert title in told(test)
    assert test.button(key="library.try")
    assert "2,000" in " ".join(one.value for one in test.caption)


def test_files_are_stored_indexed_and_listed(engine: Engine):
    test = created()
    assert "No documents yet" in told(test)
    test = upload(
        test, ("whales.pdf", WHALES), ("tides.html", PAGE.encode()),
        ("locked.pdf", encrypted_pdf("secret")),
    )  # fmt: skip
    assert "3 documents are stored: whales.pdf, tides.html, locked.pdf" in told(test)
    test = settled(engine, test)
    html = told(test)
    for words in ("On whales", "Tides", "It needs a password.", "Indexed: can be chosen"):
        assert words in html
    # The same once more, and one that is new.
    test = upload(test, ("whales.pdf", WHALES), ("cats.md", b"# Cats\n\nThey sleep."))
    assert "4 documents are stored: whales.pdf, tides.html, locked.pdf, cats.md" in told(test)
    assert "One was there already, unchanged: whales.pdf" in told(test)
    test = settled(engine, test)
    assert engine.service.collections.store.get(ME, opened(test)).documents == 4


def test_indexing_shows_how_far_it_is_is_stopped_and_goes_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    held = HeldEmbedder(free=2)
    engine.service.collections.embedders = Embedders(lambda: held)
    monkeypatch.setattr("pipelines.engine.indexing._BATCH", 2)
    monkeypatch.setattr("pipelines.engine.library._ENDED_SOON", 0.01)
    test = created()
    rows = "\n".join(f'{{"text": "Animal number {at} is seen."}}' for at in range(9))
    upload(test, ("rows.jsonl", rows.encode()))
    assert held.waiting.wait(120)
    assert "Embedding passages: 4 of 9" in told(drawn(test))
    press(test, "library.stop")
    held.go.set()
    test = settled(engine, test)
    assert "Stopped. What is done is kept" in told(test)
    assert test.button(key="library.index").label == "Continue"
    press(test, "library.index")
    assert "Indexed: can be chosen" in told(settled(engine, test))
    assert len(held.embedded) == 9


def test_a_search_shows_three_columns(engine: Engine):
    test = upload(created(), ("whales.pdf", WHALES), ("tides.html", PAGE.encode()))
    test = settled(engine, test)
    test.text_input(key=f"library.query.{opened(test)}").set_value("where whales swim")
    html = told(drawn(test))
    for words in ("hit-bm25-A", "hit-hybrid-A", "embedder does not read", "Shared words"):
        assert words in html


def test_a_collection_is_asked_once_it_is_indexed(engine: Engine):
    test = created()
    asked = f"ask-{opened(test)}"
    assert test.button(key=asked).disabled
    collection = opened(test)
    test = settled(engine, upload(test, ("a.txt", b"Cats sleep.")))
    assert not test.button(key=asked).disabled
    test.button(key=asked).click().run()
    assert test.session_state["evidence.library"] == f"collection {collection}"


def test_a_document_is_looked_at_and_deleted(engine: Engine):
    test = settled(engine, upload(created(), ("whales.pdf", WHALES), ("a.txt", b"Cats sleep.")))
    collections = engine.service.collections
    first = collections.store.documents(ME, opened(test))[0]
    test.session_state["_library.document"] = opened(test), first.id
    test.session_state["_library.passage"] = 0
    html = told(drawn(test))
    for words in ("On whales", "whales.pdf", "Page 1", "Page 2", "vs-cut-marked"):
        assert words in html
    test = press(test, f"sure-{first.id}")
    test = settled(engine, test)
    assert "On whales" not in told(test)
    assert [one.name for one in collections.store.documents(ME, opened(test))] == ["a.txt"]


def test_a_collection_is_renamed_and_deleted(engine: Engine):
    test = created()
    collection = opened(test)
    test.text_input(key=f"library.rename.{collection}").set_value("Ocean")
    test = press(test, "library.rename")
    assert "Ocean" in told(test)
    test.text_input(key=f"library.rename.{collection}").set_value(" ")
    test = press(test, "library.rename")
    assert "A collection needs a name" in told(test)
    test = press(test, f"sure-{collection}")
    assert engine.service.collections.store.of(ME) == []
    assert test.button(key="library.try")


def test_two_collections_of_one_name(engine: Engine):
    created()
    test = created()
    assert "There is a collection called" in told(test)
    assert len(engine.service.collections.store.of(ME)) == 1


def test_a_file_that_is_not_taken_says_why_in_the_language_of_the_page(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pipelines.engine.library.MAX_FILE", 10)
    test = upload(created(lang="zh"), ("a.txt", b"Whales swim in the sea."), ("b.txt", b"Cats."))
    said = "a.txt: 文件 a.txt 超过 0 MB。请拆分，或另存为纯文本。"
    # What a component is given is JSON, in which Chinese is escaped.
    assert json.dumps(said)[1:-1] in told(test)
    # The other one is stored all the same.
    assert engine.service.collections.store.get(ME, opened(test)).documents == 1


def test_another_visitors_collection_is_not_there(engine: Engine):
    theirs = engine.service.collections.create(OTHER, "Theirs")
    test = library()
    test.query_params["collection"] = theirs
    assert "There is no such collection." in told(drawn(test))
    assert "Theirs" not in told(test)


def test_the_bundled_articles_can_be_tried(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    folder = Path(__file__).parents[2] / "sample_data" / "library"
    few = sorted(folder.rglob("*.md"))[:2]
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: few)
    test = press(drawn(library()), "library.try")
    monkeypatch.undo()
    test = settled(engine, test)
    stored = engine.service.collections.store.get(ME, opened(test))
    assert (stored.name, stored.documents, stored.waiting) == ("Bundled articles", 2, 0)


def test_addresses_are_listed_or_named(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    began: list[str] = []
    monkeypatch.setattr(
        engine.service.collections, "index", lambda owner, collection, key: began.append(collection)
    )
    test = created()
    test.session_state["library.way"] = "addresses"
    test = drawn(test)
    test.text_area(key="library.addresses").set_value("https://e.org/a\nnowhere")
    test = press(test, "library.addresses.add")
    assert "This is not the address of a web page: nowhere" in told(test)
    test.text_area(key="library.addresses").set_value("https://e.org/a")
    test = press(test, "library.addresses.add")
    (document,) = engine.service.collections.store.documents(ME, opened(test))
    assert (document.name, document.state) == ("https://e.org/a", "address")
    assert began == [opened(test)]
    assert test.text_area(key="library.addresses").value == ""


def test_the_embedder_is_changed(engine: Engine):
    test = created(**{"library.embedder": True})
    place = f"library.embedder.{opened(test)}"
    test.radio(key=f"{place}.kind").set_value("openai")
    test = drawn(test)
    test.text_input(key=f"{place}.address").set_value("http://127.0.0.1:9/v1")
    test = press(test, f"{place}.use")
    assert "The embedder has no name." in told(test)
    test.text_input(key=f"{place}.service_model").set_value("embed")
    test.text_input(key=f"{place}.key").set_value("sk-mine")
    test = press(test, f"{place}.use")
    stored = engine.service.collections.store.get(ME, opened(test))
    assert stored.embedder == EmbedderSpec(
        kind="openai", model="embed", base_url="http://127.0.0.1:9/v1"
    )
    # Its key stays in the session.
    assert test.session_state["_keys"] == {("search", "embedder http://127.0.0.1:9/v1"): "sk-mine"}
    test.radio(key=f"{place}.kind").set_value("sentence_transformers")
    test = drawn(test)
    test.selectbox(key=f"{place}.model").set_value("BAAI/bge-m3")
    test = press(test, f"{place}.use")
    stored = engine.service.collections.store.get(ME, opened(test))
    assert (stored.embedder.kind, stored.embedder.model) == (
        "sentence_transformers",
        "BAAI/bge-m3",
    )


def test_a_question_is_asked_of_a_collection(engine: Engine):
    test = settled(engine, upload(created(), ("whales.pdf", WHALES)))
    collection = opened(test)
    ask = drawn(page("ask"))
    options = ask.selectbox(key="evidence.library").options
    assert "Sea" in options
    ask.selectbox(key="evidence.library").set_value(f"collection {collection}")
    ask = drawn(ask)
    found = _chosen(ask)
    assert (found["library"], found["collection"]) == ("Sea", collection)
    # One that was deleted is chosen no more.
    engine.service.collections.delete(ME, collection)
    assert drawn(ask).selectbox(key="evidence.library").value == "sample"


def _chosen(test: AppTest) -> dict[str, Any]:
    """The evidence that the page would use."""

    def show() -> None:
        import streamlit as st

        from app.screens.setup import chosen_evidence

        st.text(chosen_evidence().model_dump_json())

    asked = AppTest.from_function(show, default_timeout=60)
    for key in ("_owner", "evidence.library"):
        asked.session_state[key] = test.session_state[key]
    asked.run()
    assert not asked.exception
    return json.loads(asked.text[0].value)


def test_nothing_of_a_visitor_is_anybody_elses(engine: Engine):
    test = settled(engine, upload(created(), ("whales.pdf", WHALES)))
    ask = drawn(page("ask", _owner=OTHER))
    assert "Sea" not in ask.selectbox(key="evidence.library").options
    with pytest.raises(NotFoundError):
        engine.service.collections.evidence(OTHER, opened(test), "bm25")
