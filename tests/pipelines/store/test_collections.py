"""Collections and the list of their documents, in both databases."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.retrieval.embedders import EmbedderSpec
from pipelines.store import RunStore
from pipelines.store import collections as limits
from pipelines.store.collections import DocumentFacts, NewDocument, checked_name

MODEL = EmbedderSpec(kind="openai", model="m", base_url="https://h/v1", languages=("zh",))


def new(id: str, name: str = "", size: int = 10) -> NewDocument:
    return NewDocument(id=id, name=name or f"{id}.txt", digest=f"digest of {id}", size=size)


def test_a_collection_is_its_owners(store: RunStore):
    collections = store.collections
    mine = collections.create("me", "  My   papers ", MODEL)
    assert [(one.name, one.embedder) for one in collections.of("me")] == [("My papers", MODEL)]
    assert collections.of("you") == []
    collections.add("me", mine, [new("a")])
    for call in (collections.get, collections.delete, collections.documents):
        with pytest.raises(NotFoundError):
            call("you", mine)
    with pytest.raises(NotFoundError):
        collections.change("you", mine, name="Theirs")
    with pytest.raises(NotFoundError):
        collections.add("you", mine, [new("b")])
    for act in (collections.document, collections.remove):
        with pytest.raises(NotFoundError):
            act("you", mine, "a")
    assert [one.id for one in collections.documents("me", mine)] == ["a"]


def test_names_are_each_owners_own(store: RunStore):
    first = store.collections.create("me", "Papers", EmbedderSpec())
    second = store.collections.create("me", "Books", EmbedderSpec())
    store.collections.create("you", "Papers", EmbedderSpec())
    with pytest.raises(InvalidInputError, match="already"):
        store.collections.create("me", "Papers", EmbedderSpec())
    with pytest.raises(InvalidInputError, match="already"):
        store.collections.change("me", second, name="Papers")
    store.collections.change("me", first, name="Papers")
    store.collections.change("me", second, name="Novels", embedder=MODEL)
    found = store.collections.named("me", "Novels")
    assert found is not None
    assert (found.id, found.embedder) == (second, MODEL)
    assert store.collections.named("you", "Novels") is None
    assert [one.name for one in store.collections.of("me")] == ["Novels", "Papers"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\u202eb"])
def test_a_name_is_wanted(store: RunStore, name: str):
    with pytest.raises(InvalidInputError, match="1 to 80"):
        checked_name(name)
    with pytest.raises(InvalidInputError, match="1 to 80"):
        store.collections.create("me", name, EmbedderSpec())


def test_no_key_is_stored(store: RunStore):
    for spec in (
        EmbedderSpec(kind="openai", model="sk-hunter2hunter2hunter2"),
        EmbedderSpec(kind="openai", model="m", base_url="https://h/hf_hunter2hunter2hunter2"),
    ):
        with pytest.raises(InvalidInputError, match="looks like a key"):
            store.collections.create("me", "Papers", spec)
    assert store.collections.of("me") == []


def test_documents_are_listed_counted_and_updated(store: RunStore):
    collections = store.collections
    mine = collections.create("me", "Papers", EmbedderSpec())
    listed = collections.add("me", mine, [new("b"), new("a"), new("c")])
    assert listed == (frozenset("abc"), (), None)
    facts = DocumentFacts(kind="pdf", title="熊猫", language="zh", pages=2, characters=9, rules="1")
    collections.update("me", mine, "b", "ready", facts, passages=5)
    refused = DocumentFacts(reason="bad_line", facts={"line": 3, "said": "no"})
    collections.update("me", mine, "a", "refused", refused)
    collections.update("me", mine, "c", "stored", DocumentFacts(), digest="other", size=7)
    ready, bad, waiting = collections.documents("me", mine)
    assert (ready.title, ready.language, ready.passages, ready.rules) == ("熊猫", "zh", 5, "1")
    assert (bad.reason, bad.facts) == ("bad_line", {"line": 3, "said": "no"})
    assert (waiting.digest, waiting.size, waiting.state) == ("other", 7, "stored")
    found = collections.get("me", mine)
    assert (found.documents, found.waiting, found.refused) == (3, 1, 1)
    assert (found.passages, found.size) == (5, 27)
    collections.remove("me", mine, "a")
    assert [one.id for one in collections.documents("me", mine)] == ["b", "c"]
    with pytest.raises(NotFoundError):
        collections.update("me", mine, "a", "ready", facts)
    collections.delete("me", mine)
    assert collections.all_ids() == set()


def test_a_document_takes_the_place_of_its_namesake(store: RunStore):
    mine = store.collections.create("me", "Papers", EmbedderSpec())
    store.collections.add("me", mine, [new("a", "x.txt"), new("b", "y.txt")])
    added = store.collections.add("me", mine, [new("c", "x.txt"), new("d", "z.txt")])
    assert added == (frozenset("cd"), ("a",), None)
    listed = [(one.id, one.name) for one in store.collections.documents("me", mine)]
    assert listed == [("b", "y.txt"), ("c", "x.txt"), ("d", "z.txt")]


def test_what_another_has_listed_meanwhile_is_left_as_it_is(store: RunStore):
    mine = store.collections.create("me", "Papers", EmbedderSpec())
    same = [new(id, "x.txt").model_copy(update={"digest": "one"}) for id in "ab"]
    store.collections.add("me", mine, same[:1])
    assert store.collections.add("me", mine, same[1:]) == (frozenset(), (), None)
    assert store.collections.digests("me", mine, ["x.txt", "y.txt"]) == {"x.txt": "one"}
    # One that was refused is tried again.
    store.collections.update("me", mine, "a", "refused", DocumentFacts(reason="bad_line"))
    assert store.collections.digests("me", mine, ["x.txt"]) == {}
    assert store.collections.add("me", mine, same[1:]) == (frozenset("b"), ("a",), None)


def test_what_fits_is_added(store: RunStore, monkeypatch: pytest.MonkeyPatch):
    mine = store.collections.create("me", "Papers", EmbedderSpec())
    store.collections.add("me", mine, [new("a")])
    monkeypatch.setattr(limits, "MAX_DOCUMENTS", 2)
    added = store.collections.add("me", mine, [new("b"), new("c")])
    assert added.added == {"b"}
    assert "2 documents at most" in str(added.refusal)
    # One in the place of another is none more.
    assert store.collections.add("me", mine, [new("d", "b.txt")]).refusal is None
    monkeypatch.setattr(limits, "MAX_BYTES", 2**20)
    added = store.collections.add("me", mine, [new("e", "b.txt", size=2**20)])
    assert "1 MB at most" in str(added.refusal)
    assert [one.id for one in store.collections.documents("me", mine)] == ["a", "d"]
    monkeypatch.setattr(limits, "MAX_COLLECTIONS", 1)
    with pytest.raises(InvalidInputError, match="as many as one person"):
        store.collections.create("me", "More", EmbedderSpec())
    store.collections.create("you", "More", EmbedderSpec())
