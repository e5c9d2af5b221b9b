"""Documents and an embedder small enough to reckon with."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pipelines.base import Language
from pipelines.retrieval.documents import Document
from pipelines.retrieval.indexes import terms
from pipelines.retrieval.library import build_index

DIMENSION = 64


class WordEmbedder:
    """A bag of hashed words as a unit vector: nearness is shared words. Remembers every text."""

    def __init__(self, name: str = "words", languages: Sequence[Language] = ("en",)) -> None:
        self.name = name
        self.languages = frozenset(languages)
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for term in terms(text):
                vector[crc32(term.encode()) % DIMENSION] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def document(key: str, text: str, title: str = "", language: Language = "en") -> Document:
    return Document(id=key, title=title or key, language=language, text=text, source=f"{key}.md")


def animals() -> list[Document]:
    """Three documents of one passage each, the last in Chinese."""
    return [
        document("cat", "Cats sleep for most of the day. They hunt mice at night.", "Cat"),
        document("whale", "Whales are mammals that live in the sea.", "Whale"),
        document("xiongmao", "大熊猫生活在中国四川的竹林里，主要吃竹子。", "大熊猫", "zh"),
    ]


def build_beside_others(
    target: Path, barrier: Barrier, results: Queue[tuple[int, int, list[str]]]
) -> None:
    """Build the animals' index at the same moment as other processes, and report."""
    embedder = WordEmbedder()
    barrier.wait(timeout=120)
    index = build_index(animals(), target, embedder)
    results.put((len(index.passages), index.reused, embedder.embedded))
