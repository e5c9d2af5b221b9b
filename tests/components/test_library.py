"""Views of collections: what they hold, documents cut into passages, searches side by side."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.library import (
    collection_view,
    document_about,
    documents_view,
    indexing_view,
    letter,
    search_view,
    sections_view,
    size_words,
)
from pipelines.base import Passage
from pipelines.engine.indexing import IndexingProgress
from pipelines.engine.library import SearchOutcome
from pipelines.errors import failure
from pipelines.retrieval.embedders import EmbedderKind, EmbedderSpec
from pipelines.retrieval.preparing import Section
from pipelines.retrieval.reading.parsed import ENDINGS, Kind, Reason
from pipelines.store.collections import StoredCollection, StoredDocument
from tests.snapshots import Snapshot

LATIN_LANGUAGES = (
    "ca",
    "cs",
    "da",
    "de",
    "es",
    "fi",
    "fr",
    "hu",
    "id",
    "it",
    "nb",
    "nl",
    "pl",
    "pt",
    "ro",
    "sv",
    "tr",
    "vi",
)
SCRIPT_LANGUAGES = ("ar", "el", "he", "hi", "ja", "ko", "ru", "th")
NOW = datetime(2026, 11, 25, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\u202e"


def collection(**fields: Any) -> StoredCollection:
    known = {"id": "c", "name": "Sea", "created": NOW, "embedder": EmbedderSpec()}
    return StoredCollection(**{**known, **fields})


def document(**fields: Any) -> StoredDocument:
    known = {
        "id": "d",
        "number": 0,
        "name": "whales.pdf",
        "digest": "x",
        "size": 1536,
        "added": NOW,
        "state": "ready",
        "passages": 3,
        "kind": "pdf",
        "title": "Whales",
        "pages": 2,
        "characters": 900,
    }
    return StoredDocument(**{**known, **fields})


def passage(id: str, text: str = "Whales swim.", start: int = 0, **fields: Any) -> Passage:
    return Passage(
        id=id, title="Whales", text=text, source="w.pdf, p. 1", start=start,
        end=start + len(text), **fields,
    )  # fmt: skip


@pytest.fixture(params=LANGUAGES)
def t(request: pytest.FixtureRequest) -> Catalogue:
    return Catalogue(request.param, strict=True)


EN = Catalogue("en", strict=True)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1, "1 byte"), (1536, "1.5 KB"), (52_428_800, "50 MB"), (2**30, "1.0 GB")],
)
def test_sizes(size: int, words: str):
    assert size_words(size, EN) == words


SECTION = Section(
    label="7", title="Whales", text="One two. Three four. Five six.", start=0, first=0, last=2
)
BEFORE = Section(label="2", title="", text="swim. Cats.", start=100, first=4, last=5)
PLAIN = Section(label="", title="W", text="Whales swim.", start=0, first=0, last=1)


def test_collections(t: Catalogue, snapshot: Snapshot):
    """A collection in a line, documents cut into passages, searches side by side."""
    held = collection(documents=2, passages=1234, refused=1)
    snapshot(collection_view(held, False, t), state="a collection that is not current")
    snapshot(collection_view(held, True, t), state="a current one")
    running = IndexingProgress("embed", 1, 4)
    snapshot(indexing_view(running, collection(documents=1), False, t), state="being indexed")
    snapshot(documents_view([], t), state="no document")
    text = SECTION.text
    passages = [passage("d#0", text[:20]), passage("d#1", text[9:], 9)]
    shared = sections_view([SECTION], passages, t, kind="pdf", marked=1)
    snapshot(shared, state="passages that share a sentence")
    earlier = [passage("x")] * 4 + [passage("d#4", "Whales swim.", 93)]
    begun = sections_view([BEFORE], earlier, t, kind="pdf")
    snapshot(begun, state="a passage that began on the page before")
    snapshot(sections_view([PLAIN], [passage("d#0")], t, kind="text"), state="no pages")
    snapshot(search_view("where whales swim", found(), t), state="a search")  # type: ignore[arg-type]
    error = failure("search.other_language", "MiniLM", name="MiniLM", language="zh")
    nothing = {
        "bm25": SearchOutcome([]),
        "dense": SearchOutcome([], error),
        "hybrid": SearchOutcome([]),
    }
    snapshot(search_view("竹林", nothing, t), state="nothing found")  # type: ignore[arg-type]


def test_foreign_names_stay_text():
    for html in (
        collection_view(collection(name=HOSTILE, documents=2), False, EN),
        documents_view([document(name=HOSTILE, title="")], EN),
        search_view("where whales swim", found(), EN),  # type: ignore[arg-type]
    ):
        assert "<script>" not in html


@pytest.mark.parametrize("kind", get_args(EmbedderKind))
def test_every_embedder_has_its_words(t: Catalogue, kind: EmbedderKind):
    html = collection_view(collection(embedder=EmbedderSpec(kind=kind, model="m")), True, t)
    assert "library." not in html


def test_every_stage_and_state_has_its_words(t: Catalogue):
    stages = ("waiting", "fetch", "read", "embed", "index", "done", "stopped", "failed")
    for stage in stages:
        progress = IndexingProgress(stage, 1, 4, HOSTILE)  # type: ignore[arg-type]
        for documents, current in ((0, True), (3, True), (3, False)):
            html = indexing_view(progress, collection(documents=documents), current, t)
            assert "library." not in html
            assert "<script>" not in html
    running = indexing_view(IndexingProgress("embed", 1, 4), collection(documents=1), False, t)
    assert 'value="0.2500"' in running
    # As high as it will be once a document is being read.
    assert "\u00a0" in running


def test_the_time_that_is_left_is_told_once_it_is_known():
    began = time.monotonic() - 10
    progress = IndexingProgress("embed", 30, 70, since=began, first=10)
    # Twenty in ten seconds, forty are left.
    assert progress.seconds_left == pytest.approx(20, rel=0.01)
    assert "about 20 s left" in indexing_view(progress, collection(documents=1), False, EN)
    assert IndexingProgress("embed", 10, 70, since=began, first=10).seconds_left is None


@pytest.mark.parametrize("reason", get_args(Reason))
def test_every_refusal_has_its_words(t: Catalogue, reason: Reason):
    facts = dict.fromkeys(("kind", "line", "said", "most", "pages", "seconds", "percent"), HOSTILE)
    refused = document(state="refused", kind="", title="", reason=reason, facts=facts)
    for html in (documents_view([refused], t), document_about(refused, t)):
        assert "<script>" not in html
        assert t("library.document.refused") in html or "vs-notice" in html


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_and_remark_has_its_words(t: Catalogue, kind: Kind):
    assert kind in ENDINGS.values()
    facts = {"promised": "pdf", "kind": kind, "encoding": "gb18030", "silent": 1, "pages": 9}
    facts |= {"damaged": 7}
    remarks = ("mislabelled", "encoding", "silent_pages", "damaged")
    known = document(kind=kind, remarks=remarks, facts=facts)
    for html in (documents_view([known], t), document_about(known, t)):
        assert html.count(t(f"library.kind.{kind}")) >= 2
        assert "gb18030" in html
        assert t("library.remark.damaged", damaged=7) in html


def test_a_document_is_shown_as_it_was_read_first(t: Catalogue):
    facts = {"language": "fr", "letters": 41, "unreadable": 7, "silent": 1, "beginning": HOSTILE}
    remarks = ("unreadable", "few_letters", "other_language")
    known = document(remarks=remarks, facts=facts, pages=9)
    about, listed = document_about(known, t), documents_view([known], t)
    for html in (about, listed):
        assert "<script>" not in html
        assert "alert(1)" in html
        assert t("library.remark.unreadable", unreadable=7) in html
        assert t("library.remark.few_letters", letters=41) in html
        assert t("language.fr") in html
    assert t("library.check.pages", silent=1, pages=9) in about
    assert about.index(t("library.beginning")) < about.index(
        t("library.remark.few_letters", letters=41)
    )
    # Documents that an earlier release has read have no check yet.
    assert t("library.beginning") not in document_about(document(), t)


@pytest.mark.parametrize("code", ["en", "zh", "other", *LATIN_LANGUAGES, *SCRIPT_LANGUAGES])
def test_every_language_that_can_be_found_has_its_name(t: Catalogue, code: str):
    facts = {"language": code, "letters": 90, "beginning": "A"}
    assert t(f"language.{code}") in document_about(document(facts=facts), t)


def test_documents_open_and_addresses_are_links():
    html = documents_view([document()], EN)
    assert 'data-action="document"' in html
    assert 'data-value="d"' in html
    about = document_about(document(url="https://e.org/w", name="https://e.org/w"), EN)
    assert 'href="https://e.org/w"' in about
    assert "href" not in document_about(document(url="javascript:alert(1)"), EN)


def test_letters():
    assert [letter(at) for at in (0, 25, 26, 51, 52)] == ["A", "Z", "AA", "AZ", "BA"]


def found() -> dict[str, SearchOutcome]:
    a = passage("d#0", "Whales swim in the sea.", score=2.5, rank=1)
    b = passage("d#1", f"Fish {HOSTILE}", score=0.5, rank=2)
    return {
        "bm25": SearchOutcome([a, b]),
        "dense": SearchOutcome([b.model_copy(update={"rank": 1, "score": 0.71})]),
        "hybrid": SearchOutcome([b.model_copy(update={"rank": 1, "score": 1 / 61 + 1 / 62}), a]),
    }


def test_the_same_passage_is_linked_across_columns():
    html = search_view("where whales swim", found(), EN)  # type: ignore[arg-type]
    for place in ("hit-bm25-A", "hit-bm25-B", "hit-dense-B", "hit-hybrid-A", "hit-hybrid-B"):
        assert f'id="{place}"' in html
    assert "hit-dense-A" not in html
    assert html.count('data-goto="hit-dense-B"') == 2
    for number in ("2.50", "0.710", "0.0325"):
        assert number in html


def test_a_long_passage_is_shown_from_where_it_matters():
    text = "Nothing here is of interest. " * 40 + "Whales swim. " + "And so on it goes. " * 40
    hit = passage("d#0", text, score=1.0, rank=1)
    results = {
        "bm25": SearchOutcome([hit]),
        "dense": SearchOutcome([]),
        "hybrid": SearchOutcome([]),
    }
    html = search_view("whales", results, EN)  # type: ignore[arg-type]
    assert '<mark class="vs-library-word">Whales</mark>' in html
    assert html.count("Nothing here") < 8
