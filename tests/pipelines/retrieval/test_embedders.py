"""Embedders of collections: which there are, what they are asked, and how they fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from pipelines.base import minilm_folder
from pipelines.errors import (
    AuthenticationError,
    InvalidInputError,
    InvalidReplyError,
    MissingKeyError,
    ModelTimeoutError,
    RateLimitError,
    UnknownModelError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.remote import RetryPolicy
from pipelines.retrieval.embedders import (
    Embedders,
    EmbedderSpec,
    OpenAIEmbedder,
    SentenceEmbedder,
    vectors_name,
)
from pipelines.retrieval.indexes import EnglishEmbedder, LexicalEmbedder, embedded_queries
from tests.pipelines.retrieval.examples import WordEmbedder
from tests.scripted.web_wire import Naps
from tests.scripted.wire import Respond, Wire, drips, says, serve


def vectors(*rows: Sequence[float]) -> Respond:
    """An answer whose vectors come in the reverse order."""
    data = [{"index": at, "embedding": list(row)} for at, row in enumerate(rows)]
    return says({"data": data[::-1]})


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serve() as wire:
        yield wire


@pytest.fixture
def service(wire: Wire) -> OpenAIEmbedder:
    embedder = OpenAIEmbedder("m", ("en", "zh"), base_url=wire.url, key="sk-mine")
    embedder._retry = RetryPolicy(attempts=3, sleep=Naps())
    return embedder


def test_vectors_of_a_service_are_made_unit_vectors(service: OpenAIEmbedder, wire: Wire):
    wire.answers(vectors((3, 4), (0, 2)))
    assert service.embed(["one", ""]).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 1]]
    (seen,) = wire.seen
    assert seen.path.endswith("/v1/embeddings")
    assert seen.body == {"model": "m", "input": ["one", " "]}
    assert seen.headers["Authorization"] == "Bearer sk-mine"
    assert service.embed([]).shape[0] == 0


def test_many_texts_are_several_requests(service: OpenAIEmbedder, wire: Wire):
    wire.answers(vectors(*[(1, 0)] * 64), vectors((0, 1)))
    assert service.embed(["x"] * 65).shape == (65, 2)
    assert [len(one.body["input"]) for one in wire.seen] == [64, 1]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (says({"error": {"message": "bad sk-mine"}}, 401), AuthenticationError),
        (says({"error": {"message": "no such model"}}, 404), UnknownModelError),
        (says({"error": "too long"}, 400), VeriscopeError),
        (says({"data": []}), InvalidReplyError),
        (says({"data": [{"index": 0, "embedding": ["x"]}]}), InvalidReplyError),
        (says({"data": [{"index": 0, "embedding": [None]}]}), InvalidReplyError),
        (says({"data": [{"index": 1, "embedding": [1]}]}), InvalidReplyError),
        (says([]), InvalidReplyError),
        (says("[" * 5000), InvalidReplyError),
        (says("[" * 5000, 500), VeriscopeError),
        (says({"data": [{"index": 0, "embedding": [10**400]}]}), InvalidReplyError),
        (says({"error": "wait"}, 429), RateLimitError),
    ],
)
def test_failures_are_named_and_tell_no_key(
    service: OpenAIEmbedder, wire: Wire, reply: Respond, error: type[VeriscopeError]
):
    wire.answers(reply)
    with pytest.raises(error) as raised:
        service.embed(["one"])
    assert "sk-mine" not in str(raised.value)
    assert len(wire.seen) == (3 if raised.value.retryable else 1)


def test_a_service_that_sends_next_to_nothing_for_ever_is_given_up(wire: Wire):
    wire.answers(vectors((1, 0)), drips(b" ", "application/json"))
    slow = OpenAIEmbedder("m", ("en",), base_url=wire.url)
    # What a first request has to load takes a busy machine longer than the limit.
    slow.embed(["one"])
    slow._longest = 0.2
    with pytest.raises(ModelTimeoutError):
        slow.embed(["two"])
    assert wire.gone.wait(60)
    # It had all the time that a request may take.
    assert len(wire.seen) == 2


def test_a_service_that_recovers_is_asked_again(service: OpenAIEmbedder, wire: Wire):
    wire.answers(says({}, 503), vectors((1, 0)))
    assert service.embed(["one"]).tolist() == [[1, 0]]


def test_no_key_and_no_server(wire: Wire):
    wire.answers(says({}, 401))
    with pytest.raises(MissingKeyError):
        OpenAIEmbedder("m", ("en",), base_url=wire.url).embed(["one"])
    assert "Authorization" not in wire.seen[0].headers
    nobody = OpenAIEmbedder("m", ("en",), base_url="http://127.0.0.1:9")
    nobody._retry = RetryPolicy(attempts=1)
    with pytest.raises(UnreachableError):
        nobody.embed(["one"])


def test_strangers_reach_nothing_inside(wire: Wire):
    wire.answers(vectors((1, 0)))
    inside = OpenAIEmbedder("m", ("en",), base_url=wire.url, public_only=True)
    inside._retry = RetryPolicy(attempts=1)
    with pytest.raises(UnreachableError):
        inside.embed(["one"])
    assert wire.seen == []


def test_embedders_of_all_kinds():
    default = WordEmbedder()
    embedders = Embedders(lambda: default)
    assert embedders.get(EmbedderSpec()) is default
    assert embedders.get(EmbedderSpec(kind="none")) is None
    assert isinstance(embedders.get(EmbedderSpec(kind="words")), LexicalEmbedder)
    local = EmbedderSpec(kind="sentence_transformers", model="intfloat/multilingual-e5-small")
    found = embedders.get(local)
    assert isinstance(found, SentenceEmbedder)
    assert found.name == "multilingual-e5-small"
    # Loaded once, however many collections use it.
    assert embedders.get(local) is found


def test_what_is_no_embedder_is_refused():
    embedders = Embedders(lambda: None)
    for spec, words in (
        (EmbedderSpec(kind="sentence_transformers"), "has no name"),
        (EmbedderSpec(kind="openai", model=" "), "has no name"),
        (EmbedderSpec(kind="openai", model="m", base_url="ftp://x"), "not a web address"),
        (EmbedderSpec(kind="openai", model="m", languages=()), "reads no language"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            embedders.check(spec)
    public = Embedders(lambda: None, public_only=True)
    public.check(EmbedderSpec(kind="sentence_transformers", model="BAAI/bge-m3"))
    with pytest.raises(InvalidInputError, match="bundled models"):
        public.check(EmbedderSpec(kind="sentence_transformers", model="/etc"))


def test_vectors_are_kept_apart_by_what_decides_them():
    embedders = Embedders(lambda: WordEmbedder("bundled"))
    service = EmbedderSpec(kind="openai", model="m", base_url="https://a/v1")
    specs = [
        EmbedderSpec(),
        EmbedderSpec(kind="words"),
        service,
        service.model_copy(update={"base_url": "https://b/v1"}),
        service.model_copy(update={"model": "n"}),
        service.model_copy(update={"languages": ("zh",)}),
        EmbedderSpec(kind="sentence_transformers", model="m"),
    ]
    names = [embedders.identity(spec) for spec in specs]
    assert names[0] == "bundled"
    assert len(set(names)) == len(specs)
    assert len({vectors_name(name) for name in names if name}) == len(specs)
    assert embedders.identity(EmbedderSpec(kind="none")) is None
    assert Embedders(lambda: None).identity(EmbedderSpec()) is None


def test_queries_are_embedded_as_their_model_wants():
    class Asking(WordEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> Any:
            return self.embed([f"query: {text}" for text in texts])

    plain, asking = WordEmbedder(), Asking()
    embedded_queries(plain, ["cats"])
    embedded_queries(asking, ["cats"])
    assert (plain.embedded, asking.embedded) == (["cats"], ["query: cats"])


class Prompted:
    """A model of sentence-transformers that remembers what it read."""

    device = torch.device("cpu")
    max_seq_length = 8

    def __getitem__(self, at: int) -> object:
        return self

    def __init__(self, prompts: dict[str, str]) -> None:
        self.prompts = prompts
        self.default_prompt_name: str | None = "query"
        self.read: list[str] = []

    def get_embedding_dimension(self) -> int:
        return 2

    def encode(self, texts: list[str], **_: Any) -> Any:
        self.read += texts
        return np.ones((len(texts), 2), np.float32)


@pytest.mark.parametrize(
    ("name", "prompts", "passage", "query"),
    [
        ("a/plain", {}, "x", "x"),
        ("a/plain", {"query": "Q: ", "document": "D: "}, "D: x", "Q: x"),
        ("a/plain", {"query": "", "passage": "P: "}, "P: x", "x"),
        ("intfloat/multilingual-e5-small", {}, "passage: x", "query: x"),
    ],
)
def test_prompts_of_a_model(
    monkeypatch: pytest.MonkeyPatch, name: str, prompts: dict[str, str], passage: str, query: str
):
    model = Prompted(prompts)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", lambda *_, **__: model)
    embedder = SentenceEmbedder(name, ("en",))
    embedder.embed(["x"])
    embedder.embed_queries(["x"])
    assert model.read == list(dict.fromkeys([passage, query]))
    assert model.default_prompt_name is None


def test_a_folder_of_a_model_gives_its_vectors():
    folder = minilm_folder()
    assert folder is not None
    ours = SentenceEmbedder(f"{folder}/", ("en",))
    assert ours.name == folder.name
    texts = ["Whales swim in the sea.", "The moon pulls the water of the oceans."]
    vectors = ours.embed(texts)
    assert np.allclose(vectors, EnglishEmbedder().embed(texts), atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_model_that_is_not_there(tmp_path: Any):
    with pytest.raises(UnknownModelError, match="could not be loaded"):
        SentenceEmbedder(str(tmp_path / "nothing"), ("en",)).embed(["x"])
